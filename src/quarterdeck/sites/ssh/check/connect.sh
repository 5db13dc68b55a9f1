# shellcheck shell=bash
# Connects to each of NAME ADDRESS PORTS BULK..., all at once. PORTS is separated by commas; BULK is a port that takes
# 64 KiB ("-": none).
say() { local IFS=$'\t'; printf '%s\n' "$*"; }

connect() {  # NAME ADDRESS PORT
  local took code
  # shellcheck disable=SC2016 # the inner bash expands it
  took=$(timeout 3 "$BASH" -c 's=$EPOCHREALTIME; exec 3<> "/dev/tcp/$0/$1" && echo "$s $EPOCHREALTIME"' "$2" "$3" 2> /dev/null)
  code=$?
  case $code in
    0) say open "$1" "$3" "${took% *}" "${took#* }" ;;
    124) say silent "$1" "$3" ;;
    *) say refused "$1" "$3" ;;
  esac
}

send() {  # NAME ADDRESS PORT
  local reply
  # shellcheck disable=SC2016 # the inner bash expands it
  reply=$(timeout 8 "$BASH" -c 'exec 3<> "/dev/tcp/$0/$1" && head -c 65536 /dev/zero >&3 && read -r -t 6 -u 3 reply &&
    echo "$reply"' "$2" "$3" 2> /dev/null)
  if [ "$reply" = ok ]; then say came "$1"; else say lost "$1"; fi
}

while [ $# -ge 4 ]; do
  for port in ${3//,/ }; do connect "$1" "$2" "$port" & done
  [ "$4" = - ] || send "$1" "$2" "$4" &
  shift 4
done
wait
