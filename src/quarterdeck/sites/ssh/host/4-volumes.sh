ask_create() {  # CLASS=PATH NAME; prints what ask_volumes does
  locked
  class_root "$1"; require_name "$2"
  [ "$ROOT" = "$LIB/volumes/$CLASS" ] || { [ -d "$ROOT" ] || fail $UNAVAILABLE "there is no folder $ROOT: make it, or mount its disk"; }
  require_there
  { mkdir -p "$ROOT" && chmod 711 "$ROOT"; } || full
  if [ "$ROOT" != "$LIB/volumes/$CLASS" ] && [ ! -e "$LIB/classes/$CLASS" ]; then
    : > "$ROOT/.quarterdeck" || full
    put "$LIB/classes/$CLASS" 644 <<< "$ROOT"
  fi
  [ -d "$ROOT/$2" ] || { mkdir "$ROOT/$2" && chown quarterdeck-etcd:quarterdeck-etcd "$ROOT/$2"; } || full
  measure_volume "$2"
}

measure_volume() {  # prints NAME CLASS PATH, the bytes on the disk, and the time of the last write
  local blocks changed total=0 newest=''
  while read -r blocks changed; do
    total=$((total + blocks * 512))
    if [ -z "$newest" ] || [ "${changed%.*}" -gt "${newest%.*}" ]; then newest=$changed; fi
  done < <(find "$ROOT/$1" ! -type d -printf '%b %T@\n' 2> /dev/null)
  printf '%s\t%s\t%s\t%s\t%s\n' "$1" "$CLASS" "$ROOT/$1" "$total" "$newest"
}

ask_volumes() {  # CLASS=PATH...
  local each volume
  shopt -s nullglob
  for each in "$@"; do
    class_root "$each"
    require_there
    if [ $MOUNTS = yes ]; then
      for volume in $(claims); do ! is_attached "$volume" || measure_volume "$volume"; done
      continue
    fi
    for volume in "$ROOT"/*/; do
      volume=${volume%/}; volume=${volume##*/}
      [ "$volume" = lost+found ] || measure_volume "$volume"
    done
  done
}

find_volume() {  # NAME CLASS=PATH...: sets FOUND; fails where a class cannot be searched, since the answer is unknown
  local name=$1 each away=''; shift
  FOUND=''
  require_name "$name"
  for each in "$@"; do
    class_root "$each"
    if is_away; then away=$CLASS; continue; fi
    [ "$MOUNTS" = no ] || is_attached "$name" || continue
    [ ! -d "$ROOT/$name" ] || { FOUND=$ROOT/$name; return 0; }
  done
  [ -z "$away" ] || fail $UNAVAILABLE "the disk of storage class $away is not mounted"
}

ask_entries() {  # NAME BELOW CLASS=PATH...
  local name=$1 below=$2; shift 2
  find_volume "$name" "$@"
  [ -n "$FOUND" ] || fail $NOT_FOUND "there is no volume $name"
  [ "$below" = - ] || { require_path "/$below"; FOUND+=/$below; }
  [ ! -d "$FOUND" ] || find "$FOUND" -mindepth 1 -maxdepth 1 -printf '%f\n'
}

ask_search() {  # NAME FILES SINCE MOST CLASS=PATH...; the body has the texts. Prints the last MOST + 1 bytes of the matching lines
  local name=$1 files=$2 since=$3 most=$4 before file owner; shift 4
  [[ $files =~ ^[A-Za-z0-9._*-]+$ ]] || fail $INVALID "$files names no files"
  require_number "$since"; require_number "$most"
  find_volume "$name" "$@"
  [ -n "$FOUND" ] || fail $NOT_FOUND "there is no volume $name"
  before=$(searched '%i\n')
  while IFS= read -r -d '' file; do
    owner=$(stat -c %U "$FOUND/$file")
    [[ " $ACCOUNTS " == *" $owner "* ]] || owner=quarterdeck-etcd
    # Not as root: an owner of the volume can replace a file by a link at any time.
    # shellcheck disable=SC2016 # the inner bash expands it
    as_user "$owner" bash -c 'grep -haF -f - -- "$1" || [ $? -eq 1 ]' search "$FOUND/$file" < "$BODY" ||
      fail $UNAVAILABLE "$FOUND/$file cannot be read"
  done < <(searched '%f\0' | sort -z) | tail -c $((most + 1)) | gzip | base64 -w 0 || exit
  [ -z "$(comm -23 <(sort <<< "$before") <(searched '%i\n' | sort))" ] || fail $UNAVAILABLE "files were renamed while they were read"
}

searched() {  # $1: the format of each file (find -printf); FOUND, files and since select them
  find "$FOUND" -mindepth 1 -maxdepth 1 -type f -name "$files" -newermt "@$((since - 1))" -printf "$1"
}

ask_delete() {  # NAME CLASS=PATH...: removes it at once, even if the deletion is interrupted
  local name=$1 each; shift
  locked; admit
  find_volume "$name" "$@"
  [ -z "$FOUND" ] || mv -T "$FOUND" "${FOUND%/*}/.deleted-$name-$$-$RANDOM" || full
  unlocked
  for each in "$@"; do
    class_root "$each"
    is_away || delete_slowly "$ROOT"
  done
}

delete_slowly() {  # on disks with online discard, each fsync waits for the blocks that were freed before it
  [ -d "$1" ] || return 0
  find "$1" -mindepth 1 -maxdepth 1 -name '.deleted-*' -print0 | while IFS= read -r -d '' gone; do
    give root "$gone"  # the former owner can no longer put links there
    find "$gone" -type f -size +4M -print0 | while IFS= read -r -d '' file; do
      local size
      size=$(stat -c %s "$file")
      while [ "$size" -gt 4194304 ]; do size=$((size - 4194304)); truncate -s "$size" "$file" || break; done
    done
    rm -rf "$gone"
  done
}

ask_free() {  # CLASS=PATH: prints the free bytes, and the bytes that its volumes take
  local used=0 row blocks size
  class_root "$1"
  require_there
  if [ $MOUNTS = yes ]; then free_attached; return; fi
  while read -r row; do used=$((used + row * 512)); done < <(find "$ROOT" ! -type d -printf '%b\n' 2> /dev/null)
  while [ ! -d "$ROOT" ]; do ROOT=$(dirname "$ROOT"); done  # the first volume creates the folder, in the file system of this one
  read -r blocks size < <(stat -f -c '%a %S' "$ROOT")
  echo "$((blocks * size)) $used"
}
