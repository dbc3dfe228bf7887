"""Outgoing HTTP to servers that are not the API server: sessions by purpose, names of Services, retries."""
