#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tokamak {

// BLAKE2b with 256 bits and without a key, as RFC 7693 has it: two different texts with one digest
// cannot be found, on purpose or by chance. For what is kept or looked up under a digest alone;
// hash.h is for tables that compare their keys.
class Digester {
 public:
  static constexpr size_t kBytes = 32;

  Digester();
  void Add(std::string_view bytes);
  // 32 bytes. Ends it: nothing may be added later.
  std::string Finish();

 private:
  static constexpr size_t kBlock = 128;
  void Compress(const unsigned char* block, bool is_last);

  std::array<uint64_t, 8> state_;
  std::array<unsigned char, kBlock> open_{};  // bytes of a block that is not full, or is the last
  size_t open_bytes_ = 0;
  uint64_t total_ = 0;
};

// The digest of a text, 32 bytes.
std::string DigestOf(std::string_view bytes);

// Two digits for each byte.
std::string HexOf(std::string_view bytes);

}  // namespace tokamak
