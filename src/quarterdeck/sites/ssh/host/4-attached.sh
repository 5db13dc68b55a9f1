# Volumes that can be attached to other hosts. The user's own commands attach and detach them, on the manager's host. A
# volume belongs to this host if it has a claim here and is mounted.
#   $LIB/attached/CLASS/.root   the folder below which volumes of the class are mounted
#   $LIB/attached/CLASS/VOLUME  a claim: the volume is, or will be, attached here. It contains the time of the claim, by
#                               the manager's clock: a host that did not answer when its volume was taken away may
#                               still have it mounted, with an older claim.

mounted() {  # $1: a path. It is not accessed: access to a hanging disk hangs as well
  local at
  while read -r _ _ _ _ at _; do [ "$at" != "$1" ] || return 0; done < /proc/self/mountinfo
  return 1
}

is_attached() { [ -e "$LIB/attached/$CLASS/$1" ] && mounted "$ROOT/$1"; }

since() { local at=0; read -r at < "$LIB/attached/$CLASS/$1" 2> /dev/null; echo "${at:-0}"; }

claims() { [ ! -d "$LIB/attached/$CLASS" ] || find "$LIB/attached/$CLASS" -mindepth 1 -maxdepth 1 ! -name '.*' -printf '%f\n'; }

is_detached() {  # $1: a path: whether it is in an attachable volume that does not belong to this host
  local note root volume
  for note in "$LIB"/attached/*/.root; do
    [ -e "$note" ] || continue
    read -r root < "$note"
    [[ $1 == "$root"/* ]] || continue
    volume=${1#"$root"/}; volume=${volume%%/*}
    [ -e "${note%.root}$volume" ] && mounted "$root/$volume" || return 0
  done
  return 1
}

attachable() {  # CLASS=@PATH NAME
  class_root "$1"; require_name "$2"
  [ $MOUNTS = yes ] || fail $INVALID "volumes of $CLASS are local"
}

look_attached() {  # BELOW: prints all volumes with a claim
  local volume arriving entry
  for volume in $(claims); do
    arriving=yes
    ! mounted "$ROOT/$volume" || arriving=no
    printf 'volume\t%s\t%s\t%s:%s' "$CLASS" "$volume" $arriving "$(since "$volume")"
    if [ $arriving = no ]; then
      [ "$1" = - ] && entry=$ROOT/$volume || entry=$ROOT/$volume/$1
      for entry in "$entry"/*; do printf '\t%s' "${entry##*/}"; done
    fi
    printf '\n'
  done
}

first_attached() {
  local volume
  for volume in $(claims); do if is_attached "$volume"; then printf '%s' "$ROOT/$volume"; return; fi; done
}

free_attached() {  # the least free space of any volume; that of the storage behind them is unknown
  local volume used=0 least=$((2 ** 60)) blocks size row
  for volume in $(claims); do
    is_attached "$volume" || continue
    read -r blocks size < <(stat -f -c '%a %S' "$ROOT/$volume")
    [ $((blocks * size)) -ge $least ] || least=$((blocks * size))
    while read -r row; do used=$((used + row * 512)); done < <(find "$ROOT/$volume" ! -type d -printf '%b\n' 2> /dev/null)
  done
  echo "$least $used"
}

ask_where() {  # NAME CLASS=PATH...: prints the classes with such a volume here: local, attached, claimed; away: unknown
  local name=$1 each; shift
  require_name "$name"
  for each in "$@"; do
    class_root "$each"
    if [ $MOUNTS = yes ]; then
      [ -e "$LIB/attached/$CLASS/$name" ] || continue
      if mounted "$ROOT/$name"; then echo "$CLASS attached $(since "$name")"; else echo "$CLASS claimed $(since "$name")"; fi
    elif is_away; then echo "$CLASS away"
    elif [ -d "$ROOT/$name" ]; then echo "$CLASS local"
    fi
  done
}

ask_claim() {  # CLASS=@PATH NAME NOW: claims the volume, and makes its mount point, which only root can write to
  local folder
  locked; admit
  attachable "$1" "$2"; require_number "$3"
  folder=$LIB/attached/$CLASS
  { mkdir -p "$folder" "$ROOT" && chmod 711 "$ROOT"; } || full
  [ -e "$folder/.root" ] || put "$folder/.root" 644 <<< "$ROOT"
  mounted "$ROOT/$2" || [ -d "$ROOT/$2" ] || mkdir -m 700 "$ROOT/$2" || full
  put "$folder/$2" 644 <<< "$3"
}

ask_settle() {  # CLASS=@PATH NAME: takes over an attached volume; prints what ask_volumes does
  locked; admit
  attachable "$1" "$2"
  is_attached "$2" || fail $UNAVAILABLE "nothing is mounted at $ROOT/$2"
  { chmod 700 "$ROOT/$2" && give quarterdeck-etcd "$ROOT/$2"; } ||
    fail $UNAVAILABLE "the owner of $ROOT/$2 cannot be changed"
  measure_volume "$2"
}

ask_release() {  # CLASS=@PATH NAME: no unit starts with it from now on; refused while a unit uses it
  local user claim
  locked; admit
  attachable "$1" "$2"
  claim=$LIB/attached/$CLASS/$2
  [ -e "$claim" ] || return 0
  mv -fT "$claim" "${claim%/*}/.leaving-$2" || full
  user=$(user_of "$ROOT/$2")
  [ -z "$user" ] || { mv -fT "${claim%/*}/.leaving-$2" "$claim"; fail $CONFLICT "unit $user uses it"; }
  rm -f "${claim%/*}/.leaving-$2"
}

user_of() {  # $1: a volume: prints a unit with a process, or about to have one, that may write there
  local name each
  for name in "$UNITS"/*/record; do
    [ -e "$name" ] || continue
    name=${name%/record}; name=${name##*/}
    record_of "$name" || continue
    for each in ${R_NEEDS:+"$R_NEEDS"} ${R_OWNS[@]+"${R_OWNS[@]}"}; do
      [[ $each/ == "$1"/* ]] || continue
      [ "$(systemctl show --value -p MainPID -p ControlPID "quarterdeck-$name.service" | tr -d '0\n')" = "" ] || { echo "$name"; return; }
    done
  done
}

ask_disclaim() {  # CLASS=@PATH NAME: withdraws the claim
  locked; admit
  attachable "$1" "$2"
  ! mounted "$ROOT/$2" || fail $CONFLICT "$ROOT/$2 is still mounted"
  rm -f "$LIB/attached/$CLASS/$2"
  [ ! -d "$ROOT/$2" ] || rmdir "$ROOT/$2" || fail $CONFLICT "$ROOT/$2 is not empty below the mount"
}

ask_drop() {  # CLASS=@PATH NAME SINCE: gives up a volume that another host has by a later claim; a mount here is stale
  locked; admit
  attachable "$1" "$2"; require_number "$3"
  [ "$(since "$2")" -le "$3" ] || return 0
  mv -fT "$LIB/attached/$CLASS/$2" "$LIB/attached/$CLASS/.dropped-$2" 2> /dev/null
  remove_dropped
}

remove_dropped() {  # removes the folders of dropped volumes once nothing is mounted there
  local note volume
  for note in "$LIB/attached/$CLASS"/.dropped-*; do
    [ -e "$note" ] || continue
    volume=${note##*/.dropped-}
    mounted "$ROOT/$volume" && continue
    [ -e "$LIB/attached/$CLASS/$volume" ] || [ ! -d "$ROOT/$volume" ] || rmdir "$ROOT/$volume" || continue
    rm -f "$note"
  done
}

ask_empty() {  # CLASS=@PATH NAME: empties it at once, even if the deletion is interrupted
  local aside
  locked; admit
  attachable "$1" "$2"
  is_attached "$2" || fail $UNAVAILABLE "it is not attached here"
  { chown root:root "$ROOT/$2" && chmod 700 "$ROOT/$2"; } || full  # no other user can put a link there meanwhile
  aside=$(mktemp -d "$ROOT/$2/.deleted-XXXXXX") || full
  find "$ROOT/$2" -mindepth 1 -maxdepth 1 ! -name '.deleted-*' ! -name lost+found -exec mv -t "$aside" {} + || full
  unlocked
  delete_slowly "$ROOT/$2"
}

ask_forget_class() {  # CLASS=@PATH: a class without volumes here
  attachable "$1" any
  remove_dropped
  [ -n "$(claims)" ] || rm -rf "${LIB:?}/attached/$CLASS"
}
