"""Public bug reports and decisions, proved on real parts."""
