#!/bin/bash
# Measures the machine with a GPU for machines/: run from the repository's root there, with $OUT for the results. Uses
# build/bin/tokamak if it exists; programs for the model's error in $PROGRAMS (bench/model_error.py --export).
set -u
OUT=${OUT:-/tmp/calibrate}
mkdir -p "$OUT"
nproc > "$OUT/cores"
lscpu > "$OUT/lscpu"
if command -v nvcc > /dev/null; then
  nvcc -std=c++17 -O3 -arch=sm_90 -o "$OUT/gpu_calibrate" bench/calibrate/gpu.cu 2> "$OUT/nvcc.log" &&
    timeout 60 "$OUT/gpu_calibrate" > "$OUT/h200.json" 2> "$OUT/h200.raw.txt"
  echo "gpu: $?"
  rm -f "$OUT/gpu_calibrate"
fi
TOKAMAK=${TOKAMAK:-build/bin/tokamak}
if [ -x "$TOKAMAK" ]; then
  timeout 40 "$TOKAMAK" calibrate -o "$OUT/cpu.json" 2> "$OUT/cpu.log"
  echo "calibrate: $?"
  if [ -d "${PROGRAMS:-build/model_programs}" ]; then
    timeout 200 python3 bench/model_error.py --programs "${PROGRAMS:-build/model_programs}" --tokamak "$TOKAMAK" \
      --machine "$OUT/cpu.json" --seconds 0.01 --out "$OUT" --name model_x86_64 > "$OUT/model.log" 2>&1
    echo "model: $?"
  fi
fi
