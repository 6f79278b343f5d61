#!/usr/bin/env bash
# learn, backtest, feedback and run --model on the small labelled history of tests/data/learn.
#
#   learn_test.sh REFLEX_BINARY SOURCE_ROOT
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

in=("$data/pack" --events "$data/events.ndjson")
labels=(--labels "$data/labels.ndjson")

# ---- bad output and bad input
expect "a full disk is an error" 3 'No space left' \
  "$reflex" learn "${in[@]}" "${labels[@]}" --until-fraction 0.6 -o /dev/full
if [[ -c /dev/full ]]; then pass; else fail "device" "/dev/full was replaced by a file"; fi
head -c 4000 /dev/urandom >binary
expect "events that open nothing" 3 'no incident was opened' \
  "$reflex" backtest "$data/pack" --events binary "${labels[@]}"

# ---- learn
expect "learn writes a model that is better later" 0 'model written' \
  "$reflex" learn "${in[@]}" "${labels[@]}" --until-fraction 0.6 -o model.json
cp out learn.txt
if grep -Eq 'held-out log-loss' learn.txt && grep -Eq 'later part of time' learn.txt; then pass; else
  fail "learn reports" "no held-out or before/after figures"
fi
expect "the model names edges and shows the author's number" 0 '"edge": "t.history.gpu -> .*warm on self"' \
  cat model.json
expect "learn again" 0 '' "$reflex" learn "${in[@]}" "${labels[@]}" -o again.json --threads 2
same "learn is deterministic" model.json again.json
expect "learn as json" 0 '"held_out"' \
  "$reflex" --format json learn "${in[@]}" "${labels[@]}" -o again.json
expect "no later part: not written" 1 'not written' \
  "$reflex" learn "${in[@]}" "${labels[@]}" --until-fraction 1 -o none.json
if [[ -e none.json ]]; then fail "not written" "none.json exists"; else pass; fi
expect "too few incidents" 3 'at least' \
  "$reflex" learn "${in[@]}" "${labels[@]}" --until-fraction 0.05 -o none.json
expect "missing labels" 3 'cannot read' "$reflex" learn "${in[@]}" --labels nothing.ndjson -o x.json
expect "output is an input" 3 'would destroy' \
  "$reflex" learn "${in[@]}" "${labels[@]}" -o "$data/events.ndjson"

# ---- backtest
expect "backtest" 0 'all +48' "$reflex" backtest "${in[@]}" "${labels[@]}" --from-fraction 0.6
expect "backtest meets its bar with the model" 0 '' \
  "$reflex" backtest "${in[@]}" "${labels[@]}" --from-fraction 0.6 --model model.json \
  --expect 'f1>=0.6' --json r.json --markdown r.md --html r.html
expect "a bar that is missed" 1 'f1 is .*expected >= 0.999' \
  "$reflex" backtest "${in[@]}" "${labels[@]}" --expect 'f1>=0.999'
printf '# what we promise\nf1>=0.5\nexplicit.f1 >= 0.999 # hard\n' >bars
expect "bars from a file" 1 'explicit.f1' \
  "$reflex" backtest "${in[@]}" "${labels[@]}" --expect bars
expect "a bar that is none" 3 'neither like' \
  "$reflex" backtest "${in[@]}" "${labels[@]}" --expect 'f1 is fine'
# Found before the replay, which may take minutes.
early() {
  local name=$1 pattern=$2
  shift 2
  expect "$name" 3 "$pattern" "$reflex" backtest "${in[@]}" "${labels[@]}" "$@"
  if grep -q 'replay:' err; then fail "$name" "only after the replay"; else pass; fi
}
early "a report that cannot be written" 'cannot write no/such/r.html: there is no folder no/such' \
  --html no/such/r.html
early "a report that is a folder" 'cannot write \.: it is a folder' --markdown .
early "a figure that is none" "there is no figure 'f3'; known are f1, precision" --expect 'f3>=0.1'
printf 'f1>=0.5\nexplicit.f3>=0.1\n' >nobars
early "a file with a figure that is none" "nobars:2: there is no figure 'explicit.f3'" \
  --expect nobars
expect "a part that has no incident" 1 "no labelled incident is of 'odd'" \
  "$reflex" backtest "${in[@]}" "${labels[@]}" --expect 'odd.f1>=0.1'
for file in r.json r.md r.html; do
  if [[ -s $file ]]; then pass; else fail "report $file" "empty"; fi
done
expect "html holds plots and loads nothing" 0 '<svg' cat r.html
if grep -Eq 'https?://|<script' r.html; then fail "html" "loads something"; else pass; fi
expect "reports hold the worst incidents" 0 'worst' cat r.json
no_time() { grep -Ev '"(p50|p95|p99|max)":' "$1" >"$2"; }
for threads in 1 2; do
  expect "json on $threads threads" 0 '"f1_interval"' "$reflex" --format json backtest "${in[@]}" \
    "${labels[@]}" --from-fraction 0.6 --model model.json --threads "$threads"
  no_time out "threads$threads"
done
same "backtest is deterministic" threads1 threads2
expect "ablation" 0 'learned +0\.' "$reflex" backtest "${in[@]}" "${labels[@]}" \
  --from-fraction 0.6 --model model.json --ablate history,dynamic,learned
expect "baselines" 0 'naive Bayes sum' "$reflex" backtest "${in[@]}" "${labels[@]}" \
  --from-fraction 0.6 --baseline
expect "an unknown part" 3 '' "$reflex" backtest "${in[@]}" "${labels[@]}" --ablate luck
expect "from a time" 0 'all +60' "$reflex" backtest "${in[@]}" "${labels[@]}" \
  --from 2026-01-16T00:00:00Z
expect "from a time after everything" 3 'no labelled incident' "$reflex" backtest "${in[@]}" \
  "${labels[@]}" --from 2027-01-01T00:00:00Z
{ head -20 "$data/labels.ndjson"; echo '{broken'; echo '[]'; } >torn.ndjson
expect "bad label lines are counted" 0 'torn.ndjson:21: not a JSON object' \
  "$reflex" backtest "${in[@]}" --labels torn.ndjson

# ---- run with a model
expect "run without" 0 '' "$reflex" run "${in[@]}" --revisions final
cp out plain.ndjson
expect "run with a model" 0 '"model' "$reflex" run "${in[@]}" --model model.json --revisions final
cp out verdicts.ndjson
sed 's/"pack_sha256": "../"pack_sha256": "zz/' model.json >other.json
expect "a model of another pack set" 3 'another pack set' \
  "$reflex" run "${in[@]}" --model other.json
expect "a model that is none" 3 'not a JSON object' \
  "$reflex" backtest "${in[@]}" "${labels[@]}" --model "$data/pack/pack.rfx"

# ---- feedback
id=$(sed -n '1s/.*"id":"\([^"]*\)".*/\1/p' verdicts.ndjson)
expect "feedback confirms a verdict" 0 'inc-000 confirmed' "$reflex" feedback --history h.ndjson \
  --verdict "$id" confirmed --verdicts verdicts.ndjson
expect "it is a label" 0 '"outcome":"confirmed"' cat h.ndjson
expect "feedback corrects a verdict" 0 'inc-001 wrong: n02' "$reflex" feedback --history h.ndjson \
  --incident inc-001 wrong --culprit n02 --verdicts verdicts.ndjson
expect "wrong without a culprit" 0 'culprit unknown' "$reflex" feedback --history h.ndjson \
  --incident inc-002 wrong --ts 2026-01-01T12:00:00Z
expect "feedback is read back" 0 'all +2' "$reflex" backtest "${in[@]}" --labels h.ndjson
expect "an unknown verdict" 3 'holds no verdict' "$reflex" feedback --history h.ndjson \
  --verdict nothing confirmed --verdicts verdicts.ndjson
expect "neither verdict nor incident" 3 'give --verdict' "$reflex" feedback --history h.ndjson confirmed
expect "confirmed, but what" 3 'confirmed, but what' "$reflex" feedback --history h.ndjson \
  --incident inc-003 confirmed --ts 2026-01-01T12:00:00Z
if [[ $(wc -l <h.ndjson) == 3 ]]; then pass; else fail "history" "not three lines"; fi


# ---- history: what is known of earlier incidents is a prior of later ones
expect "run with a history" 0 '' "$reflex" run "${in[@]}" --history "$data/labels.ndjson" \
  --revisions final
if cmp -s out plain.ndjson; then fail "history" "changes no verdict"; else pass; fi
expect "backtest with a history" 0 'all +48' "$reflex" backtest "${in[@]}" "${labels[@]}" \
  --from-fraction 0.6 --history "$data/labels.ndjson"
expect "a history that is missing" 3 'cannot read' \
  "$reflex" run "${in[@]}" --history nothing.ndjson

printf '%d passed, %d failed\n' "$passed" "$failed"
((failed == 0))
