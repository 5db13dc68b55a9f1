# Listens at ADDRESS PORT... for as long as its standard input is open, and for two minutes at most. Who connects may
# send 64 KiB, and is told that they have come: what is lost on the way in large packets alone is found out so.
address=$1; shift
ends=()
for port; do case $address in *:*) ends+=(-l "[$address]:$port") ;; *) ends+=(-l "$address:$port") ;; esac; done
timeout 120 systemd-socket-activate --accept --inetd "${ends[@]}" \
  /bin/sh -c 'head -c 65536 > /dev/null; echo ok' < /dev/null > /dev/null 2>&1 &
listener=$!
trap 'kill "$listener" 2> /dev/null' EXIT
for ((at = 0; at < 100; at++)); do
  kill -0 "$listener" 2> /dev/null || { echo failed; exit 0; }
  if (exec 3<> "/dev/tcp/$address/$1") 2> /dev/null; then echo listening; read -r -t 120 _; exit 0; fi
  sleep 0.05
done
echo failed
