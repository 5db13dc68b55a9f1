# shellcheck shell=sh
# Sourced by ./quarterdeck and ./test: sets $QD_PYTHON to the interpreter of a locked environment.
# Environments live under the user's cache folder, keyed by the lock file, and are put in place atomically.
set -eu
QD_UV_VERSION=0.13.9
QD_CACHE="${QUARTERDECK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/quarterdeck}"
case $QD_CACHE in /*) ;; *) QD_CACHE="$PWD/$QD_CACHE" ;; esac

qd_fail() { printf 'quarterdeck: %s\n' "$1" >&2; exit 70; }

qd_python() {  # prints the version and the path of a Python that is new enough
  for qd_try in "${QUARTERDECK_PYTHON:-}" python3 python3.14 python3.13 python3.12 python3.11; do
    { [ -n "$qd_try" ] && command -v "$qd_try" >/dev/null 2>&1; } || continue
    # Start it once and without site packages: each command waits for it.
    "$qd_try" -I -S -c 'import sys; v = sys.version_info; sys.exit(1) if v < (3, 11) else print("%d.%d.%d" % v[:3])' \
      2>/dev/null && { command -v "$qd_try"; return; }
  done
  qd_fail "setting up: no Python 3.11 or newer was found; install one, or name it in QUARTERDECK_PYTHON"
}

qd_uv() {  # the pinned uv: prints its path
  qd_uv_dir="$QD_CACHE/uv-$QD_UV_VERSION"
  if [ ! -x "$qd_uv_dir/bin/uv" ]; then
    printf 'quarterdeck: setting up (once): uv %s\n' "$QD_UV_VERSION" >&2
    qd_tmp=$(mktemp -d "$QD_CACHE/.uv.XXXXXX") || qd_fail "setting up: cannot write to $QD_CACHE; set QUARTERDECK_CACHE to a folder of yours"
    "$1" -m venv "$qd_tmp" >/dev/null || qd_fail "setting up: '$1 -m venv' failed; on Debian and Ubuntu: apt install python3-venv"
    "$qd_tmp/bin/python" -m pip install --quiet --disable-pip-version-check "uv==$QD_UV_VERSION" ||
      qd_fail "setting up: uv could not be installed; is the network up?"
    mv -T "$qd_tmp" "$qd_uv_dir" 2>/dev/null || rm -rf "$qd_tmp"  # another run was faster
  fi
  printf '%s\n' "$qd_uv_dir/bin/uv"
}

qd_environment() {  # $1: run | dev
  (umask 077; mkdir -p "$QD_CACHE") 2>/dev/null && [ -w "$QD_CACHE" ] ||
    qd_fail "setting up: cannot write to $QD_CACHE; set QUARTERDECK_CACHE to a folder of yours"
  # Programs of this folder are run: no other user may have written to it.
  # shellcheck disable=SC3067 # dash, bash, ksh and busybox have -O
  [ -O "$QD_CACHE" ] ||
    qd_fail "setting up: $QD_CACHE belongs to somebody else; set QUARTERDECK_CACHE to a folder of yours"
  [ -z "$(find "$QD_CACHE" -prune \( -perm -020 -o -perm -002 \))" ] ||
    qd_fail "setting up: others may write to $QD_CACHE; chmod go-w it if that was not meant, or set QUARTERDECK_CACHE"
  qd_found=$(qd_python)
  qd_tag=${qd_found%%"
"*} qd_py=${qd_found#*"
"}
  qd_lock="$QD_ROOT/locks/$1.txt"
  qd_sum=$(sha256sum "$qd_lock" | cut -c1-16)
  qd_env="$QD_CACHE/env-$1-$qd_tag-$qd_sum"
  if [ ! -e "$qd_env/.complete" ]; then
    qd_uv_bin=$(qd_uv "$qd_py")
    printf 'quarterdeck: setting up (once): the %s environment\n' "$1" >&2
    # Two first runs must not write one folder at the same time: the second one waits, and then finds it.
    (
      flock 9
      [ -e "$qd_env/.complete" ] && exit 0
      rm -rf "$qd_env"
      "$qd_uv_bin" venv --quiet --python "$qd_py" "$qd_env" &&
        VIRTUAL_ENV="$qd_env" "$qd_uv_bin" pip install --quiet --require-hashes -r "$qd_lock" &&
        : > "$qd_env/.complete"
    ) 9> "$qd_env.lock" || qd_fail "setting up: the locked packages could not be installed; is the network up?"
  fi
  QD_PYTHON="$qd_env/bin/python"
  PATH="$qd_env/bin:$PATH"
  PYTHONPATH="$QD_ROOT/src"
  # Bytecode is stored beside the environments, so that a module is compiled once, whatever the user exports.
  PYTHONPYCACHEPREFIX="$QD_CACHE/bytecode"
  unset PYTHONDONTWRITEBYTECODE
  export PATH PYTHONPATH PYTHONPYCACHEPREFIX QD_PYTHON
}
