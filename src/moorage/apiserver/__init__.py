"""The embedded, Kubernetes-compatible API server. The outside speaks HTTP to it; `Server` is imported, and the pure strategic merge for templates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moorage.apiserver.server import Server

__all__ = ["Server"]


def __getattr__(name: str) -> Any:
    if name == "Server":
        from moorage.apiserver.server import Server

        return Server
    raise AttributeError(name)
