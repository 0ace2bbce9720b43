#pragma once

// Shared by all fuzzers. A fuzzer checks one property: it returns for every input that satisfies it
// and aborts with a message on the first that does not.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "ir/ir.h"

namespace tokamak::fuzz {

// Reports the violation and aborts: libFuzzer keeps the input.
[[noreturn]] void Broken(const std::string& what);

// Aborts if an error has no code or no location in the input.
void CheckLocated(const Error& error);

// Mutates `data` in place by a word, a number or a line, using the vocabulary of our formats;
// occasionally as libFuzzer itself would. Returns the new size.
size_t MutateText(uint8_t* data, size_t size, size_t max_size, unsigned seed);

}  // namespace tokamak::fuzz

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
