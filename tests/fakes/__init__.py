"""Stand-ins for what cannot be had from Python and Debian packages. Each says in its name that it is a fake."""
