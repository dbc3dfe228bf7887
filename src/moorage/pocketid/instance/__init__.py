"""Kind PocketIDInstance: a Pocket-ID server, adopted or deployed."""
