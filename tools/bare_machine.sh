#!/bin/bash
# Builds, tests and measures the CPU backend on an x86_64 machine that has compilers but no packages of LLVM.
#   here:   tools/bare_machine.sh pack                  .cache/device: LLVM and the corpora of $TOKAMAK_CORPUS (60 MB)
#   there:  tools/bare_machine.sh build tests ...       in the root of a copy of this checkout, with .cache/device in it
# Steps: build, tests, random, plans, corpora, harnesses, jaxtests (JAX's, in .cache/device/jaxtests), calibrate, bench, slower, memory.
# Their output goes to $OUT; each prints its duration. SEEDS, SECONDS_EACH, ARGS configure the steps.
set -u
cd "$(dirname "$0")/.."
carried=$PWD/.cache/device
if [ "${1:-}" = pack ]; then
  set -e
  mkdir -p "$carried"
  [ -s "$carried/llvm.tar.xz" ] || tools/pack_llvm.sh "$carried/llvm.tar.xz"
  cp -rT "${TOKAMAK_CORPUS:?says where the corpora are}" "$carried/corpus"
  du -sh "$carried"
  exit 0
fi
OUT=${OUT:-/tmp/out}
jobs=$(nproc)
system=/tmp/sys
export TOKAMAK_CORPUS=$carried/corpus
export LD_LIBRARY_PATH=$system/usr/lib/x86_64-linux-gnu:$system/usr/lib/llvm-19/lib:${LD_LIBRARY_PATH:-}
export PYTHONPATH=$PWD/python PYTHONUNBUFFERED=1
mkdir -p "$OUT" /tmp/logs

step_build() {
  [ -d $system ] || { mkdir -p $system && tar xJf "$carried/llvm.tar.xz" -C $system; }
  cmake --preset release -DTOK_LLVM_SHARED=ON -DLLVM_DIR=$system/usr/lib/llvm-19/lib/cmake/llvm > /tmp/logs/cmake.log 2>&1 ||
    { tail -30 /tmp/logs/cmake.log; return 1; }
  cmake --build build -j "$jobs" > /tmp/logs/build.log 2>&1 || { grep -E -A5 'error|FAILED' /tmp/logs/build.log | head -40; return 1; }
}
step_tests() { ctest --test-dir build -j 8 -LE 'slow|gpu|fuzz|corpus' 2>&1 | tail -25; }
step_random() { TOKAMAK_CHECK=kernels build/bin/random_programs --wide --pass on:cpu --jobs "$jobs" --seeds "0..${SEEDS:-20000}" --keep "$OUT/found" 2>&1 | tail -30; }
step_plans() {
  build/bin/random_programs --exact --pass on:sim/random --jobs "$jobs" --seeds "0..${SEEDS:-100000}" --keep "$OUT/found" 2>&1 | tail -12
  build/bin/random_programs --exact --pass on:cpu/random --jobs "$jobs" --seeds "0..${CPU_SEEDS:-12000}" --keep "$OUT/found" 2>&1 | tail -12
}
step_corpora() { tools/corpus.py --backend cpu -j 8 2>&1 | tail -40; }
step_harnesses() { python3 tools/jax_tests.py harnesses --out "$OUT/harnesses" -j "$jobs" --package "$PWD/python" 2>&1 | tail -15; }
step_jaxtests() { python3 tools/jax_tests.py tests "$carried/jaxtests" --peer misses --out "$OUT" -j "$jobs" --package "$PWD/python" ${ARGS:-} 2>&1 | tail -60; }
step_calibrate() { build/bin/tokamak calibrate -o "$OUT/machine.json" 2>&1 | tail -5; }
bench() { python3 "bench/$1.py" --out "$OUT" ${ARGS:-} "${@:2}" 2>&1 | tail -"${LINES_EACH:-70}"; }
step_bench() { bench run_cpu; }
step_slower() { bench never_slower; }
step_memory() { bench run_memory; }

for step in "$@"; do
  declare -F "step_$step" > /dev/null || { echo "no step $step" >&2; exit 2; }
  echo "== $step"
  begin=$SECONDS
  "step_$step"
  echo "== $step: exit $?, $((SECONDS - begin)) s"
done
