#include "support/ordered_key.h"

#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace tokamak {
namespace {

using Raw = uint16_t;
constexpr KeyWord kUnsignedWord{16}, kSignedWord{16, true};
constexpr uint64_t kBf16Infinity = 0x7F80;

float ValueOf(uint32_t bits) {
  return std::bit_cast<float>(bits << 16);  // of a bf16
}

Raw KeyOf(uint32_t bits, SortOrder order, const KeyWord& word = kUnsignedWord) {
  return ToOrderedKey(RawCode<Raw>(), static_cast<Raw>(bits), word, order);
}

TEST(OrderedKey, IsBijective) {
  for (SortOrder order : {SortOrder::kUnsigned, SortOrder::kSigned, SortOrder::kFloatTotal})
    for (const KeyWord& word : {kUnsignedWord, kSignedWord})
      for (uint32_t bits = 0; bits <= 0xFFFF; ++bits)
        ASSERT_EQ(FromOrderedKey(RawCode<Raw>(), KeyOf(bits, order, word), word, order), bits);
}

TEST(OrderedKey, OrdersIntegers) {
  for (uint32_t bits = 0; bits < 0xFFFF; ++bits) {
    ASSERT_LT(KeyOf(bits, SortOrder::kUnsigned), KeyOf(bits + 1, SortOrder::kUnsigned));
    bool ascends = static_cast<int16_t>(bits) < static_cast<int16_t>(bits + 1);
    ASSERT_EQ(KeyOf(bits, SortOrder::kSigned) < KeyOf(bits + 1, SortOrder::kSigned), ascends);
  }
}

// -NaN ... -infinity ... -0, 0 ... infinity ... NaN, as unsigned and as signed integers.
TEST(OrderedKey, OrdersFloatsTotally) {
  auto rank = [](uint32_t bits) {
    return (bits & 0x8000) != 0 ? -static_cast<int>(bits & 0x7FFF) - 1 : static_cast<int>(bits);
  };
  for (uint32_t x = 0; x <= 0xFFFF; x += 7)
    for (uint32_t y = 0; y <= 0xFFFF; y += 97) {
      bool less = rank(x) < rank(y);
      ASSERT_EQ(KeyOf(x, SortOrder::kFloatTotal) < KeyOf(y, SortOrder::kFloatTotal), less);
      auto as_signed = [](uint32_t bits) {
        return static_cast<int16_t>(KeyOf(bits, SortOrder::kFloatTotal, kSignedWord));
      };
      ASSERT_EQ(as_signed(x) < as_signed(y), less);
    }
}

TEST(OrderedKey, MergesNansAndZeros) {
  auto merged = [](uint32_t x) {
    auto bits = static_cast<Raw>(x);
    bits = WithEqualNans(RawCode<Raw>(), bits, kUnsignedWord, kBf16Infinity);
    return WithEqualZeros(RawCode<Raw>(), bits, kUnsignedWord);
  };
  for (uint32_t x = 0; x <= 0xFFFF; ++x) {
    Raw key = KeyOf(merged(x), SortOrder::kFloatNanLast);
    float value = ValueOf(x);
    if (std::isnan(value)) {
      ASSERT_EQ(key, std::numeric_limits<Raw>::max());
    } else if (value == 0) {
      ASSERT_EQ(key, kUnsignedWord.sign());
    } else {
      ASSERT_EQ(merged(x), x);
      ASSERT_EQ(key > kUnsignedWord.sign(), value > 0);
    }
  }
}

}  // namespace
}  // namespace tokamak
