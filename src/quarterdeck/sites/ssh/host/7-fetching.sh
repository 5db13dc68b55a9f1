# Programs that a host downloads by itself. A download is untrusted until it has the digest that the caller gave: until
# then only a dynamic user without privileges handles it, and it is never run.

MOST=$((1024 * 1024 * 1024))  # bytes of one download, and of one program
ADDRESS='^https?://[]A-Za-z0-9._~:/?#@!$&()*+,;=%[-]+$'

nobody() {  # runs a program as a dynamic user that has no privileges and sees none of our files; it writes to open descriptors
  systemd-run --quiet --pipe --wait --collect --property=DynamicUser=yes --property=ProtectSystem=strict \
    --property=ProtectHome=yes --property=PrivateDevices=yes --property=CapabilityBoundingSet= \
    --property=NoNewPrivileges=yes --property="InaccessiblePaths=-$LIB -$ETC -/root -/boot" \
    --property=MemoryMax=1G --property=TasksMax=32 --property=RuntimeMaxSec=1800 "$@"
}

shown() { local rest=${1#*://}; local host=${rest%%/*}; printf '%s://%s' "${1%%://*}" "${host##*@}${rest#"$host"}"; }  # without a password

ask_fetch() {  # SHA-256 NAME BYTES SHA-256-OF-ARCHIVE ("-": unknown); the body has lines: the address, the file in the archive
  require_program "$1" "$2" "$1"; require_number "$3"
  [[ $4 == - || $4 =~ ^[0-9a-f]{64}$ ]] || fail $INVALID "no digest"
  [ "$3" -le $MOST ] || fail $INVALID "a program of more than $MOST bytes"
  local folder=$LIB/programs/$1 url='' member='' whole=$LIB/programs/.part-$1-whole new
  [ ! -e "$folder/$2" ] || return 0
  { read -r url; read -r member; } < "$BODY"
  [[ $url =~ $ADDRESS ]] || fail $INVALID "that is not an http or https address"
  [[ $member == '' || ($member =~ ^[A-Za-z0-9._+/-]+$ && $member != -* && $member != *..*) ]] || fail $INVALID "$member is no file"
  locked "fetch-${1:0:16}"
  [ -e "$whole" ] || download "$url" "$LIB/programs/.part-$1-fetched" "$whole"
  if [ "$4" != - ] && [ "$(sha256sum < "$whole")" != "$4  -" ]; then
    rm -f "$whole"
    fail $UNAVAILABLE "the file at $(shown "$url") is not the released one"
  fi
  mkdir -p "$folder" && chmod 755 "$folder"
  new=$(mktemp "$folder/.new.XXXXXX") || full
  if [ -n "$member" ]; then
    unpacked "$member" "$3" < "$whole" > "$new" || unpacked "./$member" "$3" < "$whole" > "$new" ||
      { rm -f "$new" "$whole"; fail $UNAVAILABLE "the file at $(shown "$url") is not an archive with $member in it"; }
  else
    head -c "$3" < "$whole" > "$new" || { rm -f "$new"; full; }
  fi
  [ "$(sha256sum < "$new")" = "$1  -" ] || { rm -f "$new" "$whole"; fail $UNAVAILABLE "the file at $(shown "$url") is not the requested program"; }
  label "$new"
  { chmod 755 "$new" && sync "$new" && mv -fT "$new" "$folder/$2"; } || full
  rm -f "$whole"
  require_executable "$folder/$2"
}

unpacked() {  # $1: a file of the archive on stdin, $2: its size in bytes
  nobody --property=PrivateNetwork=yes tar -xzOf - -- "$1" 2> /dev/null | { head -c "$2"; cat > /dev/null; }
}

download() {  # $1: address, $2: the file for the received bytes, $3: the final path. It resumes where the last attempt ended
  local has=0 before code errors=$SESSION/errors-$ID
  command -v curl wget > /dev/null || fail $PRECONDITION "it has neither curl nor wget to download with"
  for _ in 1 2 3 4 5; do
    [ ! -e "$2" ] || has=$(stat -c %s "$2")
    before=$has
    requested "$1" "$has" 2> "$errors" | head -c $((MOST - has)) >> "$2"
    code=${PIPESTATUS[0]}
    has=$(stat -c %s "$2")
    [ "$has" -lt $MOST ] || { rm -f "$2"; fail $UNAVAILABLE "there are $MOST bytes or more at $(shown "$1")"; }
    [ "$code" != 0 ] || { mv -fT "$2" "$3"; return; }
    [ "$has" = "$before" ] || continue
    [ "$has" != 0 ] || break
    : > "$2"  # the server cannot resume from these bytes
  done
  fail $UNAVAILABLE "it cannot download $(shown "$1"): $(tail -n 1 "$errors") ($has bytes have come)"
}

requested() {  # $1: address, kept out of argv since it may have a password, $2: the offset in bytes
  if command -v curl > /dev/null; then
    printf 'url = "%s"\n' "$1" | nobody curl -q --config - --silent --show-error --fail --location --max-redirs 5 \
      --proto =http,https --proto-redir =http,https --connect-timeout 10 --speed-limit 1024 --speed-time 30 \
      --continue-at "$2" --output -
  else
    printf '%s\n' "$1" | nobody wget --no-config --no-verbose --tries=1 --timeout=30 --max-redirect=5 --start-pos="$2" \
      --input-file=- --output-document=-
  fi
}
