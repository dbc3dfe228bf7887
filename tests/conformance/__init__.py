"""One suite of API semantics for two servers: a real kube-apiserver and the embedded one."""
