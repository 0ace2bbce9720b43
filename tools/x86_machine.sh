#!/bin/bash
# The CPU backend on the x86_64 machine, which has no LLVM: builds it there, runs tests of values and the loops against XLA.
#
#   tools/pack_llvm.sh build/llvm_x86.tar.xz && tests/gpu/pack     where Tokamak is developed
#   tools/x86_machine.sh [PART...]       there, with both of build/ carried; parts: tests loops calibrate; results in $OUT
#
# Where build/x86_binaries is carried too (tests/gpu/pack --binaries BUILD build/x86_binaries, of a build for that machine), nothing
# is built.
set -u
cd "$(dirname "$0")/.."
OUT=${OUT:-/tmp/x86}
mkdir -p "$OUT" build-x86/sys
[ -d build-x86/sys/usr ] || tar -xJf build/llvm_x86.tar.xz -C build-x86/sys
export LD_LIBRARY_PATH=$PWD/build-x86/sys/usr/lib/x86_64-linux-gnu:${LD_LIBRARY_PATH:-}
parts=${*:-tests loops}
has() { case " $parts " in *" $1 "*) true ;; *) false ;; esac; }
options=(-G Ninja -B build-x86 -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG" -DTOK_LLVM_SHARED=ON
  "-DLLVM_DIR=$PWD/build-x86/sys/usr/lib/llvm-19/lib/cmake/llvm" "-DTOK_HEADERS=$PWD/build/gpu_carry/include")
begin=$(date +%s)
if [ -e build/x86_binaries/binaries.tar.xz ]; then
  tar -C build-x86 -xJf build/x86_binaries/binaries.tar.xz
elif ! { cmake "${options[@]}" && ninja -C build-x86 -j "$(nproc)" tokamak libtokamak tok_text_tests random_programs; } > "$OUT/build.log" 2>&1; then
  grep -E 'error|FAILED|Error' "$OUT/build.log" | head -20
  exit 1
fi
echo "ready with LLVM in $(($(date +%s) - begin)) s"
bin=build-x86/bin
failed=0
check() {  # what, command...
  local what=$1
  shift
  "$@" > "$OUT/$what.log" 2>&1 || failed=1
  echo "$what: $(grep '^tally' "$OUT/$what.log" | tail -1)"
}
if has calibrate; then "$bin/tokamak" calibrate --quiet -o "$OUT/machine.json" || failed=1; fi
if has tests; then
  for folder in codegen fusion run; do check "$folder" "$bin/tok_text_tests" "tests/$folder"; done
  check random "$bin/random_programs" --seeds 0..4000 --exact --pass on:cpu --jobs "$(nproc)"
  check wide "$bin/random_programs" --seeds 0..2000 --wide --pass on:cpu --jobs "$(nproc)"
fi
has loops || exit $failed
export TOKAMAK_DEVICE=cpu JAX_PLATFORMS=tokamak,cpu PYTHONPATH=$PWD/python PJRT_NAMES_AND_LIBRARY_PATHS=tokamak:$PWD/build-x86/lib/libtokamak.so
python3 bench/run_loops.py --out "$OUT" > "$OUT/loops.log" 2>&1 || failed=1
sed -n '1,20p' "$OUT/loops_cpu.md" 2> /dev/null || tail -5 "$OUT/loops.log"
exit $failed
