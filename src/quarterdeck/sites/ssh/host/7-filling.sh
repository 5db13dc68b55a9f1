# Puts files into volumes. All steps run as the owner of the volume, since it may have put links there.

as_user() {  # USER COMMAND...: without any privileges of root
  setpriv --reuid="$1" --regid="$1" --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all -- "${@:2}"
}

in_volume() {  # runs one of the next functions with its arguments, as the owner of the volume
  # shellcheck disable=SC2016 # the inner shell expands it
  as_user "$OWNER" bash -c "set -u -o pipefail; $(declare -f is_whole begin_part part_size add_part sync_part settle_part)
"'"$@"' fill "$@"
}

is_whole() {  # PATH SHA-256 SIZE
  [ -f "$1" ] && [ "$(stat -c %s "$1")" = "$3" ] && [ "$(sha256sum < "$1")" = "$2  -" ]
}

begin_part() {  # FOLDER PART SIZE: prints how many bytes of this file exist; removes parts of others
  find "$1" -mindepth 1 -maxdepth 1 -name '.filling-*' ! -path "$2" -delete
  [ ! -e "$2" ] || [ "$(stat -c %s "$2")" -le "$3" ] || rm -f "$2"
  : >> "$2" && stat -c %s "$2"
}

part_size() { [ -e "$1" ] && stat -c %s "$1" || echo -; }

add_part() {  # PART OFFSET zstd|gzip
  case $3 in zstd) zstd -dcq ;; gzip) gzip -dc ;; *) false ;; esac >> "$1" || { truncate -s "$2" "$1"; return 1; }
}

sync_part() { chmod 600 "$1" && sync "$1"; }

settle_part() { mv -fT "$1" "$2/$3" && sync "$2"; }  # PART FOLDER FILE

filling() {  # NAME FILE SHA-256 SIZE CLASS=PATH...: sets FOUND, OWNER, and PART, the file with the received bytes
  local name=$1 file=$2 digest=$3 size=$4; shift 4
  require_name "$file"; require_number "$size"
  [[ $digest =~ ^[0-9a-f]{64}$ ]] || fail $INVALID "no digest"
  find_volume "$name" "$@"
  [ -n "$FOUND" ] || fail $NOT_FOUND "there is no volume $name"
  OWNER=$(stat -c %U "$FOUND")
  [[ " $ACCOUNTS " == *" $OWNER "* ]] || OWNER=quarterdeck-etcd
  PART=$FOUND/.filling-$digest
}

not_written() {
  local free size
  read -r free size < <(stat -f -c '%a %S' "$FOUND")
  fail $UNAVAILABLE "a file in $FOUND could not be written: $((free * size / 1048576)) MiB are free there"
}

ask_fill() {  # NAME FILE SHA-256 SIZE CLASS=PATH...: prints the number of bytes received, or that it is complete
  filling "$@"
  if in_volume is_whole "$FOUND/$2" "$3" "$4"; then echo there; return; fi
  locked; admit
  in_volume begin_part "$FOUND" "$PART" "$4" || not_written
}

ask_fill_part() {  # NAME FILE SHA-256 SIZE OFFSET zstd|gzip CLASS=PATH...; the body has the compressed bytes from there on
  local offset=$5 packing=$6 has
  filling "$1" "$2" "$3" "$4" "${@:7}"
  require_number "$offset"
  locked; admit
  has=$(in_volume part_size "$PART")
  [ "$has" != - ] || [ "$(in_volume part_size "$FOUND/$2")" = "$4" ] ||
    fail $UNAVAILABLE "another process puts another file into $FOUND"
  [ "$has" = "$offset" ] || fail $CONFLICT "another process sends it as well"
  in_volume add_part "$PART" "$offset" "$packing" < "$BODY" || not_written
}

ask_fill_whole() {  # NAME FILE SHA-256 SIZE CLASS=PATH...: moves the received file into place if its digest is right
  filling "$@"
  if in_volume is_whole "$FOUND/$2" "$3" "$4"; then return; fi
  in_volume is_whole "$PART" "$3" "$4" ||
    { in_volume rm -f "$PART"; fail $UNAVAILABLE "the received file differs from the one that was sent, and was removed: send it again"; }
  in_volume sync_part "$PART" || not_written
  locked; admit
  in_volume settle_part "$PART" "$FOUND" "$2" || not_written
}
