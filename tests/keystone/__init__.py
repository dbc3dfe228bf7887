"""Tests of the Keystone rooms, and the stub that stands for Keystone where a real one would be too slow."""
