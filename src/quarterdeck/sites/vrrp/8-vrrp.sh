# What runs as a unit that has addresses by VRRP: keepalived, and beside it a loop that writes down how its machine does,
# for keepalived to read. It is a part of a host's script, and of a script of its own on machines of this host.

VRRP_BINARY=/usr/sbin/keepalived
VRRP_FAILS=5  # looks in a row, a second apart: a load balancer that is held, or started again, is no failure
VRRP_TICK=0.1  # seconds
VRRP_AT_HOME=150  # components/traffic/keepalived.py: the priority of the machine that an address belongs to
VRRP_PARTING=2000  # milliseconds: longer than another machine takes to take an address (three advertisements)
VRRP_ADVERT=600  # milliseconds: one advertisement, and a little
VRRP_PAUSES=(5000 30000)  # milliseconds between two attempts to give an address away: at first, and at most
VRRP_RETAKE=:  # what brings a configuration that was written anew to where keepalived reads it

interface_of() {  # $1: an address of this machine; nothing where no interface has it
  local line
  ip -o -4 addr show to "$1/32" 2> /dev/null | while read -r _ line _; do printf '%s' "$line"; break; done
}

own_address() {  # of a configuration on stdin: the address of this machine that keepalived speaks from
  local word value
  while read -r word value; do
    case $word in unicast_src_ip | mcast_src_ip) printf '%s' "$value"; return ;; esac
  done
}

placed() {  # $1: a configuration's text, $2: interface, $3: folder for what this loop says: with these in their places
  local text=${1//@INTERFACE@/$2}
  printf '%s\n' "${text//@STATE@/$3}"
}

run_vrrp() {  # CONFIGURATION FILES STATE: the unit's folder of files, and one for what this loop says
  local number failed=0 turn=0 until='' last='' HOLD_WHOM=''
  CONF=$1 FILES=$2 STATE=$3
  declare -A SAID=()
  touch -r "$CONF" "$STATE/taken"
  read_addresses
  clients_go_on  # whoever ran here before may have ended while they waited
  ! last_hold || last=$HOLD
  say fails 0
  for number in "${!ADDRESSES[@]}"; do say "busy_$((number + 1))" 0; done
  start_keepalived
  trap 'end_keepalived; clients_go_on; exit 0' TERM
  exec {NEVER}<> <(:)  # nobody writes there: to wait by it starts no program
  while kill -0 "$KEEPALIVED_PID" 2> /dev/null; do
    $VRRP_RETAKE
    if [ "$CONF" -nt "$STATE/taken" ]; then  # it goes on with the addresses that it has
      touch -r "$CONF" "$STATE/taken"
      keep_addresses
      read_addresses
      kill -HUP "$KEEPALIVED_PID"
    fi
    if last_hold && [ "$HOLD" != "$last" ]; then
      last=$HOLD
      until=$(($(uptime_ms) + HOLD_MS))
      # components/traffic/keepalived.py looks for this line
      [ "$HOLD_MS" = 0 ] || ! "${HOLD_WHOM}clients_wait" || echo "clients wait: $HOLD_NUMBER"
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

read_addresses() {  # of the configuration, and which of them belong to this machine
  local word value
  ADDRESSES=() AT_HOME=() HERE=() PAUSE=() NEXT=()
  while read -r word value; do
    case $word in
      priority) AT_HOME+=($((value >= VRRP_AT_HOME))) ;;
      */32) ADDRESSES+=("${word%/32}") ;;
    esac
  done < "$CONF"
}

keep_addresses() {  # whatever else comes: each goes only after its clients have been told to wait (give_away)
  local number
  for number in "${!ADDRESSES[@]}"; do
    ! has_address "${ADDRESSES[number]}" || say "busy_$((number + 1))" 1
  done
}

look_at() {  # NUMBER of an address: has keepalived keep it while clients are connected to it
  local address=${ADDRESSES[$1]} busy=0
  if has_address "$address"; then
    if [ "${HERE[$1]:-}" = 0 ]; then wait_longer "$1"; fi  # it has just come: clients are not to wait again
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

# An address that belongs to another machine goes there while its clients wait. A client that connects after the last look
# at who is connected would otherwise be answered by the other machine, which has not heard of its connection.
give_away() {  # NUMBER of an address that nobody is connected to; fails where it stays
  local address=${ADDRESSES[$1]} gone=1
  ip route prepend blackhole "$address/32" table local || return 1
  if ! is_connected "$address"; then
    say "busy_$(($1 + 1))" 0
    if wait_until_gone "$address" $VRRP_PARTING; then gone=0; else
      say "busy_$(($1 + 1))" 1  # no machine that it belongs to is there; one that has just come may be taking it
      if wait_until_gone "$address" $VRRP_ADVERT; then gone=0; else wait_longer "$1"; fi
    fi
  fi
  ip route del blackhole "$address/32" table local 2> /dev/null
  return $gone
}

wait_longer() {  # NUMBER of an address: until it is tried again, twice as long as the last time
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

end_keepalived() {  # it says that it goes: another machine has its addresses within a moment
  kill "$KEEPALIVED_PID" 2> /dev/null
  wait "$KEEPALIVED_PID" 2> /dev/null
}

say() {  # FILE NUMBER
  [ "${SAID[$1]:-}" = "$2" ] || { SAID[$1]=$2; echo "$2" > "$STATE/$1"; }
}

uptime_ms() { local up; read -r up _ < /proc/uptime; echo $((10#${up/./} * 10)); }

# Clients that wait: all that they send to the addresses is lost, as if there were no such address here, and is sent again.
# What they have sent before is answered, since the address is still there.

last_hold() {  # sets HOLD, HOLD_MS, HOLD_NUMBER and HOLD_WHOM by what was last asked for; fails where nothing was
  [ -e "$FILES/hold/now" ] && read -r HOLD < "$FILES/hold/now" || return 1
  [[ $HOLD =~ ^([0-9]{1,6})\ ([0-9]{1,19})(\ new)?$ ]] || return 1
  HOLD_MS=$((10#${BASH_REMATCH[1]})) HOLD_NUMBER=${BASH_REMATCH[2]} HOLD_WHOM=${BASH_REMATCH[3]:+new_}
}

new_clients_wait() {  # and nobody who is connected. Where this machine cannot tell them apart nobody waits.
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

let_clients_go_on() {  # here, or where the address goes to if nothing serves them here any more
  if machine_serves; then clients_go_on; return; fi
  echo "nothing serves clients here any more"
  end_keepalived  # before they go on: whoever serves here no more must not answer them
  clients_go_on
  say fails 1
  start_keepalived
}

machine_serves() {  # whether all that addresses lead to here serves; else how much that counts
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

someone_listens() {  # $1: port, at whichever address
  grep -qs -m 1 -E ": [0-9A-F]+:$(printf %04X "$1") [0-9A-F]+:0000 0A " /proc/net/tcp /proc/net/tcp6
}

leads_somewhere() {  # $1: the port at which Envoy says how it does
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

is_connected() {  # ADDRESS: whether a client is, or has begun to be, or is still being answered
  local bytes end file port ports=''
  for file in "$FILES"/live/*; do
    [ ! -f "$file" ] || { read -r _ port < "$file" && [[ $port =~ ^[0-9]{1,5}$ ]] && ports+="|$(printf %04X "$port")"; }
  done
  [ -n "$ports" ] || return 1
  IFS=. read -r -a bytes <<< "$1"
  printf -v end '%02X%02X%02X%02X' "${bytes[3]}" "${bytes[2]}" "${bytes[1]}" "${bytes[0]}"
  # an apiserver listens at IPv6 as well, where addresses of IPv4 have others before them
  # states of connections (include/net/tcp_states.h): ESTABLISHED, SYN_RECV, FIN_WAIT1, CLOSE_WAIT
  grep -qs -m 1 -E ": (0{16}FFFF0000)?$end:(${ports#|}) [0-9A-F]+:[0-9A-F]{4} 0[1348] " /proc/net/tcp /proc/net/tcp6
}
