"""Tests of kind KeystoneIdentityBackend."""
