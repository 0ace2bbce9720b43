#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "support/bytes.h"
#include "support/result.h"

namespace tokamak {

// How often each op is in a bytecode file, by its name there ("vhlo.add_v1").
// Decodes every attribute, type, property and location to its last byte, used
// or not, but gives none of it a meaning: it says what is in files whose ops
// are not all known.
Result<std::map<std::string, int64_t>> BytecodeHistogram(const Bytes& bytes,
                                                         const std::string& file);

}  // namespace tokamak
