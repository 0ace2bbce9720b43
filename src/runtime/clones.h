#pragma once

// Function multiversioning: TOK_CLONES compiles a function for several instruction sets, and the
// loader picks the best one of the machine; empty where that is not supported. No version contracts
// a product and a sum, so all produce the same bits. TOK_FUSED_CLONES allows fused multiply-adds
// where the machine has them.
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

// Marks a loop without loop-carried dependences. Not defined for Clang, whose pragma also demands
// vectorization and warns where it fails (at -O1, under sanitizers).
#if defined(__GNUC__) && !defined(__clang__)
#define TOK_IVDEP _Pragma("GCC ivdep")
#else
#define TOK_IVDEP
#endif
