"""What a federated backend hands to the room that assembles the sidecar: paths, header names, file names.

Enters: names from a declaration. Leaves: frozen values and text. It renders no directive and reads no Secret.
Source: spec/keystone.md 3.4 to 3.6; seed 000.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """What the sidecar needs to know of one federated backend besides its files."""

    provider: str
    protocol: str
