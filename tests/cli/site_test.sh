#!/usr/bin/env bash
# A site that names kinds and members differently: an overlay file beside the packs, and nothing
# else, must do for run, learn, backtest, test and explain.
#
#   site_test.sh REFLEX_BINARY SOURCE_ROOT
#
# Each case states the exit code and a pattern. Ends with "N passed, N failed"; exit 1 on failure.
set -u

reflex=$1
root=$2
data=$root/tests/data/learn
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 3
passed=0
failed=0

pass() { passed=$((passed + 1)); }
fail() {
  failed=$((failed + 1))
  printf 'FAIL %s: %s\n' "$1" "$2"
  head -c 1500 out err 2>/dev/null | sed 's/^/    /'
}
# expect NAME EXIT PATTERN COMMAND...
expect() {
  local name=$1 want=$2 pattern=$3
  shift 3
  timeout 120 "$@" >out 2>err </dev/null
  local code=$?
  if ((code != want)); then
    fail "$name" "exit code $code, expected $want"
  elif [[ -n $pattern ]] && ! grep -Eq -- "$pattern" out err; then
    fail "$name" "output without /$pattern/"
  else
    pass
  fi
}
same() {
  if cmp -s "$2" "$3"; then pass; else fail "$1" "$2 and $3 differ"; fi
}

# ---- the same history as the site would write it
sed -e 's/"kind":"site.warm","node"/"kind":"bmc.temperature","host"/' \
    -e 's/"ts":\([0-9]*\),"kind":"site.link"/"stamp":\1,"kind":"switch.port"/' \
    -e 's/"kind":"site.gpu"/"kind":"GPU-ERR"/' "$data/events.ndjson" >events.ndjson
cat >site.rfx <<'RFX'
# Names of our monitoring.
overlay fra for t.history ^1 {
  alias kind bmc.temperature = site.warm { node = host }
  alias kind switch.port = site.link { ts = stamp }
  alias kind "GPU-ERR" = site.gpu
}
test "a node that is warm under our name" {
  nodes n[1..4]
  job j on n[1..4]
  at 1m: bmc.temperature n2
  at 2m: incident.open j symptom "crash"
  expect warm on n2
  expect no warm on n1
}
RFX
packs=("$data/pack" site.rfx)
labels=(--labels "$data/labels.ndjson")
# Pack identity and the ids that are made of it differ, and nothing else may.
strip() {
  sed -e 's/"pack":{.*"},"model"/"model"/; s/"id":"v-[0-9a-f]*"//; s/"source":"[^"]*"//g' "$1" \
    >"$1.stripped"
}

expect "check takes an overlay file" 0 'ok' "$reflex" check "${packs[@]}"
expect "check -v lists every change" 0 'overlay fra: kind switch.port is read as site.link' \
  "$reflex" check -v "${packs[@]}"
if [[ $(grep -c 'overlay fra:' out) == 3 ]]; then pass; else fail "check -v" "not three changes"; fi

expect "run without the overlay" 0 'unknown_kind' "$reflex" run "$data/pack" --events events.ndjson
expect "run reads the site's names" 0 'final verdicts' \
  "$reflex" run "${packs[@]}" --events events.ndjson -o site.ndjson
if grep -q 'unknown_kind\|missing_key\|missing_ts' err; then
  fail "run" "events of the site were rejected"
else
  pass
fi
expect "run of the original" 0 'final verdicts' \
  "$reflex" run "$data/pack" --events "$data/events.ndjson" -o plain.ndjson
strip site.ndjson
strip plain.ndjson
same "the same verdicts under other names" site.ndjson.stripped plain.ndjson.stripped

expect "learn" 0 'model written' \
  "$reflex" learn "${packs[@]}" --events events.ndjson "${labels[@]}" --until-fraction 0.6 -o m.json
expect "learn of the original" 0 'model written' "$reflex" learn "$data/pack" \
  --events "$data/events.ndjson" "${labels[@]}" --until-fraction 0.6 -o plain.json
expect "run with the model" 0 'final verdicts' \
  "$reflex" run "${packs[@]}" --events events.ndjson --model m.json
expect "backtest" 0 'AC@1|acc' \
  "$reflex" backtest "${packs[@]}" --events events.ndjson "${labels[@]}" --model m.json
expect "test" 0 '1 passed' "$reflex" test "${packs[@]}"
id=$(grep -o '"id":"v-[0-9a-f]*"' site.ndjson | tail -1 | cut -d'"' -f4)
expect "explain" 0 'prior|nats' "$reflex" explain site.ndjson "$id"

# ---- disable and except at run time
cat >off.rfx <<'RFX'
overlay off for t.history { disable signal gpu_error reason "driver under test" }
RFX
expect "a disabled signal fires nowhere" 0 'firings were left out by overlays' \
  "$reflex" run "$data/pack" off.rfx --events "$data/events.ndjson" -o off.ndjson
if grep -q '"signal":"t.history.gpu_error"[^}]*"state":"\(fired\|silent\)"' off.ndjson; then
  fail "disable" "the signal still counts"
else
  pass
fi
expect "the verdict says why it is not seen" 0 'disabled by overlay off: driver under test' \
  "$reflex" explain off.ndjson --as full
expect "why-not says who disabled it" 0 'disabled by overlay off: driver under test' \
  "$reflex" explain off.ndjson --why-not gpu_error --pack "$data/pack" off.rfx \
  --events "$data/events.ndjson"
cat >old.rfx <<'RFX'
overlay old for t.history { disable signal gpu_eror }
RFX
expect "a vanished signal" 2 "did you mean 'gpu_error'" "$reflex" check "$data/pack" old.rfx
echo 'overlay v for t.history ^3 { disable signal warm }' >range.rfx
expect "a wrong version range" 2 'R524' "$reflex" check "$data/pack" range.rfx

# ---- rules on verdicts
cat >rules.rfx <<'RFX'
overlay r for t.history { disable signal slow reason "not asked for" until 2020-01-01 }
rule drain on verdict v of failure where v.level == confirmed {
  severity v.top.fault.severity
  label fault = v.top.fault
  annotate summary "{v.top.node}: {v.top.fault} at {v.top.p:%.1f}"
  action cordon(v.top.node) limit 2 in 7d
  resolve after 1h
}
RFX
expect "rules are not evaluated unasked" 0 'not evaluated without --actions' \
  "$reflex" run "$data/pack" rules.rfx --events "$data/events.ndjson" -o v1.ndjson
expect "rules write alerts and actions" 0 '' \
  "$reflex" run "$data/pack" rules.rfx --events "$data/events.ndjson" -o v2.ndjson --actions a.ndjson
same "verdicts do not depend on rules being evaluated" v1.ndjson v2.ndjson
expect "an alert says what the verdict says" 0 '"summary":"n[0-9]+: (gpu|nic) at [0-9.]+%"' cat a.ndjson
expect "actions are dry runs" 0 '"action":"cordon","args":\["n[0-9]+"\],"mode":"dry_run","outcome":"dry_run"' \
  cat a.ndjson
expect "limits hold" 0 '"outcome":"limited","reason":"limit of 2 in 7d"' cat a.ndjson
expect "alerts end" 0 '"state":"resolved","reason":"expired"' cat a.ndjson
expect "twice the same lines" 0 '' "$reflex" run "$data/pack" rules.rfx \
  --events "$data/events.ndjson" -o /dev/null --actions b.ndjson --threads 2
same "alerts are deterministic" a.ndjson b.ndjson
expect "a full disk for the alerts is an error" 3 'disk full' "$reflex" run "$data/pack" rules.rfx \
  --events "$data/events.ndjson" -o v3.ndjson --actions /dev/full

# ---- test statements: gap of one source, strict and what covers a firing
cat >g.rfx <<'RFX'
pack g 1.0.0
event a.x { key node: node }
event b.y { key node: node }
signal sx on node { e: a.x }
signal sy on node { e: b.y }
fault f on node { prior 1e-2 per job }
f causes sx, sy p 0.9
incident i on job { opens on sx  settle 30s }
RFX
# gap_test NAME EXIT PATTERN BODY
gap_test() {
  { cat g.rfx; printf 'test "t" {\n nodes n[1..2]\n job j on n[1..2]\n at 1m: a.x n1\n%s\n}\n' "$4"; } >gt.rfx
  expect "$1" "$2" "$3" "$reflex" test gt.rfx
}
gap_test "another source's gap changes nothing" 0 '1 passed' \
  ' gap n1 source a.x from 0s to 1h expect verdict i j { top n1 f silent sy }'
gap_test "the gap of its source makes a signal unobserved" 1 'must be silent evidence' \
  ' gap n1 source b.y from 0s to 1h expect verdict i j { top n1 f silent sy }'
gap_test "a gap of logs is none of events" 0 '1 passed' \
  ' gap n1 source log from 0s to 1h expect verdict i j { top n1 f silent sy }'
gap_test "a source that is no kind" 2 "did you mean 'b.y'" \
  ' gap n1 source b.yy from 0s to 1h expect sx on n1'
gap_test "strict: all covered" 0 '1 passed' ' at 2m: b.y n2 strict expect sx on n1 allow sy on n2'
gap_test "strict: covered on another node" 1 'no .expect. or .allow. covers it' \
  ' at 2m: b.y n2 strict expect sx on n1 allow sy on n1'
gap_test "strict: covered at another time" 1 'no .expect. or .allow. covers it' \
  ' at 2m: b.y n2 strict expect sx on n1 allow sy on n2 at 3m +- 10s'
gap_test "late events are kept out" 1 'expected sy on n2; it fired: never' \
  ' at 2m: b.y n2 late 10m  at 9m: a.x n1 expect sy on n2'

expect "clauses end to end" 0 ' 0 failed' "$reflex" test "$root/tests/data/language" --matrix
expect "clauses end to end, interpreter" 0 ' 0 failed' \
  "$reflex" test "$root/tests/data/language" --backend interp

# ---- limits { state }
sed -e 's/^pack g 1.0.0/pack g 1.0.0 limits { state 2kB }/' -e 's/{ e: a.x }/{ count a.x >= 3 within 1h }/' \
  g.rfx >small.rfx
for i in $(seq 1 400); do
  printf '{"ts":%d,"kind":"a.x","node":"m%d"}\n' $((1767225600000 + i * 1000)) "$i"
done >many.ndjson
expect "states beyond the limit go, counted" 0 "keys evicted by the packs' .state. limit" \
  "$reflex" run small.rfx --events many.ndjson -o s1.ndjson

echo "$passed passed, $failed failed"
((failed == 0))
