"""Kind PocketIDUser: a user in Pocket-ID."""
