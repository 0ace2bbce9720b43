#include "support/digest.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace tokamak {
namespace {

// Initialization vector: the first 64 bits of the fractional parts of the square roots of the first
// eight primes (RFC 7693).
constexpr std::array<uint64_t, 8> kStart = {
    0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
    0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};

// Message schedule (RFC 7693): which word of the block each step of a round uses. Rounds 10 and 11
// reuse rows 0 and 1.
constexpr uint8_t kOrder[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
};
constexpr size_t kRounds = 12;

static_assert(std::endian::native == std::endian::little, "BLAKE2's words are");
uint64_t WordAt(const unsigned char* bytes) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

// The function G of the RFC on four words of the state.
[[gnu::always_inline]] inline void Mix(uint64_t& a, uint64_t& b, uint64_t& c, uint64_t& d,
                                       uint64_t x, uint64_t y) {
  a += b + x;
  d = std::rotr(d ^ a, 32);
  c += d;
  b = std::rotr(b ^ c, 24);
  a += b + y;
  d = std::rotr(d ^ a, 16);
  c += d;
  b = std::rotr(b ^ c, 63);
}

// The round number is a template parameter so that the schedule is a compile-time constant, which
// halves the run time.
template <size_t kRound>
[[gnu::always_inline]] inline void RunRound(uint64_t* v, const uint64_t* words) {
  constexpr const uint8_t* kAt = kOrder[kRound % 10];
  Mix(v[0], v[4], v[8], v[12], words[kAt[0]], words[kAt[1]]);  // columns
  Mix(v[1], v[5], v[9], v[13], words[kAt[2]], words[kAt[3]]);
  Mix(v[2], v[6], v[10], v[14], words[kAt[4]], words[kAt[5]]);
  Mix(v[3], v[7], v[11], v[15], words[kAt[6]], words[kAt[7]]);
  Mix(v[0], v[5], v[10], v[15], words[kAt[8]], words[kAt[9]]);  // diagonals
  Mix(v[1], v[6], v[11], v[12], words[kAt[10]], words[kAt[11]]);
  Mix(v[2], v[7], v[8], v[13], words[kAt[12]], words[kAt[13]]);
  Mix(v[3], v[4], v[9], v[14], words[kAt[14]], words[kAt[15]]);
}

template <size_t... kRound>
[[gnu::always_inline]] inline void RunRounds(uint64_t* v, const uint64_t* words,
                                             std::index_sequence<kRound...>) {
  (RunRound<kRound>(v, words), ...);
}

}  // namespace

Digester::Digester() : state_(kStart) {
  // The parameter block: the length of the digest, no key, a tree of one leaf.
  state_[0] ^= 0x01010000 ^ kBytes;
}

void Digester::Compress(const unsigned char* block, bool is_last) {
  uint64_t words[16], v[16];
  for (int i = 0; i < 16; ++i) words[i] = WordAt(block + 8 * i);
  std::copy(state_.begin(), state_.end(), v);
  std::copy(kStart.begin(), kStart.end(), v + 8);
  v[12] ^= total_;  // the upper half of the 128-bit byte count is always 0
  if (is_last) v[14] = ~v[14];
  RunRounds(v, words, std::make_index_sequence<kRounds>());
  for (size_t i = 0; i < 8; ++i) state_[i] ^= v[i] ^ v[i + 8];
}

// A full block is compressed only when more bytes follow, because the last block is compressed with
// a different flag.
void Digester::Add(std::string_view bytes) {
  while (!bytes.empty()) {
    if (open_bytes_ == kBlock) {
      total_ += kBlock;
      Compress(open_.data(), false);
      open_bytes_ = 0;
    }
    size_t chunk = std::min(bytes.size(), kBlock - open_bytes_);
    std::memcpy(open_.data() + open_bytes_, bytes.data(), chunk);
    open_bytes_ += chunk;
    bytes.remove_prefix(chunk);
  }
}

std::string Digester::Finish() {
  total_ += open_bytes_;
  std::fill(open_.begin() + static_cast<std::ptrdiff_t>(open_bytes_), open_.end(), 0);
  Compress(open_.data(), true);
  std::string digest;
  for (size_t i = 0; i < kBytes; ++i)
    digest.push_back(static_cast<char>(state_[i / 8] >> (8 * (i % 8)) & 0xff));
  return digest;
}

std::string DigestOf(std::string_view bytes) {
  Digester digester;
  digester.Add(bytes);
  return digester.Finish();
}

std::string HexOf(std::string_view bytes) {
  std::string text;
  for (char c : bytes) {
    auto byte = static_cast<unsigned char>(c);
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

}  // namespace tokamak
