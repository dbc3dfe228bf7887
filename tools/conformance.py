"""Builds the real Kubernetes, etcd and Helm that the tests compare with; each binary once, kept outside the checkout.

Enters: the Go modules `tools/kubernetes`, `tools/etcd` and `tools/helm` (their go.sum pins every byte). Leaves: programs in
`~/.cache/moorage/<name>-<version>/bin`, where tests/real looks for them. A present program is never built again; a build
that breaks leaves nothing behind. It must not install anything elsewhere.

Use: `python3 tools/conformance.py [NAME...]`, all programs by default; exit 1 with a sentence when one cannot be built.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

TOOLS = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("MOORAGE_CACHE", Path.home() / ".cache" / "moorage"))
STAMP = "k8s.io/component-base/version"


@dataclass(frozen=True)
class Program:
    """One program: the module that pins it, the package to build, and linker flags."""

    name: str
    module: str
    version: str
    package: str
    ldflags: str

    @property
    def binary(self) -> Path:
        """Where the built program stands."""
        return CACHE / f"{self.module}-{self.version}" / "bin" / self.name


def _kubernetes(name: str) -> Program:
    version = "1.36.3"
    major, minor, _ = version.split(".")
    flags = f"-s -w -X {STAMP}.gitVersion=v{version} -X {STAMP}.gitMajor={major} -X {STAMP}.gitMinor={minor}"
    return Program(name, "kubernetes", version, f"k8s.io/kubernetes/cmd/{name}", flags)


PROGRAMS = (
    Program("etcd", "etcd", "3.5.21", "go.etcd.io/etcd/server/v3", "-s -w"),
    _kubernetes("kube-apiserver"),
    _kubernetes("kube-controller-manager"),
    _kubernetes("kubectl"),
    Program("helm", "helm", "3.22.0", "helm.sh/helm/v3/cmd/helm", "-s -w"),
)


def build(program: Program) -> None:
    """Build one program into a temporary name, then move it into place; raises CalledProcessError."""
    program.binary.parent.mkdir(parents=True, exist_ok=True)
    half = program.binary.with_name(f".{program.name}.{os.getpid()}")
    command = ["go", "build", "-ldflags", program.ldflags, "-o", str(half), program.package]
    try:
        subprocess.run(command, cwd=TOOLS / program.module, env=os.environ | {"CGO_ENABLED": "0"}, check=True)
        half.rename(program.binary)
    finally:
        half.unlink(missing_ok=True)


def main(names: list[str]) -> int:
    """Build what is missing of the named programs; returns the exit status."""
    wanted = [p for p in PROGRAMS if not names or p.name in names]
    if unknown := set(names) - {p.name for p in PROGRAMS}:
        print(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(p.name for p in PROGRAMS)}", file=sys.stderr)
        return 1
    for number, program in enumerate(wanted, start=1):
        label = f"[{number}/{len(wanted)}] {program.name} {program.version}"
        if program.binary.exists():
            print(f"{label}: present")
            continue
        print(f"{label}: building, this takes some minutes", flush=True)
        began = time.monotonic()
        try:
            build(program)
        except FileNotFoundError:
            print(f"{label}: `go` is not on PATH. Install Go 1.26 or newer", file=sys.stderr)
            return 1
        except subprocess.CalledProcessError as error:
            print(f"{label}: go build ended with {error.returncode}; its own words stand above", file=sys.stderr)
            return 1
        print(f"{label}: built in {time.monotonic() - began:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
