#!/usr/bin/env python3
"""The time NVRTC needs for 16 programs of one kernel each on 1, 4 and 16 threads, and for one program of 16 kernels."""
import ctypes
import glob
import os
import sys
import threading
import time

KERNEL = """namespace n%d { extern "C" __global__ void __launch_bounds__(256) k%d(const float* __restrict__ x, float* __restrict__ y) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  float v = x[i];
  #pragma unroll
  for (int j = 0; j < 24; ++j) v = v * v + (float)(j * %d) / (v + 1.5f);
  y[i] = v;
} }
"""
OPTIONS = [b"--gpu-architecture=sm_90", b"--fmad=false", b"--std=c++17"]


def find():
    paths = ["libnvrtc.so.13", "libnvrtc.so.12", *glob.glob("/usr/local/cuda*/lib*/libnvrtc.so.1*"),
              *glob.glob(os.path.dirname(os.path.dirname(sys.executable)) + "/lib/python*/site-packages/nvidia/*/lib/libnvrtc.so.*")]
    for location_path in paths:
        if "alt" in location_path:
            continue
        try:
            return ctypes.CDLL(location_path)
        except OSError:
            pass
    sys.exit("no NVRTC")


def compile_one(nvrtc, text, options):
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"a.cu", 0, None, None)
    result = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    if result != 0:
        sys.exit(f"NVRTC: {result}")


def main():
    nvrtc = find()
    texts = [KERNEL % (i, i, i + 1) for i in range(16)]
    compile_one(nvrtc, texts[0], OPTIONS)
    for options in (OPTIONS, [*OPTIONS, b"--minimal"]):
        for threads in (1, 4, 16):
            begin = time.time()
            workers = [threading.Thread(target=lambda t=t: [compile_one(nvrtc, texts[i], options) for i in range(t, 16, threads)]) for t in range(threads)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            print(f"16 programs of one kernel, {threads} threads: {(time.time() - begin) * 1e3:.0f} ms {options[3:]}", flush=True)
        begin = time.time()
        compile_one(nvrtc, "".join(texts), options)
        print(f"one program of 16 kernels: {(time.time() - begin) * 1e3:.0f} ms {options[3:]}", flush=True)
    print("tally: 1 passed, 0 failed, 0 skipped")


main()
