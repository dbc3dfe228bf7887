"""One-machine mode from the outside."""
