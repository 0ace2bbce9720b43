#!/bin/bash
# Builds ./gemm when it is missing or older than its sources, then runs all tests and timings.
#   bash run.sh [--tests | --bench | --filter TEXT | --seconds N | --list]
# Output: stdout and gemm.txt in $OUT (default: the folder out next to this script).
cd "$(dirname "$0")" || exit 1
OUT=${OUT:-$PWD/out}
mkdir -p "$OUT"
exec > >(tee "$OUT/gemm.txt") 2>&1
date
nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,power.draw,temperature.gpu --format=csv
if [ ! -x gemm ] || [ gemm_kernel.cuh -nt gemm ] || [ gemm_wgmma.cuh -nt gemm ] || [ main.cu -nt gemm ]; then
  NVCC=$(command -v nvcc || ls /usr/local/cuda*/bin/nvcc 2>/dev/null | head -1)
  "$NVCC" -O3 -std=c++17 -split-compile=0 -gencode=arch=compute_90a,code=sm_90a main.cu -o gemm -ldl || { echo "BUILD FAILED"; exit 1; }
fi
# The cuBLASLt of an installed torch wheel, if there is one.  It is only located here.  CUBLASLT_PATH overrides it.
if [ -z "$CUBLASLT_PATH" ]; then
  CUBLASLT_PATH=$(python3 - <<'P'
import glob, os, site, sys
found = [p for base in site.getsitepackages() + sys.path for p in sorted(glob.glob(os.path.join(base, "nvidia", "*", "lib", "libcublasLt.so.1[23]")))]
print(found[0] if found else "")
P
)
fi
if [ -n "$CUBLASLT_PATH" ]; then
  export CUBLASLT_PATH LD_LIBRARY_PATH="$(dirname "$CUBLASLT_PATH"):$LD_LIBRARY_PATH"
fi
echo "cuBLASLt: ${CUBLASLT_PATH:-system library}"
timeout -k 5 150 ./gemm "$@"
rc=$?
nvidia-smi --query-gpu=clocks.sm,power.draw,temperature.gpu --format=csv,noheader
echo "exit $rc"
sleep 0.5
exit $rc
