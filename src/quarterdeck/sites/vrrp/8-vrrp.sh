# The program of a unit that holds addresses by VRRP: keepalived, and a loop that writes the state of its machine to files,
# which keepalived tracks. It is a part of the script of hosts, and of a separate script on machines of this host.

VRRP_BINARY=/usr/sbin/keepalived
VRRP_FAILS=5  # consecutive checks, a second apart: a paused or restarted load balancer is no failure
VRRP_TICK=0.1  # seconds
VRRP_AT_HOME=150  # the priority of an address on its own machine (components/traffic/keepalived.py)
VRRP_PARTING=2000  # milliseconds: longer than a takeover by another machine lasts (three advertisements)
VRRP_ADVERT=600  # milliseconds: a little more than one advertisement
VRRP_PAUSES=(5000 30000)  # milliseconds between two attempts to give an address away: the first pause, and the longest
VRRP_RETAKE=:  # the command that copies a changed configuration to the path that keepalived reads

interface_of() {  # $1: an address of this machine; prints nothing where no interface has it
  local line
  ip -o -4 addr show to "$1/32" 2> /dev/null | while read -r _ line _; do printf '%s' "$line"; break; done
}

own_address() {  # the configuration is on stdin: prints the source address of its advertisements
  local word value
  while read -r word value; do
    case $word in unicast_src_ip | mcast_src_ip) printf '%s' "$value"; return ;; esac
  done
}

placed() {  # $1: the text of a configuration, $2: interface, $3: folder of tracked files: fills in both
  local text=${1//@INTERFACE@/$2}
  printf '%s\n' "${text//@STATE@/$3}"
}

run_vrrp() {  # CONFIGURATION FILES STATE: FILES is the unit's folder of files, STATE that of tracked files
  local number failed=0 turn=0 until='' last='' HOLD_PREFIX=''
  CONF=$1 FILES=$2 STATE=$3
  declare -A SAID=()
  touch -r "$CONF" "$STATE/taken"
  read_addresses
  clients_go_on  # an earlier process may have ended while clients waited
  ! last_hold || last=$HOLD
  say fails 0
  for number in "${!ADDRESSES[@]}"; do say "busy_$((number + 1))" 0; done
  start_keepalived
  trap 'end_keepalived; clients_go_on; exit 0' TERM
  exec {NEVER}<> <(:)  # it is never written to: a read with a timeout waits without starting a program
  while kill -0 "$KEEPALIVED_PID" 2> /dev/null; do
    $VRRP_RETAKE
    if [ "$CONF" -nt "$STATE/taken" ]; then  # a reload keeps the present addresses
      touch -r "$CONF" "$STATE/taken"
      keep_addresses
      read_addresses
      kill -HUP "$KEEPALIVED_PID"
    fi
    if last_hold && [ "$HOLD" != "$last" ]; then
      last=$HOLD
      until=$(($(uptime_ms) + HOLD_MS))
      # components/traffic/keepalived.py reads this line
      [ "$HOLD_MS" = 0 ] || ! "${HOLD_PREFIX}clients_wait" || echo "clients wait: $HOLD_NUMBER"
    fi
    if [ -n "$until" ] && [ "$(uptime_ms)" -ge "$until" ]; then
      until=''
      let_clients_go_on
    fi
    if [ $((turn % 10)) = 0 ]; then
      if machine_serves; then failed=0; else failed=$((failed + $?)); fi
      say fails $((failed >= VRRP_FAILS))
    fi
    if [ $((turn % 3)) = 0 ]; then
      for number in "${!ADDRESSES[@]}"; do look_at "$number"; done
    fi
    turn=$((turn + 1))
    pause
  done
  clients_go_on
  wait "$KEEPALIVED_PID"
}

pause() { read -r -t $VRRP_TICK -u "$NEVER" _ || true; }

read_addresses() {  # reads the addresses of the configuration, and whether each belongs to this machine
  local word value
  ADDRESSES=() AT_HOME=() HERE=() PAUSE=() NEXT=()
  while read -r word value; do
    case $word in
      priority) AT_HOME+=($((value >= VRRP_AT_HOME))) ;;
      */32) ADDRESSES+=("${word%/32}") ;;
    esac
  done < "$CONF"
}

keep_addresses() {  # across a reload: an address moves only while its clients wait (give_away)
  local number
  for number in "${!ADDRESSES[@]}"; do
    ! has_address "${ADDRESSES[number]}" || say "busy_$((number + 1))" 1
  done
}

look_at() {  # NUMBER of an address: makes keepalived keep it while it has clients
  local address=${ADDRESSES[$1]} busy=0
  if has_address "$address"; then
    if [ "${HERE[$1]:-}" = 0 ]; then wait_longer "$1"; fi  # it has just arrived: its clients must not wait again
    HERE[$1]=1
    if is_connected "$address"; then busy=1
    elif [ "${AT_HOME[$1]}" = 0 ]; then
      busy=1
      if [ "$(uptime_ms)" -ge "${NEXT[$1]:-0}" ] && give_away "$1"; then busy=0; fi
    fi
  else
    HERE[$1]=0 PAUSE[$1]=0
  fi
  say "busy_$(($1 + 1))" $busy
}

# An address that belongs to another machine moves there while its clients wait. Otherwise the other machine would reset a
# connection that was opened after the last check for clients.
give_away() {  # NUMBER of an address without clients; fails where it stays here
  local address=${ADDRESSES[$1]} gone=1
  ip route prepend blackhole "$address/32" table local || return 1
  if ! is_connected "$address"; then
    say "busy_$(($1 + 1))" 0
    if wait_until_gone "$address" $VRRP_PARTING; then gone=0; else
      say "busy_$(($1 + 1))" 1  # its own machine is absent; one that has just started may still take it
      if wait_until_gone "$address" $VRRP_ADVERT; then gone=0; else wait_longer "$1"; fi
    fi
  fi
  ip route del blackhole "$address/32" table local 2> /dev/null
  return $gone
}

wait_longer() {  # NUMBER of an address: doubles the pause before the next attempt
  local pause=$((${PAUSE[$1]:-0} * 2))
  if [ $pause = 0 ]; then pause=${VRRP_PAUSES[0]}; fi
  if [ "$pause" -gt "${VRRP_PAUSES[1]}" ]; then pause=${VRRP_PAUSES[1]}; fi
  PAUSE[$1]=$pause NEXT[$1]=$(($(uptime_ms) + pause))
}

wait_until_gone() {  # ADDRESS MILLISECONDS
  local end=$(($(uptime_ms) + $2))
  while has_address "$1"; do
    [ "$(uptime_ms)" -lt "$end" ] || return 1
    pause
  done
}

start_keepalived() {
  "$VRRP_BINARY" --dont-fork --log-console --no-syslog --vrrp --use-file="$CONF" \
    --pid="$STATE/keepalived.pid" --vrrp_pid="$STATE/vrrp.pid" &
  KEEPALIVED_PID=$!
}

end_keepalived() {  # keepalived announces its end, so that another machine takes over at once
  kill "$KEEPALIVED_PID" 2> /dev/null
  wait "$KEEPALIVED_PID" 2> /dev/null
}

say() {  # FILE NUMBER
  [ "${SAID[$1]:-}" = "$2" ] || { SAID[$1]=$2; echo "$2" > "$STATE/$1"; }
}

uptime_ms() { local up; read -r up _ < /proc/uptime; echo $((10#${up/./} * 10)); }

# Clients wait while their packets to the addresses are dropped, and they send them again. Earlier requests are answered,
# since the address is still here.

last_hold() {  # sets HOLD, HOLD_MS, HOLD_NUMBER and HOLD_PREFIX from the last request; fails without one
  [ -e "$FILES/hold/now" ] && read -r HOLD < "$FILES/hold/now" || return 1
  [[ $HOLD =~ ^([0-9]{1,6})\ ([0-9]{1,19})(\ new)?$ ]] || return 1
  HOLD_MS=$((10#${BASH_REMATCH[1]})) HOLD_NUMBER=${BASH_REMATCH[2]} HOLD_PREFIX=${BASH_REMATCH[3]:+new_}
}

new_clients_wait() {  # connected clients do not wait. Without nft the two cannot be distinguished, and none waits
  local address
  command -v nft > /dev/null || return 0
  for address in "${ADDRESSES[@]}"; do
    nft -f - <<< "table ip quarterdeck_${address//./_} {
      chain arrives {
        type filter hook input priority -300;
        ip daddr $address tcp flags & (syn | ack) == syn drop;
      }
    }" || return 0
  done
}

clients_wait() {
  local address
  for address in "${ADDRESSES[@]}"; do ip route prepend blackhole "$address/32" table local || return 1; done
}

clients_go_on() {
  local address
  for address in "${ADDRESSES[@]}"; do
    while ip route del blackhole "$address/32" table local 2> /dev/null; do :; done
    nft delete table ip "quarterdeck_${address//./_}" 2> /dev/null
  done
}

let_clients_go_on() {  # here, or at the next machine of the address if nothing serves here any more
  if machine_serves; then clients_go_on; return; fi
  echo "nothing serves clients here any more"
  end_keepalived  # first: a machine that no longer serves must not reset their connections
  clients_go_on
  say fails 1
  start_keepalived
}

machine_serves() {  # whether all planes are served here; else the weight of the failure
  local file ready port
  for file in "$FILES"/live/*; do
    [ -f "$file" ] || continue
    read -r ready port < "$file" && [[ $port =~ ^[0-9]{1,5}$ ]] || return 1
    if [ "$ready" = - ]; then
      someone_listens "$port" || return $VRRP_FAILS
    elif ! (leads_somewhere "$ready"); then
      echo "the load balancer of plane ${file##*/} leads nowhere" >&2
      return 1
    fi
  done
}

someone_listens() {  # $1: port, at any address
  grep -qs -m 1 -E ": [0-9A-F]+:$(printf %04X "$1") [0-9A-F]+:0000 0A " /proc/net/tcp /proc/net/tcp6
}

leads_somewhere() {  # $1: the port of the status of Envoy
  local to line asked='GET /stats?filter=^cluster.apiservers.membership_healthy$ HTTP/1.1'
  [[ $1 =~ ^[0-9]{1,5}$ ]] || return 1
  exec {to}<> "/dev/tcp/127.0.0.1/$1" || return 1
  printf '%s\r\nHost: edge\r\nConnection: close\r\n\r\n' "$asked" >&"$to"
  while IFS= read -r -t 1 line <&"$to"; do
    [[ ! $line =~ ^cluster\.apiservers\.membership_healthy:\ [1-9] ]] || return 0
  done
  return 1
}

has_address() { [ -n "$(ip -o -4 addr show to "$1/32")" ]; }  # ADDRESS

is_connected() {  # ADDRESS: whether a client is connected, is connecting, or still receives an answer
  local bytes end file port ports=''
  for file in "$FILES"/live/*; do
    [ ! -f "$file" ] || { read -r _ port < "$file" && [[ $port =~ ^[0-9]{1,5}$ ]] && ports+="|$(printf %04X "$port")"; }
  done
  [ -n "$ports" ] || return 1
  IFS=. read -r -a bytes <<< "$1"
  printf -v end '%02X%02X%02X%02X' "${bytes[3]}" "${bytes[2]}" "${bytes[1]}" "${bytes[0]}"
  # An apiserver listens on IPv6 as well, where IPv4 addresses have a prefix.
  # States of connections (include/net/tcp_states.h): ESTABLISHED, SYN_RECV, FIN_WAIT1, CLOSE_WAIT
  grep -qs -m 1 -E ": (0{16}FFFF0000)?$end:(${ports#|}) [0-9A-F]+:[0-9A-F]{4} 0[1348] " /proc/net/tcp /proc/net/tcp6
}
