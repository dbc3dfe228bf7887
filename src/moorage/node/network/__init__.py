"""The network of one machine: loopback addresses, names, and forwarding from Services to pods."""
