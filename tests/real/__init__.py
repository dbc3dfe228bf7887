"""Real servers for tests: each on free loopback ports and in a private folder, started and stopped by its own pid."""
