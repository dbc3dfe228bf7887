"""Deployed instances of Pocket-ID."""
