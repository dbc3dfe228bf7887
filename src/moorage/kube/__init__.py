"""The client of a Kubernetes API server: connection, REST, watch, errors. It knows no kind's meaning and keeps no state.

Import from the modules: `config` (kubeconfig, in-cluster), `client`, `watch`, `errors`, `resources`.
"""
