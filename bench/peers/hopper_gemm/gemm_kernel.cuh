// Warp-specialised sm_90a GEMM skeleton:  C[M,N] = epilogue(A[M,K] * B[K,N]), f32 accumulation.
//
// One text for every variant; all choices are the constexpr members of one configuration struct (see the end of the
// file for the struct a code generator emits, README.md for the encodings).  Only inline PTX, no headers: compiles
// under nvcc and under NVRTC (--gpu-architecture=sm_90a --std=c++17 [--fmad=false]).
//
//   thread block = PWG producer warpgroups + MATH_WGS math warpgroups (wgmma), persistent over output tiles
//   smem         = [STAGES x A tile][STAGES x B tile][per-warp staging of C][full barriers][empty barriers]
//                  [turn barriers]
//   operand tile = panels of (rows x 128 bytes), 128-byte swizzled: the 16-byte chunk c of row r lies at chunk
//                  position c ^ (r & 7).  K-major operand: rows are m (or n), 64 k per panel.  M-/N-major operand: rows
//                  are k, 64 m (n) per panel.  The TMA writes this layout, the generic loaders write the same.
#ifndef GEMM_KERNEL_CUH
#define GEMM_KERNEL_CUH

#ifndef HG_GUARD
#define HG_GUARD 0        // 1: a barrier wait longer than about 0.6 s ends the kernel with an illegal address (test builds)
#endif

namespace hg {

typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned short u16;

struct alignas(64) TensorMap { u64 opaque[16]; };      // the driver's CUtensorMap, 128 bytes

enum { K_MAJOR = 0, MN_MAJOR = 1 };                    // A_MAJOR, B_MAJOR
enum { LOAD_TMA = 0, LOAD_CP4 = 1, LOAD_LDG = 2 };     // A_LOAD, B_LOAD
enum { STORE_TMA = 0, STORE_W4 = 1, STORE_W2 = 2 };    // C_STORE: TMA; plain 4-byte words; plain 2-byte elements
enum { OUT_F32 = 0, OUT_BF16 = 1, OUT_F16 = 2 };

struct Args {
  int M, N, K;
  int tiles_m, tiles_n;           // in cluster tiles: (BM*CLUSTER_M) x (BN*CLUSTER_N)
  int group_m;                    // rows of cluster tiles walked together (L2 reuse)
  int batch, batch0;              // batch index b = (b % batch0, b / batch0)
  int splits, kb_per_split;       // K blocks of BK per split; splits == 1 without SPLITK
  u32 total;                      // tiles_m * tiles_n * batch * splits
  int a_mul0, a_mul1, b_mul0, b_mul1;   // tensor-map batch coordinates are multiplied by these (0 = broadcast)
  const void* a; long long lda, sa0, sa1;   // elements; read by the generic loaders only
  const void* b; long long ldb, sb0, sb1;
  void* c;       long long ldc, sc0, sc1;   // read by the plain stores and by the split-K reduction only
  int c_tma_cols;                 // STORE_TMA: a chunk that reaches past this column uses plain stores (see store_chunk)
  float* ws;     long long ldws;            // split-K partial sums [splits][batch][M][ldws]
  const float* bias;                        // operands of the fused epilogue
};

// ------------------------------------------------------------------------------------------------ PTX, one line each
__device__ __forceinline__ void mbar_init(u32 bar, u32 count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}
__device__ __forceinline__ void mbar_expect_tx(u32 bar, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
__device__ __forceinline__ void mbar_arrive(u32 bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}
// Without ".release.cluster": that form costs a MEMBAR.ALL.GPU per arrival.  The arrival publishes no writes, it only says
// that the tensor cores have read the stage, and wgmma.wait_group has shown that before.
__device__ __forceinline__ void mbar_arrive_cta(u32 bar, u32 cta) {     // the same barrier in CTA `cta` of the cluster
  asm volatile("{\n.reg .b32 ra;\nmapa.shared::cluster.u32 ra, %0, %1;\n"
               "mbarrier.arrive.shared::cluster.b64 _, [ra];\n}\n" ::"r"(bar), "r"(cta) : "memory");
}
__device__ __forceinline__ bool mbar_try(u32 bar, u32 parity) {
  u32 ok;
  asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}\n"
               : "=r"(ok) : "r"(bar), "r"(parity) : "memory");
  return ok != 0;
}
__device__ __forceinline__ void mbar_wait(u32 bar, u32 parity) {
#if HG_GUARD
  if (mbar_try(bar, parity)) return;
  const long long t0 = clock64();
#pragma unroll 1
  while (!mbar_try(bar, parity))      // a store to address 0 and not a trap: with a trap ptxas spills the accumulators
    if (clock64() - t0 > 1000000000ll) asm volatile("st.global.u32 [%0], %1;" ::"l"(0ull), "r"(bar) : "memory");
#else
  while (!mbar_try(bar, parity)) {}
#endif
}
__device__ __forceinline__ void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;" ::: "memory");
}
__device__ __forceinline__ void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}
__device__ __forceinline__ u32 cluster_rank() { u32 r; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> __device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}
template <int N> __device__ __forceinline__ void reg_dec() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N)); }
template <int N> __device__ __forceinline__ void reg_inc() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N)); }
__device__ __forceinline__ void prefetch_map(const TensorMap* m) {
  asm volatile("prefetch.tensormap [%0];" ::"l"((u64)m) : "memory");
}
__device__ __forceinline__ void cp_async4(u32 dst, const void* src, int bytes) {   // bytes < 4: the rest is zeroed
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(dst), "l"(src), "r"(bytes) : "memory");
}
__device__ __forceinline__ void cp_async4_full(u32 dst, const void* src) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(dst), "l"(src) : "memory");
}
__device__ __forceinline__ void cp_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> __device__ __forceinline__ void cp_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }
__device__ __forceinline__ uint4 ldg16(const void* p) {
  uint4 v;
  asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p) : "memory");
  return v;
}
__device__ __forceinline__ void sts16(u32 dst, u32 a, u32 b, u32 c, u32 d) {
  asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(dst), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}
__device__ __forceinline__ u32 lds4(u32 p) { u32 v; asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(p) : "memory"); return v; }
__device__ __forceinline__ u16 lds2(u32 p) { u16 v; asm volatile("ld.shared.u16 %0, [%1];" : "=h"(v) : "r"(p) : "memory"); return v; }

template <int RANK, bool MULTI>
__device__ __forceinline__ void tma_load(u32 dst, const TensorMap* map, u32 bar, int c0, int c1, int c2, int c3, u16 mask) {
  if constexpr (RANK == 2 && !MULTI)
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3,%4}], [%2];"
                 ::"r"(dst), "l"((u64)map), "r"(bar), "r"(c0), "r"(c1) : "memory");
  else if constexpr (RANK == 2)
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%3,%4}], [%2], %5;"
                 ::"r"(dst), "l"((u64)map), "r"(bar), "r"(c0), "r"(c1), "h"(mask) : "memory");
  else if constexpr (!MULTI)
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3,%4,%5,%6}], [%2];"
                 ::"r"(dst), "l"((u64)map), "r"(bar), "r"(c0), "r"(c1), "r"(c2), "r"(c3) : "memory");
  else
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%3,%4,%5,%6}], [%2], %7;"
                 ::"r"(dst), "l"((u64)map), "r"(bar), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "h"(mask) : "memory");
}
template <int RANK>
__device__ __forceinline__ void tma_store(const TensorMap* map, u32 src, int c0, int c1, int c2, int c3) {
  if constexpr (RANK == 2)
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2,%3}], [%1];"
                 ::"l"((u64)map), "r"(src), "r"(c0), "r"(c1) : "memory");
  else
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2,%3,%4,%5}], [%1];"
                 ::"l"((u64)map), "r"(src), "r"(c0), "r"(c1), "r"(c2), "r"(c3) : "memory");
}
__device__ __forceinline__ void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int N> __device__ __forceinline__ void bulk_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}
template <int OUT> __device__ __forceinline__ u32 pack2(float lo, float hi) {     // two 16-bit results in one register
  u32 r;
  if constexpr (OUT == OUT_F16) asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
  else                          asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
  return r;
}
__device__ __forceinline__ void stmatrix4(u32 dst, u32 a, u32 b, u32 c, u32 d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(dst), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}
__device__ __forceinline__ int imin(int a, int b) { return a < b ? a : b; }
__device__ __forceinline__ int imax(int a, int b) { return a > b ? a : b; }

#include "gemm_wgmma.cuh"

// ------------------------------------------------------------------------------------------- numbers that follow from C
template <class C> struct Plan {
  static constexpr int MATH_WGS = C::PINGPONG ? 2 : C::WG_M * C::WG_N;
  static constexpr int TILE_WGS = C::PINGPONG ? 1 : MATH_WGS;       // warpgroups that share one tile
  static constexpr int THREADS = 128 * (C::PWG + MATH_WGS);
  static constexpr int CLUSTER = C::CLUSTER_M * C::CLUSTER_N;
  static constexpr int WM = C::BM / C::WG_M, WN = C::BN / C::WG_N;  // one warpgroup's part of the tile
  static constexpr int MI = WM / 64;                                // wgmma rows of 64
  static constexpr int NACC = WN / 2;                               // accumulator registers per wgmma row
  static constexpr int A_BYTES = C::BM * C::BK * 2, B_BYTES = C::BN * C::BK * 2;
  static constexpr bool A_GEN = C::A_LOAD != LOAD_TMA, B_GEN = C::B_LOAD != LOAD_TMA, GEN = A_GEN || B_GEN;
  static constexpr bool ANY_TMA = !(A_GEN && B_GEN), ANY_CP4 = C::A_LOAD == LOAD_CP4 || C::B_LOAD == LOAD_CP4;
  static constexpr int TX_BYTES = (A_GEN ? 0 : A_BYTES) + (B_GEN ? 0 : B_BYTES);
  static constexpr int FULL_COUNT = (ANY_TMA ? 1 : 0) + (GEN ? 4 * C::PWG : 0);
  static constexpr int EMPTY_COUNT = 4 * TILE_WGS * CLUSTER;
  static constexpr int OUT_BYTES = C::OUT == OUT_F32 ? 4 : 2;
  static constexpr int CW = 128 / OUT_BYTES;                        // columns of one staged chunk (16 rows x 128 bytes)
  static constexpr int CBUF = C::C_STORE == STORE_TMA ? C::CBUF : 1;
  static constexpr int OFF_B = C::STAGES * A_BYTES, OFF_C = OFF_B + C::STAGES * B_BYTES;
  static constexpr int OFF_BAR = OFF_C + 4 * MATH_WGS * CBUF * 2048;
  static constexpr int OFF_ORDER = OFF_BAR + 16 * C::STAGES;        // ping-pong: one turn barrier per math warpgroup
  static constexpr int SMEM = OFF_ORDER + 16 + 1024;                // + slack to align the base to 1024
  static constexpr int C_RANK = C::SPLITK ? 4 : C::RANK;
  static constexpr bool SETREG = MATH_WGS >= 2;
  // setmaxnreg: the sum over all warps must fit what the block got at launch (168 x 384 or 128 x 512 registers)
  static constexpr bool ANY_LDG = C::A_LOAD == LOAD_LDG || C::B_LOAD == LOAD_LDG;
  static constexpr int PROD_REGS = C::PWG == 2 ? 72 : ANY_LDG ? 104 : GEN ? 56 : 40;
  static constexpr int MATH_REGS = C::PWG == 2 ? 184 : ANY_LDG ? 200 : GEN ? 224 : 232;
  static_assert(C::BK % 64 == 0 && WM % 64 == 0 && WN % CW == 0, "tile shape");
  static_assert(C::A_MAJOR == K_MAJOR || C::BM % 64 == 0, "M-major A comes in panels of 64");
  static_assert(C::B_MAJOR == K_MAJOR || WN % 64 == 0, "N-major B comes in panels of 64");
  static_assert(CLUSTER == 1 || !GEN, "multicast needs TMA operands");
  static_assert(!C::PINGPONG || C::WG_M * C::WG_N == 1, "ping-pong: one warpgroup owns a tile");
  static_assert(C::BM % ((C::A_MAJOR == K_MAJOR ? 8 : 64) * C::CLUSTER_N) == 0, "multicast slices of A");
  static_assert(C::BN % ((C::B_MAJOR == K_MAJOR ? 8 : 64) * C::CLUSTER_M) == 0, "multicast slices of B");
  static_assert(C::BM / C::CLUSTER_N <= 256 && C::BN / C::CLUSTER_M <= 256, "TMA box rows");
  static_assert(SMEM <= 232448, "shared memory");
  static_assert(C::RANK == 2 || C::RANK == 4, "");
  static_assert(!C::SPLITK || C::OUT == OUT_F32, "split-K writes f32 partial sums");
};

struct Tile { int m0, n0, batch, split, kb0, nkb; };

// Linear index -> tile.  Within one (batch, split): groups of group_m rows of tiles, column by column inside a group.
template <class C>
__device__ __forceinline__ Tile tile_at(u32 t, const Args& p, u32 rank) {
  Tile r;
  const u32 per = (u32)p.tiles_m * (u32)p.tiles_n;
  const u32 z = t / per, q = t - z * per;
  r.split = 0; r.batch = (int)z;
  if constexpr (C::SPLITK) { r.split = (int)(z % (u32)p.splits); r.batch = (int)(z / (u32)p.splits); }
  const u32 gsz = (u32)p.group_m * (u32)p.tiles_n;
  const u32 g = q / gsz, w = q - g * gsz;
  const u32 first = g * (u32)p.group_m;
  const u32 left = (u32)p.tiles_m - first;
  const u32 rows = left < (u32)p.group_m ? left : (u32)p.group_m;
  const u32 tn = w / rows, tm = first + (w - tn * rows);
  r.m0 = (int)(tm * C::CLUSTER_M + rank / C::CLUSTER_N) * C::BM;
  r.n0 = (int)(tn * C::CLUSTER_N + rank % C::CLUSTER_N) * C::BN;
  const int kblocks = (p.K + C::BK - 1) / C::BK;
  r.kb0 = C::SPLITK ? r.split * p.kb_per_split : 0;
  r.nkb = C::SPLITK ? imin(p.kb_per_split, kblocks - r.kb0) : kblocks;
  return r;
}

// ------------------------------------------------------------------------------------------------ generic operand loads
// Source: 2-D, rows of `ld` bytes, `ncols` 16-bit elements a row, `nrows` rows.  Panel p holds rows row0.. and columns
// col0 + 64p ..; outside the matrix: zeros.

// 4-byte asynchronous copies: base and ld multiples of 4 bytes.  One warp per row of 128 bytes.
template <int ROWS, int PANELS, int NT>
__device__ __forceinline__ void load_cp4(u32 dst, const char* base, long long ld, int row0, int col0, int nrows, int ncols, int tid) {
  constexpr int NW = NT / 32;
  const int w = tid >> 5, lane = tid & 31;
  const u32 sw0 = (u32)(w * 128) + ((((u32)lane >> 2) ^ (u32)(w & 7)) << 4) + ((u32)lane & 3u) * 4u;
  const long long step = (long long)NW * ld;
#pragma unroll 1
  for (int p = 0; p < PANELS; ++p) {
    const int col = col0 + 64 * p + 2 * lane;
    const char* src = base + (long long)(row0 + w) * ld + 2ll * col;
    const u32 d = dst + (u32)(p * ROWS * 128);
    if (row0 + ROWS <= nrows && col0 + 64 * p + 64 <= ncols) {        // the panel lies inside the matrix
#pragma unroll 8
      for (int i = 0; i < ROWS / NW; ++i) {
        const u32 sw = (NW % 8 == 0) ? sw0 : ((NW * i) & 4) ? (sw0 ^ 64u) : sw0;   // row & 7 flips bit 2 for NW = 4
        cp_async4_full(d + sw + (u32)(NW * i * 128), src);
        src += step;
      }
    } else {
      const int bytes = imax(0, imin(4, 2 * (ncols - col)));
#pragma unroll 2
      for (int i = 0; i < ROWS / NW; ++i) {
        const int n = row0 + w + NW * i < nrows ? bytes : 0;
        const u32 sw = (NW % 8 == 0) ? sw0 : ((NW * i) & 4) ? (sw0 ^ 64u) : sw0;
        cp_async4(d + sw + (u32)(NW * i * 128), n ? src : base, n);
        src += step;
      }
    }
  }
}

// Any 2-byte alignment: two aligned 16-byte loads around each 16-byte chunk, a shift in registers, one 16-byte store.
// A vector is read only when it holds a valid element.  The misalignment d is the same for all of a thread's chunks.
template <int ROWS, int PANELS, int NT, bool FULL>
__device__ __forceinline__ void load_ldg_part(u32 dst, const char* rowp, int d, long long ld, int row0, int col0, int nrows, int ncols, int tid) {
  constexpr int RSTEP = NT / 8, CHUNKS = ROWS * PANELS * 8 / NT, UMAX = NT == 128 ? 8 : 4, U = CHUNKS < UMAX ? CHUNKS : UMAX;
  static_assert(RSTEP % 8 == 0 && ROWS % RSTEP == 0 && CHUNKS % U == 0, "generic load shape");
  const int c = tid & 7, r = tid >> 3;
  const u32 out = dst + (u32)(r * 128) + (u32)((c ^ (r & 7)) << 4);
  const bool w2 = d & 8, w1 = d & 4;
  const u32 hs = (d & 2) ? 16u : 0u;
  const uint4 zero = make_uint4(0u, 0u, 0u, 0u);
#pragma unroll 1
  for (int i0 = 0; i0 < CHUNKS; i0 += U) {
    uint4 v0[U], v1[U];
#pragma unroll
    for (int u = 0; u < U; ++u) {
      const int flat = RSTEP * (i0 + u), panel = flat / ROWS, row = flat % ROWS;
      const char* src = rowp + (long long)row * ld + 128 * panel;
      if constexpr (FULL) {
        v0[u] = ldg16(src);
        v1[u] = d ? ldg16(src + 16) : zero;
      } else {
        int n = imax(0, imin(8, ncols - (col0 + 64 * panel + 8 * c)));
        n = row0 + r + row < nrows ? n : 0;
        v0[u] = n > 0 ? ldg16(src) : zero;
        v1[u] = d + 2 * n > 16 ? ldg16(src + 16) : zero;
      }
    }
    __syncwarp();                                      // keeps the compiler from sinking the loads to their uses
#pragma unroll
    for (int u = 0; u < U; ++u) {
      const u32 s[8] = {v0[u].x, v0[u].y, v0[u].z, v0[u].w, v1[u].x, v1[u].y, v1[u].z, v1[u].w};
      u32 a[6], b[5], o[4];
#pragma unroll
      for (int j = 0; j < 6; ++j) a[j] = w2 ? s[j + 2] : s[j];
#pragma unroll
      for (int j = 0; j < 5; ++j) b[j] = w1 ? a[j + 1] : a[j];
#pragma unroll
      for (int j = 0; j < 4; ++j) o[j] = __funnelshift_r(b[j], b[j + 1], hs);
      const int flat = RSTEP * (i0 + u), panel = flat / ROWS;
      if constexpr (!FULL) {
        const int n = ncols - (col0 + 64 * panel + 8 * c);       // valid elements from this chunk on; past them: zero
#pragma unroll
        for (int j = 0; j < 4; ++j) o[j] = n >= 2 * j + 2 ? o[j] : n == 2 * j + 1 ? (o[j] & 0xffffu) : 0u;
      }
      sts16(out + (u32)(flat * 128), o[0], o[1], o[2], o[3]);
    }
  }
}
template <int ROWS, int PANELS, int NT>
__device__ __forceinline__ void load_ldg(u32 dst, const char* base, long long ld, int row0, int col0, int nrows, int ncols, int tid) {
  const char* rowp = base + (long long)(row0 + (tid >> 3)) * ld + 2ll * (col0 + 8 * (tid & 7));
  const int d = (int)((u64)rowp & 15);
  if (row0 + ROWS <= nrows && col0 + 64 * PANELS <= ncols)
    load_ldg_part<ROWS, PANELS, NT, true>(dst, rowp - d, d, ld, row0, col0, nrows, ncols, tid);
  else
    load_ldg_part<ROWS, PANELS, NT, false>(dst, rowp - d, d, ld, row0, col0, nrows, ncols, tid);
}

template <int MAJOR, int LOAD, int BMN, int BK, int NT>
__device__ __forceinline__ void load_generic(u32 dst, const char* base, long long ld, int mn0, int k0, int MN, int K, int tid) {
  constexpr int ROWS = MAJOR == K_MAJOR ? BMN : BK, PANELS = MAJOR == K_MAJOR ? BK / 64 : BMN / 64;
  const int row0 = MAJOR == K_MAJOR ? mn0 : k0, col0 = MAJOR == K_MAJOR ? k0 : mn0;
  const int nrows = MAJOR == K_MAJOR ? MN : K, ncols = MAJOR == K_MAJOR ? K : MN;
  if constexpr (LOAD == LOAD_CP4) load_cp4<ROWS, PANELS, NT>(dst, base, ld, row0, col0, nrows, ncols, tid);
  else                            load_ldg<ROWS, PANELS, NT>(dst, base, ld, row0, col0, nrows, ncols, tid);
}

// ------------------------------------------------------------------------------------------------------- TMA operand loads
// The `share` CTAs of a cluster that need the same tile each fetch 1/share of it and multicast it to all of them.
template <int MAJOR, int BMN, int BK, int SHARE, int RANK>
__device__ __forceinline__ void load_tma(u32 dst, const TensorMap* map, u32 bar, int mn0, int k0, int c2, int c3, u32 part, u16 mask) {
  if constexpr (MAJOR == K_MAJOR) {
    constexpr int R = BMN / SHARE;
#pragma unroll
    for (int kp = 0; kp < BK / 64; ++kp)
      tma_load<RANK, (SHARE > 1)>(dst + (u32)(kp * BMN * 128) + part * (u32)(R * 128), map, bar, k0 + 64 * kp, mn0 + (int)part * R, c2, c3, mask);
  } else {
    constexpr int P = BMN / 64 / SHARE;
#pragma unroll
    for (int i = 0; i < P; ++i) {
      const u32 panel = part * P + i;
      tma_load<RANK, (SHARE > 1)>(dst + panel * (u32)(BK * 128), map, bar, mn0 + (int)panel * 64, k0, c2, c3, mask);
    }
  }
}

// ------------------------------------------------------------------------------------------------------------ the kernel
template <class C>
__device__ __forceinline__ void produce(u32 smem, const TensorMap* map_a, const TensorMap* map_b, const Args& p,
                                        u32 first, u32 step, u32 rank, int warp, int lane) {
  using P = Plan<C>;
  const u32 full = smem + P::OFF_BAR, empty = full + 8 * C::STAGES;
  const u32 rm = rank / C::CLUSTER_N, rn = rank % C::CLUSTER_N;
  const u16 mask_a = (u16)(((1u << C::CLUSTER_N) - 1u) << (rm * C::CLUSTER_N));     // CTAs of the same tile row
  u16 mask_b = 0;                                                                   // CTAs of the same tile column
#pragma unroll
  for (int i = 0; i < C::CLUSTER_M; ++i) mask_b |= (u16)(1u << (i * C::CLUSTER_N + rn));
  const bool lead = warp == 0 && lane == 0;
  if (!P::GEN && !lead) return;

  constexpr int LAG = P::ANY_CP4 ? (C::STAGES > 3 ? C::STAGES - 2 : C::STAGES - 1) : 0;   // stages of cp.async in flight
  u32 s = 0, ph = 0, done_s = 0;
  int pending = 0;
#pragma unroll 1
  for (u32 t = first; t < p.total; t += step) {
    const Tile tl = tile_at<C>(t, p, rank);
    const int b0 = tl.batch % p.batch0, b1 = tl.batch / p.batch0;
#pragma unroll 1
    for (int kb = 0; kb < tl.nkb; ++kb) {
      const int k0 = (tl.kb0 + kb) * C::BK;
      const u32 sa = smem + s * P::A_BYTES, sb = smem + P::OFF_B + s * P::B_BYTES;
      mbar_wait(empty + 8 * s, ph ^ 1u);
      if (P::ANY_TMA && lead) {
        mbar_expect_tx(full + 8 * s, P::TX_BYTES);
        if constexpr (!P::A_GEN)
          load_tma<C::A_MAJOR, C::BM, C::BK, C::CLUSTER_N, C::RANK>(sa, map_a, full + 8 * s, tl.m0, k0, b0 * p.a_mul0, b1 * p.a_mul1, rn, mask_a);
        if constexpr (!P::B_GEN)
          load_tma<C::B_MAJOR, C::BN, C::BK, C::CLUSTER_M, C::RANK>(sb, map_b, full + 8 * s, tl.n0, k0, b0 * p.b_mul0, b1 * p.b_mul1, rm, mask_b);
      }
      if constexpr (P::GEN) {
        const int tid = warp * 32 + lane;
        if constexpr (P::A_GEN)
          load_generic<C::A_MAJOR, C::A_LOAD, C::BM, C::BK, 128 * C::PWG>(sa, (const char*)p.a + 2 * (b0 * p.sa0 + b1 * p.sa1), 2 * p.lda, tl.m0, k0, p.M, p.K, tid);
        if constexpr (P::B_GEN)
          load_generic<C::B_MAJOR, C::B_LOAD, C::BN, C::BK, 128 * C::PWG>(sb, (const char*)p.b + 2 * (b0 * p.sb0 + b1 * p.sb1), 2 * p.ldb, tl.n0, k0, p.N, p.K, tid);
        if constexpr (P::ANY_CP4) {                    // a stage is handed over LAG stages later, when its copies are there
          cp_commit();
          if (++pending > LAG) {
            cp_wait<LAG>();
            fence_proxy_async();
            __syncwarp();
            if (lane == 0) mbar_arrive(full + 8 * done_s);
            done_s = done_s + 1 == C::STAGES ? 0 : done_s + 1;
            --pending;
          }
        } else {
          fence_proxy_async();                         // generic stores -> the tensor cores' reads
          __syncwarp();
          if (lane == 0) mbar_arrive(full + 8 * s);
        }
      }
      if (++s == C::STAGES) { s = 0; ph ^= 1u; }
    }
  }
  if constexpr (P::ANY_CP4) {
    cp_wait<0>();
    fence_proxy_async();
    __syncwarp();
    for (; pending > 0; --pending) {
      if (lane == 0) mbar_arrive(full + 8 * done_s);
      done_s = done_s + 1 == C::STAGES ? 0 : done_s + 1;
    }
  }
}

// Plain stores of one staged chunk.  WORDS: 4-byte words (base and rows aligned to 4 bytes), else 2-byte elements.
template <class C, bool WORDS, int UNROLL>
__device__ __forceinline__ void store_plain(u32 buf, const Args& p, int row, int col, long long c_off, int lane) {
  using P = Plan<C>;
  char* base = (char*)p.c + (c_off + (long long)row * p.ldc + col) * P::OUT_BYTES;
  const int rows = imin(16, p.M - row), cols = p.N - col;
#pragma unroll UNROLL
  for (int r = 0; r < 16; ++r) {
    if (r < rows) {
      char* g = base + (long long)r * p.ldc * P::OUT_BYTES;
      if constexpr (C::OUT == OUT_F32) {
        const u32 v = lds4(buf + r * 128 + (((lane >> 2) ^ (r & 7)) << 4) + (lane & 3) * 4);
        if (lane < cols) *(u32*)(g + 4 * lane) = v;
      } else if constexpr (WORDS) {
        const u32 v = lds4(buf + r * 128 + (((lane >> 2) ^ (r & 7)) << 4) + (lane & 3) * 4);
        if (2 * lane + 1 < cols) *(u32*)(g + 4 * lane) = v;
        else if (2 * lane < cols) *(u16*)(g + 4 * lane) = (u16)v;
      } else {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const int e = lane + 32 * h;
          const u16 v = lds2(buf + r * 128 + (((e >> 3) ^ (r & 7)) << 4) + (e & 7) * 2);
          if (e < cols) *(u16*)(g + 2 * e) = v;
        }
      }
    }
  }
}

// One staged chunk of a warp: 16 rows x 128 bytes, swizzled like the operands, then a TMA store or plain stores.
// A TMA store clips the inner dimension in units of 16 bytes: with N * element size no multiple of 16 it writes into the
// padding after column N.  The host then sets c_tma_cols = N and the last chunk of a row uses plain stores.
template <class C>
__device__ __forceinline__ void store_chunk(u32 buf, const TensorMap* map_c, const Args& p, const Tile& tl, int row, int col,
                                            long long c_off, int lane) {
  using P = Plan<C>;
  if constexpr (C::C_STORE == STORE_TMA) {
    const bool tma = C::SPLITK || col + P::CW <= p.c_tma_cols;     // the padding of the split-K workspace is scratch
    fence_proxy_async();
    __syncwarp();
    if (!tma) store_plain<C, true, 1>(buf, p, row, col, c_off, lane);
    __syncwarp();
    if (lane == 0) {
      const int c2 = C::SPLITK ? tl.batch : tl.batch % p.batch0, c3 = C::SPLITK ? tl.split : tl.batch / p.batch0;
      if (tma) tma_store<P::C_RANK>(map_c, buf, col, row, c2, c3);
      bulk_commit();                                   // an empty group too: bulk_wait_read counts the groups per buffer
    }
  } else {
    __syncwarp();
    store_plain<C, C::C_STORE == STORE_W4, 4>(buf, p, row, col, c_off, lane);
    __syncwarp();
  }
}

template <class C>
__device__ __forceinline__ void consume(u32 smem, const TensorMap* map_c, const Args& p, u32 first, u32 step, u32 rank, int mwarp, int lane) {
  using P = Plan<C>;
  using W = Wgmma<C::IN_F16, C::A_MAJOR, C::B_MAJOR>;
  const u32 full = smem + P::OFF_BAR, empty = full + 8 * C::STAGES;
  const int wg = mwarp >> 2, w4 = mwarp & 3;
  const int wm = C::PINGPONG ? 0 : wg / C::WG_N, wn = C::PINGPONG ? 0 : wg % C::WG_N;

  // Descriptors: low word = start address / 16 | LBO / 16 << 16; high word = SBO / 16 | 128-byte swizzle (1 << 62).
  constexpr u32 A_PANEL = C::A_MAJOR == K_MAJOR ? C::BM * 128 : C::BK * 128;        // bytes of one panel
  constexpr u32 B_PANEL = C::B_MAJOR == K_MAJOR ? C::BN * 128 : C::BK * 128;
  constexpr u32 A_LBO = C::A_MAJOR == K_MAJOR ? 1 : A_PANEL / 16, B_LBO = C::B_MAJOR == K_MAJOR ? 1 : B_PANEL / 16;
  constexpr u64 DESC_HI = ((u64)(1024 / 16) << 32) | ((u64)1 << 62);
  constexpr u32 A_MI = C::A_MAJOR == K_MAJOR ? 64 * 128 : A_PANEL;                  // 64 rows of A further
  const u32 a_wg = (u32)wm * P::MI * A_MI;
  const u32 b_wg = (u32)wn * (C::B_MAJOR == K_MAJOR ? (u32)P::WN * 128 : (u32)(P::WN / 64) * B_PANEL);
  // In a cluster the shared address of CTA r carries r in bits 24 and up: without the mask they land in the LBO field.
  const u32 a_lo0 = (((smem + a_wg) & 0x3ffffu) >> 4) | (A_LBO << 16);
  const u32 b_lo0 = (((smem + P::OFF_B + b_wg) & 0x3ffffu) >> 4) | (B_LBO << 16);

  float acc[P::MI][P::NACC];
#pragma unroll
  for (int i = 0; i < P::MI; ++i)
#pragma unroll
    for (int j = 0; j < P::NACC; ++j) acc[i][j] = 0.f;

  const u32 stage_c = smem + P::OFF_C + (u32)mwarp * (P::CBUF * 2048);
  u32 cbuf = 0;
  u32 s = 0, ph = 0;
  // Ping-pong: the warpgroups take turns in the main loop.  A parity wait sees one phase only, so a warpgroup must not
  // wait for a use of a stage before the use before it (a k-block of the other warpgroup's tile) has come.
  const u32 turn = smem + P::OFF_ORDER;
  u32 turn_ph = wg == 0 ? 1u : 0u;                     // a fresh barrier passes a wait for parity 1: warpgroup 0 begins
  u32 t = first;
  if constexpr (C::PINGPONG) {
    if (wg == 1) {                                     // the other warpgroup takes the first tile: step over its stages
      if (t < p.total) s += (u32)tile_at<C>(t, p, rank).nkb;
      ph ^= (s / C::STAGES) & 1u; s %= C::STAGES;
      t += step;
    }
  }
  auto release = [&](u32 st) {                         // this warp has read stage st: tell every CTA that writes into it
    if constexpr (P::CLUSTER == 1) { if (lane == 0) mbar_arrive(empty + 8 * st); }
    else                           { if (lane < P::CLUSTER) mbar_arrive_cta(empty + 8 * st, (u32)lane); }
  };

#pragma unroll 1
  while (t < p.total) {
    const Tile tl = tile_at<C>(t, p, rank);
    u32 prev = 0;
#pragma unroll
    for (int i = 0; i < P::MI; ++i)
#pragma unroll
      for (int j = 0; j < P::NACC; ++j) asm volatile("" : "+f"(acc[i][j])::"memory");
    if constexpr (C::PINGPONG) { mbar_wait(turn + 8 * (u32)wg, turn_ph); turn_ph ^= 1u; }
#pragma unroll 1
    for (int kb = 0; kb < tl.nkb; ++kb) {
      mbar_wait(full + 8 * s, ph);
      const u32 a_lo = a_lo0 + s * (P::A_BYTES / 16), b_lo = b_lo0 + s * (P::B_BYTES / 16);
      wgmma_fence();
#pragma unroll
      for (int ks = 0; ks < C::BK / 16; ++ks) {
        const u32 ao = (C::A_MAJOR == K_MAJOR ? (ks / 4) * A_PANEL + (ks % 4) * 32 : ks * 2048) / 16;
        const u32 bo = (C::B_MAJOR == K_MAJOR ? (ks / 4) * B_PANEL + (ks % 4) * 32 : ks * 2048) / 16;
#pragma unroll
        for (int i = 0; i < P::MI; ++i)
          W::mma(acc[i], DESC_HI | (u64)(a_lo + ao + i * (A_MI / 16)), DESC_HI | (u64)(b_lo + bo), kb > 0 || ks > 0);
      }
      wgmma_commit();
      wgmma_wait<1>();                                 // the previous k-block's products are done
      if (kb > 0) release(prev);
      prev = s;
      if (++s == C::STAGES) { s = 0; ph ^= 1u; }
    }
    if constexpr (C::PINGPONG) { if (lane == 0) mbar_arrive(turn + 8 * (u32)(wg ^ 1)); }   // all k-blocks of this tile came
    wgmma_wait<0>();
#pragma unroll
    for (int i = 0; i < P::MI; ++i)
#pragma unroll
      for (int j = 0; j < P::NACC; ++j) asm volatile("" : "+f"(acc[i][j])::"memory");
    release(prev);

    // Epilogue.  acc[i][4g + {0,1}]: row lane/4, columns 8g + 2*(lane%4) + {0,1}; {2,3}: 8 rows below.
    const long long c_off = (long long)(tl.batch % p.batch0) * p.sc0 + (long long)(tl.batch / p.batch0) * p.sc1;
#pragma unroll
    for (int i = 0; i < P::MI; ++i) {
      const int row = tl.m0 + wm * P::WM + 64 * i + 16 * w4;
      if (row < p.M) {
#pragma unroll
        for (int ch = 0; ch < P::WN / P::CW; ++ch) {
          const int col = tl.n0 + wn * P::WN + ch * P::CW;
          if (col < p.N) {
            const u32 buf = stage_c + cbuf * 2048;
            if constexpr (C::C_STORE == STORE_TMA) {
              if (lane == 0) bulk_wait_read<P::CBUF - 1>();
              __syncwarp();
              cbuf = cbuf + 1 == P::CBUF ? 0 : cbuf + 1;
            }
            const int r0 = imin(row + (lane >> 2), p.M - 1), r1 = imin(row + (lane >> 2) + 8, p.M - 1);
            constexpr int G = P::CW / 8;               // groups of 8 columns
            float v[4 * G];
#pragma unroll
            for (int g = 0; g < G; ++g) {
              const int c0 = col + 8 * g + 2 * (lane & 3);
              const int ca = imin(c0, p.N - 1), cb = imin(c0 + 1, p.N - 1);
              const float* x = &acc[i][4 * (G * ch + g)];
              if constexpr (C::SPLITK) {               // partial sums: the reduction applies the epilogue
                v[4 * g] = x[0]; v[4 * g + 1] = x[1]; v[4 * g + 2] = x[2]; v[4 * g + 3] = x[3];
              } else {
                v[4 * g + 0] = C::epilogue(x[0], r0, ca, tl.batch, p);
                v[4 * g + 1] = C::epilogue(x[1], r0, cb, tl.batch, p);
                v[4 * g + 2] = C::epilogue(x[2], r1, ca, tl.batch, p);
                v[4 * g + 3] = C::epilogue(x[3], r1, cb, tl.batch, p);
              }
            }
            if constexpr (C::OUT == OUT_F32) {
              const u32 q = buf + (u32)(lane >> 2) * 128 + (u32)(lane & 1) * 8;
#pragma unroll
              for (int g = 0; g < G; ++g) {
                const u32 d = q + ((((u32)(2 * g) + (((u32)lane >> 1) & 1u)) ^ ((u32)lane >> 2)) << 4);
                asm volatile("st.shared.v2.f32 [%0], {%1,%2};" ::"r"(d), "f"(v[4 * g]), "f"(v[4 * g + 1]) : "memory");
                asm volatile("st.shared.v2.f32 [%0], {%1,%2};" ::"r"(d + 1024), "f"(v[4 * g + 2]), "f"(v[4 * g + 3]) : "memory");
              }
            } else {                                   // 8x8 blocks: lanes 0-7 give the rows of block 0, 8-15 of block 1, ...
              const u32 mat = (u32)lane >> 3, r8 = (u32)lane & 7u;
              const u32 q = buf + ((mat & 1u) * 8u + r8) * 128u;
              const u32 x = (mat >> 1) ^ r8;
#pragma unroll
              for (int g = 0; g < G; g += 2)
                stmatrix4(q + ((x ^ (u32)g) << 4), pack2<C::OUT>(v[4 * g], v[4 * g + 1]), pack2<C::OUT>(v[4 * g + 2], v[4 * g + 3]),
                          pack2<C::OUT>(v[4 * g + 4], v[4 * g + 5]), pack2<C::OUT>(v[4 * g + 6], v[4 * g + 7]));
            }
            store_chunk<C>(buf, map_c, p, tl, row, col, c_off, lane);
          }
        }
      }
    }
    t += step;
    if constexpr (C::PINGPONG) {
      if (t < p.total) {                               // step over the other warpgroup's tile
        s += (u32)tile_at<C>(t, p, rank).nkb;
        ph ^= (s / C::STAGES) & 1u; s %= C::STAGES;
      }
      t += step;
    }
  }
  if constexpr (C::C_STORE == STORE_TMA) { if (lane == 0) bulk_wait_read<0>(); }
}

template <class C>
__device__ __forceinline__ void gemm_body(const TensorMap* map_a, const TensorMap* map_b, const TensorMap* map_c, const Args& p) {
  using P = Plan<C>;
  extern __shared__ __align__(1024) unsigned char hg_smem[];
  const u32 smem = ((u32)__cvta_generic_to_shared(hg_smem) + 1023u) & ~1023u;
  const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x >> 5, 0), lane = (int)threadIdx.x & 31;
  const u32 rank = P::CLUSTER > 1 ? cluster_rank() : 0u;
  const u32 first = blockIdx.x / P::CLUSTER, step = gridDim.x / P::CLUSTER;

  if (threadIdx.x == 0) {
    if constexpr (!P::A_GEN) prefetch_map(map_a);
    if constexpr (!P::B_GEN) prefetch_map(map_b);
    if constexpr (C::C_STORE == STORE_TMA) prefetch_map(map_c);
#pragma unroll
    for (int i = 0; i < C::STAGES; ++i) {
      mbar_init(smem + P::OFF_BAR + 8 * i, P::FULL_COUNT);
      mbar_init(smem + P::OFF_BAR + 8 * (C::STAGES + i), P::EMPTY_COUNT);
    }
    if constexpr (C::PINGPONG) { mbar_init(smem + P::OFF_ORDER, 4); mbar_init(smem + P::OFF_ORDER + 8, 4); }
    fence_barrier_init();
  }
  __syncthreads();
  if constexpr (P::CLUSTER > 1) cluster_sync();        // no remote arrival before the barriers exist
  if constexpr (C::SPLITK) asm volatile("griddepcontrol.launch_dependents;" ::: "memory");

  if (warp < 4 * C::PWG) {
    if constexpr (P::SETREG) reg_dec<P::PROD_REGS>();
    produce<C>(smem, map_a, map_b, p, first, step, rank, warp, lane);
    __syncwarp();
    if constexpr (P::CLUSTER > 1) cluster_sync();      // shared memory must outlive the peers' arrivals and multicasts
  } else {
    if constexpr (P::SETREG) reg_inc<P::MATH_REGS>();
    consume<C>(smem, map_c, p, first, step, rank, warp - 4 * C::PWG, lane);
    __syncwarp();
    if constexpr (P::CLUSTER > 1) cluster_sync();
  }
}

// Split-K second pass: sums the partial results in the order of the splits, applies the epilogue, writes C.
// One thread handles 4 columns of one row.  C rows aligned to 4 elements: one vector store, else element stores.
template <class C, int OUT>
__device__ __forceinline__ void reduce_body(const Args& p) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  const int quads = (p.N + 3) / 4;
  const long long total = (long long)p.batch * p.M * quads, slice = (long long)p.batch * p.M * p.ldws;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < total; i += (long long)gridDim.x * blockDim.x) {
    const int q = (int)(i % quads);
    const long long br = i / quads;
    const int row = (int)(br % p.M), b = (int)(br / p.M), col = 4 * q;
    const float* w = p.ws + br * p.ldws + col;
    float4 s = *(const float4*)w;
#pragma unroll 4
    for (int k = 1; k < p.splits; ++k) {
      const float4 x = *(const float4*)(w + k * slice);
      s.x += x.x; s.y += x.y; s.z += x.z; s.w += x.w;
    }
    const int n1 = p.N - 1;
    const float v[4] = {C::epilogue(s.x, row, col, b, p), C::epilogue(s.y, row, imin(col + 1, n1), b, p),
                        C::epilogue(s.z, row, imin(col + 2, n1), b, p), C::epilogue(s.w, row, imin(col + 3, n1), b, p)};
    const long long off = (b % p.batch0) * p.sc0 + (b / p.batch0) * p.sc1 + (long long)row * p.ldc + col;
    if constexpr (OUT == OUT_F32) {
      float* c = (float*)p.c + off;
      if (col + 3 < p.N && ((u64)c & 15) == 0) *(float4*)c = make_float4(v[0], v[1], v[2], v[3]);
      else for (int j = 0; j < 4; ++j) if (col + j < p.N) c[j] = v[j];
    } else {
      const u32 lo = pack2<OUT>(v[0], v[1]), hi = pack2<OUT>(v[2], v[3]);
      u16* c = (u16*)p.c + off;
      if (col + 3 < p.N && ((u64)c & 7) == 0) *(uint2*)c = make_uint2(lo, hi);
      else {
        const u16 e[4] = {(u16)lo, (u16)(lo >> 16), (u16)hi, (u16)(hi >> 16)};
#pragma unroll
        for (int j = 0; j < 4; ++j) if (col + j < p.N) c[j] = e[j];
      }
    }
  }
}

template <class C>
__global__ void __launch_bounds__(Plan<C>::THREADS, 1)
gemm_kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
            const __grid_constant__ TensorMap map_c, const __grid_constant__ Args p) {
  gemm_body<C>(&map_a, &map_b, &map_c, p);
}
template <class C, int OUT>
__global__ void __launch_bounds__(256) reduce_kernel(const __grid_constant__ Args p) { reduce_body<C, OUT>(p); }

}  // namespace hg

// ------------------------------------------------------------------------------ what a code generator emits, complete
#ifdef GEMM_STANDALONE
#ifndef EPILOGUE
#define EPILOGUE(acc, row, col) (acc)                  // may use p (Args) and batch; row and col are in range
#endif
struct GemmConfig {
  static constexpr int IN_F16 = 0, OUT = hg::OUT_BF16;
  static constexpr int BM = 128, BN = 256, BK = 64, STAGES = 4;
  static constexpr int WG_M = 2, WG_N = 1, PINGPONG = 0;     // math warpgroups across the tile
  static constexpr int CLUSTER_M = 2, CLUSTER_N = 1;
  static constexpr int A_MAJOR = hg::K_MAJOR, B_MAJOR = hg::MN_MAJOR;
  static constexpr int A_LOAD = hg::LOAD_TMA, B_LOAD = hg::LOAD_TMA, C_STORE = hg::STORE_TMA;
  static constexpr int RANK = 2, SPLITK = 0, PWG = 1, CBUF = 2;
  static __device__ __forceinline__ float epilogue(float acc, int row, int col, int batch, const hg::Args& p) {
    return EPILOGUE(acc, row, col);
  }
};
extern "C" __global__ void __launch_bounds__(hg::Plan<GemmConfig>::THREADS, 1)
gemm(const __grid_constant__ hg::TensorMap map_a, const __grid_constant__ hg::TensorMap map_b,
     const __grid_constant__ hg::TensorMap map_c, const __grid_constant__ hg::Args p) {
  hg::gemm_body<GemmConfig>(&map_a, &map_b, &map_c, p);
}
#endif
#endif
