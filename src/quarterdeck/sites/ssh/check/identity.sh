# shellcheck shell=bash
# Prints the identity of a host, in lines of words separated by tabs. It reads only what any user may read.
say() { local IFS=$'\t'; printf '%s\n' "$*"; }

say machine-id "$(cat /etc/machine-id 2> /dev/null)"
say boot-id "$(cat /proc/sys/kernel/random/boot_id 2> /dev/null)"
for key in /etc/ssh/ssh_host_*_key.pub; do
  [ ! -r "$key" ] || { read -r _ blob _ < "$key" && say host-key "$blob"; }
done

# proc(5) has no list of addresses, but the routing table has a local route for each.
[ ! -r /proc/net/fib_trie ] || while read -r mark word rest; do
  case $mark in
    '|--') address=$word ;;
    /32) [ "$word $rest" != 'host LOCAL' ] || say address "$address" ;;
  esac
done < /proc/net/fib_trie
[ ! -r /proc/net/if_inet6 ] || while read -r address _; do say address "$address"; done < /proc/net/if_inet6
