"""The vocabulary of the house: frozen data and pure functions, no I/O, no clock, nothing of ours imported."""
