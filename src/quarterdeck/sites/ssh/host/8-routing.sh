# Addresses that go from edge to edge, which the distribution's keepalived has by turns. It is the one unit that may change
# the host's network, so it runs by a file that is checked, line by line, and that nobody can change while it does.

VRRP_BINARY=/usr/sbin/keepalived VRRP_SAYS=/tmp
VRRP_PROGRAM="$SELF vrrp"
VRRP_LINE="|(global_defs|track_file [a-z0-9_]+|vrrp_instance [a-z0-9_]+) [{]| +(unicast_peer|virtual_ipaddress|track_file) [{]"
VRRP_LINE+="| *[}]| +(vrrp_version 3|vrrp_check_unicast_src|state BACKUP|interface @INTERFACE@)| +file /tmp/(fails|busy_[0-9]+)"
VRRP_LINE+="| +(vrrp_garp_master_refresh|priority|virtual_router_id) [0-9]{1,3}"
VRRP_LINE+="| +weight -?[0-9]{1,3}| +advert_int [0-9.]{1,4}| +(fails|busy_[0-9]+)"
VRRP_LINE+="| +unicast_src_ip $IPV4| +$IPV4 min_ttl 255 max_ttl 255| +$IPV4/32"
VRRP_FAILS=5  # looks in a row, a second apart: a load balancer that is held, or started anew, is no failure

require_routing() {  # $1: unit whose record was read: the user of that one unit is nobody else's, and it has no volumes
  [ "$R_ACCOUNT" = quarterdeck-vrrp ] || [ "$1" = $VRRP ] || return 0
  if [ "$R_ACCOUNT $1" != "quarterdeck-vrrp $VRRP" ] || [ -n "$R_NEEDS$R_LOW" ] || [ ${#R_OWNS[@]} -ne 0 ]; then
    fail $INVALID "there is one unit of user quarterdeck-vrrp: $VRRP"
  fi
}

as_vrrp() { setpriv --reuid=quarterdeck-vrrp --regid=quarterdeck-vrrp --clear-groups --no-new-privs -- "$@"; }

take_routing() {  # has keepalived go by what a caller wrote; says what is wrong with that
  local line own='' interface found=''
  [ -x "$VRRP_BINARY" ] || { printf 'there is no keepalived on this host: install it from the distribution'; return 0; }
  while IFS= read -r line; do
    [[ $line =~ ^($VRRP_LINE)$ ]] || { printf 'its configuration must not say: %s' "${line:0:60}"; return 0; }
    case $line in *unicast_src_ip*) own=${line##* } ;; esac
    if [[ $line =~ ^\ +($IPV4)/32$ ]] && ! is_listed addresses "${BASH_REMATCH[1]}"; then
      printf '%s is not allowed to be here' "${BASH_REMATCH[1]}"
      return 0
    fi
    found+=$line$'\n'
  done < <(as_vrrp cat "$UNITS/$VRRP/files/keepalived.conf")
  interface=$(ip -o -4 addr show to "$own/32" 2> /dev/null | while read -r _ line _; do printf '%s' "$line"; break; done)
  [[ $interface =~ ^[A-Za-z0-9][A-Za-z0-9._-]*$ ]] || { printf 'no interface of this host has the address %s' "$own"; return 0; }
  chmod 755 "$RUN"  # which nobody may have been in since the boot
  put "$RUN/keepalived.conf" 644 <<< "${found//@INTERFACE@/$interface}"
}

# What runs as the unit's own user

call_vrrp() {  # keepalived, and beside it what it goes by: files that say how the load balancers here do
  local pid number failed=0 addresses=() sleeps taken=/tmp/taken
  touch -r "$RUN/keepalived.conf" "$taken"
  while read -r number; do addresses+=("${number%/32}"); done < <(grep -oE "$IPV4/32" "$RUN/keepalived.conf")
  declare -A SAID=()
  say fails 0
  for number in "${!addresses[@]}"; do say "busy_$((number + 1))" 0; done
  "$VRRP_BINARY" --dont-fork --log-console --no-syslog --vrrp --use-file="$RUN/keepalived.conf" \
    --pid=/tmp/keepalived.pid --vrrp_pid=/tmp/vrrp.pid &
  pid=$!
  trap 'kill "$pid"; wait "$pid"; exit 0' TERM
  while kill -0 "$pid" 2> /dev/null; do
    if [ "$RUN/keepalived.conf" -nt "$taken" ]; then  # there are other edges now: it goes on with the addresses that it has
      touch -r "$RUN/keepalived.conf" "$taken"
      kill -HUP "$pid"
    fi
    if (edge_works); then failed=0; else failed=$((failed + 1)); fi
    say fails $((failed >= VRRP_FAILS))
    for number in "${!addresses[@]}"; do
      (edge_busy "${addresses[number]}")
      say "busy_$((number + 1))" $(($? == 0))
    done
    sleep 1 &
    sleeps=$!
    wait -n "$pid" "$sleeps"
  done
  kill "$sleeps" 2> /dev/null
  wait "$pid"
}

say() {  # FILE NUMBER
  [ "${SAID[$1]:-}" = "$2" ] || { SAID[$1]=$2; echo "$2" > "$VRRP_SAYS/$1"; }
}

edge_works() {  # whether each load balancer here that addresses lead to leads somewhere
  local file port
  for file in "$UNITS/$VRRP"/files/live/*; do
    [ -f "$file" ] || continue
    read -r port _ < "$file" && require_number "$port"
    leads_somewhere "$port" || { echo "the load balancer of plane ${file##*/} leads nowhere" >&2; return 1; }
  done
}

leads_somewhere() {  # $1: the port at which Envoy says how it does
  local to line asked='GET /stats?filter=^cluster.apiservers.membership_healthy$ HTTP/1.1'
  exec {to}<> "/dev/tcp/127.0.0.1/$1" || return 1
  printf '%s\r\nHost: edge\r\nConnection: close\r\n\r\n' "$asked" >&"$to"
  while IFS= read -r -t 1 line <&"$to"; do
    [[ ! $line =~ ^cluster\.apiservers\.membership_healthy:\ [1-9] ]] || return 0
  done
  return 1
}

edge_busy() {  # ADDRESS: whether it is here, and a client of a load balancer is connected to it
  local bytes end at state file port ports=' '
  grep -A 1 -F -- "|-- $1" /proc/net/fib_trie | grep -q '/32 host LOCAL' || return 1
  for file in "$UNITS/$VRRP"/files/live/*; do
    [ ! -f "$file" ] || { read -r _ port < "$file" && require_number "$port" && ports+="$(printf %04X "$port") "; }
  done
  IFS=. read -r -a bytes <<< "$1"
  printf -v end '%02X%02X%02X%02X' "${bytes[3]}" "${bytes[2]}" "${bytes[1]}" "${bytes[0]}"
  while read -r _ at _ state _; do
    [ "${at%:*} $state" = "$end 01" ] && [[ $ports == *" ${at#*:} "* ]] && return 0
  done < /proc/net/tcp
  return 1
}
