#!/usr/bin/env bash
# Rewrites requirements/*.lock from pyproject.toml: exact versions with hashes, for every platform, no index named.
# `dev` is resolved first and constrains the others, so that what is tested is what runs. Needs `uv` on PATH.
set -euo pipefail
cd "$(dirname "$0")/.."
compile() { # OUTPUT ARG...
  local out=$1; shift
  uv pip compile --universal --generate-hashes --no-annotate --no-header --no-emit-index-url --no-emit-find-links \
    --python-version 3.11 --quiet "$@" -o "requirements/$out.lock"
}
compile dev pyproject.toml --extra agent --extra operator --group checks --group tests --group parts
compile agent pyproject.toml --extra agent -c requirements/dev.lock
compile operator pyproject.toml --extra operator -c requirements/dev.lock
compile try pyproject.toml --extra agent --group parts -c requirements/dev.lock
compile build - -c requirements/dev.lock <<'IN'
hatchling>=1.25
editables
IN
