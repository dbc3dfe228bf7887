"""Kind PocketIDAPI: an API (resource) in Pocket-ID with its permissions."""
