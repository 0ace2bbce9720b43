// Test and benchmark of gemm_kernel.cuh on an H200.
//   nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a main.cu -o gemm -ldl      (-split-compile=0: all cores)
//   ./gemm [--tests | --bench] [--filter SUBSTRING] [--seconds N]
// The parent process touches no CUDA: it starts a child that works through a list of items and reports each on stdout;
// a child that dies or stalls costs one item, a new child goes on with the next.
#define HG_GUARD 1
#include "gemm_kernel.cuh"

#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <algorithm>
#include <string>
#include <vector>

using hg::Args; using hg::TensorMap; using hg::u16; using hg::u32; using hg::u64;
enum { NT = 0, NN = 1, TN = 2, TT = 3 };   // first letter: A (N: [M,K] K-major, T: [K,M] M-major); second: B (T: [N,K] K-major, N: [K,N] N-major)
static const char* layout_name[4] = {"NT", "NN", "TN", "TT"};

// ---------------------------------------------------------------------------------------------------- kernel instances
template <int LAYOUT, int IN_, int OUT_, int BM_, int BN_, int BK_, int ST_, int WGM_, int WGN_, int PP_, int CM_, int CN_,
          int AL_, int BL_, int CS_, int RANK_, int SPK_, int EPI_, int PWG_, int CBUF_>
struct Cfg {
  static constexpr int IN_F16 = IN_, OUT = OUT_, BM = BM_, BN = BN_, BK = BK_, STAGES = ST_, WG_M = WGM_, WG_N = WGN_, PINGPONG = PP_;
  static constexpr int CLUSTER_M = CM_, CLUSTER_N = CN_, A_LOAD = AL_, B_LOAD = BL_, C_STORE = CS_, RANK = RANK_, SPLITK = SPK_;
  static constexpr int A_MAJOR = LAYOUT == TN || LAYOUT == TT ? hg::MN_MAJOR : hg::K_MAJOR;
  static constexpr int B_MAJOR = LAYOUT == NN || LAYOUT == TN ? hg::MN_MAJOR : hg::K_MAJOR;
  static constexpr int EPI = EPI_, PWG = PWG_, CBUF = CBUF_;
  static __device__ __forceinline__ float epilogue(float acc, int row, int col, int batch, const Args& p) {
    if constexpr (EPI == 1) { const float x = acc + p.bias[col]; return 0.5f * x * (1.0f + erff(x * 0.70710678f)); }
    else return acc;
  }
};

struct Kern {
  char name[64];
  const void* fn; const void* red;         // red[OUT]: filled below for split-K
  const void* reds[3];
  int layout, in, out, bm, bn, bk, stages, pp, cm, cn, al, bl, cs, rank, spk, epi, pwg, threads, smem;
};
static std::vector<Kern> kerns;

template <int LAYOUT, class C> static int add(const char* tag) {
  using P = hg::Plan<C>;
  Kern k{};
  static const char* ld[3] = {"", "cp4", "ldg"};
  static const char* on[3] = {"f32", "bf16", "f16"};
  snprintf(k.name, sizeof k.name, "%s.%dx%dx%d.s%d.%s.c%d%d%s%s%s%s%s%s%s%s", layout_name[LAYOUT], C::BM, C::BN, C::BK, C::STAGES,
           C::PINGPONG ? "pp" : P::MATH_WGS == 1 ? "w1" : "co", C::CLUSTER_M, C::CLUSTER_N, C::A_LOAD ? ".A" : "", ld[C::A_LOAD],
           C::B_LOAD ? ".B" : "", ld[C::B_LOAD], C::C_STORE == 1 ? ".Cw4" : C::C_STORE == 2 ? ".Cw2" : "", C::PWG == 2 ? ".p2" : "",
           C::RANK == 4 ? ".r4" : "", tag);
  if (C::IN_F16) strcat(k.name, ".f16");
  if (C::SPLITK) strcat(k.name, ".spk");
  else if (C::OUT != (C::IN_F16 ? 2 : 1)) { strcat(k.name, ">"); strcat(k.name, on[C::OUT]); }
  if (C::EPI) strcat(k.name, ".gelu");
  k.fn = (const void*)hg::gemm_kernel<C>;
  if constexpr (C::SPLITK) {
    k.reds[0] = (const void*)hg::reduce_kernel<C, 0>; k.reds[1] = (const void*)hg::reduce_kernel<C, 1>; k.reds[2] = (const void*)hg::reduce_kernel<C, 2>;
  }
  k.layout = LAYOUT; k.in = C::IN_F16; k.out = C::OUT; k.bm = C::BM; k.bn = C::BN; k.bk = C::BK; k.stages = C::STAGES; k.pp = C::PINGPONG;
  k.cm = C::CLUSTER_M; k.cn = C::CLUSTER_N; k.al = C::A_LOAD; k.bl = C::B_LOAD; k.cs = C::C_STORE; k.rank = C::RANK; k.spk = C::SPLITK;
  k.epi = C::EPI; k.pwg = C::PWG; k.threads = P::THREADS; k.smem = P::SMEM;
  kerns.push_back(k);
  return 0;
}
//         layout in out  BM  BN  BK ST WGM WGN PP CM CN AL BL CS RK SPK EPI PWG CBUF
#define KERNEL(L, ...) add<L, Cfg<L, __VA_ARGS__>>("")
static void make_kernels() {
  // --- the four layouts, TMA everywhere, bf16 -> bf16
#define SET_MAIN(L, WM, WN)                                                              \
  KERNEL(L, 0, 1, 128, 256, 64, 4, 2, 1, 0, 2, 1, 0, 0, 0, 2, 0, 0, 1, 2);       \
  KERNEL(L, 0, 1, 128, 256, 64, 4, 2, 1, 0, 1, 2, 0, 0, 0, 2, 0, 0, 1, 2);       \
  KERNEL(L, 0, 1, 256, 128, 64, 4, 2, 1, 0, 1, 2, 0, 0, 0, 2, 0, 0, 1, 2);       \
  KERNEL(L, 0, 1, 256, 128, 64, 4, 2, 1, 0, 2, 1, 0, 0, 0, 2, 0, 0, 1, 2);       \
  KERNEL(L, 0, 1, 128, 128, 64, 6, 1, 1, 1, 1, 1, 0, 0, 0, 2, 0, 0, 1, 2);       \
  KERNEL(L, 0, 1, 128, 128, 64, 6, 1, 1, 1, 2, 1, 0, 0, 0, 2, 0, 0, 1, 2);       \
  KERNEL(L, 0, 1, 64, 256, 64, 4, 1, 1, 1, 2, 1, 0, 0, 0, 2, 0, 0, 1, 2);        \
  KERNEL(L, 0, 1, 128, 192, 64, 4, 2, 1, 0, WM, WN, 0, 0, 0, 2, 0, 0, 1, 2);       \
  KERNEL(L, 0, 1, 256, 192, 64, 3, 2, 1, 0, 1, 2, 0, 0, 0, 2, 0, 0, 1, 2);       \
  KERNEL(L, 0, 1, 128, 128, 64, 6, 2, 1, 0, 1, 1, 0, 0, 0, 2, 0, 0, 1, 2);       \
  KERNEL(L, 0, 1, 128, 64, 64, 8, 2, 1, 0, 1, 1, 0, 0, 0, 2, 0, 0, 1, 2)
  SET_MAIN(NT, 2, 1);
  KERNEL(NT, 0, 1, 128, 256, 64, 4, 2, 1, 0, 1, 1, 0, 0, 0, 2, 0, 0, 1, 2);
  KERNEL(NT, 0, 1, 128, 128, 128, 3, 1, 1, 1, 1, 1, 0, 0, 0, 2, 0, 0, 1, 2);
  SET_MAIN(NN, 1, 2);
  KERNEL(TN, 0, 1, 128, 256, 64, 4, 2, 1, 0, 2, 1, 0, 0, 0, 2, 0, 0, 1, 2);
  KERNEL(TN, 0, 1, 128, 128, 64, 6, 1, 1, 1, 2, 1, 0, 0, 0, 2, 0, 0, 1, 2);
  KERNEL(TT, 0, 1, 128, 256, 64, 4, 2, 1, 0, 2, 1, 0, 0, 0, 2, 0, 0, 1, 2);
  KERNEL(TT, 0, 1, 128, 128, 64, 6, 1, 1, 1, 1, 1, 0, 0, 0, 2, 0, 0, 1, 2);
  // --- without clusters: every kind of row has one kernel of this sort
  KERNEL(NN, 0, 1, 128, 256, 64, 4, 2, 1, 0, 1, 1, 0, 0, 0, 2, 0, 0, 1, 2);
  KERNEL(TN, 0, 1, 128, 256, 64, 4, 2, 1, 0, 1, 1, 0, 0, 0, 2, 0, 0, 1, 2);
  KERNEL(TN, 0, 1, 128, 128, 64, 6, 2, 1, 0, 1, 1, 0, 0, 0, 2, 0, 0, 1, 2);
  KERNEL(TT, 0, 1, 128, 256, 64, 4, 2, 1, 0, 1, 1, 0, 0, 0, 2, 0, 0, 1, 2);
  KERNEL(NT, 1, 2, 128, 256, 64, 4, 2, 1, 0, 1, 1, 0, 0, 0, 2, 0, 0, 1, 2);
  KERNEL(NN, 0, 0, 128, 256, 64, 4, 2, 1, 0, 1, 1, 0, 0, 0, 2, 0, 0, 1, 2);
  KERNEL(NN, 0, 1, 128, 256, 64, 4, 2, 1, 0, 1, 1, 0, 0, 0, 2, 0, 1, 1, 2);
  KERNEL(NN, 0, 1, 128, 128, 64, 6, 1, 1, 1, 1, 1, 0, 0, 0, 2, 0, 1, 1, 2);
  // --- types
  KERNEL(NT, 1, 2, 128, 256, 64, 4, 2, 1, 0, 2, 1, 0, 0, 0, 2, 0, 0, 1, 2);
  KERNEL(NN, 0, 0, 128, 256, 64, 4, 2, 1, 0, 2, 1, 0, 0, 0, 2, 0, 0, 1, 2);
  KERNEL(NN, 1, 0, 128, 128, 64, 6, 1, 1, 1, 1, 1, 0, 0, 1, 2, 0, 0, 1, 2);
  // --- fused epilogue (bias + erf gelu)
  KERNEL(NN, 0, 1, 128, 256, 64, 4, 2, 1, 0, 2, 1, 0, 0, 0, 2, 0, 1, 1, 2);
  KERNEL(NN, 0, 1, 128, 128, 64, 6, 1, 1, 1, 2, 1, 0, 0, 0, 2, 0, 1, 1, 2);
  KERNEL(NN, 0, 1, 64, 256, 64, 4, 1, 1, 1, 2, 1, 0, 0, 0, 2, 0, 1, 1, 2);
  // --- batched (4-D maps)
  KERNEL(NT, 0, 1, 128, 256, 64, 4, 2, 1, 0, 1, 1, 0, 0, 0, 4, 0, 0, 1, 2);
  KERNEL(NT, 0, 1, 128, 128, 64, 6, 1, 1, 1, 1, 1, 0, 0, 0, 4, 0, 0, 1, 2);
  KERNEL(NT, 0, 1, 64, 256, 64, 4, 1, 1, 1, 1, 1, 0, 0, 0, 4, 0, 0, 1, 2);
  KERNEL(NT, 0, 1, 64, 256, 64, 3, 1, 1, 1, 2, 1, 0, 0, 0, 4, 0, 0, 1, 4);
  KERNEL(NN, 0, 1, 128, 64, 64, 8, 2, 1, 0, 1, 1, 0, 0, 0, 4, 0, 0, 1, 2);
  KERNEL(NN, 0, 1, 128, 64, 64, 8, 1, 1, 1, 1, 1, 0, 0, 0, 4, 0, 0, 1, 2);
  KERNEL(NN, 0, 1, 256, 64, 64, 4, 2, 1, 0, 1, 1, 0, 0, 0, 4, 0, 0, 1, 2);
  // --- split-K (f32 partial sums)
  KERNEL(NT, 0, 0, 64, 128, 64, 8, 1, 2, 0, 1, 1, 0, 0, 0, 2, 1, 0, 1, 2);
  KERNEL(NT, 0, 0, 64, 64, 64, 12, 1, 1, 0, 1, 1, 0, 0, 0, 2, 1, 0, 1, 2);
  KERNEL(NN, 0, 0, 64, 128, 64, 8, 1, 2, 0, 1, 1, 0, 0, 0, 2, 1, 0, 1, 2);
  KERNEL(NN, 0, 0, 64, 64, 64, 12, 1, 1, 0, 1, 1, 0, 0, 0, 2, 1, 0, 1, 2);
  KERNEL(NN, 0, 0, 128, 128, 64, 6, 2, 1, 0, 1, 1, 0, 0, 0, 2, 1, 0, 1, 2);
  KERNEL(TN, 0, 0, 128, 128, 64, 6, 2, 1, 0, 1, 1, 0, 0, 0, 2, 1, 0, 1, 2);
  KERNEL(TN, 0, 0, 128, 256, 64, 4, 2, 1, 0, 2, 1, 0, 0, 0, 2, 1, 0, 1, 2);
  KERNEL(NT, 0, 0, 128, 128, 64, 6, 1, 1, 1, 1, 1, 0, 0, 0, 4, 1, 1, 1, 2);      // batched, ping-pong, gelu in the reduction
  // --- rows that the TMA cannot address
  KERNEL(NT, 0, 1, 128, 256, 64, 4, 2, 1, 0, 2, 1, 0, 0, 1, 2, 0, 0, 1, 2);      // C only
  KERNEL(NT, 0, 1, 128, 128, 64, 6, 1, 1, 1, 2, 1, 0, 0, 1, 2, 0, 0, 1, 2);
  KERNEL(NT, 0, 1, 128, 256, 64, 4, 2, 1, 0, 2, 1, 0, 0, 2, 2, 0, 0, 1, 2);
  KERNEL(NN, 0, 1, 128, 256, 64, 4, 2, 1, 0, 1, 1, 0, 1, 1, 2, 0, 0, 1, 2);      // B by cp.async
  KERNEL(NN, 0, 1, 128, 128, 64, 6, 2, 1, 0, 1, 1, 0, 1, 1, 2, 0, 0, 2, 2);
  KERNEL(NN, 0, 1, 128, 128, 64, 6, 1, 1, 1, 1, 1, 0, 1, 1, 2, 0, 0, 1, 2);
  KERNEL(NN, 0, 1, 256, 128, 64, 4, 2, 1, 0, 1, 1, 0, 1, 1, 2, 0, 0, 1, 2);
  KERNEL(NN, 0, 1, 128, 256, 64, 4, 2, 1, 0, 1, 1, 0, 2, 1, 2, 0, 0, 1, 2);      // B through registers
  KERNEL(NN, 0, 1, 256, 128, 64, 4, 2, 1, 0, 1, 1, 0, 2, 1, 2, 0, 0, 1, 2);
  KERNEL(NN, 0, 1, 128, 128, 64, 6, 2, 1, 0, 1, 1, 0, 2, 1, 2, 0, 0, 2, 2);
  KERNEL(TN, 0, 1, 128, 256, 64, 4, 2, 1, 0, 1, 1, 0, 1, 1, 2, 0, 0, 1, 2);
  KERNEL(TN, 0, 1, 256, 128, 64, 4, 2, 1, 0, 1, 1, 0, 1, 1, 2, 0, 0, 1, 2);
  KERNEL(NN, 0, 1, 128, 128, 64, 6, 2, 1, 0, 1, 1, 1, 2, 2, 2, 0, 0, 2, 2);      // A cp4, B registers, C elements
  KERNEL(NN, 0, 1, 128, 128, 64, 6, 2, 1, 0, 1, 1, 2, 2, 2, 2, 0, 0, 2, 2);      // anything
  KERNEL(NN, 0, 1, 128, 64, 64, 8, 2, 1, 0, 1, 1, 2, 2, 2, 2, 0, 0, 2, 2);
  KERNEL(NN, 0, 1, 128, 128, 64, 6, 1, 1, 1, 1, 1, 2, 2, 2, 4, 0, 0, 1, 2);
  KERNEL(TT, 0, 1, 128, 128, 64, 6, 2, 1, 0, 1, 1, 2, 2, 2, 4, 0, 0, 2, 2);
  KERNEL(TT, 0, 1, 128, 128, 64, 6, 2, 1, 0, 1, 1, 1, 1, 2, 4, 0, 0, 1, 2);
}

// -------------------------------------------------------------------------------------------------------------- problems
struct Prob {
  int M, N, K, layout, in, out, epi;
  int batch = 1, b0 = 1;                 // batch = b0 * b1
  long long lda, ldb, ldc;               // elements
  long long sa0 = 0, sa1 = 0, sb0 = 0, sb1 = 0, sc0 = 0, sc1 = 0;
  char *a = nullptr, *b = nullptr, *c = nullptr;
  bool pad = false;                      // C's padding after column N is scratch: a TMA store may write into it
};
static int a_inner(const Prob& p) { return p.layout == NT || p.layout == NN ? p.K : p.M; }
static int a_rows(const Prob& p) { return p.layout == NT || p.layout == NN ? p.M : p.K; }
static int b_inner(const Prob& p) { return p.layout == NT || p.layout == TT ? p.K : p.N; }
static int b_rows(const Prob& p) { return p.layout == NT || p.layout == TT ? p.N : p.K; }
static int out_bytes(int out) { return out == 0 ? 4 : 2; }
static bool al(long long v, int n) { return v % n == 0; }
static bool load_ok(int mode, const char* ptr, long long ld, long long s0, long long s1) {
  const int n = mode == 0 ? 16 : mode == 1 ? 4 : 2;
  return al((long long)(size_t)ptr, n) && al(2 * ld, n) && al(2 * s0, n) && al(2 * s1, n);
}
// can this kernel run this problem at all (layout, types, alignment)?
static bool can_run(const Kern& k, const Prob& p) {
  if (k.layout != p.layout || k.in != p.in || k.epi != p.epi) return false;
  if (!k.spk && k.out != p.out) return false;
  if (p.batch > 1 && k.rank != 4) return false;
  if (!load_ok(k.al, p.a, p.lda, p.sa0, p.sa1) || !load_ok(k.bl, p.b, p.ldb, p.sb0, p.sb1)) return false;
  if (!k.spk) {
    const int e = out_bytes(p.out), n = k.cs == 0 ? 16 : k.cs == 1 ? 4 : e;
    if (!al((long long)(size_t)p.c, n) || !al(e * p.ldc, n) || !al(e * p.sc0, n) || !al(e * p.sc1, n)) return false;
  }
  return true;
}

// ------------------------------------------------------------------------------------------------------- benchmark rows
struct Row { const char* name; int layout, in, out, epi, batch, M, N, K; int lda, ldb, ldc; };   // ld 0: dense
static const Row rows[] = {
  {"1024^3", NT, 0, 1, 0, 1, 1024, 1024, 1024, 0, 0, 0},
  {"1024^3", NN, 0, 1, 0, 1, 1024, 1024, 1024, 0, 0, 0},
  {"2048^3", NT, 0, 1, 0, 1, 2048, 2048, 2048, 0, 0, 0},
  {"2048^3", NN, 0, 1, 0, 1, 2048, 2048, 2048, 0, 0, 0},
  {"4096^3", NT, 0, 1, 0, 1, 4096, 4096, 4096, 0, 0, 0},
  {"4096^3", NN, 0, 1, 0, 1, 4096, 4096, 4096, 0, 0, 0},
  {"4096^3", TN, 0, 1, 0, 1, 4096, 4096, 4096, 0, 0, 0},
  {"8192^3", NT, 0, 1, 0, 1, 8192, 8192, 8192, 0, 0, 0},
  {"8192^3", NN, 0, 1, 0, 1, 8192, 8192, 8192, 0, 0, 0},
  {"8192^3", TN, 0, 1, 0, 1, 8192, 8192, 8192, 0, 0, 0},
  {"8192^3", TT, 0, 1, 0, 1, 8192, 8192, 8192, 0, 0, 0},
  {"4096^3 f16", NT, 1, 2, 0, 1, 4096, 4096, 4096, 0, 0, 0},
  {"4096^3 >f32", NN, 0, 0, 0, 1, 4096, 4096, 4096, 0, 0, 0},
  {"8192x768x3072", NT, 0, 1, 0, 1, 8192, 768, 3072, 0, 0, 0},
  {"8192x768x3072", NN, 0, 1, 0, 1, 8192, 768, 3072, 0, 0, 0},
  {"8192x3072x768", NT, 0, 1, 0, 1, 8192, 3072, 768, 0, 0, 0},
  {"8192x3072x768", NN, 0, 1, 0, 1, 8192, 3072, 768, 0, 0, 0},
  {"8192x3072x768 +gelu", NN, 0, 1, 1, 1, 8192, 3072, 768, 0, 0, 0},
  {"8192x768x768", NT, 0, 1, 0, 1, 8192, 768, 768, 0, 0, 0},
  {"8192x768x768", NN, 0, 1, 0, 1, 8192, 768, 768, 0, 0, 0},
  {"8192x2304x768", NT, 0, 1, 0, 1, 8192, 2304, 768, 0, 0, 0},
  {"8192x2304x768", NN, 0, 1, 0, 1, 8192, 2304, 768, 0, 0, 0},
  {"8192x30522x768 (C odd)", NT, 0, 1, 0, 1, 8192, 30522, 768, 0, 0, 0},
  {"8192x30522x768 (B,C odd)", NN, 0, 1, 0, 1, 8192, 30522, 768, 0, 0, 0},
  {"8192x30522x768 (ld 30528)", NN, 0, 1, 0, 1, 8192, 30522, 768, 0, 30528, 30528},
  {"768x30522x8192 (B,C odd)", TN, 0, 1, 0, 1, 768, 30522, 8192, 0, 0, 0},
  {"768x30522x8192 (ld 30528)", TN, 0, 1, 0, 1, 768, 30522, 8192, 0, 30528, 30528},
  {"768x768x8192", TN, 0, 1, 0, 1, 768, 768, 8192, 0, 0, 0},
  {"768x3072x8192", TN, 0, 1, 0, 1, 768, 3072, 8192, 0, 0, 0},
  {"4096x11008x4096", NT, 0, 1, 0, 1, 4096, 11008, 4096, 0, 0, 0},
  {"4096x11008x4096", NN, 0, 1, 0, 1, 4096, 11008, 4096, 0, 0, 0},
  {"64x4096x4096", NT, 0, 1, 0, 1, 64, 4096, 4096, 0, 0, 0},
  {"64x4096x4096", NN, 0, 1, 0, 1, 64, 4096, 4096, 0, 0, 0},
  {"8x4096x4096", NT, 0, 1, 0, 1, 8, 4096, 4096, 0, 0, 0},
  {"8x4096x4096", NN, 0, 1, 0, 1, 8, 4096, 4096, 0, 0, 0},
  {"1x4096x4096", NT, 0, 1, 0, 1, 1, 4096, 4096, 0, 0, 0},
  {"1x4096x4096", NN, 0, 1, 0, 1, 1, 4096, 4096, 0, 0, 0},
  {"192 x 512x512x64", NT, 0, 1, 0, 192, 512, 512, 64, 0, 0, 0},
  {"192 x 512x64x512", NN, 0, 1, 0, 192, 512, 64, 512, 0, 0, 0},
  {"1000x1111x2222", NN, 0, 1, 0, 1, 1000, 1111, 2222, 0, 0, 0},
};
static const int NROWS = sizeof rows / sizeof rows[0];

static Prob row_prob(const Row& r) {
  Prob p{};
  p.M = r.M; p.N = r.N; p.K = r.K; p.layout = r.layout; p.in = r.in; p.out = r.out; p.epi = r.epi; p.batch = r.batch; p.b0 = r.batch;
  p.lda = r.lda ? r.lda : a_inner(p); p.ldb = r.ldb ? r.ldb : b_inner(p); p.ldc = r.ldc ? r.ldc : r.N;
  p.sa0 = p.lda * a_rows(p); p.sb0 = p.ldb * b_rows(p); p.sc0 = p.ldc * p.M;
  p.sa1 = p.sa0 * p.b0; p.sb1 = p.sb0 * p.b0; p.sc1 = p.sc0 * p.b0;
  p.pad = p.ldc > p.N;
  return p;
}

// ---------------------------------------------------------------------------------------------------------------- items
struct Item { int kind; int kern; int row; int gm; int splits; int pdl; };   // kind 0: tests of kern; 1: bench; kern -1: cublasLt
static std::vector<Item> items;
static long long cdiv(long long a, long long b) { return (a + b - 1) / b; }

static void make_items(bool tests, bool bench, const std::string& filter) {
  auto keep = [&](const std::string& s) { return filter.empty() || s.find(filter) != std::string::npos; };
  if (tests) for (int k = 0; k < (int)kerns.size(); ++k) if (keep(kerns[k].name)) items.push_back({0, k, -1, 0, 1, 0});
  if (!bench) return;
  for (int r = 0; r < NROWS; ++r) {
    const std::string rn = std::string(rows[r].name) + " " + layout_name[rows[r].layout];
    if (!rows[r].epi || true) if (keep(rn + " cublasLt")) items.push_back({1, -1, r, 0, 1, 0});
    const Prob p = row_prob(rows[r]);
    for (int k = 0; k < (int)kerns.size(); ++k) {
      const Kern& q = kerns[k];
      if (!can_run(q, p) || !keep(rn + " " + q.name)) continue;
      const bool odd = !al(2 * p.lda, 16) || !al(2 * p.ldb, 16) || !al(out_bytes(p.out) * p.ldc, 16);
      // a slower load or store mode than the row needs is measured only on rows that need some plain mode
      if (!odd && (q.al || q.bl || q.cs) && !(q.out == 0)) continue;
      if (odd && p.M != 1000) { if (al(2 * p.ldb, 16) && q.bl) continue; if (al(2 * p.lda, 16) && q.al) continue; if (q.cs == 2) continue; }
      if (q.rank == 4 && p.batch == 1 && !(odd && p.M == 1000)) continue;
      const long long tiles = cdiv(p.M, q.bm) * cdiv(p.N, q.bn) * p.batch;
      if (p.M <= 64 && q.bm > 64 && !(q.bn == 64)) continue;
      if (p.M > 64 && q.bm == 64 && !q.pp) continue;
      if (p.N <= 64 && q.bn > 64) continue;
      if (q.spk) {
        if (tiles > 100) continue;
        const int kb = (int)cdiv(p.K, q.bk);
        int last = 0;
        for (int f = 1; f <= 2; ++f) {
          int s = std::max(2, (int)(132 * f / tiles));
          s = std::min(s, std::max(1, kb / 4));
          s = (int)cdiv(kb, cdiv(kb, s));
          if (s < 2 || s == last) continue;
          last = s;
          items.push_back({1, k, r, 0, s, 0});
          items.push_back({1, k, r, 0, s, 1});
        }
      } else {
        items.push_back({1, k, r, 0, 1, 0});
        if ((p.M == 8192 && p.N == 8192 && p.layout <= NN && q.bm * q.bn == 32768 && q.bm == 128) || (p.M == 4096 && p.N == 4096 && p.layout == NT && q.bn == 256 && q.bm == 128 && q.cm == 2 && !q.in))
          for (int g : {2, 4, 16, 32}) items.push_back({1, k, r, g, 1, 0});
      }
    }
  }
}
static std::string item_name(const Item& it) {
  char s[160];
  if (it.kern < 0) return "cublasLt";
  snprintf(s, sizeof s, "%s", kerns[it.kern].name);
  std::string o = s;
  if (it.splits > 1) o += "=" + std::to_string(it.splits) + (it.pdl ? "+pdl" : "");
  if (it.gm) o += " gm" + std::to_string(it.gm);
  return o;
}

// ================================================================================================= child: the CUDA side
static bool sticky = false;
#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { snprintf(errbuf, sizeof errbuf, "%s: %s (line %d)", #x, cudaGetErrorString(e_), __LINE__); if (cudaGetLastError(), cudaDeviceSynchronize() != cudaSuccess) sticky = true; return false; } } while (0)
static char errbuf[400];

__device__ __forceinline__ u32 hash32(u64 x) {
  x ^= x >> 33; x *= 0xff51afd7ed558ccdull; x ^= x >> 33; x *= 0xc4ceb9fe1a85ec53ull; x ^= x >> 33;
  return (u32)x;
}
// Uniform in (-1, 1) as bf16 (mode 0) or f16 (mode 1) or f32 (mode 2).
__global__ void k_fill(void* p, long long n, u64 seed, int mode) {
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += (long long)gridDim.x * blockDim.x) {
    const float v = ((int)(hash32(seed + i) >> 8) - (1 << 23)) * (1.0f / (1 << 23));
    if (mode == 2) ((float*)p)[i] = v;
    else ((u16*)p)[i] = (u16)(mode == 1 ? hg::pack2<2>(v, 0.f) : hg::pack2<1>(v, 0.f));
  }
}
__device__ __forceinline__ float to_f(u16 h, int f16) {
  if (!f16) return __uint_as_float((u32)h << 16);
  float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h)); return f;
}
// Reference: 64x64 tile per block, 4x4 per thread, f32.  A(m,k) = a[m*am + k*ak], B(k,n) = b[k*bk + n*bn].
struct RefArgs { const u16 *a, *b; float* c; const float* bias; long long am, ak, bk, bn, sa0, sa1, sb0, sb1; int M, N, K, b0, f16, epi; };
__global__ void __launch_bounds__(256) k_ref(RefArgs r) {
  __shared__ float sa[16][68], sb[16][68];
  const int z = blockIdx.z, m0 = blockIdx.y * 64, n0 = blockIdx.x * 64, tid = threadIdx.x;
  const u16* a = r.a + (z % r.b0) * r.sa0 + (z / r.b0) * r.sa1;
  const u16* b = r.b + (z % r.b0) * r.sb0 + (z / r.b0) * r.sb1;
  float acc[4][4] = {};
  const int tx = tid & 15, ty = tid >> 4;
  for (int k0 = 0; k0 < r.K; k0 += 16) {
    for (int i = tid; i < 1024; i += 256) {
      int m, k;
      if (r.ak == 1) { k = i & 15; m = i >> 4; } else { m = i & 63; k = i >> 6; }
      sa[k][m] = (m0 + m < r.M && k0 + k < r.K) ? to_f(a[(m0 + m) * r.am + (k0 + k) * r.ak], r.f16) : 0.f;
      int n;
      if (r.bk == 1) { k = i & 15; n = i >> 4; } else { n = i & 63; k = i >> 6; }
      sb[k][n] = (n0 + n < r.N && k0 + k < r.K) ? to_f(b[(k0 + k) * r.bk + (n0 + n) * r.bn], r.f16) : 0.f;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      const float4 x = *(const float4*)&sa[k][4 * ty], y = *(const float4*)&sb[k][4 * tx];
      const float xa[4] = {x.x, x.y, x.z, x.w}, yb[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) acc[i][j] = fmaf(xa[i], yb[j], acc[i][j]);
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) for (int j = 0; j < 4; ++j) {
    const int m = m0 + 4 * ty + i, n = n0 + 4 * tx + j;
    if (m < r.M && n < r.N) {
      float v = acc[i][j];
      if (r.epi == 1) { const float x = v + r.bias[n]; v = 0.5f * x * (1.0f + erff(x * 0.70710678f)); }
      r.c[((long long)z * r.M + m) * r.N + n] = v;
    }
  }
}
struct CmpOut { unsigned long long bad; unsigned long long first; float worst; unsigned long long stray; double d2, r2; };
struct CmpArgs { const void* c; const float* ref; int M, N, b0, out; long long batch, ldc, sc0, sc1; float rtol, atol; CmpOut* o; };
__global__ void k_cmp(CmpArgs g) {
  const long long total = g.batch * g.M * (long long)g.N;
  float worst = 0.f; double d2 = 0, r2 = 0;
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < total; i += (long long)gridDim.x * blockDim.x) {
    const int n = (int)(i % g.N); const long long bm = i / g.N; const int m = (int)(bm % g.M), z = (int)(bm / g.M);
    const long long off = (z % g.b0) * g.sc0 + (z / g.b0) * g.sc1 + (long long)m * g.ldc + n;
    const float v = g.out == 0 ? ((const float*)g.c)[off] : to_f(((const u16*)g.c)[off], g.out == 2);
    const float r = g.ref[i], e = fabsf(v - r), tol = g.atol + g.rtol * fabsf(r);
    if (!(e <= tol)) { atomicAdd(&g.o->bad, 1ull); atomicMin(&g.o->first, (unsigned long long)i); }
    const float q = e / tol; worst = fmaxf(worst, q == q ? q : 1e30f);
    d2 += (double)e * e; r2 += (double)r * r;
  }
  for (int s = 16; s; s >>= 1) { worst = fmaxf(worst, __shfl_xor_sync(~0u, worst, s)); d2 += __shfl_xor_sync(~0u, d2, s); r2 += __shfl_xor_sync(~0u, r2, s); }
  if ((threadIdx.x & 31) == 0) { atomicMax((int*)&g.o->worst, __float_as_int(worst)); atomicAdd(&g.o->d2, d2); atomicAdd(&g.o->r2, r2); }
}
// Everything of the C region outside [0,M)x[0,N) of each batch must still be poison (bytes 0xff).
__global__ void k_stray(const unsigned char* base, long long bytes, CmpArgs g, long long c_byte0) {
  const int e = g.out == 0 ? 4 : 2;
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i * e < bytes; i += (long long)gridDim.x * blockDim.x) {
    const long long el = (i * e - c_byte0) / e;     // element index relative to C (negative before it)
    bool inside = false;
    if (i * e >= c_byte0)
      for (long long z = 0; z < g.batch && !inside; ++z) {
        const long long x = el - (z % g.b0) * g.sc0 - (z / g.b0) * g.sc1;
        if (x >= 0 && x / g.ldc < g.M && x % g.ldc < g.N) inside = true;
      }
    if (!inside) for (int j = 0; j < e; ++j) if (base[i * e + j] != 0xff) { atomicAdd(&g.o->stray, 1ull); break; }
  }
}

static char *pool_in = nullptr, *pool_f16 = nullptr, *pool_out = nullptr, *pool_ws = nullptr, *ltws = nullptr;
static float *refbuf = nullptr, *bias = nullptr;
static CmpOut* cmpo = nullptr;
static const size_t POOL_IN = 1600ull << 20, POOL_OUT = 1400ull << 20, POOL_WS = 256ull << 20, LTWS = 64ull << 20, REF = 1050ull << 20, POOL_F16 = 512ull << 20;
static cudaStream_t stream;
static int num_sms = 132;
typedef CUresult (*EncodeFn)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*, const cuuint64_t*, const cuuint32_t*,
                             const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
static EncodeFn encode = nullptr;

static bool child_init() {
  CK(cudaSetDevice(0));
  cudaDeviceProp pr;
  CK(cudaGetDeviceProperties(&pr, 0));
  num_sms = pr.multiProcessorCount;
  CK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CK(cudaMalloc(&pool_in, POOL_IN)); CK(cudaMalloc(&pool_f16, POOL_F16)); CK(cudaMalloc(&pool_out, POOL_OUT)); CK(cudaMalloc(&pool_ws, POOL_WS));
  CK(cudaMalloc(&ltws, LTWS)); CK(cudaMalloc(&refbuf, REF)); CK(cudaMalloc(&bias, 1 << 20)); CK(cudaMalloc(&cmpo, sizeof(CmpOut)));
  k_fill<<<2048, 256, 0, stream>>>(pool_in, POOL_IN / 2, 0x1234567ull, 0);
  k_fill<<<2048, 256, 0, stream>>>(pool_f16, POOL_F16 / 2, 0x7654321ull, 1);
  k_fill<<<256, 256, 0, stream>>>(bias, (1 << 20) / 4, 0x9999ull, 2);
  CK(cudaGetLastError());
  CK(cudaStreamSynchronize(stream));
  cudaDriverEntryPointQueryResult qr;
  void* f = nullptr;
  CK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &f, 12000, cudaEnableDefault, &qr));
  if (!f || qr != cudaDriverEntryPointSuccess) { snprintf(errbuf, sizeof errbuf, "no cuTensorMapEncodeTiled"); return false; }
  encode = (EncodeFn)f;
  return true;
}

// Operand map: dims {inner, rows [, batch0, batch1]}; box {64, rows of one load}; 128-byte swizzle; zero fill.
static bool make_map(TensorMap* out, int type, const void* ptr, int esz, long long inner, long long nrows, long long ld, int rank,
                     long long n0, long long s0, long long n1, long long s1, int box0, int box1) {
  CUtensorMap m;
  cuuint64_t dims[4] = {(cuuint64_t)inner, (cuuint64_t)nrows, (cuuint64_t)n0, (cuuint64_t)n1};
  cuuint64_t str[3] = {(cuuint64_t)(ld * esz), (cuuint64_t)(s0 * esz), (cuuint64_t)(s1 * esz)};
  cuuint32_t box[4] = {(cuuint32_t)box0, (cuuint32_t)box1, 1, 1}, es[4] = {1, 1, 1, 1};
  for (int i = 1; i < rank - 1; ++i) if (str[i] == 0) str[i] = str[0];    // never stepped along (coordinate 0 only)
  const CUtensorMapDataType t = type == 0 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32 : type == 1 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  const CUresult r = encode(&m, t, rank, (void*)ptr, dims, str, box, es, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                            CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (r != CUDA_SUCCESS) {
    snprintf(errbuf, sizeof errbuf, "cuTensorMapEncodeTiled %d: rank %d dims %llu %llu strides %llu %llu box %d %d ptr %p", (int)r, rank,
             (unsigned long long)dims[0], (unsigned long long)dims[1], (unsigned long long)str[0], (unsigned long long)str[1], box0, box1, ptr);
    return false;
  }
  memcpy(out, &m, sizeof m);
  return true;
}

struct Launch { TensorMap ma, mb, mc; Args args; int grid, rgrid; const void* red; };

static bool prepare(const Kern& k, const Prob& p, int gm, int splits, bool bcast_b, Launch* L) {
  memset(L, 0, sizeof *L);
  static std::vector<int> ready(1024, -1);
  const int ki = (int)(&k - kerns.data()), cl = k.cm * k.cn;
  if (ready[ki] < 0) {
    CK(cudaFuncSetAttribute(k.fn, cudaFuncAttributeMaxDynamicSharedMemorySize, k.smem));
    int n = num_sms;
    if (cl > 1) {
      cudaLaunchConfig_t lc{}; cudaLaunchAttribute at[1];
      lc.gridDim = dim3(num_sms / cl * cl); lc.blockDim = dim3(k.threads); lc.dynamicSmemBytes = k.smem;
      at[0].id = cudaLaunchAttributeClusterDimension; at[0].val.clusterDim.x = cl; at[0].val.clusterDim.y = at[0].val.clusterDim.z = 1;
      lc.attrs = at; lc.numAttrs = 1;
      int c = 0;
      CK(cudaOccupancyMaxActiveClusters(&c, k.fn, &lc));
      if (c < 1) { snprintf(errbuf, sizeof errbuf, "no cluster fits"); return false; }
      n = std::min(num_sms / cl, c) * cl;
    }
    ready[ki] = n;
  }
  Args& a = L->args;
  a.M = p.M; a.N = p.N; a.K = p.K;
  a.tiles_m = (int)cdiv(p.M, (long long)k.bm * k.cm); a.tiles_n = (int)cdiv(p.N, (long long)k.bn * k.cn);
  a.batch = p.batch; a.batch0 = p.b0;
  const int kb = (int)cdiv(p.K, k.bk);
  a.kb_per_split = (int)cdiv(kb, splits); a.splits = (int)cdiv(kb, a.kb_per_split);
  if (!k.spk) { a.splits = 1; a.kb_per_split = kb; }
  a.total = (u32)((long long)a.tiles_m * a.tiles_n * a.batch * a.splits);
  const int clusters = ready[ki] / cl;
  if (!gm) {            // a wave of `clusters` tiles should cover a region as square as possible
    const double th = (double)k.bm * k.cm, tw = (double)k.bn * k.cn;
    gm = 1;
    while ((gm + 1) * (gm + 1) * th / tw <= clusters * 1.2) ++gm;
    gm = std::min(gm, a.tiles_m);
    // spread the rows of tiles evenly over the groups
    const int groups = (int)cdiv(a.tiles_m, gm); gm = (int)cdiv(a.tiles_m, groups);
  }
  a.group_m = std::max(1, std::min(gm, a.tiles_m));
  a.a_mul0 = a.a_mul1 = 1; a.b_mul0 = a.b_mul1 = bcast_b ? 0 : 1;
  a.a = p.a; a.lda = p.lda; a.sa0 = p.sa0; a.sa1 = p.sa1;
  a.b = p.b; a.ldb = p.ldb; a.sb0 = p.sb0; a.sb1 = p.sb1;
  a.c = p.c; a.ldc = p.ldc; a.sc0 = p.sc0; a.sc1 = p.sc1;
  a.c_tma_cols = p.pad || al((long long)p.N * out_bytes(p.out), 16) ? 1 << 30 : p.N;
  a.ws = (float*)pool_ws; a.ldws = cdiv(p.N, 4) * 4;
  a.bias = bias;
  const int b1 = p.batch / p.b0;
  const bool ak = k.layout == NT || k.layout == NN, bk = k.layout == NT || k.layout == TT;
  const int it = k.in ? 2 : 1;
  if (k.al == 0 && !make_map(&L->ma, it, p.a, 2, a_inner(p), a_rows(p), p.lda, k.rank, p.b0, p.sa0, b1, p.sa1, 64, ak ? k.bm / k.cn : k.bk)) return false;
  if (k.bl == 0 && !make_map(&L->mb, it, p.b, 2, b_inner(p), b_rows(p), p.ldb, k.rank, bcast_b ? 1 : p.b0, p.sb0, bcast_b ? 1 : b1, p.sb1, 64, bk ? k.bn / k.cm : k.bk)) return false;
  if (k.spk) {
    const size_t need = (size_t)a.splits * p.batch * p.M * a.ldws * 4;
    if (need > POOL_WS) { snprintf(errbuf, sizeof errbuf, "workspace %zu", need); return false; }
    if (!make_map(&L->mc, 0, a.ws, 4, p.N, p.M, a.ldws, 4, p.batch, (long long)p.M * a.ldws, a.splits, (long long)p.batch * p.M * a.ldws, 32, 16)) return false;
    L->red = k.reds[p.out];
    L->rgrid = (int)std::min<long long>(cdiv((long long)p.batch * p.M * cdiv(p.N, 4), 256), num_sms * 8);
  } else if (k.cs == 0) {
    if (!make_map(&L->mc, k.out, p.c, out_bytes(k.out), p.N, p.M, p.ldc, k.rank, p.b0, p.sc0, b1, p.sc1, k.out == 0 ? 32 : 64, 16)) return false;
  }
  L->grid = (int)std::min<long long>(clusters, a.total) * cl;
  return true;
}

static bool launch(const Kern& k, Launch& L, int pdl) {
  cudaLaunchConfig_t lc{}; cudaLaunchAttribute at[1];
  lc.gridDim = dim3(L.grid); lc.blockDim = dim3(k.threads); lc.dynamicSmemBytes = k.smem; lc.stream = stream;
  if (k.cm * k.cn > 1) {
    at[0].id = cudaLaunchAttributeClusterDimension; at[0].val.clusterDim.x = k.cm * k.cn; at[0].val.clusterDim.y = at[0].val.clusterDim.z = 1;
    lc.attrs = at; lc.numAttrs = 1;
  }
  void* av[4] = {&L.ma, &L.mb, &L.mc, &L.args};
  CK(cudaLaunchKernelExC(&lc, k.fn, av));
  if (k.spk) {
    cudaLaunchConfig_t rc{}; cudaLaunchAttribute ra[1];
    rc.gridDim = dim3(L.rgrid); rc.blockDim = dim3(256); rc.stream = stream;
    if (pdl) { ra[0].id = cudaLaunchAttributeProgrammaticStreamSerialization; ra[0].val.programmaticStreamSerializationAllowed = 1; rc.attrs = ra; rc.numAttrs = 1; }
    void* rv[1] = {&L.args};
    CK(cudaLaunchKernelExC(&rc, L.red, rv));
  }
  return true;
}

// ---------------------------------------------------------------------------------------------------------------- cublasLt
struct LtAlgo { uint64_t d[8]; };
struct LtHeur { LtAlgo algo; size_t ws; int state; float waves; int reserved[4]; };
typedef void* Lt;
static int (*lt_create)(Lt*);
static int (*lt_desc)(Lt*, int, int);
static int (*lt_desc_set)(Lt, int, const void*, size_t);
static int (*lt_layout)(Lt*, int, uint64_t, uint64_t, int64_t);
static int (*lt_layout_set)(Lt, int, const void*, size_t);
static int (*lt_pref)(Lt*);
static int (*lt_pref_set)(Lt, int, const void*, size_t);
static int (*lt_heur)(Lt, Lt, Lt, Lt, Lt, Lt, Lt, int, LtHeur*, int*);
static int (*lt_matmul)(Lt, Lt, const void*, const void*, Lt, const void*, Lt, const void*, const void*, Lt, void*, Lt, const LtAlgo*, void*, size_t, cudaStream_t);
static Lt lt = nullptr;

static bool lt_open() {
  static int state = 0;
  if (state) return state == 1;
  state = 2;
  std::vector<std::string> c;
  if (const char* e = getenv("CUBLASLT_PATH")) c.push_back(e);
  c.push_back("libcublasLt.so.13");
  for (const char* pat : {"/usr/local/cuda*/lib*/libcublasLt.so.1[23]", "/usr/local/cuda*/targets/*/lib/libcublasLt.so.1[23]",
                          "/usr/lib/x86_64-linux-gnu/libcublasLt.so.1[23]"}) {
    glob_t g;
    if (glob(pat, 0, nullptr, &g) == 0) for (size_t i = 0; i < g.gl_pathc; ++i) c.push_back(g.gl_pathv[i]);
    globfree(&g);
  }
  void* h = nullptr;
  for (auto& s : c) if (!s.empty() && (h = dlopen(s.c_str(), RTLD_NOW | RTLD_GLOBAL))) { printf("# cublasLt: %s\n", s.c_str()); break; }
  if (!h) { snprintf(errbuf, sizeof errbuf, "libcublasLt not found (%s)", dlerror()); return false; }
#define SYM(v, n) *(void**)&v = dlsym(h, n); if (!v) { snprintf(errbuf, sizeof errbuf, "no %s", n); return false; }
  SYM(lt_create, "cublasLtCreate") SYM(lt_desc, "cublasLtMatmulDescCreate") SYM(lt_desc_set, "cublasLtMatmulDescSetAttribute")
  SYM(lt_layout, "cublasLtMatrixLayoutCreate") SYM(lt_layout_set, "cublasLtMatrixLayoutSetAttribute") SYM(lt_pref, "cublasLtMatmulPreferenceCreate")
  SYM(lt_pref_set, "cublasLtMatmulPreferenceSetAttribute") SYM(lt_heur, "cublasLtMatmulAlgoGetHeuristic") SYM(lt_matmul, "cublasLtMatmul")
  if (int r = lt_create(&lt)) { snprintf(errbuf, sizeof errbuf, "cublasLtCreate %d", r); return false; }
  state = 1;
  return true;
}
struct LtPlan { Lt desc, la, lb, lc; LtHeur h[4]; int n; };
// Column-major view: C^T[N x M] = op(B)^T... : first operand is our B, second our A.
static bool lt_plan(const Prob& p, LtPlan* q) {
  if (!lt_open()) return false;
#define LT(x) do { int r_ = (x); if (r_) { snprintf(errbuf, sizeof errbuf, "%s -> %d", #x, r_); return false; } } while (0)
  const int it = p.in ? 2 : 14, ot = p.out == 0 ? 0 : p.out == 1 ? 14 : 2;
  const int ta = p.layout == NT || p.layout == TT, tb = p.layout == TN || p.layout == TT;      // transpose flags of B' and A'
  LT(lt_desc(&q->desc, 68, 0));
  LT(lt_desc_set(q->desc, 3, &ta, 4)); LT(lt_desc_set(q->desc, 4, &tb, 4));
  LT(lt_layout(&q->la, it, b_inner(p), b_rows(p), p.ldb));
  LT(lt_layout(&q->lb, it, a_inner(p), a_rows(p), p.lda));
  LT(lt_layout(&q->lc, ot, p.N, p.M, p.ldc));
  if (p.batch > 1) {
    const int32_t n = p.batch; const int64_t sa = p.sb0, sb = p.sa0, sc = p.sc0;
    LT(lt_layout_set(q->la, 5, &n, 4)); LT(lt_layout_set(q->lb, 5, &n, 4)); LT(lt_layout_set(q->lc, 5, &n, 4));
    LT(lt_layout_set(q->la, 6, &sa, 8)); LT(lt_layout_set(q->lb, 6, &sb, 8)); LT(lt_layout_set(q->lc, 6, &sc, 8));
  }
  Lt pref; LT(lt_pref(&pref));
  const size_t ws = LTWS; LT(lt_pref_set(pref, 1, &ws, 8));
  q->n = 0;
  LT(lt_heur(lt, q->desc, q->la, q->lb, q->lc, q->lc, pref, 4, q->h, &q->n));
  if (q->n < 1) { snprintf(errbuf, sizeof errbuf, "no cublasLt algorithm"); return false; }
  return true;
}
static bool lt_run(const LtPlan& q, int i, const Prob& p) {
  const float one = 1.f, zero = 0.f;
  const int r = lt_matmul(lt, q.desc, &one, p.b, q.la, p.a, q.lb, &zero, p.c, q.lc, p.c, q.lc, &q.h[i].algo, ltws, LTWS, stream);
  if (r) { snprintf(errbuf, sizeof errbuf, "cublasLtMatmul %d", r); return false; }
  return true;
}

// ------------------------------------------------------------------------------------------------------------- checking
static bool run_ref(const Prob& p, bool bcast_b) {
  if ((size_t)p.batch * p.M * p.N * 4 > REF) { snprintf(errbuf, sizeof errbuf, "reference too large"); return false; }
  RefArgs r{};
  r.a = (const u16*)p.a; r.b = (const u16*)p.b; r.c = refbuf; r.bias = bias; r.M = p.M; r.N = p.N; r.K = p.K; r.b0 = p.b0; r.f16 = p.in; r.epi = p.epi;
  const bool ak = p.layout == NT || p.layout == NN, bk = p.layout == NT || p.layout == TT;
  r.am = ak ? p.lda : 1; r.ak = ak ? 1 : p.lda; r.bn = bk ? p.ldb : 1; r.bk = bk ? 1 : p.ldb;
  r.sa0 = p.sa0; r.sa1 = p.sa1; r.sb0 = bcast_b ? 0 : p.sb0; r.sb1 = bcast_b ? 0 : p.sb1;
  k_ref<<<dim3(cdiv(p.N, 64), cdiv(p.M, 64), p.batch), 256, 0, stream>>>(r);
  CK(cudaGetLastError());
  return true;
}
// err: the worst |difference| / tolerance; tolerance = one rounding of the output type + 1e-4 sqrt(K)
static bool check(const Prob& p, float* worst, double* rel, const unsigned char* region, long long region_bytes, std::string* msg) {
  CmpOut z{}; z.first = ~0ull;
  CK(cudaMemcpyAsync(cmpo, &z, sizeof z, cudaMemcpyHostToDevice, stream));
  CmpArgs g{p.c, refbuf, p.M, p.N, p.b0, p.out, p.batch, p.ldc, p.sc0, p.sc1,
            p.out == 0 ? 1e-5f : p.out == 1 ? 1.0f / 256 : 1.0f / 2048, 1e-4f * sqrtf((float)p.K), cmpo};
  k_cmp<<<1024, 256, 0, stream>>>(g);
  if (region) k_stray<<<1024, 256, 0, stream>>>(region, region_bytes, g, (long long)((const unsigned char*)p.c - region));
  CK(cudaGetLastError());
  CK(cudaMemcpyAsync(&z, cmpo, sizeof z, cudaMemcpyDeviceToHost, stream));
  CK(cudaStreamSynchronize(stream));
  *worst = z.worst; *rel = sqrt(z.d2 / (z.r2 > 0 ? z.r2 : 1));
  if (z.bad || z.stray) {            // (the caller decides what counts for the library, which may round partial sums)
    char s[200];
    const long long n = z.first % p.N, bm = z.first / p.N;
    snprintf(s, sizeof s, "WRONG %llu of %lld (first b %lld row %lld col %lld) stray %llu rel %.3g", z.bad, (long long)p.batch * p.M * p.N,
             z.bad ? bm / p.M : 0, z.bad ? bm % p.M : 0, z.bad ? n : 0, z.stray, *rel);
    *msg = s;
  }
  return true;
}

// ---------------------------------------------------------------------------------------------------------------- tests
static long long rup(long long v, long long n) { return cdiv(v, n) * n; }
static bool run_tests(const Kern& k, std::string* out) {
  struct S { int M, N, K; } shapes[] = {
    {k.bm * k.cm, k.bn * k.cn, k.bk * (k.stages + 1)}, {k.bm + 37, k.bn + 29, 203}, {1, 8, 16}, {777, 1003, 515},
    {k.bm * 20 + 5, k.bn * 18 + 9, 136}, {300, 510, 2222}, {k.bm * k.cm * 3, k.bn * k.cn * 47, 64}, {64, 257, 1025},
    {k.bm * 12 + 5, k.bn * 13 + 9, k.bk * (2 * k.stages + 1) + 8}};      // the last: many tiles, each longer than the stages
  float worst_all = 0; double rel_all = 0; int n = 0, idx = -1;
  for (auto& s : shapes) {
    ++idx;
    Prob p{};
    p.M = s.M; p.N = s.N; p.K = s.K; p.layout = k.layout; p.in = k.in; p.out = k.spk ? (idx % 3) : k.out; p.epi = k.epi;
    bool bcast = false;
    int b1 = 1;
    if (k.rank == 4 && (long long)s.M * s.N < 4000000) { p.b0 = 3; b1 = 2; bcast = idx == 3 && k.bl == 0; }
    p.batch = p.b0 * b1;
    const int ia = k.al == 0 ? 8 : k.al == 1 ? 2 : 1, ib = k.bl == 0 ? 8 : k.bl == 1 ? 2 : 1;
    const int e = out_bytes(p.out), ic = k.spk ? 1 : k.cs == 0 ? 16 / e : k.cs == 1 ? std::max(1, 4 / e) : 1;
    // odd indices: batch0 interleaved inside the row (like heads in [B, S, H, D]); even: separate matrices
    const bool inter = idx & 1;
    const long long wa = rup(a_inner(p), ia), wb = rup(b_inner(p), ib), wc = rup(p.N, ic);
    p.lda = (inter ? wa * p.b0 : wa) + (idx % 4 == 2 ? ia : 0); p.ldb = (inter ? wb * p.b0 : wb) + (idx % 4 == 2 ? ib : 0); p.ldc = (inter ? wc * p.b0 : wc) + (idx % 4 == 2 ? ic : 0);
    p.sa0 = inter ? wa : p.lda * a_rows(p); p.sb0 = inter ? wb : p.ldb * b_rows(p); p.sc0 = inter ? wc : p.ldc * p.M;
    p.sa1 = inter ? p.lda * a_rows(p) : p.sa0 * p.b0; p.sb1 = inter ? p.ldb * b_rows(p) : p.sb0 * p.b0; p.sc1 = inter ? p.ldc * p.M : p.sc0 * p.b0;
    char* in = k.in ? pool_f16 : pool_in;
    const size_t abytes = rup(2 * (p.sa1 * b1 + 64), 256) + 256, bbytes = rup(2 * (p.sb1 * b1 + 64), 256) + 256;
    p.a = in + 256 * (1 + idx) + (ia < 8 ? 2 * ia : 0);                // generic loads: base not 16-byte aligned
    p.b = in + 256 * (1 + idx) + abytes + (ib < 8 ? 2 * ib : 0);
    p.c = pool_out + 256 + (ic * e < 16 ? ic * e : 0);
    const long long region = rup(e * (p.sc1 * b1) + 1024, 256);
    if (abytes + bbytes + 8192 > (k.in ? POOL_F16 : POOL_IN)) { *out = "pool"; return true; }
    if (!can_run(k, p)) { char t[100]; snprintf(t, sizeof t, "FAIL test %dx%dx%d not runnable", s.M, s.N, s.K); *out = t; return true; }
    CK(cudaMemsetAsync(pool_out, 0xff, region, stream));
    if (k.spk) CK(cudaMemsetAsync(pool_ws, 0xff, std::min<size_t>(POOL_WS, 64ull << 20), stream));
    if (!run_ref(p, bcast)) return false;
    Launch L;
    if (!prepare(k, p, idx == 4 ? 3 : 0, k.spk ? 2 + idx % 3 : 1, bcast, &L)) return false;
    if (!launch(k, L, idx & 1)) return false;
    CK(cudaStreamSynchronize(stream));
    float w; double rel; std::string m;
    if (!check(p, &w, &rel, (unsigned char*)pool_out, region, &m)) return false;
    worst_all = std::max(worst_all, w); rel_all = std::max(rel_all, rel); ++n;
    if (!m.empty()) { char t[64]; snprintf(t, sizeof t, "%dx%dx%d b%d: ", s.M, s.N, s.K, p.batch); *out = "FAIL " + std::string(t) + m; return true; }
  }
  char t[100]; snprintf(t, sizeof t, "ok %d shapes, worst err/tol %.3f, rel %.2e", n, worst_all, rel_all);
  *out = t;
  return true;
}

// ---------------------------------------------------------------------------------------------------------------- bench
static int ref_row = -1;
static bool bench(const Item& it, std::string* out) {
  const Row& r = rows[it.row];
  Prob base = row_prob(r);
  const size_t ab = rup((size_t)base.sa0 * base.batch * 2, 256), bb = rup((size_t)base.sb0 * base.batch * 2, 256);
  const size_t cb = rup((size_t)base.sc0 * base.batch * out_bytes(base.out), 256);
  const size_t pin = base.in ? POOL_F16 : POOL_IN;
  char* in = base.in ? pool_f16 : pool_in;
  size_t set = ab + bb + cb;
  int nsets = (int)std::min<size_t>(48, std::max<size_t>(2, cdiv(256ll << 20, (long long)set)));
  nsets = (int)std::min<size_t>(nsets, std::min(pin / (ab + bb), POOL_OUT / cb));
  if (nsets < 1) { snprintf(errbuf, sizeof errbuf, "pool too small"); return false; }
  std::vector<Prob> ps(nsets, base);
  for (int i = 0; i < nsets; ++i) { ps[i].a = in + i * (ab + bb); ps[i].b = ps[i].a + ab; ps[i].c = pool_out + i * cb; }
  LtPlan lp{}; std::vector<Launch> Ls(nsets);
  int nalgo = 1;
  if (it.kern < 0) { if (!lt_plan(ps[0], &lp)) return false; nalgo = lp.n; }
  else for (int i = 0; i < nsets; ++i) if (!prepare(kerns[it.kern], ps[i], it.gm, it.splits, false, &Ls[i])) return false;
  double best = 1e30, first = 0; float worst = 0; double rel = 0; std::string msg;
  for (int al = 0; al < nalgo; ++al) {
    auto go = [&](int i) { return it.kern < 0 ? lt_run(lp, al, ps[i]) : launch(kerns[it.kern], Ls[i], it.pdl); };
    if (al == 0) {
      if (ref_row != it.row) { if (!run_ref(ps[0], false)) return false; CK(cudaStreamSynchronize(stream)); ref_row = it.row; }
      CK(cudaMemsetAsync(ps[0].c, 0xff, cb, stream));
      if (!go(0)) return false;
      CK(cudaStreamSynchronize(stream));
      if (!(it.kern < 0 && base.epi) && !check(ps[0], &worst, &rel, nullptr, 0, &msg)) return false;
      // cublasLt may split K and round the partial sums to bf16: outside the strict tolerance, but not wrong
      if (it.kern < 0 && rel < 5e-3) msg.clear();
    }
    cudaEvent_t e0, e1; CK(cudaEventCreate(&e0)); CK(cudaEventCreate(&e1));
    for (int i = 0; i < std::min(nsets, 3); ++i) if (!go(i)) return false;
    CK(cudaEventRecord(e0, stream));
    for (int i = 0; i < 4; ++i) if (!go(i % nsets)) return false;
    CK(cudaEventRecord(e1, stream)); CK(cudaEventSynchronize(e1));
    float ms; CK(cudaEventElapsedTime(&ms, e0, e1));
    const double est = ms / 4 * 1e3;                                        // us
    int R = (int)std::min(100.0, std::max(2.0, 400.0 / est));
    R = std::max(R, std::min(nsets, 100));
    if (est > 300) R = 2;
    cudaGraph_t g; cudaGraphExec_t ge;
    CK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    bool ok = true;
    for (int i = 0; i < R && ok; ++i) ok = go(i % nsets);
    const cudaError_t ce = cudaStreamEndCapture(stream, &g);
    if (!ok) return false;
    CK(ce);
    CK(cudaGraphInstantiate(&ge, g, 0));
    CK(cudaGraphLaunch(ge, stream)); CK(cudaGraphLaunch(ge, stream));
    std::vector<double> t;
    for (int i = 0; i < 21; ++i) {
      CK(cudaEventRecord(e0, stream)); CK(cudaGraphLaunch(ge, stream)); CK(cudaEventRecord(e1, stream)); CK(cudaEventSynchronize(e1));
      CK(cudaEventElapsedTime(&ms, e0, e1));
      t.push_back(ms * 1e3 / R);
    }
    std::sort(t.begin(), t.end());
    const double us = t[t.size() / 2];
    if (al == 0) first = us;
    best = std::min(best, us);
    CK(cudaGraphExecDestroy(ge)); CK(cudaGraphDestroy(g)); CK(cudaEventDestroy(e0)); CK(cudaEventDestroy(e1));
  }
  if (it.kern >= 0) {      // the timed runs must not have broken anything either: the last set's output is checked for NaN by the next check
    if (!check(ps[0], &worst, &rel, nullptr, 0, &msg)) return false;
  }
  const double fl = 2.0 * base.batch * base.M * base.N * base.K;
  const double by = (double)base.batch * (2.0 * base.M * base.K + 2.0 * base.K * base.N + (double)out_bytes(base.out) * base.M * base.N);
  char s[300];
  snprintf(s, sizeof s, "%s us %.2f first %.2f tflops %.1f gbs %.0f err %.3f rel %.2e %s", msg.empty() ? "ok" : "FAIL", best, first, fl / best * 1e-6, by / best * 1e-3,
           worst, rel, msg.c_str());
  *out = s;
  return true;
}

static int child(int start) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  if (!child_init()) { printf("@INITFAIL %s\n", errbuf); return 4; }
  for (int i = start; i < (int)items.size(); ++i) {
    printf("@BEGIN %d\n", i);
    std::string s; errbuf[0] = 0;
    const bool ok = items[i].kind == 0 ? run_tests(kerns[items[i].kern], &s) : bench(items[i], &s);
    if (!ok) {
      printf("@RES %d FAIL error: %s\n", i, errbuf);
      cudaStreamCaptureStatus cs;                               // leave no capture open
      if (!sticky && cudaStreamIsCapturing(stream, &cs) == cudaSuccess && cs != cudaStreamCaptureStatusNone) { cudaGraph_t g; cudaStreamEndCapture(stream, &g); }
      ref_row = -1;
      if (sticky || cudaDeviceSynchronize() != cudaSuccess) { printf("@STICKY\n"); fflush(stdout); _exit(3); }
    } else printf("@RES %d %s\n", i, s.c_str());
  }
  printf("@DONE\n");
  fflush(stdout);
  _exit(0);
}

// ============================================================================================== parent: no CUDA in here
static double now() { timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }

int main(int argc, char** argv) {
  bool tests = true, bench_ = true; int start = -1; double limit = 110; std::string filter;
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    if (a == "--tests") bench_ = false;
    else if (a == "--bench") tests = false;
    else if (a == "--filter" && i + 1 < argc) filter = argv[++i];
    else if (a == "--seconds" && i + 1 < argc) limit = atof(argv[++i]);
    else if (a == "--child" && i + 1 < argc) start = atoi(argv[++i]);
    else if (a == "--list") start = -2;
  }
  make_kernels();
  make_items(tests, bench_, filter);
  if (start == -2) {
    for (auto& k : kerns) printf("%-52s threads %d smem %d\n", k.name, k.threads, k.smem);
    for (size_t i = 0; i < items.size(); ++i) printf("%3zu %s %s\n", i, items[i].row >= 0 ? rows[items[i].row].name : "tests", item_name(items[i]).c_str());
    printf("%zu kernels, %zu items\n", kerns.size(), items.size());
    return 0;
  }
  if (start >= 0) return child(start);

  const double t0 = now();
  std::vector<std::string> res(items.size());
  int next = 0, fails = 0, initfails = 0;
  while (next < (int)items.size() && now() - t0 < limit && initfails < 3) {
    int fd[2];
    const int before = next;
    if (pipe(fd)) return 1;
    const pid_t pid = fork();
    if (pid == 0) {
      dup2(fd[1], 1); close(fd[0]); close(fd[1]);
      std::vector<char*> av{argv[0]};
      for (int i = 1; i < argc; ++i) av.push_back(argv[i]);
      std::string c = std::to_string(next);
      av.push_back((char*)"--child"); av.push_back((char*)c.c_str()); av.push_back(nullptr);
      execv("/proc/self/exe", av.data());
      _exit(9);
    }
    close(fd[1]);
    std::string buf; int cur = -1; bool done = false; double last = now(); std::string why;
    while (!done) {
      pollfd pf{fd[0], POLLIN, 0};
      const int r = poll(&pf, 1, 200);
      if (r > 0) {
        char b[4096]; const ssize_t n = read(fd[0], b, sizeof b);
        if (n <= 0) break;
        last = now(); buf.append(b, n);
        size_t e;
        while ((e = buf.find('\n')) != std::string::npos) {
          const std::string l = buf.substr(0, e); buf.erase(0, e + 1);
          int i; int off = 0;
          if (sscanf(l.c_str(), "@BEGIN %d", &i) == 1) cur = i;
          else if (sscanf(l.c_str(), "@RES %d %n", &i, &off) == 1 && i >= 0 && i < (int)res.size()) {
            res[i] = l.substr(off); next = i + 1; cur = -1;
            printf("[%5.1fs] %-26s %-2s %-44s %s\n", now() - t0, items[i].row >= 0 ? rows[items[i].row].name : "test", items[i].row >= 0 ? layout_name[rows[items[i].row].layout] : "",
                   item_name(items[i]).c_str(), res[i].c_str());
            fflush(stdout);
          } else if (l.rfind("@DONE", 0) == 0) done = true;
          else if (l.rfind("@INITFAIL", 0) == 0) { printf("%s\n", l.c_str()); ++initfails; }
          else printf("%s\n", l.c_str());
        }
      }
      if (now() - last > (cur < 0 ? 40 : 12)) { why = "HANG (no answer, killed)"; break; }
      if (now() - t0 > limit) { why = "time limit"; break; }
    }
    kill(pid, SIGKILL);
    int st = 0; waitpid(pid, &st, 0); close(fd[0]);
    if (!done) {
      if (why == "time limit") { printf("# time limit reached, %d of %zu items done\n", next, items.size()); break; }
      if (cur >= 0) {
        res[cur] = "FAIL " + (why.empty() ? "child died (status " + std::to_string(st) + ")" : why);
        printf("%s: %s\n", item_name(items[cur]).c_str(), res[cur].c_str());
        next = cur + 1;
      } else if (before == next) {        // nothing was done: cannot even start
        printf("# child: %s (status %d)\n", why.empty() ? "died before its first item" : why.c_str(), st); ++initfails;
      }
    }
  }

  printf("\n================ tests\n");
  int nt = 0, np = 0;
  for (size_t i = 0; i < items.size(); ++i) if (items[i].kind == 0) {
    ++nt;
    if (res[i].rfind("ok", 0) == 0) ++np;
    else { ++fails; printf("%-46s %s\n", item_name(items[i]).c_str(), res[i].empty() ? "not run" : res[i].c_str()); }
  }
  printf("%d of %d kernels pass all their shapes\n", np, nt);
  printf("\n================ all timings (us, TFLOP/s, GB/s of compulsory traffic, %% of cublasLt's best)\n");
  auto us_of = [&](size_t i) { double v; const size_t at = res[i].find("us "); return at != std::string::npos && sscanf(res[i].c_str() + at, "us %lf", &v) == 1 ? v : 0.0; };
  for (int r = 0; r < NROWS; ++r) {
    double lt_us = 0;
    for (size_t i = 0; i < items.size(); ++i) if (items[i].row == r && items[i].kern < 0) lt_us = us_of(i);
    bool head = false;
    for (size_t i = 0; i < items.size(); ++i) if (items[i].row == r) {
      if (!head) { printf("-- %s %s\n", rows[r].name, layout_name[rows[r].layout]); head = true; }
      const double u = us_of(i);
      const double fl = 2.0 * rows[r].batch * rows[r].M * (double)rows[r].N * rows[r].K;
      const double by = (double)rows[r].batch * (2.0 * rows[r].M * rows[r].K + 2.0 * rows[r].K * (double)rows[r].N + (double)out_bytes(rows[r].out) * rows[r].M * rows[r].N);
      if (u > 0) printf("   %-48s %9.2f us %7.1f TF %6.0f GB/s %6.1f%%%s\n", item_name(items[i]).c_str(), u, fl / u * 1e-6, by / u * 1e-3, lt_us > 0 ? 100 * lt_us / u : 0.0,
                        res[i].rfind("FAIL", 0) == 0 ? "  WRONG" : "");
      else printf("   %-48s %s\n", item_name(items[i]).c_str(), res[i].empty() ? "not run" : res[i].c_str());
      if (res[i].rfind("FAIL", 0) == 0) ++fails;
    }
  }
  printf("\n================ best correct kernel per row\n%-28s %-2s %10s %8s | %10s %8s | %6s  %s\n", "row", "", "lt us", "lt TF", "ours us", "ours TF", "ratio", "kernel");
  for (int r = 0; r < NROWS; ++r) {
    double lt_us = 0, b = 0; size_t bi = 0;
    for (size_t i = 0; i < items.size(); ++i) if (items[i].row == r) {
      const double u = us_of(i);
      if (items[i].kern < 0) lt_us = u;
      else if (u > 0 && res[i].rfind("ok", 0) == 0 && (b == 0 || u < b)) { b = u; bi = i; }
    }
    const double fl = 2.0 * rows[r].batch * rows[r].M * (double)rows[r].N * rows[r].K;
    if (lt_us > 0 || b > 0)
      printf("%-28s %-2s %10.2f %8.1f | %10.2f %8.1f | %6.3f  %s\n", rows[r].name, layout_name[rows[r].layout], lt_us, lt_us > 0 ? fl / lt_us * 1e-6 : 0.0, b, b > 0 ? fl / b * 1e-6 : 0.0,
             b > 0 && lt_us > 0 ? lt_us / b : 0.0, b > 0 ? item_name(items[bi]).c_str() : "-");
  }
  int done_n = 0;
  for (auto& r : res) done_n += !r.empty();
  const bool good = fails == 0 && done_n == (int)items.size();
  printf("\n%s: %d failures, %d of %zu items done, %.1f s\n", good ? "ALL OK" : fails ? "FAILURES" : "INCOMPLETE", fails, done_n, items.size(), now() - t0);
  return good ? 0 : 1;
}
