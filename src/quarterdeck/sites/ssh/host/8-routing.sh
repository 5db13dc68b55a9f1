# Addresses that move between hosts, by the keepalived of the distribution: floating addresses of all planes, and promoted
# addresses of one plane. Only these units may change the host's network. So the configuration of each is checked line by
# line, and copied to a file that only root can change.

VRRP_LINE="|(global_defs|track_file [a-z0-9_]+|vrrp_instance [a-z0-9_]+) [{]| +(unicast_peer|virtual_ipaddress|track_file) [{]"
VRRP_LINE+="| *[}]| +(vrrp_version 3|vrrp_check_unicast_src|state BACKUP|interface @INTERFACE@)| +file @STATE@/(fails|busy_[0-9]+)"
VRRP_LINE+="| +(vrrp_garp_master_refresh|priority|virtual_router_id) [0-9]{1,3}"
VRRP_LINE+="| +weight -?[0-9]{1,3}| +advert_int [0-9.]{1,4}| +(fails|busy_[0-9]+)"
VRRP_LINE+="| +(unicast|mcast)_src_ip $IPV4| +$IPV4 min_ttl 255 max_ttl 255| +$IPV4/32"

is_vrrp() { [[ $1 = "$VRRP" || $1 = *-$VRRP ]]; }  # $1: unit: that of the site, or that of a plane

require_routing() {  # $1: unit whose record was read: only these units run as this user, and they have no volumes
  [ "$R_ACCOUNT" = quarterdeck-vrrp ] || is_vrrp "$1" || return 0
  if [ "$R_ACCOUNT" != quarterdeck-vrrp ] || ! is_vrrp "$1" || [ -n "$R_NEEDS$R_LOW" ] || [ ${#R_OWNS[@]} -ne 0 ]; then
    fail $INVALID "units of user quarterdeck-vrrp are $VRRP, and those of planes whose names end so"
  fi
}

as_vrrp() { setpriv --reuid=quarterdeck-vrrp --regid=quarterdeck-vrrp --clear-groups --no-new-privs -- "$@"; }

take_routing() {  # $1: unit: puts its checked configuration into place; prints why that is refused
  local written interface
  [ -x "$VRRP_BINARY" ] || { printf 'there is no keepalived on this host: install it from the distribution'; return 0; }
  written=$(as_vrrp cat "$UNITS/$1/files/keepalived.conf")
  why_not_routed "$written" || return 0
  interface=$(interface_of "$(own_address <<< "$written")")
  chmod 755 "$RUN"  # no other user needed it since the boot
  placed "$written" "$interface" /tmp | put "$RUN/$1.conf" 644
}

why_not_routed() {  # $1: a configuration: prints why keepalived must not use it, and fails; prints nothing for a valid one
  local line own
  while IFS= read -r line; do
    [[ $line =~ ^($VRRP_LINE)$ ]] || { printf 'its configuration must not say: %s' "${line:0:60}"; return 1; }
    if [[ $line =~ ^\ +($IPV4)/32$ ]] && ! is_listed addresses "${BASH_REMATCH[1]}"; then
      printf '%s is not allowed to be here' "${BASH_REMATCH[1]}"
      return 1
    fi
  done <<< "$1"
  own=$(own_address <<< "$1")
  [[ $(interface_of "$own") =~ ^[A-Za-z0-9][A-Za-z0-9._-]*$ ]] || { printf 'no interface of this host has the address %s' "$own"; return 1; }
}

call_vrrp() {  # UNIT, as its own user
  require_name "$1"
  run_vrrp "$RUN/$1.conf" "$UNITS/$1/files" /tmp
}
