// Hopper (sm_90a) attention kernels: forward, backward dQ, backward dK/dV.
// Self-contained: no headers but attn_wgmma.cuh (generated), so NVRTC takes it as it is.
// Each kernel is a skeleton over a constexpr configuration struct (see FwdCfg / BwdDqCfg / BwdDkvCfg at the end of
// this file) and over a user-supplied score modification (struct NoMod shows the interface).
// Layouts, barrier protocol and register budgets: README.md.
#pragma once
namespace attn {
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
}  // namespace attn
#include "attn_wgmma.cuh"
namespace attn {

struct alignas(64) TMap { u64 w[16]; };            // binary image of a CUtensorMap
template <bool B> struct bool_c { static constexpr bool value = B; };
constexpr float LOG2E = 1.4426950408889634f;
constexpr float LN2 = 0.6931471805599453f;
#define ATTN_DI __device__ __forceinline__
#define ATTN_INF __int_as_float(0x7f800000)

// ------------------------------------------------------------------------------------------------ primitives
ATTN_DI u32 smem_u32(const void* p) { return (u32)__cvta_generic_to_shared(p); }
ATTN_DI void mbar_init(u32 a, u32 n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(a), "r"(n) : "memory"); }
ATTN_DI void mbar_expect(u32 a, u32 bytes) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(a), "r"(bytes) : "memory"); }
ATTN_DI void mbar_arrive(u32 a) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(a) : "memory"); }
ATTN_DI bool mbar_try(u32 a, u32 parity) {
  u32 ok;
  asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}\n"
               : "=r"(ok) : "r"(a), "r"(parity) : "memory");
  return ok != 0;
}
ATTN_DI void mbar_wait(u32 a, u32 parity) {
#ifdef ATTN_WATCHDOG   // a lost arrival traps (launch failure) instead of hanging the device
  u32 n = 0;
  while (!mbar_try(a, parity)) { if (++n > (1u << 22)) asm volatile("trap;"); }
#else
  while (!mbar_try(a, parity)) { }
#endif
}
ATTN_DI void tma4(u32 dst, const TMap* m, u32 bar, int c0, int c1, int c2, int c3, u64 pol) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint"
               " [%0], [%1, {%3, %4, %5, %6}], [%2], %7;"
               ::"r"(dst), "l"(m), "r"(bar), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "l"(pol) : "memory");
}
ATTN_DI void tma4(u32 dst, const TMap* m, u32 bar, int c0, int c1, int c2, int c3) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];"
               ::"r"(dst), "l"(m), "r"(bar), "r"(c0), "r"(c1), "r"(c2), "r"(c3) : "memory");
}
ATTN_DI void bulk1(u32 dst, const void* src, u32 bytes, u32 bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               ::"r"(dst), "l"(src), "r"(bytes), "r"(bar) : "memory");
}
ATTN_DI u64 policy_first() { u64 r; asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(r)); return r; }
ATTN_DI u64 policy_last() { u64 r; asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(r)); return r; }
ATTN_DI u64 policy_normal() { u64 r; asm volatile("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(r)); return r; }
ATTN_DI void prefetch_map(const TMap* m) { asm volatile("prefetch.tensormap [%0];" ::"l"(m) : "memory"); }
template <int R> ATTN_DI void reg_dec() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(R)); }
template <int R> ATTN_DI void reg_inc() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(R)); }
ATTN_DI void bar_sync(int id, int n) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(n) : "memory"); }
ATTN_DI void bar_arrive(int id, int n) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(n) : "memory"); }
ATTN_DI void wg_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
ATTN_DI void wg_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> ATTN_DI void wg_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }
template <int N> ATTN_DI void pin(float (&r)[N]) {       // ties registers to this point of the instruction stream
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+f"(r[i])::"memory");
}
template <int N> ATTN_DI void pin(u32 (&r)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+r"(r[i])::"memory");
}
// A store that never happens (x is never negative), predicated on x: ptxas keeps it on its side of a wgmma wait, and with it
// the instructions that feed x. Without it ptxas sinks the exponentials below the wait of the product they should overlap.
ATTN_DI void hold(float x, u32 addr) {
  asm volatile("{\n.reg .pred p;\nsetp.lt.f32 p, %0, 0f00000000;\n@p st.shared.f32 [%1], %0;\n}\n" ::"f"(x), "r"(addr) : "memory");
}
template <int N> ATTN_DI void hold_all(float (&r)[N], int never, u32 addr) {   // the same for a whole array; never >= 0
#pragma unroll
  for (int i = 0; i < N; i += 4)
    asm volatile("{\n.reg .pred p;\nsetp.lt.s32 p, %0, 0;\n@p st.shared.v4.f32 [%1], {%2, %3, %4, %5};\n}\n"
                 ::"r"(never), "r"(addr), "f"(r[i]), "f"(r[i + 1]), "f"(r[i + 2]), "f"(r[i + 3]) : "memory");
}
ATTN_DI float ex2(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
ATTN_DI float lg2(float x) { float y; asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
template <bool F16> ATTN_DI u32 pack2(float lo, float hi) {
  u32 r;
  if constexpr (F16) asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
  else asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
  return r;
}
template <bool F16> ATTN_DI void unpack2(u32 a, float& lo, float& hi) {
  if constexpr (F16) asm("{.reg .f16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h;}" : "=f"(lo), "=f"(hi) : "r"(a));
  else { lo = __uint_as_float(a << 16); hi = __uint_as_float(a & 0xffff0000u); }
}
template <bool F16> ATTN_DI float dot2(u32 a, u32 b, float acc) {  // acc + a.lo*b.lo + a.hi*b.hi
  float al, ah, bl, bh;
  unpack2<F16>(a, al, ah); unpack2<F16>(b, bl, bh);
  return fmaf(ah, bh, fmaf(al, bl, acc));
}
ATTN_DI void lds2(u32 a, float& x, float& y) { asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x), "=f"(y) : "r"(a) : "memory"); }

// ------------------------------------------------------------------------------------------------ descriptors
// Every operand tile is a row of panels; a panel is [rows][64 elements], 128 bytes a row, 128-byte swizzle, 1024-aligned.
// Low word: start>>4 (bits 0-13), leading offset>>4 (bits 16-29). High word: stride offset>>4 (0-13), swizzle 128B = 1<<30.
constexpr u32 DESC_HI = 64u | (1u << 30);                    // 8-row groups lie 1024 bytes apart
ATTN_DI u64 desc(u32 lo) { return ((u64)DESC_HI << 32) | lo; }
ATTN_DI u32 desc_k(u32 addr) { return (addr >> 4) | (1u << 16); }                                // contiguous axis = k
ATTN_DI u32 desc_mn(u32 addr, u32 panel_bytes) { return (addr >> 4) | ((panel_bytes >> 4) << 16); }  // contiguous axis = n

// acc[64 x N] = A[64 x 16*KS] * B[N x 16*KS]^T, both k-contiguous in shared memory (panel strides in bytes).
template <int N, int KS, int APANEL, int BPANEL, bool F16>
ATTN_DI void gemm_ss(float (&acc)[N / 2], u32 a, u32 b) {
  pin(acc); wg_fence();
#pragma unroll
  for (int k = 0; k < KS; ++k)
    wgmma_ss<F16, 0>(acc, desc(a + (k / 4) * (APANEL / 16) + (k % 4) * 2), desc(b + (k / 4) * (BPANEL / 16) + (k % 4) * 2), k != 0);
  wg_commit(); pin(acc);
}
// acc[64 x N] += A[64 x 16*KS] (packed fragments in registers) * B[16*KS x N], B n-contiguous in shared memory.
template <int N, int KS, bool F16>
ATTN_DI void gemm_rs(float (&acc)[N / 2], u32 (&a)[KS * 4], u32 b) {
  pin(a); pin(acc); wg_fence();
#pragma unroll
  for (int k = 0; k < KS; ++k)
    wgmma_rs<F16, 1>(acc, a[4 * k], a[4 * k + 1], a[4 * k + 2], a[4 * k + 3], desc(b + k * 128), 1);
  wg_commit(); pin(acc);
}

// ------------------------------------------------------------------------------------------------ small pieces
template <int N> ATTN_DI void zero(float (&r)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) r[i] = 0.f;
}
ATTN_DI float quad_max(float v) { v = fmaxf(v, __shfl_xor_sync(~0u, v, 1)); return fmaxf(v, __shfl_xor_sync(~0u, v, 2)); }
ATTN_DI float quad_sum(float v) { v += __shfl_xor_sync(~0u, v, 1); return v + __shfl_xor_sync(~0u, v, 2); }

// Writes 64 x DP accumulators (rows scaled by s0 / s1) as 16-bit rows: 16-byte stores after a 4x4 transpose in each quad.
template <int D, int DP, bool F16>
ATTN_DI void store_rows(float (&acc)[DP / 2], float s0, float s1, char* base, i64 row_stride, int row, int nrows, int lane) {
  const int c = lane & 3;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int r = row + 8 * h;
    const float s = h ? s1 : s0;
    char* p = base + (i64)r * row_stride * 2;
#pragma unroll
    for (int q = 0; q < DP / 32; ++q) {
      u32 a[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) a[k] = pack2<F16>(acc[16 * q + 4 * k + 2 * h] * s, acc[16 * q + 4 * k + 2 * h + 1] * s);
#pragma unroll
      for (int k = 0; k < 4; k += 2) {
        u32 y = __shfl_xor_sync(~0u, (c & 1) ? a[k] : a[k + 1], 1);
        if (c & 1) a[k] = y; else a[k + 1] = y;
      }
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        u32 y = __shfl_xor_sync(~0u, (c & 2) ? a[k] : a[k + 2], 2);
        if (c & 2) a[k] = y; else a[k + 2] = y;
      }
      const int col = 32 * q + 8 * c;
      if (r < nrows && (D == DP || col < D))
        asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(p + col * 2), "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]) : "memory");
    }
  }
}

// Tile number -> (block, head). Non-causal: blocks of one head are neighbours. Causal: heads in groups (their K/V stay in
// L2), inside a group the expensive blocks first (desc: block numbers fall).
template <bool CAUSAL, bool DESC>
ATTN_DI void tile_coord(int t, int nblk, int nhead, int hgroup, int& blk, int& head) {
  if constexpr (!CAUSAL) { head = t / nblk; blk = t - head * nblk; }
  else {
    const int per = hgroup * nblk, g = t / per, r = t - g * per;
    const int hs = min(hgroup, nhead - g * hgroup), bi = r / hs;
    head = g * hgroup + (r - bi * hs);
    blk = DESC ? nblk - 1 - bi : bi;
  }
}

// Threefry-2x32, 20 rounds: two 32-bit words for one 64-bit counter.
ATTN_DI void threefry2x32(u32 k0, u32 k1, u32 x0, u32 x1, u32& o0, u32& o1) {
  const u32 ks[3] = {k0, k1, k0 ^ k1 ^ 0x1BD11BDAu};
  const int rot[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  x0 += ks[0]; x1 += ks[1];
#pragma unroll
  for (int i = 0; i < 5; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      x0 += x1;
      x1 = __funnelshift_l(x1, x1, rot[(i & 1) * 4 + j]);
      x1 ^= x0;
    }
    x0 += ks[(i + 1) % 3]; x1 += ks[(i + 2) % 3] + (u32)(i + 1);
  }
  o0 = x0; o1 = x1;
}
// Dropout stream: element (b, h, i, j) takes word (j & 1) of counter ((b*Hq + h)*Sq + i, j >> 1); it is kept when word >= thresh.
struct Dropout { u32 k0, k1, thresh; float rescale; };
ATTN_DI void drop_words(const Dropout& d, u32 row, u32 jpair, u32& even, u32& odd) { threefry2x32(d.k0, d.k1, row, jpair, even, odd); }

// User-supplied score modification. score() gets scale*q.k (natural units) and returns the modified score; dscore() is the
// derivative of score() with respect to its first argument at the same point (1 for an additive bias). i and j are clamped
// to the last row and column for padding elements, whose results are dropped.
struct NoMod {
  static constexpr bool ON = false;
  static ATTN_DI float score(float s, int, int, int, int, const void*) { return s; }
  static ATTN_DI float dscore(float, int, int, int, int, const void*) { return 1.f; }
};

// ------------------------------------------------------------------------------------------------ parameters
struct FwdParams {
  void* o; float* lse; int* sched; const void* aux;   // o: 16-bit, lse: [B][Hq][Sq] natural log, sched: one zeroed int
  i64 o_sb, o_sh, o_ss;                               // strides of o in elements
  int B, Hq, gq, Sq, Skv;                             // gq = Hq / Hkv
  int nblk, ntiles, hgroup, coff;                     // query blocks; B*Hq*nblk; heads per L2 group; causal: j <= i + coff
  float scale;                                        // > 0
  Dropout drop;
};
struct BwdParams {
  const void *o, *dout; const float* lse; const void* aux;
  float *lse2, *dsum; int sqpad;                      // workspace [B*Hq][sqpad], written by dQ kernel, read by dK/dV kernel;
                                                      // sqpad: multiple of 4, >= Sq rounded up to BM of dQ and to BQ of dK/dV
  void *dq, *dk, *dv; int* sched;
  i64 o_sb, o_sh, o_ss, do_sb, do_sh, do_ss, dq_sb, dq_sh, dq_ss, dk_sb, dk_sh, dk_ss, dv_sb, dv_sh, dv_ss;
  int B, Hq, Hkv, gq, Sq, Skv;
  int nblk, ntiles, hgroup, coff;
  float scale;
  Dropout drop;
};

// ------------------------------------------------------------------------------------------------ tile scheduler
// DYN: the producer draws tiles from a global counter and hands them to the consumers through two shared slots.
// The last draw resets the counter, so it need only be zero before the first launch ever.
struct Slots { u32 full, empty, val; };               // addresses: full[2], empty[2] barriers, val[2] ints
ATTN_DI int sched_draw(int* ctr, int ntiles) {
  const int old = atomicAdd(ctr, 1);
  if (old == ntiles - 1) atomicExch(ctr, 0);
  return (int)gridDim.x + old;
}
ATTN_DI void sched_put(const Slots& s, u32 n, int tile) {
  const u32 i = n & 1;
  mbar_wait(s.empty + 8 * i, ((n >> 1) & 1) ^ 1);
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(s.val + 4 * i), "r"(tile) : "memory");
  mbar_arrive(s.full + 8 * i);
}
ATTN_DI int sched_get(const Slots& s, u32 n, int lane) {
  const u32 i = n & 1;
  int t;
  mbar_wait(s.full + 8 * i, (n >> 1) & 1);
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(t) : "r"(s.val + 4 * i) : "memory");
  __syncwarp();
  if (lane == 0) mbar_arrive(s.empty + 8 * i);
  return __shfl_sync(~0u, t, 0);
}
template <int ST> struct Ring {                       // stage and phase of a ring of ST buffers
  u32 s = 0, ph = 0;
  ATTN_DI void next() { if (++s == ST) { s = 0; ph ^= 1; } }
};

// ================================================================================================ forward
template <class C>
__global__ void __launch_bounds__(C::THREADS, 1)
attn_fwd(const __grid_constant__ TMap mq, const __grid_constant__ TMap mk, const __grid_constant__ TMap mv,
         const __grid_constant__ FwdParams p) {
  constexpr int D = C::D, DP = C::DP, BM = C::BM, BN = C::BN, NWG = C::NWG, ST = C::STAGES;
  constexpr bool F16 = C::F16, CAUSAL = C::CAUSAL;
  constexpr int NPAN = DP / 64, QPANEL = BM * 128, KPANEL = BN * 128;
  constexpr u32 QB = NPAN * QPANEL, KB = NPAN * KPANEL;
  using Mod = typename C::Mod;
  extern __shared__ unsigned char smem_raw[];
  const u32 base = (smem_u32(smem_raw) + 1023u) & ~1023u;
  const u32 sQ = base, sK = sQ + QB, sV = sK + ST * KB, bars = sV + ST * KB;
  const u32 q_full = bars, q_empty = bars + 8, k_full = bars + 16, k_empty = k_full + 8 * ST, v_full = k_empty + 8 * ST,
            v_empty = v_full + 8 * ST;
  const Slots slots = {v_empty + 8 * ST, v_empty + 8 * ST + 16, v_empty + 8 * ST + 32};
  const int warp = __shfl_sync(~0u, (int)threadIdx.x >> 5, 0), wg = warp >> 2, lane = threadIdx.x & 31;

  if (threadIdx.x == 0) {
    mbar_init(q_full, 1); mbar_init(q_empty, NWG * 4);
    for (int i = 0; i < ST; ++i) {
      mbar_init(k_full + 8 * i, 1); mbar_init(k_empty + 8 * i, NWG * 4);
      mbar_init(v_full + 8 * i, 1); mbar_init(v_empty + 8 * i, NWG * 4);
    }
    for (int i = 0; i < 2; ++i) { mbar_init(slots.full + 8 * i, 1); mbar_init(slots.empty + 8 * i, NWG * 4); }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();

  if (wg == 0) {
    // ---------------------------------------------------------------- producer: one thread drives the copy engine
    reg_dec<C::REG_PROD>();
    if (threadIdx.x == 0) {
      prefetch_map(&mq); prefetch_map(&mk); prefetch_map(&mv);
      const u64 pol_q = policy_first(), pol_kv = C::KV_LAST ? policy_last() : policy_normal();
      Ring<ST> rk, rv;
      u32 qph = 0, sn = 0;
      int tile = blockIdx.x;
      for (;;) {
        if constexpr (C::DYN) { sched_put(slots, sn, tile); ++sn; }
        if (tile >= p.ntiles) break;
        const int next = C::DYN ? sched_draw(p.sched, p.ntiles) : tile + (int)gridDim.x;
        int mb, bh;
        tile_coord<CAUSAL, true>(tile, p.nblk, p.B * p.Hq, p.hgroup, mb, bh);
        const int b = bh / p.Hq, h = bh - b * p.Hq, hk = h / p.gq, m0 = mb * BM;
        const int kend = CAUSAL ? min(p.Skv, m0 + BM + p.coff) : p.Skv;
        const int nb = kend > 0 ? (kend + BN - 1) / BN : 0;
        for (int n = nb - 1; n >= -1 && nb > 0; --n) {     // K runs one block ahead of V
          if (n >= 0) {
            mbar_wait(k_empty + 8 * rk.s, rk.ph ^ 1);
            mbar_expect(k_full + 8 * rk.s, KB);
#pragma unroll
            for (int i = 0; i < NPAN; ++i) tma4(sK + rk.s * KB + i * KPANEL, &mk, k_full + 8 * rk.s, 64 * i, n * BN, hk, b, pol_kv);
            rk.next();
          }
          if (n == nb - 1) {
            mbar_wait(q_empty, qph ^ 1);
            mbar_expect(q_full, QB);
#pragma unroll
            for (int i = 0; i < NPAN; ++i) tma4(sQ + i * QPANEL, &mq, q_full, 64 * i, m0, h, b, pol_q);
            qph ^= 1;
          } else {
            mbar_wait(v_empty + 8 * rv.s, rv.ph ^ 1);
            mbar_expect(v_full + 8 * rv.s, KB);
#pragma unroll
            for (int i = 0; i < NPAN; ++i) tma4(sV + rv.s * KB + i * KPANEL, &mv, v_full + 8 * rv.s, 64 * i, (n + 1) * BN, hk, b, pol_kv);
            rv.next();
          }
        }
        tile = next;
      }
    }
  } else {
    // ---------------------------------------------------------------- consumers: 64 query rows each
    reg_inc<C::REG_CONS>();
    const int cw = wg - 1, c = lane & 3;
    const int trow = cw * 64 + (warp & 3) * 16 + (lane >> 2);      // this thread's rows in the tile: trow, trow + 8
    const float cs = Mod::ON ? LOG2E : p.scale * LOG2E;            // score -> base-2 exponent
    const u32 dq0 = desc_k(sQ + cw * 8192), dk0 = desc_k(sK), dv0 = desc_mn(sV, KPANEL);
    Ring<ST> rk, rv;
    u32 qph = 0, sn = 0;
    // Named barrier 1 + w: warpgroup w's turn to issue its products; the warpgroup before it arrives. Warpgroup 0 goes first.
    if constexpr (C::PINGPONG) { if (cw == NWG - 1) bar_arrive(1, 256); }
    int tile = blockIdx.x;
    for (;;) {
      if constexpr (C::DYN) { tile = sched_get(slots, sn, lane); ++sn; }
      if (tile >= p.ntiles) break;
      int mb, bh;
      tile_coord<CAUSAL, true>(tile, p.nblk, p.B * p.Hq, p.hgroup, mb, bh);
      const int b = bh / p.Hq, h = bh - b * p.Hq, m0 = mb * BM, row = m0 + trow;
      const int kend = CAUSAL ? min(p.Skv, m0 + BM + p.coff) : p.Skv;
      const int nb = kend > 0 ? (kend + BN - 1) / BN : 0;
      float O[DP / 2];
      float mx[2] = {-ATTN_INF, -ATTN_INF}, l[2] = {0.f, 0.f};
      zero(O);
      if (nb > 0) {
        const int nfull = min(p.Skv / BN, CAUSAL ? max(0, m0 + p.coff + 1) / BN : 0x7fffffff);  // blocks n < nfull need no mask
        // visible columns of row r: j < lim[r]; made relative to this thread's first column
        const int lim0 = (CAUSAL ? min(p.Skv, row + p.coff + 1) : p.Skv) - 2 * c;
        const int lim1 = (CAUSAL ? min(p.Skv, row + 8 + p.coff + 1) : p.Skv) - 2 * c;
        float S[BN / 2];
        u32 P[BN / 4];
        float al[2];

        // mask, running maximum, exponentials and row sums of S (block n); al = factor for the old O and l
        auto softmax = [&](auto MASKED, int n) {
          constexpr bool M = decltype(MASKED)::value;
          if constexpr (Mod::ON) {
#pragma unroll
            for (int i = 0; i < BN / 2; ++i)
              S[i] = Mod::score(S[i] * p.scale, b, h, min(row + 8 * ((i >> 1) & 1), p.Sq - 1),
                                min(n * BN + 2 * c + (i >> 2) * 8 + (i & 1), p.Skv - 1), p.aux);
          }
          if constexpr (M) {
            const int t0 = lim0 - n * BN, t1 = lim1 - n * BN;
#pragma unroll
            for (int i = 0; i < BN / 2; ++i) {
              const int col = (i >> 2) * 8 + (i & 1);
              if (col >= ((i & 2) ? t1 : t0)) S[i] = -ATTN_INF;
            }
          }
          float sub[2];
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            float v = fmaxf(S[2 * r], S[2 * r + 1]), w = fmaxf(S[2 * r + 4], S[2 * r + 5]);
#pragma unroll
            for (int i = 2; i < BN / 8; i += 2) {
              v = fmaxf(v, fmaxf(S[4 * i + 2 * r], S[4 * i + 2 * r + 1]));
              w = fmaxf(w, fmaxf(S[4 * i + 2 * r + 4], S[4 * i + 2 * r + 5]));
            }
            const float nm = fmaxf(mx[r], quad_max(fmaxf(v, w)));
            const float ms = ((M || Mod::ON) && nm == -ATTN_INF) ? 0.f : nm;
            al[r] = ex2((mx[r] - ms) * cs);
            mx[r] = nm;
            sub[r] = -ms * cs;
            l[r] *= al[r];
          }
          float l2[2] = {0.f, 0.f};
#pragma unroll
          for (int i = 0; i < BN / 2; i += 2) {
            const int r = (i >> 1) & 1;
            S[i] = ex2(fmaf(S[i], cs, sub[r]));
            S[i + 1] = ex2(fmaf(S[i + 1], cs, sub[r]));
            l[r] += S[i];
            l2[r] += S[i + 1];
          }
          l[0] += l2[0]; l[1] += l2[1];
          if constexpr (C::DROPOUT) {
#pragma unroll
            for (int i = 0; i < BN / 2; i += 2) {
              u32 e, o;
              drop_words(p.drop, (u32)(bh * p.Sq + row + 8 * ((i >> 1) & 1)), (u32)(n * BN + 2 * c + (i >> 2) * 8) >> 1, e, o);
              if (e < p.drop.thresh) S[i] = 0.f;
              if (o < p.drop.thresh) S[i + 1] = 0.f;
            }
          }
        };
        auto pack = [&]() {
#pragma unroll
          for (int i = 0; i < BN / 4; ++i) P[i] = pack2<F16>(S[2 * i], S[2 * i + 1]);
        };
        auto rescale = [&]() {
#pragma unroll
          for (int i = 0; i < DP / 2; ++i) O[i] *= al[(i >> 1) & 1];
        };
        // S(n) is issued, then P(n+1)*V(n+1); the softmax of S(n) runs while the second product is still going
        auto step = [&](auto MASKED, int n) {
          mbar_wait(k_full + 8 * rk.s, rk.ph);
          if constexpr (C::PINGPONG) bar_sync(1 + cw, 256);
          gemm_ss<BN, C::KS, QPANEL, KPANEL, F16>(S, dq0, dk0 + rk.s * (KB / 16));
          if constexpr (C::LATE) rescale();
          mbar_wait(v_full + 8 * rv.s, rv.ph);
          gemm_rs<DP, BN / 16, F16>(O, P, dv0 + rv.s * (KB / 16));
          if constexpr (C::PINGPONG) bar_arrive(1 + (cw + 1 == NWG ? 0 : cw + 1), 256);
          wg_wait<1>(); pin(S);
          if (lane == 0) mbar_arrive(k_empty + 8 * rk.s);
          rk.next();
          softmax(MASKED, n);
          hold(l[0] + l[1], base);                            // the exponentials stay ahead of the wait
          wg_wait<0>(); pin(O); pin(P);
          if (lane == 0) mbar_arrive(v_empty + 8 * rv.s);
          rv.next();
          pack();
          if constexpr (!C::LATE) rescale();
        };

        mbar_wait(q_full, qph); qph ^= 1;
        mbar_wait(k_full + 8 * rk.s, rk.ph);
        gemm_ss<BN, C::KS, QPANEL, KPANEL, F16>(S, dq0, dk0 + rk.s * (KB / 16));
        wg_wait<0>(); pin(S);
        if (lane == 0) mbar_arrive(k_empty + 8 * rk.s);
        rk.next();
        softmax(bool_c<true>{}, nb - 1);
        pack();
        int n = nb - 2;
        for (; n >= nfull; --n) step(bool_c<true>{}, n);
#pragma unroll 1
        for (; n >= 0; --n) step(bool_c<false>{}, n);
        if (lane == 0) mbar_arrive(q_empty);
        if constexpr (C::LATE) rescale();
        mbar_wait(v_full + 8 * rv.s, rv.ph);
        gemm_rs<DP, BN / 16, F16>(O, P, dv0 + rv.s * (KB / 16));
        l[0] = quad_sum(l[0]); l[1] = quad_sum(l[1]);
        wg_wait<0>(); pin(O); pin(P);
        if (lane == 0) mbar_arrive(v_empty + 8 * rv.s);
        rv.next();
      }
      // epilogue: normalise, write O and the log-sum-exp
      float inv[2];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        inv[r] = l[r] > 0.f ? 1.f / l[r] : 0.f;
        if (c == 0 && row + 8 * r < p.Sq) {
          const float s = Mod::ON ? 1.f : p.scale;
          p.lse[(i64)bh * p.Sq + row + 8 * r] = l[r] > 0.f ? mx[r] * s + lg2(l[r]) * LN2 : -ATTN_INF;
        }
        if constexpr (C::DROPOUT) inv[r] *= p.drop.rescale;
      }
      store_rows<D, DP, F16>(O, inv[0], inv[1], (char*)p.o + (b * p.o_sb + h * p.o_sh) * 2, p.o_ss, row, p.Sq, lane);
      if constexpr (!C::DYN) tile += (int)gridDim.x;
    }
    if constexpr (C::PINGPONG) { if (cw == 0) bar_sync(1, 256); }   // takes the last pending arrival
  }
}

// ================================================================================================ backward: dQ
// One tile: BM query rows (64 a warpgroup), loop over key blocks. Also computes rowsum(dO*O) and writes the row statistics
// (base-2 log-sum-exp, +inf for rows that see nothing; rowsum) that the dK/dV kernel reads.
template <class C>
__global__ void __launch_bounds__(C::THREADS, 1)
attn_bwd_dq(const __grid_constant__ TMap mq, const __grid_constant__ TMap mdo, const __grid_constant__ TMap mk,
            const __grid_constant__ TMap mv, const __grid_constant__ BwdParams p) {
  constexpr int D = C::D, DP = C::DP, BM = C::BM, BN = C::BN, NWG = C::NWG, ST = C::STAGES;
  constexpr bool F16 = C::F16, CAUSAL = C::CAUSAL;
  constexpr int NPAN = DP / 64, QPANEL = BM * 128, KPANEL = BN * 128;
  constexpr u32 QB = NPAN * QPANEL, KB = NPAN * KPANEL;
  using Mod = typename C::Mod;
  extern __shared__ unsigned char smem_raw[];
  const u32 base = (smem_u32(smem_raw) + 1023u) & ~1023u;
  const u32 sQ = base, sO = sQ + QB, sK = sO + QB, sV = sK + ST * KB, bars = sV + ST * KB;
  const u32 q_full = bars, o_full = bars + 8, qo_empty = bars + 16, k_full = bars + 24, k_empty = k_full + 8 * ST,
            v_full = k_empty + 8 * ST, v_empty = v_full + 8 * ST;
  const Slots slots = {v_empty + 8 * ST, v_empty + 8 * ST + 16, v_empty + 8 * ST + 32};
  const int warp = __shfl_sync(~0u, (int)threadIdx.x >> 5, 0), wg = warp >> 2, lane = threadIdx.x & 31;

  if (threadIdx.x == 0) {
    mbar_init(q_full, 1); mbar_init(o_full, 1); mbar_init(qo_empty, NWG * 4);
    for (int i = 0; i < ST; ++i) {
      mbar_init(k_full + 8 * i, 1); mbar_init(k_empty + 8 * i, NWG * 4);
      mbar_init(v_full + 8 * i, 1); mbar_init(v_empty + 8 * i, NWG * 4);
    }
    for (int i = 0; i < 2; ++i) { mbar_init(slots.full + 8 * i, 1); mbar_init(slots.empty + 8 * i, NWG * 4); }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();

  if (wg == 0) {
    reg_dec<C::REG_PROD>();
    if (threadIdx.x == 0) {
      prefetch_map(&mq); prefetch_map(&mdo); prefetch_map(&mk); prefetch_map(&mv);
      const u64 pol_q = policy_first(), pol_kv = C::KV_LAST ? policy_last() : policy_normal();
      Ring<ST> r;
      u32 qph = 0, sn = 0;
      int tile = blockIdx.x;
      for (;;) {
        if constexpr (C::DYN) { sched_put(slots, sn, tile); ++sn; }
        if (tile >= p.ntiles) break;
        const int next = C::DYN ? sched_draw(p.sched, p.ntiles) : tile + (int)gridDim.x;
        int mb, bh;
        tile_coord<CAUSAL, true>(tile, p.nblk, p.B * p.Hq, p.hgroup, mb, bh);
        const int b = bh / p.Hq, h = bh - b * p.Hq, hk = h / p.gq, m0 = mb * BM;
        const int kend = CAUSAL ? min(p.Skv, m0 + BM + p.coff) : p.Skv;
        const int nb = kend > 0 ? (kend + BN - 1) / BN : 0;
        for (int n = nb - 1; n >= 0; --n) {
          mbar_wait(k_empty + 8 * r.s, r.ph ^ 1);
          mbar_expect(k_full + 8 * r.s, KB);
#pragma unroll
          for (int i = 0; i < NPAN; ++i) tma4(sK + r.s * KB + i * KPANEL, &mk, k_full + 8 * r.s, 64 * i, n * BN, hk, b, pol_kv);
          if (n == nb - 1) {
            mbar_wait(qo_empty, qph ^ 1);
            mbar_expect(q_full, QB);
#pragma unroll
            for (int i = 0; i < NPAN; ++i) tma4(sQ + i * QPANEL, &mq, q_full, 64 * i, m0, h, b, pol_q);
          }
          mbar_wait(v_empty + 8 * r.s, r.ph ^ 1);
          mbar_expect(v_full + 8 * r.s, KB);
#pragma unroll
          for (int i = 0; i < NPAN; ++i) tma4(sV + r.s * KB + i * KPANEL, &mv, v_full + 8 * r.s, 64 * i, n * BN, hk, b, pol_kv);
          if (n == nb - 1) {
            mbar_expect(o_full, QB);
#pragma unroll
            for (int i = 0; i < NPAN; ++i) tma4(sO + i * QPANEL, &mdo, o_full, 64 * i, m0, h, b, pol_q);
            qph ^= 1;
          }
          r.next();
        }
        tile = next;
      }
    }
  } else {
    reg_inc<C::REG_CONS>();
    const int cw = wg - 1, c = lane & 3;
    const int trow = cw * 64 + (warp & 3) * 16 + (lane >> 2);
    const float cs = Mod::ON ? LOG2E : p.scale * LOG2E;
    const u32 dq0 = desc_k(sQ + cw * 8192), do0 = desc_k(sO + cw * 8192), dk0 = desc_k(sK), dv0 = desc_k(sV), dkt = desc_mn(sK, KPANEL);
    Ring<ST> r;
    u32 qph = 0, sn = 0;
    int tile = blockIdx.x;
    for (;;) {
      if constexpr (C::DYN) { tile = sched_get(slots, sn, lane); ++sn; }
      if (tile >= p.ntiles) break;
      int mb, bh;
      tile_coord<CAUSAL, true>(tile, p.nblk, p.B * p.Hq, p.hgroup, mb, bh);
      const int b = bh / p.Hq, h = bh - b * p.Hq, m0 = mb * BM, row = m0 + trow;
      const int kend = CAUSAL ? min(p.Skv, m0 + BM + p.coff) : p.Skv;
      const int nb = kend > 0 ? (kend + BN - 1) / BN : 0;
      float nl[2], ds[2];                                // -log2-sum-exp, rowsum(dO*O) of rows row, row + 8
#pragma unroll
      for (int q = 0; q < 2; ++q) {
        const int i = row + 8 * q;
        float acc = 0.f, lse2 = ATTN_INF;
        if (i < p.Sq) {
          const char* po = (const char*)p.o + (b * p.o_sb + h * p.o_sh + i * p.o_ss) * 2 + c * 16;
          const char* pd = (const char*)p.dout + (b * p.do_sb + h * p.do_sh + i * p.do_ss) * 2 + c * 16;
#pragma unroll
          for (int k = 0; k < DP / 32; ++k) {
            if (D == DP || k * 32 + c * 8 < D) {
              const uint4 x = *(const uint4*)(po + 64 * k), y = *(const uint4*)(pd + 64 * k);
              acc = dot2<F16>(x.x, y.x, acc); acc = dot2<F16>(x.y, y.y, acc);
              acc = dot2<F16>(x.z, y.z, acc); acc = dot2<F16>(x.w, y.w, acc);
            }
          }
          const float v = p.lse[(i64)bh * p.Sq + i];
          if (v != -ATTN_INF) lse2 = v * LOG2E;
        }
        acc = quad_sum(acc);
        nl[q] = -lse2; ds[q] = acc;
        if (c == 0) { p.lse2[(i64)bh * p.sqpad + i] = lse2; p.dsum[(i64)bh * p.sqpad + i] = acc; }
      }
      if (mb == p.nblk - 1)
        for (int i = p.nblk * BM + (int)threadIdx.x - 128; i < p.sqpad; i += 128 * NWG) {
          p.lse2[(i64)bh * p.sqpad + i] = ATTN_INF; p.dsum[(i64)bh * p.sqpad + i] = 0.f;
        }
      float A[DP / 2];                                   // dQ
      zero(A);
      if (nb > 0) {
        const int nfull = min(p.Skv / BN, CAUSAL ? max(0, m0 + p.coff + 1) / BN : 0x7fffffff);
        const int lim0 = (CAUSAL ? min(p.Skv, row + p.coff + 1) : p.Skv) - 2 * c;
        const int lim1 = (CAUSAL ? min(p.Skv, row + 8 + p.coff + 1) : p.Skv) - 2 * c;
        u32 T[BN / 4];                                   // dS fragments
#pragma unroll
        for (int i = 0; i < BN / 4; ++i) T[i] = 0;
        u32 prev = 0;
        bool have = false;
        auto step = [&](auto MASKED, int n) {
          constexpr bool M = decltype(MASKED)::value;
          float S[BN / 2], dP[BN / 2];
          mbar_wait(k_full + 8 * r.s, r.ph);
          gemm_ss<BN, C::KS, QPANEL, KPANEL, F16>(S, dq0, dk0 + r.s * (KB / 16));
          wg_wait<1>(); pin(A); pin(T);                  // dQ of the block before is in
          if (have && lane == 0) mbar_arrive(k_empty + 8 * prev);
          mbar_wait(v_full + 8 * r.s, r.ph);
          gemm_ss<BN, C::KS, QPANEL, KPANEL, F16>(dP, do0, dv0 + r.s * (KB / 16));
          wg_wait<1>(); pin(S);
          [[maybe_unused]] float g[Mod::ON ? BN / 2 : 1];
          if constexpr (Mod::ON) {
#pragma unroll
            for (int i = 0; i < BN / 2; ++i) {
              const int ii = min(row + 8 * ((i >> 1) & 1), p.Sq - 1), jj = min(n * BN + 2 * c + (i >> 2) * 8 + (i & 1), p.Skv - 1);
              g[i] = Mod::dscore(S[i] * p.scale, b, h, ii, jj, p.aux);
              S[i] = Mod::score(S[i] * p.scale, b, h, ii, jj, p.aux);
            }
          }
          if constexpr (M) {
            const int t0 = lim0 - n * BN, t1 = lim1 - n * BN;
#pragma unroll
            for (int i = 0; i < BN / 2; ++i) {
              const int col = (i >> 2) * 8 + (i & 1);
              if (col >= ((i & 2) ? t1 : t0)) S[i] = -ATTN_INF;
            }
          }
#pragma unroll
          for (int i = 0; i < BN / 2; ++i) S[i] = ex2(fmaf(S[i], cs, nl[(i >> 1) & 1]));
          hold_all(S, p.Sq, base);
          wg_wait<0>(); pin(dP);
          if (lane == 0) mbar_arrive(v_empty + 8 * r.s);
          if constexpr (C::DROPOUT) {
#pragma unroll
            for (int i = 0; i < BN / 2; i += 2) {
              u32 e, o;
              drop_words(p.drop, (u32)(bh * p.Sq + row + 8 * ((i >> 1) & 1)), (u32)(n * BN + 2 * c + (i >> 2) * 8) >> 1, e, o);
              dP[i] = e < p.drop.thresh ? 0.f : dP[i] * p.drop.rescale;
              dP[i + 1] = o < p.drop.thresh ? 0.f : dP[i + 1] * p.drop.rescale;
            }
          }
#pragma unroll
          for (int i = 0; i < BN / 2; i += 2) {
            float x = S[i] * (dP[i] - ds[(i >> 1) & 1]), y = S[i + 1] * (dP[i + 1] - ds[(i >> 1) & 1]);
            if constexpr (Mod::ON) { x *= g[i]; y *= g[i + 1]; }
            T[i / 2] = pack2<F16>(x, y);
          }
          gemm_rs<DP, BN / 16, F16>(A, T, dkt + r.s * (KB / 16));
          prev = r.s; have = true;
          r.next();
        };
        mbar_wait(q_full, qph);
        mbar_wait(o_full, qph); qph ^= 1;
        int n = nb - 1;
#pragma unroll 1
        for (; n >= nfull; --n) step(bool_c<true>{}, n);
#pragma unroll 1
        for (; n >= 0; --n) step(bool_c<false>{}, n);
        if (lane == 0) mbar_arrive(qo_empty);
        wg_wait<0>(); pin(A); pin(T);
        if (lane == 0) mbar_arrive(k_empty + 8 * prev);
      }
      store_rows<D, DP, F16>(A, p.scale, p.scale, (char*)p.dq + (b * p.dq_sb + h * p.dq_sh) * 2, p.dq_ss, row, p.Sq, lane);
      if constexpr (!C::DYN) tile += (int)gridDim.x;
    }
  }
}

// ================================================================================================ backward: dK, dV
// One tile: BKV key rows of one key head (64 a warpgroup), loop over the query heads that share it and their query blocks.
// Scores are held transposed: S^T = K Q^T, dP^T = V dO^T, so P^T and dS^T go from registers into dV += P^T dO, dK += dS^T Q.
template <class C>
__global__ void __launch_bounds__(C::THREADS, 1)
attn_bwd_dkv(const __grid_constant__ TMap mk, const __grid_constant__ TMap mv, const __grid_constant__ TMap mq,
             const __grid_constant__ TMap mdo, const __grid_constant__ BwdParams p) {
  constexpr int D = C::D, DP = C::DP, BKV = C::BKV, BQ = C::BQ, NWG = C::NWG, ST = C::STAGES;
  constexpr bool F16 = C::F16, CAUSAL = C::CAUSAL;
  constexpr int NPAN = DP / 64, KPANEL = BKV * 128, QPANEL = BQ * 128;
  constexpr u32 KB = NPAN * KPANEL, QB = NPAN * QPANEL, SB = BQ * 4;
  constexpr bool PACKP = C::PACKP && !C::DROPOUT;
  using Mod = typename C::Mod;
  extern __shared__ unsigned char smem_raw[];
  const u32 base = (smem_u32(smem_raw) + 1023u) & ~1023u;
  const u32 sK = base, sV = sK + KB, sQ = sV + KB, sO = sQ + ST * QB, sL = sO + ST * QB, sD = sL + ST * SB, bars = sD + ST * SB;
  const u32 k_full = bars, v_full = bars + 8, kv_empty = bars + 16, q_full = bars + 24, q_empty = q_full + 8 * ST,
            o_full = q_empty + 8 * ST, o_empty = o_full + 8 * ST;
  const Slots slots = {o_empty + 8 * ST, o_empty + 8 * ST + 16, o_empty + 8 * ST + 32};
  const int warp = __shfl_sync(~0u, (int)threadIdx.x >> 5, 0), wg = warp >> 2, lane = threadIdx.x & 31;
  const int nq = (p.Sq + BQ - 1) / BQ;

  if (threadIdx.x == 0) {
    mbar_init(k_full, 1); mbar_init(v_full, 1); mbar_init(kv_empty, NWG * 4);
    for (int i = 0; i < ST; ++i) {
      mbar_init(q_full + 8 * i, 1); mbar_init(q_empty + 8 * i, NWG * 4);
      mbar_init(o_full + 8 * i, 1); mbar_init(o_empty + 8 * i, NWG * 4);
    }
    for (int i = 0; i < 2; ++i) { mbar_init(slots.full + 8 * i, 1); mbar_init(slots.empty + 8 * i, NWG * 4); }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();

  if (wg == 0) {
    reg_dec<C::REG_PROD>();
    if (threadIdx.x == 0) {
      prefetch_map(&mq); prefetch_map(&mdo); prefetch_map(&mk); prefetch_map(&mv);
      const u64 pol_q = C::Q_LAST ? policy_last() : policy_normal();
      Ring<ST> r;
      u32 kph = 0, sn = 0;
      int tile = blockIdx.x;
      for (;;) {
        if constexpr (C::DYN) { sched_put(slots, sn, tile); ++sn; }
        if (tile >= p.ntiles) break;
        const int next = C::DYN ? sched_draw(p.sched, p.ntiles) : tile + (int)gridDim.x;
        int nb, bk;
        tile_coord<CAUSAL, false>(tile, p.nblk, p.B * p.Hkv, p.hgroup, nb, bk);
        const int b = bk / p.Hkv, hk = bk - b * p.Hkv, j0 = nb * BKV;
        const int mfirst = CAUSAL ? max(0, j0 - p.coff) / BQ : 0;
        bool first = true;
        for (int g = 0; g < p.gq; ++g) {
          const int h = hk * p.gq + g;
          const float *pl = p.lse2 + (i64)(b * p.Hq + h) * p.sqpad, *pd = p.dsum + (i64)(b * p.Hq + h) * p.sqpad;
          for (int m = mfirst; m < nq; ++m) {
            mbar_wait(q_empty + 8 * r.s, r.ph ^ 1);
            mbar_expect(q_full + 8 * r.s, QB + SB);
#pragma unroll
            for (int i = 0; i < NPAN; ++i) tma4(sQ + r.s * QB + i * QPANEL, &mq, q_full + 8 * r.s, 64 * i, m * BQ, h, b, pol_q);
            bulk1(sL + r.s * SB, pl + m * BQ, SB, q_full + 8 * r.s);
            if (first) {
              mbar_wait(kv_empty, kph ^ 1);
              mbar_expect(k_full, KB);
#pragma unroll
              for (int i = 0; i < NPAN; ++i) tma4(sK + i * KPANEL, &mk, k_full, 64 * i, j0, hk, b);
            }
            mbar_wait(o_empty + 8 * r.s, r.ph ^ 1);
            mbar_expect(o_full + 8 * r.s, QB + SB);
#pragma unroll
            for (int i = 0; i < NPAN; ++i) tma4(sO + r.s * QB + i * QPANEL, &mdo, o_full + 8 * r.s, 64 * i, m * BQ, h, b, pol_q);
            bulk1(sD + r.s * SB, pd + m * BQ, SB, o_full + 8 * r.s);
            if (first) {
              mbar_expect(v_full, KB);
#pragma unroll
              for (int i = 0; i < NPAN; ++i) tma4(sV + i * KPANEL, &mv, v_full, 64 * i, j0, hk, b);
              kph ^= 1; first = false;
            }
            r.next();
          }
        }
        tile = next;
      }
    }
  } else {
    reg_inc<C::REG_CONS>();
    const int cw = wg - 1, c = lane & 3;
    const int trow = cw * 64 + (warp & 3) * 16 + (lane >> 2);
    const float cs = Mod::ON ? LOG2E : p.scale * LOG2E;
    const u32 dk0 = desc_k(sK + cw * 8192), dv0 = desc_k(sV + cw * 8192), dq0 = desc_k(sQ), do0 = desc_k(sO),
              dqt = desc_mn(sQ, QPANEL), dot = desc_mn(sO, QPANEL);
    Ring<ST> r;
    u32 kph = 0, sn = 0;
    int tile = blockIdx.x;
    for (;;) {
      if constexpr (C::DYN) { tile = sched_get(slots, sn, lane); ++sn; }
      if (tile >= p.ntiles) break;
      int nb, bk;
      tile_coord<CAUSAL, false>(tile, p.nblk, p.B * p.Hkv, p.hgroup, nb, bk);
      const int b = bk / p.Hkv, hk = bk - b * p.Hkv, j0 = nb * BKV, row = j0 + trow;
      const int mfirst = CAUSAL ? max(0, j0 - p.coff) / BQ : 0;
      float dK[DP / 2], dV[DP / 2];
      zero(dK); zero(dV);
      if (mfirst < nq) {
        // query blocks m >= mclear need no causal mask
        const int mclear = CAUSAL ? min(nq, (max(0, j0 + BKV - 1 - p.coff) + BQ - 1) / BQ) : 0;
        u32 T[BQ / 4], U[BQ / 4];                        // P^T and dS^T fragments
#pragma unroll
        for (int i = 0; i < BQ / 4; ++i) { T[i] = 0; U[i] = 0; }
        u32 prev = 0;
        bool have = false;
        auto step = [&](auto MASKED, int m, int h) {
          constexpr bool M = decltype(MASKED)::value;
          float S[BQ / 2], dP[BQ / 2];
          mbar_wait(q_full + 8 * r.s, r.ph);
          gemm_ss<BQ, C::KS, KPANEL, QPANEL, F16>(S, dk0, dq0 + r.s * (QB / 16));
          wg_wait<1>(); pin(dK); pin(U);                  // dK of the block before is in
          if (have && lane == 0) mbar_arrive(q_empty + 8 * prev);
          mbar_wait(o_full + 8 * r.s, r.ph);
          gemm_ss<BQ, C::KS, KPANEL, QPANEL, F16>(dP, dv0, do0 + r.s * (QB / 16));
          const u32 la = sL + r.s * SB + 8 * c, da = sD + r.s * SB + 8 * c;
          float st[BQ / 4];                               // row statistics of this thread's queries
          auto load_stats = [&](u32 addr) {
#pragma unroll
            for (int i = 0; i < BQ / 8; ++i) lds2(addr + 32 * i, st[2 * i], st[2 * i + 1]);
          };
          if constexpr (PACKP) load_stats(la);            // early where registers allow
          wg_wait<1>(); pin(S);
          if constexpr (!PACKP) load_stats(la);
          [[maybe_unused]] float g[Mod::ON ? BQ / 2 : 1];
          if constexpr (Mod::ON) {
#pragma unroll
            for (int i = 0; i < BQ / 2; ++i) {
              const int jj = min(row + 8 * ((i >> 1) & 1), p.Skv - 1), ii = min(m * BQ + 2 * c + (i >> 2) * 8 + (i & 1), p.Sq - 1);
              g[i] = Mod::dscore(S[i] * p.scale, b, h, ii, jj, p.aux);
              S[i] = Mod::score(S[i] * p.scale, b, h, ii, jj, p.aux);
            }
          }
          if constexpr (M) {                              // keep i >= j - coff
            const int t0 = row - p.coff - m * BQ - 2 * c, t1 = t0 + 8;
#pragma unroll
            for (int i = 0; i < BQ / 2; ++i) {
              const int col = (i >> 2) * 8 + (i & 1);
              if (col < ((i & 2) ? t1 : t0)) S[i] = -ATTN_INF;
            }
          }
#pragma unroll
          for (int i = 0; i < BQ / 8; ++i) {
            const float x = st[2 * i], y = st[2 * i + 1];
            S[4 * i] = ex2(fmaf(S[4 * i], cs, -x));
            S[4 * i + 1] = ex2(fmaf(S[4 * i + 1], cs, -y));
            S[4 * i + 2] = ex2(fmaf(S[4 * i + 2], cs, -x));
            S[4 * i + 3] = ex2(fmaf(S[4 * i + 3], cs, -y));
          }
          [[maybe_unused]] u32 keep[(BQ / 2 + 31) / 32];
          if constexpr (C::DROPOUT) {
            // key rows g and g^1 (lane ^ 4) share counters: the even row draws for query 2c, the odd row for query 2c+1
#pragma unroll
            for (int i = 0; i < (BQ / 2 + 31) / 32; ++i) keep[i] = 0;
            const bool oddrow = (lane >> 2) & 1;
#pragma unroll
            for (int i = 0; i < BQ / 2; i += 2) {
              u32 e, o;
              const int ii = m * BQ + 2 * c + (i >> 2) * 8, jj = row + 8 * ((i >> 1) & 1);
              drop_words(p.drop, (u32)((b * p.Hq + h) * p.Sq + ii + (oddrow ? 1 : 0)), (u32)jj >> 1, e, o);
              const u32 got = __shfl_xor_sync(~0u, oddrow ? e : o, 4);
              const u32 w0 = oddrow ? got : e, w1 = oddrow ? o : got;      // words of (ii, jj) and (ii + 1, jj)
              if (w0 >= p.drop.thresh) keep[i >> 5] |= 1u << (i & 31);
              if (w1 >= p.drop.thresh) keep[i >> 5] |= 2u << (i & 31);
            }
          }
#pragma unroll
          for (int i = 0; i < BQ / 2; i += 2) {
            float x = S[i], y = S[i + 1];
            if constexpr (C::DROPOUT) {
              if (!(keep[i >> 5] >> (i & 31) & 1)) x = 0.f;
              if (!(keep[i >> 5] >> (i & 31) & 2)) y = 0.f;
            }
            T[i / 2] = pack2<F16>(x, y);
          }
          gemm_rs<DP, BQ / 16, F16>(dV, T, dot + r.s * (QB / 16));
          if constexpr (PACKP) load_stats(da);
          wg_wait<1>(); pin(dP);
          if constexpr (!PACKP) load_stats(da);
#pragma unroll
          for (int i = 0; i < BQ / 8; ++i) {
            float pr[4];                                  // P: exact, or as rounded for the dV product (saves registers)
            if constexpr (PACKP) { unpack2<F16>(T[2 * i], pr[0], pr[1]); unpack2<F16>(T[2 * i + 1], pr[2], pr[3]); }
            else {
#pragma unroll
              for (int k = 0; k < 4; ++k) pr[k] = S[4 * i + k];
            }
#pragma unroll
            for (int k = 0; k < 4; ++k) {
              float v = dP[4 * i + k];
              if constexpr (C::DROPOUT) v = (keep[(4 * i + k) >> 5] >> ((4 * i + k) & 31) & 1) ? v * p.drop.rescale : 0.f;
              v = pr[k] * (v - st[2 * i + (k & 1)]);
              if constexpr (Mod::ON) v *= g[4 * i + k];
              dP[4 * i + k] = v;
            }
            U[2 * i] = pack2<F16>(dP[4 * i], dP[4 * i + 1]);
            U[2 * i + 1] = pack2<F16>(dP[4 * i + 2], dP[4 * i + 3]);
          }
          gemm_rs<DP, BQ / 16, F16>(dK, U, dqt + r.s * (QB / 16));
          wg_wait<1>(); pin(dV); pin(T);                  // dV is in: P^T's registers are free for the next scores
          if (lane == 0) mbar_arrive(o_empty + 8 * r.s);
          prev = r.s; have = true;
          r.next();
        };
        mbar_wait(k_full, kph);
        mbar_wait(v_full, kph); kph ^= 1;
#pragma unroll 1
        for (int g = 0; g < p.gq; ++g) {
          const int h = hk * p.gq + g;
          int m = mfirst;
          if constexpr (CAUSAL) {
#pragma unroll 1
            for (; m < mclear; ++m) step(bool_c<true>{}, m, h);
          }
#pragma unroll 1
          for (; m < nq; ++m) step(bool_c<false>{}, m, h);
        }
        if (lane == 0) mbar_arrive(kv_empty);
        wg_wait<0>(); pin(dV); pin(dK); pin(U);
        if (lane == 0) mbar_arrive(q_empty + 8 * prev);
      }
      const float vs = C::DROPOUT ? p.drop.rescale : 1.f;
      store_rows<D, DP, F16>(dV, vs, vs, (char*)p.dv + (b * p.dv_sb + hk * p.dv_sh) * 2, p.dv_ss, row, p.Skv, lane);
      store_rows<D, DP, F16>(dK, p.scale, p.scale, (char*)p.dk + (b * p.dk_sb + hk * p.dk_sh) * 2, p.dk_ss, row, p.Skv, lane);
      if constexpr (!C::DYN) tile += (int)gridDim.x;
    }
  }
}

// ================================================================================================ configurations
// Registers: NWG 2: 232 a consumer thread and 40 a producer thread (or 240 and 24); NWG 3: 160 and 32; NWG 1: 240 and 240.
__host__ __device__ constexpr int reg_cons(int nwg) { return nwg == 3 ? 160 : nwg == 2 ? 232 : 240; }
__host__ __device__ constexpr int reg_prod(int nwg, int cons) { return nwg == 3 ? 32 : nwg == 2 ? 504 - 2 * cons : 240; }

template <int D_, bool CAUSAL_, int NWG_, int BN_, bool F16_ = false, class Mod_ = NoMod, bool DROPOUT_ = false,
          bool PINGPONG_ = true, bool DYN_ = CAUSAL_, bool KV_LAST_ = true, bool LATE_ = false, int STAGES_ = 2, int RC_ = 0>
struct FwdCfg {
  static constexpr int D = D_, DP = (D_ + 63) / 64 * 64, KS = (D_ + 15) / 16, NWG = NWG_, BM = 64 * NWG_, BN = BN_, STAGES = STAGES_;
  static constexpr bool CAUSAL = CAUSAL_, F16 = F16_, DROPOUT = DROPOUT_, PINGPONG = PINGPONG_ && NWG_ > 1, DYN = DYN_, KV_LAST = KV_LAST_, LATE = LATE_;
  using Mod = Mod_;
  static constexpr int THREADS = 128 * (1 + NWG), REG_CONS = RC_ ? RC_ : reg_cons(NWG), REG_PROD = reg_prod(NWG, REG_CONS);
  static constexpr int SMEM = 1024 + DP * 2 * (BM + 2 * STAGES * BN) + 16 + 32 * STAGES + 48;
  static_assert(BN % 16 == 0 && BM <= 256 && SMEM <= 232448, "tile");
};
template <int D_, bool CAUSAL_, int NWG_, int BN_, bool F16_ = false, class Mod_ = NoMod, bool DROPOUT_ = false,
          bool DYN_ = CAUSAL_, bool KV_LAST_ = true, int STAGES_ = 2, int RC_ = 0>
struct BwdDqCfg {
  static constexpr int D = D_, DP = (D_ + 63) / 64 * 64, KS = (D_ + 15) / 16, NWG = NWG_, BM = 64 * NWG_, BN = BN_, STAGES = STAGES_;
  static constexpr bool CAUSAL = CAUSAL_, F16 = F16_, DROPOUT = DROPOUT_, DYN = DYN_, KV_LAST = KV_LAST_;
  using Mod = Mod_;
  static constexpr int THREADS = 128 * (1 + NWG), REG_CONS = RC_ ? RC_ : reg_cons(NWG), REG_PROD = reg_prod(NWG, REG_CONS);
  static constexpr int SMEM = 1024 + DP * 2 * (2 * BM + 2 * STAGES * BN) + 24 + 32 * STAGES + 48;
  static_assert(BN % 16 == 0 && BM <= 256 && SMEM <= 232448, "tile");
};
template <int D_, bool CAUSAL_, int NWG_, int BQ_, bool F16_ = false, class Mod_ = NoMod, bool DROPOUT_ = false,
          bool PACKP_ = true, bool DYN_ = CAUSAL_, bool Q_LAST_ = true, int STAGES_ = 2, int RC_ = 0>
struct BwdDkvCfg {
  static constexpr int D = D_, DP = (D_ + 63) / 64 * 64, KS = (D_ + 15) / 16, NWG = NWG_, BKV = 64 * NWG_, BQ = BQ_, STAGES = STAGES_;
  static constexpr bool CAUSAL = CAUSAL_, F16 = F16_, DROPOUT = DROPOUT_, DYN = DYN_, Q_LAST = Q_LAST_, PACKP = PACKP_;
  using Mod = Mod_;
  static constexpr int THREADS = 128 * (1 + NWG), REG_CONS = RC_ ? RC_ : (D > 64 && NWG == 2 && BQ <= 64) ? 224 : reg_cons(NWG), REG_PROD = reg_prod(NWG, REG_CONS);
  static constexpr int SMEM = 1024 + DP * 2 * (2 * BKV + 2 * STAGES * BQ) + STAGES * BQ * 8 + 24 + 32 * STAGES + 48;
  static_assert(BQ % 16 == 0 && BKV <= 256 && SMEM <= 232448, "tile");
};
}  // namespace attn
