ask_ledger() { [ ! -e "$LIB/ledger.json" ] || cat "$LIB/ledger.json"; }

ask_keep_ledger() {  # SHA-256 of the ledger that the caller read ("-": there was none); the body has the new one
  local now=-
  locked; admit; locked ledger
  [ ! -e "$LIB/ledger.json" ] || now=$(sha256sum < "$LIB/ledger.json")
  [ "${now%% *}" = "$1" ] || fail $CONFLICT "another process has changed the seats"
  put "$LIB/ledger.json" 600 < "$BODY"
}

ask_admit() { locked; admit; }

ask_listening() { cat /proc/net/tcp; [ ! -e /proc/net/tcp6 ] || cat /proc/net/tcp6; }

ask_memory() { local key value; while read -r key value _; do [ "$key" != MemAvailable: ] || echo "$value"; done < /proc/meminfo; }

ask_clock() { echo "$EPOCHREALTIME"; }

ask_sync() {  # CLASS=PATH TIMES: prints the seconds of each of some small durable writes
  local at
  class_root "$1"; require_number "$2"
  require_there
  if [ $MOUNTS = yes ]; then ROOT=$(first_attached) && [ -n "$ROOT" ] || fail $UNAVAILABLE "no volume of $CLASS is attached"; fi
  [ -d "$ROOT" ] || ROOT=$LIB
  NEW=$(mktemp "$ROOT/.sync.XXXXXX") || full
  trap 'rm -f "$NEW"' EXIT
  for ((at = 0; at < $2; at++)); do
    dd if=/dev/zero of="$NEW" bs=2300 count=1 seek="$at" conv=notrunc oflag=dsync 2>&1 | sed -n 's/.*copied, \([0-9.e-]*\) s.*/\1/p'
  done
}

ask_round_trip() {  # ADDRESS PORT: prints the microseconds of each of a few connections
  local at
  [[ $1 =~ ^[0-9a-fA-F.:]+$ ]] || fail $INVALID "$1 is no address"; require_number "$2"
  for at in 1 2 3; do
    # shellcheck disable=SC2016 # the inner bash expands it
    timeout 3 bash -c 'at=${EPOCHREALTIME/./}; exec 3<> "/dev/tcp/$0/$1" || exit 1; echo $((${EPOCHREALTIME/./} - at))' \
      "$1" "$2" 2> /dev/null || fail $UNAVAILABLE "nothing answers at $1:$2"
  done
}
