#!/usr/bin/env bash
# Rewrites requirements/*.lock from pyproject.toml: exact versions with hashes, for every platform, no index named.
set -euo pipefail
cd "$(dirname "$0")/.."
compile() { # OUTPUT ARG...
  local out=$1; shift
  uv pip compile pyproject.toml --universal --generate-hashes --no-annotate --no-header --no-emit-index-url \
    --no-emit-find-links --python-version 3.11 --quiet "$@" -o "requirements/$out.lock"
}
compile agent --extra agent
compile dev --extra agent --group checks --group tests --group parts
uv pip compile --universal --generate-hashes --no-annotate --no-header --no-emit-index-url --no-emit-find-links \
  --python-version 3.11 --quiet -o requirements/build.lock - <<'IN'
hatchling>=1.25
editables
IN
