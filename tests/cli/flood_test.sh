#!/usr/bin/env bash
# A log that repeats one line 800,000 times (domain_reference.md 6.2: one node can emit that many, 29 distinct):
# memory stays where it is with a tenth of them, and the line is one signal with a count. Copies that all have
# one stamp are held until the packs' lateness has passed, so there a record each is what may be held.
# Usage: flood_test.sh REFLEX SOURCE_DIR
set -u
reflex=$1
source_dir=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
failures=0

fail() {
  echo "FAIL $1: $2"
  failures=$((failures + 1))
}

text='NVRM: Xid (PCI:0000:3b:00): 119, pid=10200, name=NvmlTaskRunner, Timeout after 45s of waiting for RPC response from GPU5 GSP!'
# copies N: the same line at the same time; spread N: over two hours, 29 different texts.
copies() { yes "2026-01-01T01:00:00.000000+00:00 n3 kernel: $text" | head -n "$1"; }
spread() {
  awk -v n="$1" -v text="$text" 'BEGIN {
    for (i = 0; i < n; ++i) {
      s = 600 + int(i * 7200 / n)
      printf "2026-01-01T%02d:%02d:%02d+00:00 n3 kernel: %s sequence %d\n",
        s / 3600, s / 60 % 60, s % 60, text, 24000 + i % 29
    }
  }'
}

cat >inventory.json <<'JSON'
{"nodes": [{"node": "n1", "labels": {"gpu.product": "NVIDIA H100 80GB HBM3"}},
           {"node": "n2", "labels": {"gpu.product": "NVIDIA H100 80GB HBM3"}},
           {"node": "n3", "labels": {"gpu.product": "NVIDIA H100 80GB HBM3", "pci.gpu5": "0000:3b:00.0"}},
           {"node": "n4", "labels": {"gpu.product": "NVIDIA H100 80GB HBM3"}}],
 "jobs": [{"job": "j", "nodes": ["n1", "n2", "n3", "n4"], "start": "2026-01-01T00:00:00Z"}]}
JSON
echo '{"ts":"2026-01-01T02:10:05Z","kind":"job.failed","job":"j","code":"crash"}' >events.ndjson

# run LOG: verdicts in v.ndjson, notes in notes, and in `most` the largest memory seen, in KiB.
run() {
  rm -f v.ndjson
  "$reflex" run "$source_dir/rules/std" --profiles "$source_dir/hwprofiles" \
    --inventory inventory.json --events events.ndjson --log "n3=$1" --threads 1 \
    --revisions final -o v.ndjson 2>notes &
  local pid=$! now
  most=0
  while kill -0 "$pid" 2>/dev/null; do
    now=$(awk '/^VmHWM:/ {print $2}' "/proc/$pid/status" 2>/dev/null)
    if ((${now:-0} > most)); then most=$now; fi
    sleep 0.02
  done
  wait "$pid" || fail "run" "exit code $?: $(tail -n 3 notes)"
}

for shape in copies spread; do
  "$shape" 80000 >few.log
  "$shape" 800000 >many.log
  run few.log
  few=$most
  run many.log
  many=$most
  # Why 48 MiB: the chunks that are read ahead; the input grew by 120 MB. Why 480: bytes of a held record.
  allowed=$((48 * 1024))
  [[ $shape == copies ]] && allowed=$((720000 * 480 / 1024))
  if ((many > few + allowed)); then
    fail "$shape" "memory grew from $few to $many KiB with ten times the lines"
  fi
  grep -q '79[0-9]* duplicates folded' notes ||
    fail "$shape" "the copies are not counted: $(cat notes)"
  "$reflex" explain v.ndjson >explained 2>/dev/null
  shown=$(grep -c '^ .*gsp_timeout fired on n3/5' explained)
  ((shown >= 1)) || fail "$shape" "no verdict because of gsp_timeout: $(head -n 3 explained)"
  for other in $(grep -o '[a-z_0-9]* fired on [^,]*' explained | sort -u | cut -d' ' -f1 | uniq); do
    [[ $other == gsp_timeout ]] || fail "$shape" "another signal fired: $other"
  done
done
# Two hours at one event each five or six seconds (the dedup of gpu.xid, stamps of whole seconds).
grep -q 'gsp_timeout fired on n3/5, .*1[24][0-9][0-9] times' explained ||
  fail "spread" "the signal has no count: $(grep gsp_timeout explained)"

if ((failures > 0)); then exit 1; fi
echo "flood_test: ok"
