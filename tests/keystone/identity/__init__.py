"""Tests of the Identity API client."""
