"""The documentation is true: its commands run, and nothing that a person meets is missing from it."""
