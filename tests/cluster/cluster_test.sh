#!/usr/bin/env bash
# A cluster over a real NATS JetStream server or over Kafka (librdkafka's mock brokers): 1, 2 and 4
# signal workers, 1 and 2 attribution workers, some of them killed (-9) and started again, must say
# what one process says.
#
# usage: cluster_test.sh nats|kafka REFLEX SOURCE_DIR KAFKA_MOCK
set -euo pipefail
kind=$1
reflex=$2
root=$3
kafka_mock=$4
work=$(mktemp -d)
pids=()
cleanup() {
  for pid in "${pids[@]:-}"; do kill -9 "$pid" 2>/dev/null || true; done
  rm -rf "$work"
}
trap cleanup EXIT
if [[ $kind == nats ]] && ! command -v nats-server >/dev/null; then
  echo "skipped: no nats-server on this machine (apt-get install nats-server)"
  exit 77
fi

demo=$root/tests/data/demo
packs=("$root/rules/std" --profiles "$root/hwprofiles" --inventory "$demo/inventory.json")
input=(--events "$demo/events.ndjson")
for file in "$demo"/logs/*.log; do
  node=$(basename "$file")
  input+=(--log "${node%%.*}=$file")
done
"$reflex" run "${packs[@]}" "${input[@]}" -o "$work/whole.ndjson" -q
sort "$work/whole.ndjson" >"$work/expected"
[[ $(wc -l <"$work/expected") -gt 5 ]] || { echo "the demo gave no verdicts"; exit 1; }

# A server of its own for each run, as killed workers of one must not meet the next.
serve() {
  if [[ $kind == kafka ]]; then
    # Its standard input stays open as long as this script runs.
    mkfifo "$work/in.$1"
    "$kafka_mock" 2 <"$work/in.$1" >"$work/kafka.$1" &
    pids+=($!)
    exec {in}>"$work/in.$1"
    for _ in $(seq 100); do
      if [[ -s $work/kafka.$1 ]]; then
        url=kafka://$(head -n 1 "$work/kafka.$1")/RUN
        return
      fi
      sleep 0.1
    done
    echo "the mock brokers do not come"; exit 1
  fi
  port=$((20000 + RANDOM % 12000)) # below the ports that clients get (32768 on)
  url=nats://127.0.0.1:$port
  nats-server -js -sd "$work/js.$1" -a 127.0.0.1 -p "$port" >"$work/nats.$1.log" 2>&1 &
  server=${#pids[@]}
  pids+=($!)
  for _ in $(seq 100); do
    if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then return; fi
    sleep 0.1
  done
  echo "nats-server does not answer:"; cat "$work/nats.$1.log"; exit 1
}

# cluster NAME PARTITIONS WORKERS KILLS
cluster() {
  serve "$1"
  local name=$1 partitions=$2 workers=$3 kills=$4 k
  local common=("${packs[@]}" --partitions "$partitions" --broker "$url")
  local state=(--state-every 0.05)
  declare -A running
  start() {  # ROLE NUMBER
    if [[ $1 == signals ]]; then
      "$reflex" worker signals "${common[@]}" "${state[@]}" --partition "$2" 2>>"$work/$name.err" &
    else
      "$reflex" worker attribute "${common[@]}" "${state[@]}" --worker "$2" --workers "$workers" \
        -o "$work/$name.$2.ndjson" 2>>"$work/$name.err" &
    fi
    running[$1.$2]=$!
    pids+=($!)
  }
  for ((k = 0; k < partitions; k++)); do start signals "$k"; done
  for ((k = 0; k < workers; k++)); do start attribute "$k"; done
  "$reflex" worker route "${common[@]}" "${input[@]}" -q
  for ((k = 0; k < kills; k++)); do
    sleep 0.3
    local role=signals number=$((RANDOM % partitions))
    if ((k % 2)); then role=attribute number=$((RANDOM % workers)); fi
    kill -9 "${running[$role.$number]}" 2>/dev/null || true
    wait "${running[$role.$number]}" 2>/dev/null || true
    start "$role" "$number"
  done
  for k in "${!running[@]}"; do wait "${running[$k]}"; done
  cat "$work/$name".*.ndjson | sort >"$work/$name.got"
  if ! cmp -s "$work/$name.got" "$work/expected"; then
    echo "FAILED: $name ($partitions signal workers, $workers attribution workers) differs:"
    diff "$work/$name.got" "$work/expected" | cut -c1-400 | head -5
    cat "$work/$name.err"
    exit 1
  fi
  echo "ok: $partitions signal workers, $workers attribution workers, $kills kills: $(wc -l <"$work/$name.got") verdicts, byte for byte those of one process"
}

cluster one 1 1 0

# refused WHAT PATTERN ARGUMENTS.. : says so, and does not wait.
refused() {
  local what=$1 pattern=$2 status=0
  shift 2
  timeout 20 "$reflex" worker "$@" >"$work/refused" 2>&1 || status=$?
  if [[ $status != 3 ]] || ! grep -q "$pattern" "$work/refused"; then
    echo "FAILED: $what was not refused (exit $status):"; cat "$work/refused"; exit 1
  fi
  echo "ok: $what is refused: $(head -n 1 "$work/refused")"
}
cp "$demo/events.ndjson" "$work/events.ndjson"
refused "a second run in one stream" "another --stream" route "${packs[@]}" --broker "$url" \
  --events "$work/events.ndjson"
refused "a worker of another number of partitions" "same packs and --partitions" signals \
  "${packs[@]}" --broker "$url" --partitions 3 --partition 0
refused "a worker of other packs" "same packs and --partitions" attribute "$root/rules/fleet" \
  "$root/rules/std/kinds" --profiles "$root/hwprofiles" --broker "$url"
cluster two 2 1 0
cluster four 4 2 0
cluster killed 4 2 4

# takeover NAME: two processes for four partitions and two for two shares; one of each is killed when
# all units are served, before the input comes. The others take its units and finish.
takeover() {
  serve "$1"
  local name=$1 k
  local common=("${packs[@]}" --partitions 4 --broker "$url")
  local unit=(--any --lease 6 --state-every 0.05)
  declare -A running
  for k in 1 2; do
    "$reflex" worker signals "${common[@]}" "${unit[@]}" 2>"$work/$name.signals.$k" &
    running[signals.$k]=$!
    "$reflex" worker attribute "${common[@]}" "${unit[@]}" --workers 2 2>"$work/$name.attribute.$k" &
    running[attribute.$k]=$!
  done
  pids+=("${running[@]}")
  "$reflex" worker collect "${common[@]}" --workers 2 -o "$work/$name.out" 2>"$work/$name.collect" &
  local collector=$!
  pids+=("$collector")
  for _ in $(seq 300); do
    if [[ $(cat "$work/$name".signals.* | grep -c "begun here") -ge 4 ]] &&
      grep -q "begun here" "$work/$name.signals.1" && grep -q "begun here" "$work/$name.signals.2" &&
      grep -q "begun here" "$work/$name.attribute.1" && grep -q "begun here" "$work/$name.attribute.2"; then
      break
    fi
    sleep 0.1
  done
  for k in signals attribute; do
    grep -q "begun here" "$work/$name.$k.1" || { echo "FAILED: units are not shared"; cat "$work/$name".*.?; exit 1; }
    grep -q "begun here" "$work/$name.$k.2" || { echo "FAILED: units are not shared"; cat "$work/$name".*.?; exit 1; }
    kill -9 "${running[$k.1]}"
    wait "${running[$k.1]}" 2>/dev/null || true
  done
  "$reflex" worker route "${common[@]}" "${input[@]}" -q
  for k in "$collector" "${running[signals.2]}" "${running[attribute.2]}"; do
    timeout 60 tail --pid="$k" -f /dev/null || { echo "FAILED: it does not end:"; cat "$work/$name".*.?; exit 1; }
    wait "$k" || { echo "FAILED: a process of $name:"; cat "$work/$name".*; exit 1; }
  done
  sort "$work/$name.out" >"$work/$name.got"
  cmp "$work/$name.got" "$work/expected" || { diff "$work/$name.got" "$work/expected" | cut -c1-400 | head -5; exit 1; }
  echo "ok: one of two processes of each kind killed, the other took $(cat "$work/$name".*.2 | grep -c "begun here") units and finished: $(wc -l <"$work/$name.got") verdicts, byte for byte those of one process"
}
takeover takeover

# live NAME: what comes in is fed by a process of its own and routed live by one of two routers. The
# one that routes is killed before the input comes; nats-server is killed and started again under it.
live() {
  serve "$1"
  local name=$1 k other router
  local common=("${packs[@]}" --partitions 2 --broker "$url")
  local state=(--state-every 0.05)
  declare -A running
  for k in 0 1; do
    "$reflex" worker signals "${common[@]}" "${state[@]}" --partition "$k" 2>"$work/$name.signals.$k" &
    running[signals.$k]=$!
    "$reflex" worker route "${common[@]}" "${state[@]}" --live --no-ticks --lease 6 2>"$work/$name.route.$k" &
    running[route.$k]=$!
  done
  "$reflex" worker attribute "${common[@]}" "${state[@]}" -o "$work/$name.out" 2>"$work/$name.attribute.0" &
  running[attribute.0]=$!
  pids+=("${running[@]}")
  for _ in $(seq 200); do
    if grep -q "begun here" "$work/$name".route.?; then break; fi
    sleep 0.1
  done
  router=0 other=1
  if grep -q "begun here" "$work/$name.route.1"; then router=1 other=0; fi
  kill -9 "${running[route.$router]}"
  wait "${running[route.$router]}" 2>/dev/null || true
  local fed=(--events "$demo/events.ndjson" "${input[@]:2}" --to-end)
  "$reflex" worker feed "${common[@]}" "${fed[@]}" 2>"$work/$name.feed" &
  local feeder=$!
  pids+=("$feeder")
  if [[ $kind == nats ]]; then
    # All of them are there by now, and the other router waits for the lease of the dead one.
    wait "$feeder" || { cat "$work/$name.feed"; exit 1; }
    kill -9 "${pids[$server]}"
    sleep 1
    nats-server -js -sd "$work/js.$name" -a 127.0.0.1 -p "$port" >>"$work/nats.$name.log" 2>&1 &
    pids+=($!)
  fi
  [[ $kind == nats ]] || wait "$feeder" || { cat "$work/$name.feed"; exit 1; }
  for k in "${running[route.$other]}" "${running[signals.0]}" "${running[signals.1]}" "${running[attribute.0]}"; do
    timeout 90 tail --pid="$k" -f /dev/null || { echo "FAILED: it does not end:"; cat "$work/$name".*.? "$work/$name.feed"; exit 1; }
    wait "$k" || { echo "FAILED: a process of $name:"; cat "$work/$name".*.? "$work/$name.feed"; exit 1; }
  done
  sort "$work/$name.out" >"$work/$name.got"
  cmp "$work/$name.got" "$work/expected" || { diff "$work/$name.got" "$work/expected" | cut -c1-400 | head -5; exit 1; }
  echo "ok: live input, the router killed$([[ $kind == nats ]] && echo ', nats-server killed'): $(wc -l <"$work/$name.got") verdicts, byte for byte those of one process"
}
live live
