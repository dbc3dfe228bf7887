# One word to do it. Everything lands in this checkout (.tools, .venv) or in ~/.cache/moorage; only Debian packages are global.
SHELL := /bin/bash -euo pipefail
.DEFAULT_GOAL := help
UV := .tools/bin/uv
PY := .venv/bin/python
# Workers of pytest on two cores: one more than cores, since workers wait for servers a third of their time, and a tenth of the suite's time is gained.
JOBS ?= 3
# What Python has read once is kept, wherever a container forbids it: else each worker and each process of a test reads all of it anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo test conformance pythons check bench generate cases lock clean debian

help:  ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: .venv/.ready debian  ## the main job on one machine, from nothing to a login (KEEP=1 leaves it up; FEDERATION=1: browser logins at a Keycloak; POCKETID=1: a client of a Pocket-ID)
	@$(PY) $(if $(POCKETID),tools/demo_pocketid.py,$(if $(FEDERATION),tools/demo_federation.py,tools/demo.py))

test: .venv/.ready debian  ## the whole suite on real parts from Python and Debian packages
	@$(PY) -m pytest -n $(JOBS) --dist loadfile -m "not conformance" tests

conformance: .venv/.ready debian  ## the same semantics on a real kube-apiserver (built once, cached)
	@$(PY) tools/conformance.py
	@$(PY) tools/keycloak.py
	@JOBS=$(JOBS) $(PY) tools/pythons.py
	@$(PY) -m pytest -n $(JOBS) --dist loadfile -m conformance tests/conformance tests/e2e/federation tests/e2e/kubernetes tests/e2e/pocketid tests/keystone tests/pocketid tests/real tests/schema

pythons: .venv/.ready  ## types and a part of the suite on Python 3.12 and 3.13 (fetched once, cached)
	@JOBS=$(JOBS) $(PY) tools/pythons.py

check: .venv/.ready  ## format, lint, types, import contract, generated files, docs
	@.venv/bin/ruff format --check --quiet . && echo "format: ok"
	@.venv/bin/ruff check --quiet . && echo "lint: ok"
	@.venv/bin/mypy --no-error-summary && echo "types: ok"
	@.venv/bin/lint-imports >.venv/imports.log 2>&1 || { cat .venv/imports.log; exit 1; } && echo "import contract: ok"
	@$(PY) tools/generate.py --check && echo "generated files: ok"
	@$(PY) tools/cases.py --check && echo "case ids: ok"

bench: .venv/.ready debian  ## ratios against peers, one table
	@$(UV) pip install -q --compile-bytecode --python .venv --require-hashes -r locks/bench.txt
	@$(PY) -m bench

generate: .venv/.ready  ## write the generated files anew (CRDs, reference, Containerfiles)
	@$(PY) tools/generate.py

cases: .venv/.ready  ## ids of field reports and decisions that no test names
	@$(PY) tools/cases.py

lock: .tools/bin/uv  ## resolve the locks anew
	@$(UV) pip compile -q --universal --generate-hashes --no-emit-index-url --python-version 3.11 pyproject.toml --extra local --group dev -o locks/dev.txt
	@$(UV) pip compile -q --universal --generate-hashes --no-emit-index-url --python-version 3.11 pyproject.toml --extra local --group dev --group bench -o locks/bench.txt
	@$(UV) pip compile -q --universal --generate-hashes --no-emit-index-url --python-version 3.11 pyproject.toml --group image --constraint locks/dev.txt -o locks/image.txt
	@echo "uv==$$($(UV) --version | cut -d' ' -f2)" | $(UV) pip compile -q --universal --generate-hashes --no-emit-index-url --python-version 3.11 - -o locks/uv.txt

debian:  ## the Debian packages that README names, where they are missing
	@tools/debian-packages

clean:  ## what make made in this checkout
	rm -rf .venv .tools .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

.tools/bin/uv: locks/uv.txt
	@python3 -m venv .tools || { tools/debian-packages python3-venv && rm -rf .tools && python3 -m venv .tools; }
	@.tools/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r locks/uv.txt
	@touch $@

.venv/.ready: .tools/bin/uv locks/dev.txt pyproject.toml
	@echo "python environment: installing from locks/dev.txt"
	@[ -x .venv/bin/python ] || $(UV) venv -q --python "$$(command -v python3)" .venv
	@$(UV) pip sync -q --compile-bytecode --python .venv --require-hashes locks/dev.txt
	@$(UV) pip install -q --python .venv --no-deps -e .
	@touch $@
