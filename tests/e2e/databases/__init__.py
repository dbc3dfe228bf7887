"""Keystone on real database servers."""
