ask_job() {  # DEADLINE MOST; the body has the environment and the arguments, each ended by NUL
  local words=() pid watch code
  [[ $1 =~ ^[0-9]{1,6}(\.[0-9]{1,3})?$ ]] || fail $INVALID "$1 seconds"; require_number "$2"
  mapfile -d '' -t words < "$BODY"
  {
    # The first process of the namespace stays root: after a change of user it would lose its parent-death signal.
    # shellcheck disable=SC2016 # the inner bash expands it
    setpriv --pdeathsig KILL unshare --pid --fork --kill-child --mount-proc -- bash -c '"$@"; exit $?' job \
      setpriv --reuid=quarterdeck-etcd --regid=quarterdeck-etcd --clear-groups --no-new-privs --inh-caps=-all \
      --bounding-set=-all -- timeout -s KILL "$1" env -i "${words[@]}" 2>&1 &
    pid=$!
    echo "$pid" > "$SESSION/job-$ID"
    # The job ends with the session, even a killed one: the last writer of this pipe is then gone.
    (read -r _ < "$SESSION/life"; kill -KILL "$pid") > /dev/null 2>&1 &
    watch=$!
    wait "$pid"
    code=$?
    kill "$watch" 2> /dev/null
    printf '%s' "$code" > "$SESSION/code-$ID"
  } | tail -c $(($2 + 1))
  rm -f "$SESSION/job-$ID"
  printf '\n%s' "$(< "$SESSION/code-$ID")"
  rm -f "$SESSION/code-$ID"
}

ask_cancel() {  # ID of a request for a job
  local pid
  require_number "$1"
  [ -e "$SESSION/job-$1" ] || return 0
  pid=$(< "$SESSION/job-$1")
  kill -KILL "$pid" 2> /dev/null
  while [ -e "/proc/$pid" ]; do sleep 0.01; done
}
