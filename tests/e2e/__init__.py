"""The product as people run it: `moorage up` and `moorage run` as processes, on a real slapd, Keystone and kube-apiserver."""
