"""Controllers of the built-in workloads: each decides from a snapshot, purely, and performs what it decided."""
