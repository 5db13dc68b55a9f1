# Limits are tested: the kernel has several of each kind, and does not report what is left.

inotify_instances() {  # COUNT: prints how many of them can be opened at once; nothing if unknown. Each "tail -f" opens one
  local at more output rest errors="" had=0 refused=0 pids=()
  exec {output}<> <(:)
  for ((at = 0; at < $1; at++)); do tail -n 0 -f "$BASH" > /dev/null 2>&"$output" & pids+=($!); done
  for ((at = 0; at < 100 + $1 && had + refused < $1; at++)); do
    more=""
    read -r -t 0.05 -u "$output" more || true  # it keeps a partial line
    errors+=$more rest=${errors//inotify/}  # two errors at the same time can share a line
    refused=$(((${#errors} - ${#rest}) / 7))
    had=$(find "${pids[@]/#//proc/}" -maxdepth 2 -lname anon_inode:inotify 2> /dev/null | wc -l)
  done
  kill "${pids[@]}" 2> /dev/null
  exec {output}<&-
  [ $((had + refused)) -lt "$1" ] || echo "$had"
}

ask_instances() {  # COUNT: prints how many of so many inotify instances can be opened at once
  require_number "$1"
  inotify_instances "$1" | grep . || fail $UNAVAILABLE "it cannot be tried how many inotify instances may be opened"
}
