# shellcheck shell=bash
# Listens at ADDRESS PORT... while its standard input is open, for two minutes at most, and reports for each port whether
# that works. A client may send 64 KiB, and gets a confirmation: so a path that loses only large packets is detected.
address=$1; shift
case $address in *:*) address="[$address]" ;; esac
listeners=() outputs=()
trap 'kill "${listeners[@]}" 2> /dev/null' EXIT
for port; do
  exec {output}< <(exec timeout 120 systemd-socket-activate --accept --inetd -l "$address:$port" \
    /bin/sh -c 'head -c 65536 > /dev/null; echo ok' < /dev/null 2>&1 > /dev/null)
  listeners[port]=$! outputs[port]=$output
done
for port; do
  line='' && read -r -t 10 line <&"${outputs[port]}"
  case $line in
    'Listening on '*) printf 'listens\t%s\n' "$port" ;;
    *) printf 'failed\t%s\t%s\n' "$port" "${line//$'\t'/ }" ;;
  esac
done
echo tried
read -r -t 120 _
