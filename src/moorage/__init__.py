"""Moorage attaches identity backends to an OpenStack Keystone and keeps them attached."""

__version__ = "0.1.0"
