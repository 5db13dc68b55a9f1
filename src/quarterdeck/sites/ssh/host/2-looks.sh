# Requests: the words after the verb are arguments, the file BODY has the content, and standard output is the answer.

ask_ping() { :; }

ask_look() {  # BELOW CLASS=PATH...: prints all units, and all volumes with the content of their folder BELOW ("-": of themselves)
  look_units
  look_volumes "$@"
}

# Looks come several times a second. So a look starts no program as long as nothing has changed: a unit that runs steadily
# is recognized by its process alone, and files are compared every few seconds.

COMPARED=3  # seconds

look_units() {
  local name names=() asking=() services=() changed=() compared=() block=0 key value at
  local -A states=() processes=() starts_at=() stamp=() altered=()
  uptime_now
  local up=$((${UPTIME%.*} * 1000000)) now=$EPOCHSECONDS
  for name in "$UNITS"/*/record; do
    [ -e "$name" ] || continue
    name=${name%/record}; name=${name##*/}
    record_of "$name" || continue
    names+=("$name")
    if calm_pid "$name"; then states[$name]=calm processes[$name]=$PID
    else asking+=("$name"); services+=("quarterdeck-$name.service"); fi
    value=''
    [ ! -e "$RUN/units/$name/compared" ] || read -r value key < "$RUN/units/$name/compared"
    if [ -n "$value" ] && [ $((now - value)) -ge 0 ] && [ $((now - value)) -lt $COMPARED ]; then altered[$name]=$key
    else changed+=("$name"); compared+=("$UNITS/$name/record" ${R_FILES[@]+"${R_FILES[@]#* }"}); fi
  done
  if [ ${#asking[@]} -gt 0 ]; then
    while IFS='=' read -r key value; do  # a block of lines for each unit, in this order
      case $key in
        '') block=$((block + 1)) ;;
        ActiveState) states[${asking[block]}]=$value ;;
        MainPID) processes[${asking[block]}]=$value ;;
        ExecMainStartTimestampMonotonic) starts_at[${asking[block]}]=$value ;;
      esac
    done < <(systemctl show -p ActiveState,MainPID,ExecMainStartTimestampMonotonic "${services[@]}")
  fi
  if [ ${#changed[@]} -gt 0 ]; then
    while IFS='|' read -r key value; do
      stamp[$key]=$value
    done < <(stat -c '%n|%i %z %s' "${compared[@]}" 2> /dev/null)
    for name in "${changed[@]}"; do compare_unit "$name" "$now"; altered[$name]=$ALTERED; done
  fi
  for name in ${names[@]+"${names[@]}"}; do
    [ -n "${states[$name]:-}" ] || fail $UNAVAILABLE "systemd does not say what its units do"
    look_unit "$name" "${states[$name]}" "${processes[$name]:-0}" "${starts_at[$name]:-0}" "$up" "${altered[$name]}"
  done
  look_files
}

look_files() {  # prints the units that have only files so far
  local folder machine
  for folder in "$UNITS"/*/; do
    [ ! -e "${folder}record" ] && [ -e "${folder}machine" ] || continue
    { read -r machine < "${folder}machine"; } 2> /dev/null || continue  # it was removed meanwhile
    folder=${folder%/}
    printf 'files\t%s\t%s\n' "$machine" "${folder##*/}"
  done
}

calm_pid() {  # $1: unit: whether its process is that of the last query; sets PID
  local began='' line fields
  [ -e "$RUN/units/$1/calm" ] && [ -L "$WANTS/quarterdeck-$1.service" ] || return 1
  read -r PID began < "$RUN/units/$1/calm" || return 1
  process_began "$PID" && [ "$BEGAN" = "$began" ]
}

process_began() {  # $1: process: sets BEGAN (proc(5): starttime); fails where it has ended
  local line fields
  { read -r line < "/proc/$1/stat"; } 2> /dev/null || return 1
  read -r -a fields <<< "${line##*) }"
  BEGAN=${fields[19]}
  [ "${fields[0]}" != Z ]
}

compare_unit() {  # $1: unit, $2: the time: sets ALTERED; uses the array stamp
  local run=$RUN/units/$1 seen='' before='' each
  record_of "$1" || { ALTERED=no; return; }
  ALTERED=no
  for each in "$UNITS/$1/record" ${R_FILES[@]+"${R_FILES[@]#* }"}; do seen+="${stamp[$each]:-gone};"; done
  [ ! -e "$run/stamp" ] || read -r before < "$run/stamp"
  [ -d "$run" ] || mkdir -p "$run"
  if [ "$before" != "$seen" ]; then
    if is_as_written "$1"; then printf '%s\n' "$seen" > "$run/stamp"; else ALTERED=yes; fi
  fi
  echo "$2 $ALTERED" > "$run/compared"
}

changed_by_us() { [ ! -d "$RUN/units/$1" ] || { : > "$RUN/units/$1/calm"; : > "$RUN/units/$1/compared"; }; }

look_unit() {  # NAME ACTIVE-STATE|calm PID SINCE NOW (microseconds) ALTERED
  local name=$1 pid=$3 run=$RUN/units/$1 starts=0 exit='' why='' state
  record_of "$name" || return 0  # it was removed meanwhile
  if [ -n "$R_NEEDS" ] && [ ! -e "$UNITS/$name/had-data" ] && there "$R_NEEDS" > /dev/null; then note_data "$name"; fi
  [ ! -e "$run/starts" ] || read -r starts < "$run/starts"
  [ ! -e "$run/exit" ] || read -r exit < "$run/exit"
  case $2 in
    calm) state=running ;;
    active | reloading)
      state=running
      # A unit that was just restarted counts as failed until it has run for a while.
      if [ $(($5 - $4)) -ge 2000000 ]; then
        process_began "$pid" && [ -d "$run" ] && echo "$pid $BEGAN" > "$run/calm"
      elif [ "$starts" -ge 2 ] && [ $(($5 - $4)) -lt 1000000 ]; then state=failed; fi ;;
    deactivating) state=stopping ;;
    activating) if [ -L "$WANTS/quarterdeck-$name.service" ]; then state=failed; else state=stopping; fi ;;
    *) state=stopped ;;
  esac
  if [ $state = failed ] && [ -e "$run/refused" ]; then read -r why < "$run/refused" || true; fi
  [ "$pid" != 0 ] && [ $state != stopped ] || pid=''
  printf 'unit\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$R_MACHINE" "$name" "$state" "$R_DIGEST" "$pid" "$exit" \
    "$((starts > 0 ? starts - 1 : 0))" "$6" "$R_NOTE" "$why"
}

is_as_written() {  # $1: unit whose record was read: whether its files, record and unit file are as quarterdeck wrote them
  local each
  [ "$(seal "$1")" = "$(cat "$UNITS/$1/seal" 2> /dev/null)" ] || return 1
  for each in ${R_FILES[@]+"${R_FILES[@]}"}; do
    [ "$(sha256sum < "${each#* }" 2> /dev/null)" = "${each%% *}  -" ] || return 1
  done
}

seal() { (cd "$UNITS/$1" && cat record spec.json env "$SYSTEMD/quarterdeck-$1.service" 2> /dev/null | sha256sum); }

class_root() {  # $1 as for read_root: fails where volumes are not allowed
  read_root "$1"
  is_allowed || fail $PRECONDITION "root has not allowed volumes below $ROOT"
}

read_root() {  # $1: CLASS=PATH, or CLASS=@PATH where each volume has its own mount: sets CLASS, ROOT and MOUNTS
  CLASS=${1%%=*} ROOT=${1#*=} MOUNTS=no
  require_name "$CLASS"
  if [[ $ROOT == @* ]]; then MOUNTS=yes ROOT=${ROOT#@}; fi
  [ -n "$ROOT" ] || { ROOT=$LIB/volumes/$CLASS; return 0; }
  require_path "$ROOT"
}

is_allowed() { [ "$ROOT" = "$LIB/volumes/$CLASS" ] || is_listed paths "$ROOT"; }

is_away() {  # the data of a disk that is not mounted is not lost, but unknown
  [ "$MOUNTS" = no ] && [ "$ROOT" != "$LIB/volumes/$CLASS" ] &&
    [ -e "$LIB/classes/$CLASS" ] && [ ! -e "$ROOT/.quarterdeck" ]
}

require_there() { ! is_away || fail $UNAVAILABLE "the disk of storage class $CLASS is not mounted at $ROOT"; }

look_volumes() {
  local below=$1 each volume name arriving entry; shift
  [ "$below" = - ] || require_path "/$below"
  shopt -s nullglob dotglob
  for each in "$@"; do
    read_root "$each"
    if ! is_allowed || is_away; then printf 'away\t%s\n' "$CLASS"; continue; fi
    if [ $MOUNTS = yes ]; then look_attached "$below"; continue; fi
    for volume in "$ROOT"/*/; do
      volume=${volume%/}; name=${volume##*/} arriving=no
      case $name in .arriving-*) name=${name#.arriving-} arriving=yes ;; .* | lost+found) continue ;; esac
      printf 'volume\t%s\t%s\t%s' "$CLASS" "$name" $arriving
      [ "$below" = - ] || volume+=/$below
      for entry in "$volume"/*; do printf '\t%s' "${entry##*/}"; done
      printf '\n'
    done
  done
  shopt -u nullglob dotglob
}
