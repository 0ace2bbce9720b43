#pragma once

// What every fuzzer shares. A fuzzer is one property: it returns for every
// input that keeps it, and aborts with a word on the first that does not.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "ir/ir.h"

namespace tokamak::fuzz {

// Says what is broken and stops: libFuzzer keeps the input.
[[noreturn]] void Broken(const std::string& what);

// Aborts when an error has no code or no place in the input.
void CheckLocated(const Error& error);

// Changes `data` in place by a word, a number or a line, knowing the words of
// our formats; now and then as libFuzzer itself would. Gives the new size.
size_t MutateText(uint8_t* data, size_t size, size_t max_size, unsigned seed);

}  // namespace tokamak::fuzz

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
