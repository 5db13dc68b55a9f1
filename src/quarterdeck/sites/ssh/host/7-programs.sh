ask_program() {  # SHA-256 NAME PACKED (the digest of the compressed form): prints the number of bytes received, or that it is complete
  require_program "$1" "$2" "$3"
  local there=$LIB/programs/$1/$2 part=$LIB/programs/.part-$3
  if [ -e "$there" ]; then
    [ -x "$there" ] || chmod 755 "$there"
    require_executable "$there"
    echo there
    return
  fi
  [ -e "$part" ] && stat -c %s "$part" || echo 0
}

require_program() { [[ $1 =~ ^[0-9a-f]{64}$ && $3 =~ ^[0-9a-f]{64}$ ]] || fail $INVALID "no digest"; require_name "$2"; }

ask_program_part() {  # SHA-256 NAME PACKED OFFSET; the body has the bytes from there on
  require_program "$1" "$2" "$3"; require_number "$4"
  local part=$LIB/programs/.part-$3 has=0
  locked
  [ ! -e "$part" ] || has=$(stat -c %s "$part")
  [ "$has" = "$4" ] || fail $CONFLICT "another process sends it as well: $has bytes have come"
  cat "$BODY" >> "$part" || { truncate -s "$4" "$part"; full; }
}

ask_program_whole() {  # SHA-256 NAME PACKED zstd|gzip: unpacks it, and installs it if its digest is right
  require_program "$1" "$2" "$3"
  local part=$LIB/programs/.part-$3 folder=$LIB/programs/$1 new
  [ ! -e "$folder/$2" ] || { rm -f "$part"; return 0; }
  [ "$(sha256sum < "$part")" = "$3  -" ] || { rm -f "$part"; fail $UNAVAILABLE "the received bytes differ from those that were sent"; }
  mkdir -p "$folder" && chmod 755 "$folder"
  new=$(mktemp "$folder/.new.XXXXXX") || full
  case $4 in zstd) zstd -dcq < "$part" > "$new" ;; gzip) gzip -dc < "$part" > "$new" ;; esac || { rm -f "$new"; full; }
  [ "$(sha256sum < "$new")" = "$1  -" ] || { rm -f "$new" "$part"; fail $UNAVAILABLE "the received file is not the program"; }
  label "$new"
  { chmod 755 "$new" && sync "$new" && mv -fT "$new" "$folder/$2"; } || full
  rm -f "$part"
  require_executable "$folder/$2"
}
