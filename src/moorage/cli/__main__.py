"""`python -m moorage.cli`: the same command where the script is not on the path."""

from __future__ import annotations

from moorage.cli import main

main()
