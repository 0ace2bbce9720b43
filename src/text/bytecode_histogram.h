#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "support/bytes.h"
#include "support/result.h"

namespace tokamak {

// Counts the ops of a bytecode file by their name in the file ("vhlo.add_v1"). Decodes every
// attribute, type, property and location completely, used or not, but does not interpret them, so
// it also works on files that contain unknown ops.
Result<std::map<std::string, int64_t>> BytecodeHistogram(const Bytes& bytes,
                                                         const std::string& file);

}  // namespace tokamak
