#!/usr/bin/env bash
# Runs the packed programs on a machine with an NVIDIA driver.
#
#   run.sh [--stop] [--device cuda:1] [--out DIR] [--limit SECONDS] [tests] [check] [examples] [bench] [tune]
#
# The first four parts unless some are named. Prints a table of exit codes and exits with 1 if any is not 0.
# --stop ends at the first failure; --out receives bench.jsonl (default: this folder); --limit is the longest that one
# program may take (default: 240); tuning may need more. --out also receives tune.jsonl. BENCH_ARGS and TUNE_ARGS are further arguments
# for `mamba2 bench` and `mamba2 tune`.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
device=cuda out=$here limit=240 stop=0 parts=()
while [ $# -gt 0 ]; do
  case $1 in
    --stop) stop=1 ;;
    --device) device=${2:?"--device needs a name"}; shift ;;
    --out) out=${2:?"--out needs a folder"}; shift ;;
    --limit) limit=${2:?"--limit needs seconds"}; shift ;;
    tests | check | examples | bench | tune) parts+=("$1") ;;
    *) echo "run.sh: unknown argument $1; see the top of this file" >&2; exit 2 ;;
  esac
  shift
done
[ ${#parts[@]} -gt 0 ] || parts=(tests check examples bench)
mkdir -p "$out"
# Where packed tests find the golden files.
export TILE_GOLDEN=$here/golden
failed=0 table=()

finish() {
  echo "==> summary"
  printf '%s\n' "${table[@]}"
  exit "$failed"
}
trap 'failed=1; finish' INT TERM

# one NAME COMMAND...: runs a command and notes its exit code and time.
one() {
  local name=$1 start=$SECONDS code log
  shift
  echo "==> $name"
  log=$(mktemp)
  timeout --kill-after=5 "$limit" "$@" 2>&1 | tee "$log"
  code=${PIPESTATUS[0]}
  # Tests pass where there is no GPU; here that is a failure.
  if [ "$code" = 0 ] && grep -q 'skipped: no device' "$log"; then code=skipped; fi
  rm -f "$log"
  table+=("$(printf '%8s  %4d s  %s' "$code" $((SECONDS - start)) "$name")")
  if [ "$code" != 0 ]; then
    failed=1
    [ "$stop" = 0 ] || finish
  fi
}

for part in "${parts[@]}"; do
  case $part in
    tests) for program in "$here"/tests/*; do one "test $(basename "$program")" "$program" --show-output; done ;;
    check)
      files=("$here"/golden/*.safetensors)
      one "mamba2 check" "$here/bin/mamba2" check --device "$device" "${files[@]}"
      one "mamba2 check, sm_80" "$here/bin/mamba2" check --device "$device" --target sm_80 "${files[@]}"
      ;;
    examples)
      for program in "$here"/examples/*; do
        one "example $(basename "$program")" "$program" --device "$device"
      done
      ;;
    bench)
      # shellcheck disable=SC2086 # several arguments in one variable
      one "mamba2 bench" "$here/bin/mamba2" bench --device "$device" --json "$out/bench.jsonl" ${BENCH_ARGS:-}
      [ ! -s "$out/bench.jsonl" ] || cat "$out/bench.jsonl"
      one "mamba2 bench-step" "$here/bin/mamba2" bench-step --device "$device" --batch 1,16,256
      one "mamba2 bench-calls" "$here/bin/mamba2" bench-calls --device "$device"
      one "first_launch" "$here/bin/first_launch" --device "$device"
      for program in "$here"/examples/*; do
        one "bench $(basename "$program")" "$program" --device "$device" --bench
      done
      one "bench attention, causal" "$here/examples/attention" --device "$device" --bench --causal
      one "bench matmul, 8192" "$here/examples/matmul" --device "$device" --bench --size 8192
      ;;
    tune)
      # shellcheck disable=SC2086 # several arguments in one variable
      one "mamba2 tune" "$here/bin/mamba2" tune --device "$device" --json "$out/tune.jsonl" ${TUNE_ARGS:-}
      ;;
  esac
done
finish
