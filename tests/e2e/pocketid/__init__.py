"""A client's whole life at a Pocket-ID, by the example that people copy, on one machine and on a real kube-apiserver."""
