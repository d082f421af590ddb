#!/usr/bin/env bash
# Runs a real job, kills the daemon in mid-work, and shows that everything comes back right.
# Fails if anything it shows is not so.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
build=${CAIRN_BUILD:-$PWD/build/release}
dir=$(mktemp -d /tmp/cairn-demo.XXXXXX)
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export NOMAD_ADDR=http://127.0.0.1:$port
daemon=

say() { printf '\n\033[1m# %s\033[0m\n' "$*"; }
fail() { printf 'demo: %s\n' "$*" >&2; tail -20 "$dir/daemon.log" >&2; exit 1; }
cairn() { "$build/cairn" "$@"; }
api() { python3 -c 'import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read().decode())' "$NOMAD_ADDR$1"; }
query() { python3 -c "import json,sys; data=json.load(sys.stdin); print($1)"; }

start() {
    "$build/cairn" agent -data-dir "$dir/data" -bind 127.0.0.1 -http-port "$port" >>"$dir/daemon.log" 2>&1 &
    daemon=$!
    disown "$daemon"
    for _ in $(seq 200); do
        kill -0 "$daemon" 2>/dev/null || fail "the daemon ended"
        cairn status >/dev/null 2>&1 && return
        sleep 0.02
    done
    fail "the daemon does not answer"
}

# After a failure things may still live: they are known by their working directory.
cleanup() {
    local path
    [ -n "$daemon" ] && kill "$daemon" 2>/dev/null || true
    for path in /proc/[0-9]*; do
        case $(readlink "$path/cwd" 2>/dev/null) in
            "$dir"*) kill -9 "${path#/proc/}" 2>/dev/null || true ;;
        esac
    done
    awk -v dir="$dir" 'index($5, dir) == 1 { print $5 }' /proc/self/mountinfo | xargs -r umount -l
    rm -rf "$dir"
}
trap cleanup EXIT

# alloc_of JOB: id of its alloc.  pid_of ALLOC TASK: pid of the task's payload, by its environment; what that
# has started is in its process group.
alloc_of() { api "/v1/job/$1/allocations" | query 'data[0]["ID"]'; }
pid_of() {
    local environ pid
    for environ in $(grep -lsz "^NOMAD_ALLOC_ID=$1$" /proc/[0-9]*/environ); do
        pid=${environ//[!0-9]/}
        if grep -qsz "^NOMAD_TASK_NAME=$2$" "$environ" &&
            [ "$(ps -o pgid= -p "$pid" | tr -d ' ')" = "$pid" ]; then
            echo "$pid"
            return
        fi
    done
}
state_of() { cairn alloc status -json "$1" | query "data['TaskStates']['$2']['State']"; }
events_of() { cairn alloc status -json "$1" | query "' '.join(e['DisplayMessage'] for e in data['TaskStates']['$2']['Events'])"; }
until_true() {
    local what=$1
    shift
    for _ in $(seq 500); do
        "$@" && return
        sleep 0.02
    done
    fail "waited in vain for $what"
}
is_state() { [ "$(state_of "$1" "$2")" = "$3" ]; }
is_gone() { ! kill -0 "$1" 2>/dev/null; }

say "A daemon in a directory of its own"
start
cairn node status

say "A service group with two tasks, and a batch group"
cairn job run test/live/demo.hcl
cairn job run test/live/demo-batch.hcl
web=$(alloc_of demo)
batch=$(alloc_of demo-batch)
server=$(pid_of "$web" server)
worker=$(pid_of "$web" worker)
count=$(pid_of "$batch" count)
cairn job status
echo "payloads: server=$server worker=$worker count=$count"

say "SIGKILL for the daemon, in mid-work"
kill -9 "$daemon"
until_true "the daemon's end" is_gone "$daemon"
for pid in "$server" "$worker" "$count"; do
    kill -0 "$pid" || fail "payload $pid died with the daemon"
done
echo "payloads $server $worker $count live on"

say "While it is down: the batch task finishes, one service task crashes"
touch "$dir/data/alloc/$batch/alloc/data/done"
kill -9 "$worker"
until_true "the batch task's end" is_gone "$count"
until_true "the worker's end" is_gone "$worker"
echo "the batch task is over, worker $worker was killed"

say "The daemon again"
start
until_true "the batch task's exit" is_state "$batch" count dead
until_true "the worker's restart" is_state "$web" worker running
[ "$(pid_of "$web" server)" = "$server" ] || fail "server has another pid than $server"
echo "server is the same process: $server"
case $(events_of "$batch" count) in
    *"Exit Code: 42"*) echo "the batch task's true exit code: 42" ;;
    *) fail "the batch task's exit code is lost: $(events_of "$batch" count)" ;;
esac
again=$(pid_of "$web" worker)
[ "$again" != "$worker" ] || fail "worker was not restarted"
case $(events_of "$web" worker) in
    *"Exit Code: 137, Signal: 9"*) echo "worker was restarted by policy: $worker -> $again" ;;
    *) fail "the worker's end is lost: $(events_of "$web" worker)" ;;
esac
[ "$(pgrep -fc "^sleep 3600$")" -ge 1 ] || fail "server is gone"
stop_hook() { cairn journal log -dir "$dir/data" -n 1000 | grep -q "$batch.*CLEANUP.*HOOK_DONE.*DEAD"; }
stop_hook || fail "stop hooks did not run for the terminal alloc"
echo "stop hooks ran for the terminal alloc $batch"
cairn alloc status "$web"

say "Stop, and the journal's timeline"
cairn job stop -purge demo
cairn job stop -purge demo-batch
cairn journal verify -dir "$dir/data"
cairn journal timeline -dir "$dir/data"

say "Nothing is left behind"
nothing_left() {
    ! pgrep -f "$dir" >/dev/null || return 1
    ! grep -q "$dir" /proc/self/mountinfo || return 1
    [ -z "$(ls "$dir/data/alloc")" ]
}
mark=$(api /v1/agent/self | query 'data["stats"]["client"]["node_id"][:8]')
until_true "the allocs' removal" sh -c "[ -z \"\$(ls '$dir/data/alloc')\" ]"
kill "$daemon"
until_true "the daemon's end" is_gone "$daemon"
daemon=
until_true "nothing to be left" nothing_left
if find /sys/fs/cgroup -type d -path "*/cairn/$mark*" | grep -q .; then
    fail "cgroups are left: $(find /sys/fs/cgroup -type d -path "*/cairn/$mark*")"
fi
echo "no process, no mount, no cgroup, no directory"
