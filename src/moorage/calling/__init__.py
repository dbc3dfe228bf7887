"""HTTP/1.1 towards other servers, and JSON as it goes there: what the Kubernetes client and calls of other APIs share."""
