#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ir/literal.h"
#include "support/bytes.h"
#include "support/result.h"

namespace tokamak {

// The arrays of a .npz file. Types that NumPy lacks travel as unsigned arrays
// of their bits: bf16 as u16, f8 and sub-byte types as u8 with one element a
// byte in the low bits. Everything else is itself.
struct NpzFile {
  std::string path;
  std::vector<std::pair<std::string, Literal>> arrays;

  const Literal* Find(std::string_view name) const;
};

Result<NpzFile> ReadNpz(const Bytes& bytes, const std::string& path);
std::string WriteNpz(const std::vector<std::pair<std::string, Literal>>& arrays);

// The type that carries `type` in a .npz file.
ElementType CarrierOf(ElementType type);
// An array as read, as an array of `shape`: its type must be the carrier and
// its dimensions those of `shape`, where a dynamic one agrees with any.
// `name` is for the message.
Result<Literal> FromCarrier(const Literal& stored, const Shape& shape, const std::string& name,
                            const std::string& file);
Literal ToCarrier(const Literal& literal);

}  // namespace tokamak
