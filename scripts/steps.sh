# Sourced by scripts/test and scripts/nightly: runs presets, stores the results, and adds them up.
# shellcheck shell=bash

results=build/results
skipped=() failed=()
began=$SECONDS

say() { printf '\n== %s (%d:%02d)\n' "$*" $(((SECONDS - began) / 60)) $(((SECONDS - began) % 60)); }
skip() { skipped+=(--skipped "$*"); }
fail() { failed+=(--failed "$*"); }

# folder_of PRESET: its build folder.
folder_of() { if [ "$1" = release ]; then echo build; else echo "build-$1"; fi; }

# build PRESET [cmake option...]: configures and builds; a failure is counted and returned.
build() { build_target all "$@"; }

# build_target TARGET PRESET [cmake option...]: builds one target.
build_target() {
  local target=$1 preset=$2
  shift 2
  say "build $preset"
  if ! { cmake --preset "$preset" "$@" >"$results/$preset.configure.log" 2>&1 || { cat "$results/$preset.configure.log"; false; }; } ||
    ! python3 tools/build.py "$(folder_of "$preset")" -j "$jobs" "$target"; then
    fail "the $preset build"
    return 1
  fi
}

# run_tests NAME FOLDER [ctest option...]: runs ctest in a build folder; results go to NAME.xml.
run_tests() {
  local name=$1 folder=$2
  shift 2
  say "test $name"
  rm -f "$results/$name.xml"
  ctest --test-dir "$folder" --output-on-failure --no-tests=ignore -j "$jobs" --output-junit "$PWD/$results/$name.xml" \
    --test-output-size-passed 200000 --test-output-size-failed 200000 --test-output-truncation head "$@" || true
  [ -f "$results/$name.xml" ] || fail "$name: ctest wrote no results"
}

# count_tests FOLDER [ctest option...]: the number of tests that would run.
count_tests() {
  local folder=$1
  shift
  ctest --test-dir "$folder" -N "$@" 2>/dev/null | sed -n 's/^Total Tests: //p'
}

# has_corpora: $TOKAMAK_CORPUS names a folder with the corpora.
has_corpora() { [ -n "${TOKAMAK_CORPUS:-}" ] && compgen -G "$TOKAMAK_CORPUS/*.jsonl*" >/dev/null; }

# can_fuzz: clang, with the runtime of libFuzzer.
can_fuzz() {
  command -v clang++ >/dev/null && [ -n "$(find "$(clang++ -print-resource-dir)/lib" -name 'libclang_rt.fuzzer*.a' 2>/dev/null)" ]
}

# finish: prints the closing lines and exits.
finish() {
  say 'results'
  local files=()
  for file in "$results"/*.xml; do [ -f "$file" ] && files+=("$file"); done
  python3 tools/tally.py "${skipped[@]}" "${failed[@]}" "${files[@]}"
}
