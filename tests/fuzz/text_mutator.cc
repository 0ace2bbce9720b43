#include "fuzz/fuzz.h"

// Linked into the fuzzers of text formats.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  return tokamak::fuzz::MutateText(data, size, max_size, seed);
}
