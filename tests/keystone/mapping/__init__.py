"""Mapping rules: the engine against Keystone itself, and what admission says of them."""
