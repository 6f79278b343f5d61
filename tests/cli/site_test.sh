#!/usr/bin/env bash
# A site that names kinds and members differently: an overlay file beside the packs, and nothing
# else, must do for run, learn, backtest, test and explain.
#
#   site_test.sh REFLEX_BINARY SOURCE_ROOT
#
# Each case states the exit code and a pattern. Ends with "N passed, N failed"; exit 1 on failure.
set -u

reflex=$1
data=$2/tests/data/learn
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
cat >old.rfx <<'RFX'
overlay old for t.history { disable signal gpu_eror }
RFX
expect "a vanished signal" 2 "did you mean 'gpu_error'" "$reflex" check "$data/pack" old.rfx
echo 'overlay v for t.history ^3 { disable signal warm }' >range.rfx
expect "a wrong version range" 2 'R524' "$reflex" check "$data/pack" range.rfx

echo "$passed passed, $failed failed"
((failed == 0))
