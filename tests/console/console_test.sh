#!/usr/bin/env bash
# console_test.sh FAKE ROOT WORK: the browser test; exit 77 ("skipped", with the reason) when
# chromium, node or the npm packages are not to be had.
set -euo pipefail
fake=$1 root=$2 work=$3

skip() { echo "skipped: $*"; exit 77; }
for program in node npm; do command -v "$program" >/dev/null || skip "$program is not installed"; done
chromium=$(command -v chromium || command -v chromium-browser || true)
[[ -n $chromium ]] || skip "chromium is not installed (apt-get install chromium)"

mkdir -p "$work"
cp "$root"/tests/console/{package.json,console_test.mjs} "$work"
cd "$work"
if [[ ! -d node_modules/playwright-core || ! -d node_modules/axe-core ]]; then
  timeout 150 npm install --no-audit --no-fund --loglevel=error >npm.log 2>&1 ||
    skip "npm cannot install playwright-core and axe-core: $(tail -n 1 npm.log)"
fi
CHROMIUM=$chromium SCREENSHOTS=${REFLEX_SCREENSHOTS:-$work/screenshots} \
  OPENAPI=$root/runtime/serve/http/openapi.json timeout 300 node console_test.mjs "$fake"
