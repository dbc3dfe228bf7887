"""Kind PocketIDOIDCClient: an OIDC client in Pocket-ID and the Secret with its credentials."""
