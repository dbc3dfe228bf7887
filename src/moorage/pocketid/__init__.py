"""Pocket-ID: OIDC clients, their secrets, and what belongs to them."""
