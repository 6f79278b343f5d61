#!/usr/bin/env bash
# The command line as people and scripts meet it: exit codes (language.md B2), bad input, streams.
#
#   cli_test.sh REFLEX_BINARY SOURCE_ROOT
#
# Every case states the exit code and a pattern that the output must hold. Nothing may crash: an
# exit code over 127 fails whatever was expected. Ends with "N passed, N failed"; exit 1 on failure.
# No test here is skipped when a tool is missing: gzip and zstd are needed.
set -u

reflex=$1
root=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 3
passed=0
failed=0

pass() { passed=$((passed + 1)); }
fail() {
  failed=$((failed + 1))
  printf 'FAIL %s: %s\n' "$1" "$2"
  if [[ -s out || -s err ]]; then
    head -c 1500 out err 2>/dev/null | sed 's/^/    /'
  fi
}

# run COMMAND...: stdout to `out`, stderr to `err`, sets `code`.
run() {
  timeout 120 "$@" >out 2>err </dev/null
  code=$?
}

# expect NAME EXIT PATTERN COMMAND...: EXIT may be "2|3"; PATTERN is an extended regular expression
# over stdout and stderr together ('' matches anything).
expect() {
  local name=$1 want=$2 pattern=$3
  shift 3
  run "$@"
  if ! [[ $code =~ ^($want)$ ]]; then
    fail "$name" "exit code $code, expected $want"
  elif [[ -n $pattern ]] && ! grep -Eq -- "$pattern" out err; then
    fail "$name" "output without /$pattern/"
  else
    pass
  fi
}

# pack FOLDER: the text of pack.rfx from standard input
pack() {
  mkdir -p "$1"
  cat >"$1/pack.rfx"
}

# ---- a small pack and a small trace that work

pack mini <<'RFX'
pack t.mini 1.0.0 requires engine >= 1.0 dsl 1
clock { lateness 5s }
event gpu.xid { key node: node  key gpu: gpu_index?  code: u16 }
event nccl.stuck { key node: node  waited: f64? }
signal double_bit on (node, gpu) { e: gpu.xid where e.code == 48 }
signal stuck on node { e: nccl.stuck } leak 1e-3 per hour
fault gpu_memory on (node, gpu) { prior 2e-4 per job  severity critical  remedy drain }
gpu_memory causes double_bit p 0.9 lag -5s .. 10m scope self
gpu_memory causes stuck p 0.9 lag -30s .. 15m scope peers
incident job_hang on job { opens on stuck  settle 30s  merge for 10m }
RFX

cat >trace.ndjson <<'JSON'
{"ts":"2026-03-01T12:00:00Z","kind":"job.start","job":"j1","nodes":["n1","n2","n3","n4"]}
{"ts":"2026-03-01T12:10:00Z","kind":"gpu.xid","node":"n2","gpu":3,"code":48}
{"ts":"2026-03-01T12:10:20Z","kind":"nccl.stuck","node":"n1","waited":1.5}
{"ts":"2026-03-01T12:10:21Z","kind":"nccl.stuck","node":"n3"}
{"ts":"2026-03-01T12:10:22Z","kind":"nccl.stuck","node":"n4"}
{"ts":"2026-03-01T12:12:00Z","kind":"gpu.xid","node":"n4","gpu":0,"code":13}
JSON

expect "check accepts a good pack" 0 '' "$reflex" check mini
expect "run names the culprit" 0 '"culprits":\["n2"\]' "$reflex" run mini --events trace.ndjson
cp out verdicts.ndjson
cat >asked.ndjson <<'JSON'
{"ts":"2026-03-01T12:00:00Z","kind":"job.start","job":"j1","nodes":["n1","n2"]}
{"ts":"2026-03-01T12:10:00Z","kind":"incident.open","job":"j1","incident":"i1","symptom":"hang"}
{"ts":"2026-03-01T12:20:00Z","kind":"incident.open","job":"j1","incident":"i2","symptom":"hang"}
JSON
expect "an incident.open that no pack listens to" 0 \
  '2 incident.open events opened nothing: no incident of these packs opens on them; write' \
  "$reflex" run mini --events asked.ndjson
mkdir -p listens
sed 's/opens on stuck/opens on stuck or incident.open/' mini/pack.rfx >listens/pack.rfx
expect "and one that a pack listens to" 0 '"incident":"i2"' "$reflex" run listens \
  --events asked.ndjson
if grep -q 'opened nothing' err; then fail "a note" "though it opened one"; else pass; fi
cp verdicts.ndjson out
if [[ -s out ]] && ! grep -vq '^{.*}$' out; then pass; else
  fail "stdout is data only" "a line of stdout is not a JSON object"
fi
expect "explain shows the contributions" 0 'double_bit' "$reflex" explain verdicts.ndjson
expect "explain takes a job" 0 'n2' "$reflex" explain verdicts.ndjson j1
expect "explain as markdown" 0 'double.{0,2}bit' "$reflex" explain verdicts.ndjson --as markdown
cp out as_markdown
expect "md is short for it" 0 'double.{0,2}bit' "$reflex" explain verdicts.ndjson --as md
if cmp -s out as_markdown; then pass; else fail "--as md" "is not --as markdown"; fi
expect "explain says what to do" 0 'drain n2' "$reflex" explain verdicts.ndjson
expect "explain in full" 0 'double_bit.*p 0.9 leak' "$reflex" explain verdicts.ndjson --as full
expect "explain as a page" 0 'n2 is the faulty node' "$reflex" explain verdicts.ndjson --as html
expect "a page is one verdict" 3 'one page of one verdict' "$reflex" explain verdicts.ndjson \
  --as html --all
expect "a misspelt command" 3 "no command 'explan'; did you mean 'explain'" "$reflex" explan
expect "explain without anything" 3 'why-not' "$reflex" explain

# ---- why not

why() { expect "$1" "$2" "$3" "$reflex" explain --why-not "$4" --pack mini --events trace.ndjson "${@:5}"; }
why "why not a node" 0 'n4 is not named' n4
why "why not shows the winner" 0 'gpu_memory on n2/3' n4
expect "why not, of the incident asked for" 0 'n4 is not named' \
  "$reflex" explain verdicts.ndjson j1 --why-not n4 --pack mini --events trace.ndjson
expect "why not, no such incident" 3 "no verdict, incident or job 'inc-9'" \
  "$reflex" explain verdicts.ndjson inc-9 --why-not n4 --pack mini --events trace.ndjson
sed 's/"incident":"[^"]*"/"incident":"inc-77777"/' verdicts.ndjson >other.ndjson
expect "why not, an incident of another stream" 0 'opened no incident inc-77777' \
  "$reflex" explain other.ndjson --why-not n4 --pack mini --events trace.ndjson
why "why not a node that is named" 0 'n2 is named: confirmed' n2
why "why not a node before the incident" 0 'no incident opened' n4 --at 2026-03-01T12:05:00Z
why "why not a signal, the predicate" 0 'e.code|code (==|in).*48.*false .code = 13' double_bit --on n4
why "why not a signal that fired" 0 'double_bit fired 1 times on n2' double_bit --on n2
why "why not something unknown" 3 'neither a signal .* nor a node' n99
why "why not at no time" 3 'RFC 3339' n4 --at noon
expect "why not without events" 3 'give --pack and --events or --log' "$reflex" explain --why-not n4 --pack mini

pack near <<'RFX'
pack t.near 1.0.0 requires engine >= 1.0 dsl 1
clock { lateness 5s }
event a.one { key node: node  secret: string? redact  n: u16? }
event a.two { key node: node }
signal pair on node { x: a.one where x.secret == "hush" then y: a.two within 1m }
signal many on node { count a.one >= 3 within 10m }
fault bad on node { prior 1e-4 per job }
bad causes pair p 0.9 lag -5s .. 10m scope self
bad causes many p 0.5 lag -5s .. 10m scope self
incident job_hang on job { opens on pair  settle 30s  merge for 10m }
RFX
cat >near.ndjson <<'JSON'
{"ts":"2026-03-01T12:00:00Z","kind":"a.one","node":"n1","secret":"hush"}
{"ts":"2026-03-01T12:05:00Z","kind":"a.one","node":"n1","secret":"other"}
{"ts":"2026-03-01T12:30:00Z","kind":"a.two","node":"n1"}
JSON
near() { expect "$1" 0 "$2" "$reflex" explain --why-not "$3" --pack near --events near.ndjson; }
near "a near miss" '1 of 2 steps on n1, given up at' pair
near "a count below its limit" 'at most 2 within 10m on n1 .* count is >= 3' many
if [[ -s out ]] && "$reflex" explain --why-not pair --pack near --events near.ndjson | grep -q other; then
  fail "redacted fields" "a value of a redacted field was printed"
else
  pass
fi

# ---- anonymize: the same verdicts up to renaming, and nothing left of the names

printf 'a key of this test, long enough' >key
cat >named.json <<'JSON'
{"nodes":[{"node":"n1","labels":{"hw":"H100","rack":"row-9"}},{"node":"n2","labels":{"rack":"row-9"}}]}
JSON
zstd -q trace.ndjson -o trace.zst
expect "anonymize" 0 'no original name is in the output' "$reflex" anonymize --events trace.zst \
  --inventory named.json --key-file key -o anon --mapping mapping.tsv
if ! zstd -dc anon/events.ndjson.zst | grep -Eq '"(n[1-4]|j1)"' && [[ -s anon/inventory.json ]]; then
  pass
else
  fail "anonymized names" "a name is left, or the output is not there"
fi
# facts FILE: what must not change but for names: answer, level, culprits, p and nats, in order. Not
# the counterfactual: of two equal nodes it names the one whose name is first.
facts() {
  sed 's/"counterfactual".*//' "$1" |
    grep -Eo '"(answer|level|culprits|p|nats|prior_nats|log_odds_nats)":[^]},]*'
}
# same_but_names NAME PACK EVENTS INVENTORY ANONYMIZED MAPPING
same_but_names() {
  awk -F'\t' '{print "s/\\b" $2 "\\b/" $3 "/g"}' "$6" >rename.sed
  "$reflex" run "$2" --events "$3" --inventory "$4" --revisions final >before 2>/dev/null
  "$reflex" run "$2" --events "$5"/events.ndjson.zst --inventory "$5/inventory.json" \
    --revisions final >after 2>/dev/null
  sed -f rename.sed before >renamed
  facts renamed >facts_before
  facts after >facts_after
  if [[ -s facts_after ]] && cmp -s facts_before facts_after; then pass; else
    fail "$1" "verdicts differ by more than names"
  fi
}
same_but_names "verdicts of anonymized data" mini trace.zst named.json anon mapping.tsv
if [[ -f $root/../shared/data/small/events.ndjson.zst ]]; then
  small=$root/../shared/data/small
  pack small <<'RFX'
pack t.small 1.0.0 requires engine >= 1.0 dsl 1
clock { lateness 60s }
event gpu.ecc_ce { key node: node  key gpu: gpu_index? }
event gpu.thermal { key node: node  key gpu: gpu_index? }
event nic.retrans { key node: node  key nic: nic? }
event fs.slow { key node: node }
signal ecc on node { count gpu.ecc_ce >= 3 within 1d } leak 1e-3 per hour
signal hot on node { e: gpu.thermal } leak 5e-3 per hour
signal retrans on node { e: nic.retrans } leak 5e-3 per hour
signal slow_fs on node { e: fs.slow } leak 5e-3 per hour
fault gpu_bad on node { prior 1e-3 per job  remedy drain }
fault nic_bad on node { prior 1e-3 per job  remedy drain }
external storage_bad on job { prior 1e-4 per job }
gpu_bad causes ecc p 0.6 lag -2d .. 10m scope self
gpu_bad causes hot p 0.5 lag -1d .. 10m scope self
nic_bad causes retrans p 0.7 lag -1d .. 10m scope self
storage_bad causes slow_fs p 0.5 lag -1h .. 10m scope job
incident asked on job { opens on incident.open  settle 30s  merge for 10m }
RFX
  expect "anonymize a whole set" 0 'no original name' "$reflex" anonymize --key-file key -o anon2 \
    --events "$small/events.ndjson.zst" --inventory "$small/inventory.json" \
    --labels "$small/labels.ndjson" --mapping mapping2.tsv
  same_but_names "verdicts of the anonymized small set" small "$small/events.ndjson.zst" \
    "$small/inventory.json" anon2 mapping2.tsv
fi
expect "anonymize into a full folder" 3 'exists' "$reflex" anonymize --events trace.zst -o anon
expect "anonymize nothing" 3 'nothing to do' "$reflex" anonymize -o anon3
printf '{"ts":1772366400250,"kind":"xgpu-node-1y","node":"gpu-node-1"}\n' >leak.ndjson
expect "a name that stays is found" 1 'leak/events.ndjson:1:.*gpu-node-1' "$reflex" anonymize \
  --events leak.ndjson -o leak
expect "fail-on verdict is a finding" 1 '' "$reflex" run mini --events trace.ndjson --fail-on verdict

# The same bytes for every thread count, batch size and backend.
same() {
  local name=$1
  shift
  run "$@"
  if ((code != 0)); then
    fail "$name" "exit code $code"
  elif ! cmp -s out verdicts.ndjson; then
    fail "$name" "verdicts differ from the plain run"
  else
    pass
  fi
}
for threads in 2 4; do
  same "$threads threads" "$reflex" run mini --events trace.ndjson --threads "$threads"
done
same "batch of 1" "$reflex" run mini --events trace.ndjson --batch 1
same "interpreter" "$reflex" run mini --events trace.ndjson --backend interp
gzip -c trace.ndjson >trace.ndjson.gz
zstd -q -c trace.ndjson >trace.ndjson.zst
cp trace.ndjson.gz misnamed.ndjson
cat >standard_input.sh <<'SH'
"$1" run mini --events - <trace.ndjson
SH
# A source is named by its file, so other names of the same trace may differ in that name only.
for form in trace.ndjson.gz trace.ndjson.zst misnamed.ndjson; do
  expect "events from $form" 0 '"culprits":\["n2"\]' "$reflex" run mini --events "$form"
done
expect "events from standard input" 0 '"culprits":\["n2"\]' bash standard_input.sh "$reflex"
{ sed -n 1,2p trace.ndjson; sed -n 4p trace.ndjson; sed -n 3p trace.ndjson; sed -n 5,6p trace.ndjson; } >shuffled.ndjson
expect "arrival order within lateness" 0 '"culprits":\["n2"\]' "$reflex" run mini --events shuffled.ndjson

# ---- usage

expect "help" 0 'check' "$reflex" --help
expect "version" 0 'reflex [0-9]+\.[0-9]+' "$reflex" --version
expect "no command" 3 '' "$reflex"
expect "unknown command" 3 '' "$reflex" frobnicate
expect "bad flag" 3 'no-such-flag' "$reflex" check mini --no-such-flag
expect "bad flag value" 3 '' "$reflex" test mini --jobs many
expect "run without input" 3 'nothing to read' "$reflex" run mini
expect "log without a node" 3 'NODE=FILE' "$reflex" run mini --log kernel.log
expect "missing pack folder" 3 'no_such_folder' "$reflex" check no_such_folder
expect "missing event file" 3 'no_such_file' "$reflex" run mini --events no_such_file.ndjson
expect "missing log file" 3 'no_such_file' "$reflex" run mini --log n1=no_such_file.log
expect "missing inventory" 3 'no_such_file' "$reflex" run mini --events trace.ndjson \
  --inventory no_such_file.json
expect "a folder as event file" 3 'mini' "$reflex" run mini --events mini
printf '{"nodes":' >half.json
expect "inventory that is not JSON" 3 'half.json' "$reflex" run mini --events trace.ndjson \
  --inventory half.json
expect "output that cannot be opened" 3 'no_such_folder' "$reflex" run mini --events trace.ndjson \
  -o no_such_folder/verdicts.ndjson
expect "output on a full disk" 3 '/dev/full' "$reflex" run mini --events trace.ndjson -o /dev/full
expect "explain a missing file" 3 'no_such_file' "$reflex" explain no_such_file.ndjson
expect "explain something else" 3 'trace.ndjson' "$reflex" explain trace.ndjson
expect "explain an unknown job" 3 'j99' "$reflex" explain verdicts.ndjson j99
expect "help on a diagnostic" 0 'R101' "$reflex" help R101
expect "help says the cause" 0 'No event kind of this name' "$reflex" help R101
expect "help as JSON" 0 '^\{"id":"R105","severity":"error".*"fix":' "$reflex" help R105 --format json
expect "help on an unknown diagnostic" 3 'R7777' "$reflex" help R7777

# ---- packs

mkdir -p empty_folder
expect "no packs" 3 '' "$reflex" check empty_folder
expect "no packs to test" 3 '' "$reflex" test empty_folder
expect "no packs to run" 3 '' "$reflex" run empty_folder --events trace.ndjson
expect "no tests" 1 'no tests' "$reflex" test mini

mkdir -p empty_file && : >empty_file/pack.rfx
expect "empty pack file" '2|3' 'empty_file' "$reflex" check empty_file
mkdir -p binary_file && head -c 4096 /dev/urandom >binary_file/pack.rfx
expect "binary pack file" 2 'binary_file/pack.rfx' "$reflex" check binary_file
mkdir -p half_file && head -c 300 mini/pack.rfx >half_file/pack.rfx
printf ' signal half on (node' >>half_file/pack.rfx
expect "pack file that ends in the middle" 2 'R100' "$reflex" check half_file

# bad_rule NAME ID TEXT: the small pack with one more declaration
bad_rule() {
  mkdir -p bad
  { cat mini/pack.rfx; printf '%s\n' "$3"; } >bad/pack.rfx
  expect "$1" 2 "pack.rfx:[0-9]+:[0-9]+: error: .*\[$2\]" "$reflex" check bad
}
bad_rule "unknown kind" R101 'signal s on node { e: gpu.xidd where e.code == 48 }'
expect "did you mean" 2 "did you mean 'gpu.xid'" "$reflex" check bad
bad_rule "unknown field" R102 'signal s on node { e: gpu.xid where e.cod == 48 }'
bad_rule "wrong type" R104 'signal s on node { e: gpu.xid where e.code == "48" }'
bad_rule "unknown signal" R108 'gpu_memory causes no_such_signal p 0.5'
bad_rule "name declared twice" R107 'signal stuck on node { e: nccl.stuck }'
bad_rule "unknown entity" 'R1[0-9][0-9]' 'signal s on nod { e: gpu.xid }'
expect "diagnostics as JSON" 2 '^\{.*"id":"R110"' "$reflex" check bad --format json

# json_is FILE: one JSON document. python3 comes with the build's own tools.
json_is() { python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$1"; }
expect "diagnostics as SARIF" 2 '"exitCode": 2' "$reflex" check bad --format sarif
if json_is out && grep -q '"ruleId": "R110"' out && [[ ! -s err ]]; then pass; else
  fail "SARIF is one document on stdout" "it is not, or stderr is not empty"
fi
expect "diagnostics for GitHub" 2 '^::error file=bad/pack.rfx,line=[0-9]+,.*,title=R110::' \
  "$reflex" check bad --format github
expect "SARIF of a good pack" 0 '"results": \[\]' "$reflex" check mini --format sarif
expect "SARIF and a table" 3 'no sarif form' "$reflex" check mini --format sarif --cost
expect "SARIF for run is for its diagnostics" 2 '"version": "2.1.0"' "$reflex" run bad \
  --events trace.ndjson --format sarif
expect "cost" 0 '^t.mini.double_bit +\(node, gpu\) +[0-9]+' "$reflex" check mini --cost
expect "cost of the set" 0 '^all signals on' "$reflex" check mini --cost
expect "cost as JSON" 0 '^\{"kind":"gpu.xid","evaluators":' "$reflex" check mini --cost --format json
{ cat mini/pack.rfx; echo 'list spare: set<u16> = [48]'; } >bad/pack.rfx
expect "a warning passes" 0 'R201' "$reflex" check bad
expect "fail at warnings" 1 'R201' "$reflex" check bad --fail-level warning
sed -i 's/^list spare/# allow R201 for the site\n&/' bad/pack.rfx
expect "an allowed warning passes" 0 '' "$reflex" check bad --fail-level warning
expect "and SARIF tells the reason" 0 '"justification": "for the site"' "$reflex" check bad \
  --format sarif

{ cat mini/pack.rfx; for i in 1 2 3; do echo "signal s$i on node { e: gpu.xid where e.cod$i == 1 }"; done; } \
  >bad/pack.rfx
run "$reflex" check bad
if [[ $(grep -c 'R102' err) == 3 ]]; then pass; else
  fail "several errors at once" "expected three R102, got $(grep -c 'R102' err)"
fi

pack one/a <<'RFX'
pack t.one 1.0.0 requires engine >= 1.0 dsl 1
RFX
pack one/b <<'RFX'
pack t.one 1.1.0 requires engine >= 1.0 dsl 1
RFX
expect "two packs with one name" 2 't\.one' "$reflex" check one

pack ring/a <<'RFX'
pack t.a 1.0.0 requires engine >= 1.0 dsl 1
import t.b 1.0
RFX
pack ring/b <<'RFX'
pack t.b 1.0.0 requires engine >= 1.0 dsl 1
import t.a 1.0
RFX
expect "cyclic imports" 2 't\.a.*t\.b|t\.b.*t\.a' "$reflex" check ring

pack future <<'RFX'
pack t.future 1.0.0 requires engine >= 99.0 dsl 1
this line is of a language that does not exist yet ((
RFX
expect "pack for a later engine" 2 'engine.*99' "$reflex" check future

bad_rule "cyclic cause graph" 'R[0-9]+' 'signal p on node { e: gpu.xid where e.code == 1 }
signal q on node { e: gpu.xid where e.code == 2 }
p causes q p 0.5 lag 0s .. 1h scope self
q causes p p 0.5 lag 0s .. 1h scope self'
expect "the cycle is printed" 2 'p.*q.*p|q.*p.*q' "$reflex" check bad

mkdir -p deep
{
  sed '/^signal double_bit/d;/double_bit p/d' mini/pack.rfx
  printf 'signal deep on node { e: gpu.xid where '
  head -c 30000 /dev/zero | tr '\0' '('
  printf 'e.code == 1'
  head -c 30000 /dev/zero | tr '\0' ')'
  printf ' }\n'
} >deep/pack.rfx
expect "30,000 nested parentheses" 2 'R4[0-9][0-9]' "$reflex" check deep
{
  sed '/^signal double_bit/d;/double_bit p/d' mini/pack.rfx
  printf 'signal deep on node { e: gpu.xid where '
  for ((i = 0; i < 30000; i++)); do printf 'not '; done
  printf 'e.code == 1 }\n'
} >deep/pack.rfx
expect "30,000 negations" 2 'R4[0-9][0-9]' "$reflex" check deep

# ---- fmt

mkdir -p ugly && printf 'pack t.ugly 1.0.0\nevent k{key node:node}\nsignal s on node{e:k}# why\n' >ugly/pack.rfx
expect "fmt --check lists what differs" 1 '^ugly/pack.rfx$' "$reflex" fmt --check ugly
expect "fmt -d" 0 '^\+signal s on node \{ e: k \}  # why' "$reflex" fmt -d ugly
expect "fmt prints" 0 '^event k \{ key node: node \}$' "$reflex" fmt ugly/pack.rfx
cp out formatted
chmod 640 ugly/pack.rfx
expect "fmt -w" 0 'ugly/pack.rfx formatted' "$reflex" fmt -w ugly
if cmp -s ugly/pack.rfx formatted && [[ $(stat -c %a ugly/pack.rfx) == 640 ]]; then pass; else
  fail "fmt -w writes what fmt prints, with the mode of the file" "$(stat -c %a ugly/pack.rfx)"
fi
expect "fmt --check of the formatted" 0 '' "$reflex" fmt --check ugly
expect "fmt of standard input" 0 '^signal s on node \{ e: k \}$' \
  bash -c 'echo "signal s on node{e:k}" | "$0" fmt -' "$reflex"
expect "fmt -w of standard input" 3 'cannot be rewritten' "$reflex" fmt -w -
expect "fmt of a syntax error" 2 'R100' "$reflex" fmt -w half_file
if grep -q 'signal half on (node$' half_file/pack.rfx; then pass; else
  fail "a broken file is left alone" "it was changed"
fi
expect "fmt of nothing" 3 'no .rfx' "$reflex" fmt empty_folder
expect "fmt -w of a read-only file" 3 'is read-only' bash -c \
  'printf "signal  s on node { e: k }" >only.rfx && chmod 444 only.rfx && "$0" fmt -w only.rfx' "$reflex"
grep -q 'signal  s' only.rfx || fail "a read-only file is left alone" "$(cat only.rfx)"
expect "fmt -w keeps the other names of a file" 0 '^signal s on' bash -c \
  'printf "signal  s on node { e: k }" >one.rfx && ln one.rfx two.rfx && "$0" fmt -w one.rfx && cat two.rfx' "$reflex"
expect "fmt -w keeps a link" 0 'symbolic link' bash -c \
  'printf "signal  s on node { e: k }" >to.rfx && ln -s to.rfx link.rfx && "$0" fmt -w link.rfx && stat -c %F link.rfx' "$reflex"
expect "fmt -w into a folder that is not writable" '0|3' '' bash -c \
  'mkdir -p locked && printf "signal  s on node { e: k }" >locked/a.rfx && chmod 555 locked; "$0" fmt -w locked/a.rfx; code=$?; chmod 755 locked; exit $code' "$reflex"

# ---- test: failures that explain themselves, coverage, -run, JUnit

pack failing <<'RFX'
pack t.failing 1.0.0
event gpu.xid { key node: node  key gpu: gpu_index?  code: u16 }
event a.two { key node: node }
profile h fallback { hot: celsius = 85  cold: celsius = 5 }
event gpu.temp { key node: node  value: celsius }
signal burst on (node, gpu) { count gpu.xid where it.code in [48, 63] >= 3 within 10m }
signal pair on node within 1m { x: gpu.xid where x.code == 48 then y: a.two }
signal hot on node { when gpu.temp.value > profile.hot for 0s }
fault bad on node { prior 1e-4 per job }
bad causes pair p 0.9 lag -5s .. 10m
bad causes hot p 0.5 lag -5s .. 10m
incident i on job { opens on burst or pair or hot }
test "too few" {
  nodes n[1..2]  job j on n[1..2]
  at 1m: gpu.xid n1/3 code 48 x2 every 10s
  at 2m: gpu.xid n1/3 code 31
  at 10m: a.two n2
  expect burst on n1/3 at 2m
  expect pair on n1
}
test "pair" {
  nodes n[1..2]  job j on n[1..2]
  at 1m: gpu.xid n1/3 code 48
  at 1m5s: a.two n1
  at 9m: gpu.xid n1/3 code 13
  expect pair on n1
}
RFX
expect "a failure names its place" 1 'pack.rfx:18:3: error: expected burst on n1/3 at 2m; it fired: never' \
  "$reflex" test failing
expect "with the value under each part" 1 'code in \{48, 63\}: false \(code = 31\)' "$reflex" test failing
expect "the count and its limit" 1 'at most 2 within 10m on n1/3 at 1m10s; it fires when the count is >= 3' \
  "$reflex" test failing
expect "the near miss" 1 '1 of 2 steps on n1, given up at' "$reflex" test failing
expect "-run selects" 0 '1 test, 1 passed' "$reflex" test failing -run '^pair$'
expect "-run of nothing" 1 "no title matches 'nothing'" "$reflex" test failing -run nothing
expect "tests as JSON" 1 '^\{"title":"pair",.*"passed":true' "$reflex" test failing --json
"$reflex" test failing --junit junit.xml >out 2>err
if python3 -c 'import sys, xml.etree.ElementTree as t; s = t.parse("junit.xml").getroot()
sys.exit((s.get("tests"), s.get("failures"), len(s.findall("testcase/failure"))) != ("2", "1", 1))'; then pass; else
  fail "JUnit" "not two tests with one failure"
fi
cover() { expect "coverage: $1" 0 "$2" "$reflex" test failing --run pair --coverage; }
cover "signals" '^  signals +1 of +3 '
cover "a signal that never fired" 'not covered: t.failing.burst never fired \(.*:6\)'
cover "edges" '^  edges +1 of +2 '
cover "an edge that was no evidence" 'not covered: t.failing.bad causes t.failing.hot was never evidence'
cover "parameters" '^  profile parameters +0 of +2 '
cover "a parameter that no test read" 'profile.hot was never read'
cover "a parameter that no rule reads" 'profile.cold is read by no expression'
cover "both answers" 'not covered: t.failing.hot, when .*: never asked'
expect "coverage as JSON" 0 '^\{"coverage":\{"signals":\{"covered":1,"total":3,' \
  "$reflex" test failing --run pair --coverage --json

# ---- diff: meaning, state, verdicts

pack diff_a <<'RFX'
pack t.d 1.0.0
event gpu.xid { key node: node  key gpu: gpu_index?  code: u16 }
event nccl.stuck { key node: node }
list hw: set<u16> = [48, 50]
profile h fallback { hot: celsius = 85 }
event gpu.temp { key node: node  value: celsius }
# A comment.
signal from_list on node { e: gpu.xid where e.code in hw }
signal many on node { count gpu.xid >= 3 within 10m }
signal less on node { count gpu.xid >= 3 within 1h }
signal moved on node { count gpu.xid >= 3 within 1h }
signal gone on node { e: gpu.xid where e.code == 1 }
signal hot on node { when gpu.temp.value > profile.hot }
signal stuck on node { e: nccl.stuck }
fault memory on node { prior 2e-4 per job }
memory causes from_list p 0.9 lag -5s .. 10m
memory causes many, less, moved, gone, hot p 0.5
memory causes stuck p 0.9 lag -30s .. 15m scope peers
incident hang on job { opens on stuck }
RFX
mkdir -p diff_b && sed -e 's/1.0.0/1.1.0/' -e 's/# A comment./# Another comment, and another layout./' \
  -e 's/\[48, 50\]/[50]/' -e 's/= 85/= 83/' -e 's/\(many.*\)within 10m/\1within 1h/' \
  -e 's/\(less.*\)within 1h/\1within 10m/' -e 's/moved on node/moved on (node, gpu)/' \
  -e '/^signal gone/d' -e 's/, gone//' -e 's/p 0.9 lag -5s/p 0.7 lag -5s/' \
  -e 's/^incident/signal fresh on node { e: gpu.xid where e.code == 2 }\nmemory causes fresh p 0.5\n&/' \
  -e 's/on node { count/on  node  { count/' diff_a/pack.rfx >diff_b/pack.rfx
differs() { expect "diff: $1" 0 "$2" "$reflex" diff diff_a diff_b "${@:3}"; }
differs "the version" '^  pack t.d changed$'
differs "a signal through the list that it reads" \
  'signal t.d.from_list changed .its text is the same; what it reads changed: list t.d.hw'
differs "a removed signal" '^    - signal gone on node'
differs "an edge's numbers" 'edge t.d.memory causes t.d.from_list .scope self. changed'
differs "what a class reads" 'value profile.hot changed .1 class.es.: h'
differs "a longer window" 'kept +signal t.d.many [0-9]+ B/key  window 10m -> 1h; history incomplete'
differs "a shorter window" 'trimmed +signal t.d.less [0-9]+ B/key  window 1h -> 10m'
differs "other keys" 'reset +signal t.d.moved [0-9]+ B/key  on node -> .node, gpu.'
differs "new" 'new +signal t.d.fresh'
differs "removed" 'removed +signal t.d.gone'
run "$reflex" diff diff_a diff_b
if grep -q 'signal t.d.many changed' out && ! grep -Eq 'comment|stuck' out; then pass; else
  fail "diff is of meaning" "a comment or an unchanged signal is told, or a changed one is not"
fi
differs "Markdown" '^\| trimmed \| signal `t.d.less` \| [0-9]+ \| window 1h -> 10m \|' --format md
differs "JSON" '"name":"t.d.less","what":"signal","fate":"trimmed"' --format json
sed 's/"nccl.stuck"/"nccl.stuck"/; s/,"waited":1.5//' trace.ndjson >diff.ndjson
differs "verdicts of a replay" '1 other answers' --events diff.ndjson
differs "the answer before" '^    - (confirmed|suspected) n2 .t.d.memory. [0-9.]+$' --events diff.ndjson
differs "firings of a replay" 't.d.from_list fires 0 times, before 1' --events diff.ndjson
expect "diff --exit-code" 1 '' "$reflex" diff diff_a diff_b --exit-code
expect "no difference" 0 '^packs: 0 difference' "$reflex" diff diff_a diff_a --exit-code \
  --events diff.ndjson
# Two checkouts of a repository: each side has the profiles that lie beside it.
mkdir -p checkout_a/rules checkout_b/rules checkout_a/hwprofiles checkout_b/hwprofiles
cp -r diff_a checkout_a/rules/p
sed -i '/^profile/d' checkout_a/rules/p/pack.rfx
cp -r checkout_a/rules/p checkout_b/rules/p
printf 'pack t.hw 1.0.0\nprofile h fallback { hot: celsius = 85 }\n' >checkout_a/hwprofiles/h.rfx
sed 's/= 85/= 83/' checkout_a/hwprofiles/h.rfx >checkout_b/hwprofiles/h.rfx
expect "diff: a class of the profiles beside" 0 'value profile.hot changed .1 class.es.: h' \
  "$reflex" diff checkout_a/rules/p checkout_b/rules/p
cp -r checkout_a/rules/p outside_of_it
expect "diff: a copy without profiles has those of the other side" 0 '^packs: 0 difference' \
  "$reflex" diff outside_of_it checkout_b/rules/p
expect "diff: the other way round" 0 '^packs: 0 difference' \
  "$reflex" diff checkout_a/rules/p outside_of_it
expect "diff: profiles of both by option" 0 '^packs: 0 difference' \
  "$reflex" diff checkout_a/rules/p checkout_b/rules/p --profiles checkout_a/hwprofiles
expect "diff: of profiles" 0 'profile h changed' "$reflex" diff checkout_a/hwprofiles \
  checkout_b/hwprofiles
expect "diff of a broken pack" 2 'R100' "$reflex" diff diff_a half_file
expect "diff as SARIF" 3 'no sarif form' "$reflex" diff diff_a diff_b --format sarif
expect "md is of diff alone" 3 'form of diff alone' "$reflex" check mini --format md

# ---- new, completion

expect "new makes a pack" 0 '^site/gpu/pack.rfx$' "$reflex" new site.gpu
expect "its tests pass" 0 '2 tests, 2 passed, 0 failed' "$reflex" test site/gpu --matrix
expect "it has no finding" 0 '' "$reflex" check site/gpu --fail-level warning
# ---- what tests and overlays must not say
small_pack() {
  mkdir -p small && printf 'pack t.small 1.0.0\nevent a { key node: node }\nsignal s on node { e: a } leak 1e-5 per hour\n%s\n' "$1" >small/pack.rfx
}
small_pack 'test "x" { nodes n1  gap n7 from 1s to 2s  at 1s: a n1  expect s on n1 }'
expect "a gap of a node that is not there" 2 "no node 'n7'" "$reflex" check small
small_pack 'test "x" { nodes n1  gap n1 from 5s to 2s  at 1s: a n1  expect s on n1 }'
expect "a gap that is turned around" 2 'R305' "$reflex" check small
small_pack 'test "x" { nodes n1  at 1s..5s every 0s: a n1  expect s on n1 }'
expect "every 0s" 2 'R305' "$reflex" check small
small_pack 'test "x" for (b, b) in [(1, 2)] { nodes n1  at 1s: a n1  expect s on n1 }'
expect "one variable twice" 2 "'b' is named twice" "$reflex" check small
small_pack 'profile hw.z fallback { }
overlay o for t.small { set profile hw.z prior_scale nothing = 2 }
overlay o for t.small { disable signal s reason "x" until 2099-01-01 }
overlay p for t.small { alias kind "" = a }'
expect "an overlay that scales no fault" 2 "no fault 'nothing'" "$reflex" check small
expect "two overlays of one name" 2 "overlay 'o' is declared twice" "$reflex" check small
expect "a kind's other name is empty" 2 'other name of a kind is empty' "$reflex" check small
expect "a pack cannot have a name of the engine" 3 "'hw' is a pack of the engine" "$reflex" new hw
expect "it is laid out as fmt would" 0 '' "$reflex" fmt --check site/gpu
expect "new overwrites nothing" 3 'exists and is not empty' "$reflex" new site.gpu
expect "new in another folder" 0 '^packs/one/pack.rfx$' "$reflex" new one --in packs
expect "a bad name" 3 'no name of a pack' "$reflex" new 'Site/Gpu'
"$reflex" completion bash >completion.bash
# completes WANTED WORDS...: what bash offers behind the words holds the wanted one.
completes() {
  local wanted=$1
  shift
  bash -c 'source ./completion.bash; COMP_WORDS=(reflex "${@:2}"); COMP_CWORD=$(($# - 1)); _reflex
    [[ " ${COMPREPLY[*]} " == *" $1 "* ]]' - "$wanted" "$@" && pass || fail "completion of $*" "no $wanted"
}
completes check ch
completes --fail-level check mini --fail
completes warning check mini --fail-level w
completes sarif check mini --format s
completes R105 help R10
completes zsh completion z
expect "zsh completion" 0 "'--fail-level\[.*:value:\(error warning\)" "$reflex" completion zsh
expect "completion of another shell" 3 'fish' "$reflex" completion fish

# ---- profiles

pack classes <<'RFX'
pack t.classes 1.0.0 requires engine >= 1.0 dsl 1
event gpu.temp { key node: node  value: celsius }
profile c.base abstract { hot: celsius = 85 }
profile c.left extends c.base matches label hw == "X" { hot = 80 }
profile c.right extends c.base matches label site == "lab" { hot = 90 }
profile c.rest extends c.base fallback { }
signal hot on node { when gpu.temp.value > profile.hot for 0s }
incident job_hot on job { opens on hot  settle 30s }
RFX
cat >ambiguous.json <<'JSON'
{"nodes":[{"node":"n1","labels":{"hw":"X","site":"lab"}},{"node":"n2","labels":{"hw":"X"}}]}
JSON
echo '{"ts":"2026-03-01T12:00:00Z","kind":"gpu.temp","node":"n1","value":20}' >temp.ndjson
expect "profile ambiguity before deployment" 1 'n1' "$reflex" check classes --nodes ambiguous.json
expect "the class of every node" 1 '^n1 +c.base  .ambiguous: c.left and c.right' "$reflex" check classes \
  --nodes ambiguous.json
expect "nodes as JSON" 1 '^\{"node":"n2","class":"c.left"\}' "$reflex" check classes \
  --nodes ambiguous.json --format json
expect "two profiles for one node is a finding" 1 'warning: 1 node.s. match both .*\[R220\]' \
  "$reflex" check classes --nodes ambiguous.json
expect "an inventory without nodes is no answer" 3 'names no node' bash -c \
  'echo "{\"nodes\":[]}" >none.json && "$0" check classes --nodes none.json' "$reflex"
expect "and a result of SARIF" 1 '"ruleId": "R220"' "$reflex" check classes --nodes ambiguous.json \
  --format sarif
expect "profile ambiguity at run time" 0 'n1' "$reflex" run classes --inventory ambiguous.json \
  --events temp.ndjson

# ---- data

# bad_data NAME PATTERN: `bad.ndjson` before and inside the good trace; the verdict must not change.
bad_data() {
  local name=$1 pattern=$2
  { cat bad.ndjson; sed -n 1,3p trace.ndjson; cat bad.ndjson; sed -n 4,6p trace.ndjson; } >mixed.ndjson
  expect "$name is counted" 0 "$pattern" "$reflex" run mini --events mixed.ndjson
  expect "$name does not stop the stream" 0 '"culprits":\["n2"\]' "$reflex" run mini \
    --events mixed.ndjson
}
echo '{"ts":"2026-03-01T12:00:01Z","kind":"no.such.kind","node":"n1"}' >bad.ndjson
bad_data "unknown kind" '2 unknown_kind'
echo '{"ts":"2026-03-01T12:00:01Z","kind":"gpu.xid","code":48}' >bad.ndjson
bad_data "missing key" '2 missing_key'
echo '{"ts":"2026-03-01T12:00:01Z","kind":"gpu.xid","node":7.5,"code":48}' >bad.ndjson
bad_data "key of wrong type" '2 missing_key'
echo '{"ts":"2026-03-01T12:00:01Z","kind":"gpu.xid","node":"n1","code":"many"}' >bad.ndjson
bad_data "field of wrong type" '2 fields of wrong type'
echo '{"ts":"2026-03-01T12:00:01Z","kind":"gpu.x' >bad.ndjson
bad_data "half line" '2 bad_json'
echo '[1,2,3]' >bad.ndjson
bad_data "array for an object" '2 (not_object|bad_json)'
echo '{"kind":"gpu.xid","node":"n1","code":48}' >bad.ndjson
bad_data "missing ts" '2 missing_ts'
echo '{"ts":"yesterday","kind":"gpu.xid","node":"n1","code":48}' >bad.ndjson
bad_data "unreadable ts" '2 bad_ts'
echo '{"ts":"2026-03-01T12:00:01Z","node":"n1","code":48}' >bad.ndjson
bad_data "missing kind" '2 missing_kind'
printf '{"ts":"2026-03-01T12:00:01Z","kind":"gpu.xid","node":"n\xff\xfe","code":48}\n' >bad.ndjson
bad_data "broken UTF-8" '2 bad_utf8'
{ printf '\x00\x01\x02\x03\x00\x00'; head -c 2000 /dev/zero; printf '\n'; } >bad.ndjson
bad_data "binary line" 'binary|bad_json'
# One stamp a year ahead must not make the rest of the trace late.
echo '{"ts":"2027-03-01T12:00:01Z","kind":"gpu.xid","node":"n1","code":48}' >bad.ndjson
{ sed -n 1,2p trace.ndjson; cat bad.ndjson; sed -n 3,6p trace.ndjson; } >mixed.ndjson
expect "clock jump of a year is counted" 0 '1 clock_jump' "$reflex" run mini --events mixed.ndjson
expect "clock jump does not make the rest late" 0 '"culprits":\["n2"\]' "$reflex" run mini \
  --events mixed.ndjson
# The last line without a newline is data.
head -c -1 trace.ndjson >no_newline.ndjson
expect "no newline at the end" 0 '"culprits":\["n2"\]' "$reflex" run mini --events no_newline.ndjson
expect "half of the last line" 0 '1 bad_json' bash -c \
  'head -c -20 trace.ndjson >cut.ndjson; exec "$0" run mini --events cut.ndjson' "$reflex"

: >empty.ndjson
expect "empty event file" 0 '0 lines, 0 events' "$reflex" run mini --events empty.ndjson
head -c 1000000 /dev/urandom >random.bin
expect "binary event file" 0 'rejected' "$reflex" run mini --events random.bin
expect "binary log file" 0 '' "$reflex" run mini --log n1=random.bin
gzip -c trace.ndjson | head -c 60 >cut.gz
expect "truncated gzip is counted" 0 'cut.gz: the rest was not read' \
  "$reflex" run mini --events cut.gz
expect "the sources beside a truncated one go on" 0 '"culprits":\["n2"\]' "$reflex" run mini \
  --events cut.gz --events trace.ndjson
zstd -q -c trace.ndjson | head -c 60 >cut.zst
expect "truncated zstd is counted" 0 '1 unreadable' "$reflex" run mini --events cut.zst

# A line of 200 MB: counted, never held (the memory limit is well below two copies of it).
{
  sed -n 1,2p trace.ndjson
  printf '{"ts":"2026-03-01T12:10:01Z","kind":"gpu.xid","node":"'
  head -c 200000000 /dev/zero | tr '\0' 'x'
  printf '"}\n'
  sed -n 3,6p trace.ndjson
} >long.ndjson
memory_limit_kb=${REFLEX_CLI_MEMORY_KB:-unlimited}
expect "a line of 200 MB is counted" 0 '1 line_too_long' bash -c \
  'ulimit -v '"$memory_limit_kb"'; exec "$0" run mini --events long.ndjson' "$reflex"
expect "a line of 200 MB does not stop the stream" 0 '"culprits":\["n2"\]' \
  "$reflex" run mini --events long.ndjson
expect "a log line of 200 MB" 0 '' "$reflex" run mini --log n1=long.ndjson
rm -f long.ndjson

# ---- the documentation: the first rule of the README is a pack whose test passes

mkdir -p first
awk '/^```rfx$/ {on = 1; next} /^```$/ {on = 0} on' "$root/README.md" >first/pack.rfx
expect "the README's first rule" 0 '1 passed, 0 failed' "$reflex" test first \
  --profiles "$root/hwprofiles"
expect "the README's dump" 0 'ecc_burst' "$reflex" check first --emit ir ecc_burst \
  --profiles "$root/hwprofiles"

# ---- the language reference: all its examples together are one pack that compiles and passes

mkdir -p reference
awk '/^```rfx$/ {on = 1; next} /^```$/ {on = 0} on' "$root/grammar/LANGUAGE.md" >reference/pack.rfx
expect "the examples of LANGUAGE.md" 0 'passed, 0 failed' "$reflex" test reference --matrix \
  --profiles "$root/hwprofiles"

mkdir -p functions
awk '/^```rfx$/ {on = 1; next} /^```$/ {on = 0} on' "$root/grammar/BUILTINS.md" >functions/pack.rfx
expect "an example of every function" 0 ' passed, 0 failed' "$reflex" test functions --matrix \
  --profiles "$root/hwprofiles"
expect "and by the interpreter" 0 ' passed, 0 failed' "$reflex" test functions --backend interp \
  --profiles "$root/hwprofiles"
"$reflex" help --reference builtins >out 2>err
if cmp -s out "$root/grammar/BUILTINS.md"; then pass; else
  fail "help --reference builtins" "is not grammar/BUILTINS.md"
fi

# ---- the configuration of the daemon

cat >good.toml <<TOML
[packs]
paths = ["mini"]
[[sinks]]
type = "file"
path = "verdicts.ndjson"
TOML
expect "a configuration without mistakes" 0 'nothing is wrong' "$reflex" config check good.toml
cat >bad.toml <<TOML
threads = "many"
[packs]
path = ["mini"]
TOML
expect "a value of the wrong form" 3 "bad.toml:1: 'threads' wants a whole number" "$reflex" config check bad.toml
expect "an unknown key" 3 "bad.toml:3: .* did you mean 'packs.paths'" "$reflex" config check bad.toml
cat >wrong.toml <<TOML
[packs]
paths = ["nowhere"]
[http]
listen = "0.0.0.0:7480"
[[sources]]
type = "tale"
[[sinks]]
type = "webhook"
TOML
for pattern in 'wrong.toml:2: packs.paths names .*/nowhere, which is not there; name a' \
  'wrong.toml:4: 0.0.0.0 is not loopback .*; set http.tokens' \
  "wrong.toml:6: there is no source type 'tale'" 'wrong.toml:8: a webhook sink needs a url'; do
  expect "what a start would refuse: $pattern" 3 "$pattern" "$reflex" config check wrong.toml
done
expect "a configuration by --config" 0 'good.toml: nothing is wrong' "$reflex" config check -c good.toml
cat >values.toml <<TOML
[packs]
paths = ["mini"]
[http]
body_max = "300MiB"
[[sources]]
type = "stdin"
tz = "CET"
TOML
# What is found by `config check` stops `serve` too, by the same words, before it makes anything.
for command in "config check" "serve -c"; do
  for pattern in 'values.toml:4: http.bodies_max = 512MiB is less than twice .*; raise' \
    "values.toml:7: tz = 'CET' is no offset from UTC; write it like .01:00" \
    'environment REFLEX_THREADS: threads = 100000: .*; write 1 to 64' \
    'flag: http.connections_max = 0: .*; write 1 to 10000'; do
    expect "$command finds: $pattern" 3 "$pattern" env REFLEX_THREADS=100000 \
      timeout 20 "$reflex" $command values.toml --set http.connections_max=0 \
      --set state_dir="$PWD/no_state" --set http.listen=127.0.0.1:0
  done
done
if [ -e no_state ]; then fail "serve with a wrong configuration" "made its folder"; else pass; fi
mkdir -p own
echo "root:x:0:0" >own/plain
: >own/empty
cat >files.toml <<TOML
state_dir = "own/plain/state"
[packs]
paths = ["mini"]
[http]
listen = "127.0.0.300:7480"
tokens = "own/empty"
tls_cert = "own/plain"
tls_key = "own/plain"
[store]
path = "own/plain"
[[sources]]
type = "tail"
path = "own"
[[sinks]]
type = "file"
path = "own/plain/state/reflex.db-wal"
[[sinks]]
type = "file"
name = "second"
path = "nowhere/verdicts"
[[sinks]]
type = "file"
name = "third"
path = "nowhere/verdicts"
[[sinks]]
type = "file"
name = "fourth"
path = "own/plain"
TOML
for pattern in 'files.toml:1: no folder can be made at .*: .*/own/plain is a file' \
  'files.toml:5: cannot listen on 127.0.0.300: .*; write an address of this machine' \
  'files.toml:6: the token file .*/own/empty has no token in it' \
  'files.toml:7: TLS: .*/own/plain cannot be used' \
  'files.toml:10: .*/own/plain is no SQLite database; name another file' \
  'files.toml:13: .*/own is a folder; name a file in it' \
  'files.toml:20: the folder of .*/nowhere/verdicts is not there; make it' \
  'files.toml:24: two of .* write .*/nowhere/verdicts: each would cut' \
  'files.toml:28: .*/own/plain is a file of the daemon itself; name another'; do
  expect "config check finds: $pattern" 3 "$pattern" "$reflex" config check files.toml
done
expect "an address of another machine" 3 'cannot listen on 192.0.2.7: it is no address of this machine' \
  "$reflex" config check good.toml --set http.listen=192.0.2.7:7480 --set http.insecure=true
expect "every address" 0 'nothing is wrong' "$reflex" config check good.toml --set http.listen=0.0.0.0:7480 --set http.insecure=true
expect "a configuration that is not there" 3 'nowhere.toml' "$reflex" config check nowhere.toml
expect "the manual page of the configuration" 0 '^\.TH REFLEX.TOML 5' "$reflex" config manual
expect "the manual page" 0 'SS "reflex config check"' "$reflex" help --manual

# ---- the real packs

if [[ -d $root/rules/std ]]; then
  expect "coverage changes no result" 0 ' passed, 0 failed' "$reflex" test "$root/rules/std" --coverage
  expect "the shipped packs are valid" 0 '' "$reflex" check "$root/rules" "$root/hwprofiles"
fi

echo "$passed passed, $failed failed"
((failed == 0))
