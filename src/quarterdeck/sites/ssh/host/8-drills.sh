# Faults, for drills. The code that makes them comes with a request (sites/ssh/drill/faults.sh), and is removed after the
# last fault.

FAULT=$LIB/fault FAULTS=$LIB/faults
# No other code is accepted: a caller of "serve" must not choose what runs as root.
FAULTS_DIGEST=@FAULTS_DIGEST@

ask_faults() { [ ! -e "$FAULT/said" ] || cat "$FAULT/said"; }  # prints the present fault as its maker describes it

ask_fault() { with_faults make_fault "$@"; }

ask_kill_unit() { with_faults kill_unit "$@"; }

ask_corrupt() { with_faults corrupt "$@"; }

ask_undo_fault() { with_faults undo_fault "$@"; }

with_faults() {  # FUNCTION SIZE ARGUMENTS...; the body has SIZE bytes of code, then the body of the function
  local call=$1 size=$2 digest; shift 2
  require_number "$size"
  digest=$(head -c "$size" "$BODY" | sha256sum)
  [ "${digest%% *}" = "$FAULTS_DIGEST" ] || fail $INVALID "these are not the faults of this quarterdeck"
  locked fault
  trap leave_no_faults EXIT
  put "$FAULTS" 644 < <(head -c "$size" "$BODY")
  { tail -c +$((size + 1)) "$BODY" > "$BODY.given" && mv -fT "$BODY.given" "$BODY"; } || full
  # shellcheck disable=SC1090 # it is checked with this script
  . "$FAULTS"
  "$call" "$@"
}

leave_no_faults() { [ -e "$FAULT/about" ] || rm -f "$FAULTS"; }  # under the lock

suffers() {  # $1: a request: whether the host answers it during the present fault
  [ -e "$FAULT" ] && [ -e "$FAULTS" ] || return 0
  # shellcheck disable=SC1090 # it is checked with this script
  . "$FAULTS" 2> /dev/null || return 0  # it was undone just now
  suffering "$1"
}

call_undo_fault() {
  locked fault
  trap leave_no_faults EXIT
  [ -e "$FAULTS" ] || return 0
  # shellcheck disable=SC1090 # it is checked with this script
  . "$FAULTS"
  undo_fault > /dev/null
}

forget_faults() {  # the session that stored the code was killed before it made a fault
  [ -e "$FAULTS" ] || return 0
  # shellcheck disable=SC2016 # the inner shell expands them
  flock -n "$LIB/locks/fault" /bin/sh -c '[ -e "$1" ] || rm -f "$2"' sh "$FAULT/about" "$FAULTS" || true
}
