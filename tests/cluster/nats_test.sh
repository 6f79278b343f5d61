#!/usr/bin/env bash
# A cluster over a real NATS JetStream server: 1, 2 and 4 signal workers, 1 and 2 attribution
# workers, some of them killed (-9) and started again, must say what one process says.
#
# usage: nats_test.sh REFLEX SOURCE_DIR
set -euo pipefail
reflex=$1
root=$2
work=$(mktemp -d)
pids=()
cleanup() {
  for pid in "${pids[@]:-}"; do kill -9 "$pid" 2>/dev/null || true; done
  rm -rf "$work"
}
trap cleanup EXIT
if ! command -v nats-server >/dev/null; then
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
  port=$((20000 + RANDOM % 20000))
  url=nats://127.0.0.1:$port
  nats-server -js -sd "$work/js.$1" -a 127.0.0.1 -p "$port" >"$work/nats.$1.log" 2>&1 &
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
  declare -A running
  start() {  # ROLE NUMBER
    if [[ $1 == signals ]]; then
      "$reflex" worker signals "${common[@]}" --partition "$2" 2>>"$work/$name.err" &
    else
      "$reflex" worker attribute "${common[@]}" --worker "$2" --workers "$workers" \
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
head -c 2000 "$demo/events.ndjson" >"$work/other.ndjson"
if "$reflex" worker route "${packs[@]}" --broker "$url" --events "$work/other.ndjson" 2>"$work/refused"; then
  echo "FAILED: a second run in one stream was not refused"; exit 1
fi
grep -q "another --stream" "$work/refused" || { cat "$work/refused"; exit 1; }
cluster two 2 1 0
cluster four 4 2 0
cluster killed 4 2 4
