#!/bin/bash
# Builds ./attn_bench when it is missing or older than its sources, then runs the tests, the timings and the PyTorch peer.
# Output: stdout and attn.txt in $OUT (default: the folder out next to this script).
cd "$(dirname "$0")" || exit 1
OUT=${OUT:-$PWD/out}
mkdir -p "$OUT"
export PYTHONUNBUFFERED=1

group() {   # group NAME SECONDS: a row that crashes or hangs is left out, the rest runs
  local start=0 rc i
  for _ in 1 2 3 4 5; do
    rm -f "$OUT/.row"
    timeout -k 2 "$2" ./attn_bench "$1" $start "$OUT/.row"
    rc=$?
    [ $rc -le 1 ] && break
    [ -f "$OUT/.row" ] || { echo "!! group $1 did not start (rc $rc)"; break; }
    i=$(cat "$OUT/.row")
    echo "!! group $1 row $i stopped the program (rc $rc; 124 and 137: hang)"
    start=$((i + 1))
  done
  rm -f "$OUT/.row"
}

all() {
  nvidia-smi --query-gpu=name,driver_version,clocks.sm,power.draw,temperature.gpu --format=csv,noheader
  if [ ! -x attn_bench ] || [ attn_kernels.cuh -nt attn_bench ] || [ attn_wgmma.cuh -nt attn_bench ] || [ main.cu -nt attn_bench ]; then
    NVCC=$(command -v nvcc || ls /usr/local/cuda*/bin/nvcc 2>/dev/null | head -1)
    "$NVCC" -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -split-compile=0 -o attn_bench main.cu -lcuda || { echo "BUILD FAILED"; return; }
  fi
  echo "== tests"; group test 15
  echo "== tests of the variants"; group testvar 15
  echo "== ours"; group bench64 12; group bench128 12
  echo "== peer"; timeout -k 2 45 python3 peer.py
  nvidia-smi --query-gpu=clocks.sm,power.draw,temperature.gpu --format=csv,noheader
}

all 2>&1 | tee "$OUT/attn.txt"
echo
echo "==== table"
grep -hE "^ROW|^FAIL|^!!|^group|^BUILD" "$OUT/attn.txt" | sort -k3,7 -s
grep -qE "^FAIL|^!!|^BUILD|[1-9][0-9]* failed checks" "$OUT/attn.txt" && exit 1
exit 0
