#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ir/literal.h"
#include "support/bytes.h"
#include "support/result.h"

namespace tokamak {

// The arrays of a .npz file. Types that NumPy lacks are stored as unsigned integers with the same
// bits (carrier types): bf16 as u16; f8 and sub-byte types as u8, one element per byte in the low
// bits. All other types are stored directly.
struct NpzFile {
  std::string path;
  std::vector<std::pair<std::string, Literal>> arrays;

  const Literal* Find(std::string_view name) const;
};

Result<NpzFile> ReadNpz(const Bytes& bytes, const std::string& path);
std::string WriteNpz(const std::vector<std::pair<std::string, Literal>>& arrays);

// The type in which a .npz file stores `type`.
ElementType CarrierOf(ElementType type);
// Converts a stored array to `shape`. Its type must be the carrier type and its dimensions those of
// `shape`; a dynamic dimension matches any size. `name` is used in messages.
Result<Literal> FromCarrier(const Literal& stored, const Shape& shape, const std::string& name,
                            const std::string& file);
Literal ToCarrier(const Literal& literal);

}  // namespace tokamak
