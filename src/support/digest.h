#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tokamak {

// BLAKE2b with a 256-bit digest and no key (RFC 7693). It is collision resistant, so it suits
// entries that are stored or looked up by digest alone. hash.h is for tables that compare their
// keys.
class Digester {
 public:
  static constexpr size_t kBytes = 32;

  Digester();
  void Add(std::string_view bytes);
  // Returns the 32-byte digest. Nothing may be added afterwards.
  std::string Finish();

 private:
  static constexpr size_t kBlock = 128;
  void Compress(const unsigned char* block, bool is_last);

  std::array<uint64_t, 8> state_;
  std::array<unsigned char, kBlock> open_{};  // the current block: incomplete, or possibly the last
  size_t open_bytes_ = 0;
  uint64_t total_ = 0;
};

// The 32-byte digest of `bytes`.
std::string DigestOf(std::string_view bytes);

// Two hexadecimal digits per byte.
std::string HexOf(std::string_view bytes);

}  // namespace tokamak
