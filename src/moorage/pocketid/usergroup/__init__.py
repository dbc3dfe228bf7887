"""Kind PocketIDUserGroup: a group in Pocket-ID, its members and claims."""
