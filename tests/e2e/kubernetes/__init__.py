"""`moorage run` on a real kube-apiserver."""
