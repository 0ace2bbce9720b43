#pragma once

// A function that is compiled for several sets of instructions; the loader takes the best that the
// machine has. Nothing where that is not to be had. No version fuses a product and a sum: all have
// the same bits. TOK_FUSED_CLONES may fuse them, where the machine has such an instruction.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__linux__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TOK_CLONES                                                             \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), \
                 optimize("O3", "fp-contract=off")))
#define TOK_FUSED_CLONES                                                       \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), \
                 optimize("O3", "fp-contract=fast")))
#elif defined(__GNUC__) && !defined(__clang__)
#define TOK_CLONES __attribute__((optimize("O3", "fp-contract=off")))
#define TOK_FUSED_CLONES __attribute__((optimize("O3", "fp-contract=fast")))
#else
#define TOK_CLONES
#define TOK_FUSED_CLONES
#endif
#define TOK_INLINE [[gnu::always_inline]] inline

// Of a loop no iteration of which reads or writes what another one writes. Clang would also promise
// to make vectors of it, and complain where it does not (at -O1, under sanitizers).
#if defined(__GNUC__) && !defined(__clang__)
#define TOK_APART _Pragma("GCC ivdep")
#else
#define TOK_APART
#endif
