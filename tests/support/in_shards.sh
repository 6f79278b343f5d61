#!/usr/bin/env bash
# A GoogleTest binary that waits more than it works, as N processes that share its tests.
#
#   in_shards.sh N BINARY
#
# Every test runs, in one of them; the output is that of all, one after the other. Exit 1 when any
# failed. Only for tests that share nothing with each other outside of their process.
set -u
count=$1
binary=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pids=()
for ((i = 0; i < count; ++i)); do
  GTEST_TOTAL_SHARDS=$count GTEST_SHARD_INDEX=$i "$binary" >"$work/$i" 2>&1 &
  pids+=($!)
done
failed=0
for ((i = 0; i < count; ++i)); do
  wait "${pids[$i]}" || failed=1
  cat "$work/$i"
done
exit $failed
