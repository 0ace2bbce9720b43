#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

// A minimal JSON value, sufficient for the configurations that XLA writes. Numbers stay text.
struct Json {
  enum class Kind { kText, kList, kDict };
  Kind kind = Kind::kText;
  std::string text;                // for strings, numbers, true, false, null
  std::vector<Json> items;         // for lists, and for dictionaries in their order
  std::vector<std::string> names;  // keys of a dictionary, parallel to items

  // Null if absent.
  const Json* Find(std::string_view name) const;
  // The number that the text represents. Also accepts strings of digits, which protocol buffers use
  // for 64-bit integers.
  std::optional<double> AsNumber() const;
  // A list of integers.
  std::optional<std::vector<int64_t>> AsInts() const;
};

// Null if the text is not valid JSON or nests deeper than 32. Linear.
std::optional<Json> ParseJson(std::string_view text);

}  // namespace tokamak
