# shellcheck shell=bash
# Listens at ADDRESS PORT... for as long as its standard input is open, and for two minutes at most, and says of each port
# whether that works. Who connects may send 64 KiB, and is told that they have come: what is lost on the way in large
# packets alone is found out so.
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
  said='' && read -r -t 10 said <&"${outputs[port]}"
  case $said in
    'Listening on '*) printf 'listens\t%s\n' "$port" ;;
    *) printf 'failed\t%s\t%s\n' "$port" "${said//$'\t'/ }" ;;
  esac
done
echo tried
read -r -t 120 _
