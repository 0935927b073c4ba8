#!/usr/bin/env bash
# Makes the Python environment of this checkout and prints its directory on stdout (progress goes to stderr).
#
#   venv=$(hack/env.sh runtime)    the agent alone               (requirements/agent.lock)
#   venv=$(hack/env.sh try)        and a real llama-server       (requirements/try.lock)
#   venv=$(hack/env.sh dev)        and checks, tests, benchmarks (requirements/dev.lock)
#
# Needs Debian's python3 >= 3.11 and nothing else; a second run takes a few milliseconds. Two callers at once wait for each other.
# VACANCY_VENV names another directory than .venv, VACANCY_PYTHON another interpreter to build it from.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
profile=${1:-runtime}
venv=${VACANCY_VENV:-$root/.venv}
stamp=$venv/.vacancy-stamp

case $profile in
  runtime) lock=agent covered_by="runtime try dev" ;;
  try) lock=try covered_by="try dev" ;;
  dev) lock=dev covered_by="dev" ;;
  *) echo "env.sh: unknown profile '$profile': runtime, try or dev" >&2; exit 2 ;;
esac

say() { echo "env: $*" >&2; }
fail() { say "$*"; exit 1; }
as_root() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

recent_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

# The distribution's interpreter first: it is built with PGO and LTO, which a version manager's often is not (a fifth slower).
find_python() {
  local candidate
  for candidate in ${VACANCY_PYTHON:+"$VACANCY_PYTHON"} /usr/bin/python3 /usr/bin/python3.{14,13,12,11} python3; do
    if command -v "$candidate" >/dev/null && recent_enough "$candidate"; then command -v "$candidate"; return; fi
  done
  return 1
}

apt_install() {
  say "installing $* with apt-get"
  { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"; } >&2
}

ensure_python() {
  if ! find_python >/dev/null && as_root; then apt_install python3 python3-venv; fi
  find_python >/dev/null || fail "no Python >= 3.11 found. On Debian 12 or later: apt-get install python3 python3-venv"
}

# Debian ships `venv` without `ensurepip` unless the package of that very minor version is installed.
ensure_venv_module() {
  local package
  "$1" -c 'import ensurepip, venv; ensurepip.version()' 2>/dev/null && return
  package=$("$1" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
  if as_root; then apt_install "$package"; fi
  "$1" -c 'import ensurepip, venv; ensurepip.version()' 2>/dev/null || fail "$1 cannot make environments. As root: apt-get install $package"
}

# What the environment was made from: a change of any of it makes the stamp stale.
key() {
  echo "root $root"
  "$venv/bin/python" - "$root/pyproject.toml" "$root"/requirements/*.lock <<'PY' 2>/dev/null || echo "python none"
import hashlib, pathlib, sys
print("python", sys.version.split()[0])
print("inputs", hashlib.sha256(b"".join(pathlib.Path(name).read_bytes() for name in sys.argv[1:])).hexdigest())
PY
}

is_ready() {
  local done_profile
  [ -f "$stamp" ] || return 1
  [ "$(tail -n +2 "$stamp")" = "$(key)" ] || return 1
  done_profile=$(head -n 1 "$stamp")
  [[ " $covered_by " == *" $done_profile "* ]]
}

# An interpreter that went away, or a directory made for another path (its scripts name that path), cannot be repaired.
is_usable() {
  [ -x "$venv/bin/python" ] && "$venv/bin/python" -m pip --version >/dev/null 2>&1 || return 1
  [ ! -f "$stamp" ] || grep -qxF "root $root" "$stamp"
}

# Never removes a directory that is not an environment, whatever VACANCY_VENV was set to.
clear_away() {
  [ -e "$venv" ] || return 0
  [ -f "$venv/pyvenv.cfg" ] || [ -z "$(ls -A "$venv")" ] || fail "$venv exists and is not a Python environment; name another with VACANCY_VENV"
  rm -rf "$venv"
}

# The build backend and the project itself come last: an editable install, built with what is already there.
install_locked() {
  local log=$venv/install.log
  pip() { "$venv/bin/python" -m pip --disable-pip-version-check --no-input "$@" >>"$log" 2>&1; }
  : >"$log"
  if pip install --require-hashes -r "$root/requirements/$lock.lock" &&
    pip install --require-hashes -r "$root/requirements/build.lock" &&
    pip install --no-deps --no-build-isolation --no-index -e "$root"; then return; fi
  tail -n 25 "$log" >&2
  if grep -qE 'NewConnectionError|NameResolutionError|ConnectTimeout|ProxyError|from versions: none' "$log"; then
    fail "the package index cannot be reached; the first run needs it, later ones do not. A mirror or a proxy: PIP_INDEX_URL, HTTPS_PROXY"
  fi
  fail "pip could not install requirements/$lock.lock; the whole log: $log"
}

# llama.cpp's server links to the compiler's OpenMP runtime, which a bare system does not have.
ensure_libraries() {
  [ "$profile" != runtime ] || return 0
  local probe='import ctypes; ctypes.CDLL("libgomp.so.1")'
  "$venv/bin/python" -c "$probe" 2>/dev/null && return
  if as_root; then apt_install libgomp1; fi
  "$venv/bin/python" -c "$probe" 2>/dev/null || say "the llama-server of the tests and of hack/try needs libgomp. As root: apt-get install libgomp1"
}

make_environment() {
  local started=$SECONDS python
  if ! is_usable; then
    ensure_python
    python=$(find_python)
    ensure_venv_module "$python"
    say "making $venv with $python ($("$python" -V 2>&1))"
    clear_away
    "$python" -m venv "$venv"
  fi
  say "installing requirements/$lock.lock ($(grep -c '^[a-z0-9].*==' "$root/requirements/$lock.lock") packages; a minute or two when nothing is cached)"
  rm -f "$stamp"
  ensure_libraries
  install_locked
  { echo "$profile"; key; } >"$stamp.new" && mv "$stamp.new" "$stamp"
  say "ready in $((SECONDS - started)) s"
}

if ! is_ready; then
  mkdir -p "$(dirname "$venv")"
  exec 9>"$venv.lock"
  if command -v flock >/dev/null && ! flock -n 9; then say "waiting for another run of env.sh"; flock 9; fi
  is_ready || make_environment 9>&-
fi
echo "$venv"
