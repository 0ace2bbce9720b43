#include "support/digest.h"

#include <numeric>

#include <gtest/gtest.h>

namespace tokamak {
namespace {

// The expected values of "" and "abc" are published BLAKE2b-256 test vectors. The others come from
// Python's hashlib.blake2b(text, digest_size=32), at sizes around multiples of the 128-byte block.
TEST(Digest, IsBlake2b) {
  auto hex = [](std::string_view text) { return HexOf(DigestOf(text)); };
  EXPECT_EQ(hex(""), "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
  EXPECT_EQ(hex("abc"), "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
  EXPECT_EQ(hex(std::string(128, 'a')),
            "ae2aa48507885c4c950fb809b2076f959cde9f8ea6da260d9a3587df33dac450");
  EXPECT_EQ(hex(std::string(129, 'a')),
            "2f64744a6de0d2c0b56e64cf6e29a5aaa255010d415d51c75ccc82f73dccd865");
  std::string all(256, '\0');
  std::iota(all.begin(), all.end(), '\0');
  EXPECT_EQ(hex(all), "39a7eb9fedc19aabc83425c6755dd90e6f9d0c804964a1f4aaeea3b9fb599835");
}

TEST(Digest, TheSameInAnyChunks) {
  std::string text(1000, 'x');
  std::iota(text.begin(), text.end(), 'a');
  for (size_t chunk : {1u, 7u, 127u, 128u, 129u, 256u}) {
    Digester digester;
    for (size_t at = 0; at < text.size(); at += chunk)
      digester.Add(std::string_view(text).substr(at, chunk));
    EXPECT_EQ(digester.Finish(), DigestOf(text)) << chunk;
  }
}

TEST(Digest, Hex) {
  EXPECT_EQ(HexOf(std::string_view("\x00\x7f\xff", 3)), "007fff");
}

}  // namespace
}  // namespace tokamak
