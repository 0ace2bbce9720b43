#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

// A JSON value as text: enough for the configurations that XLA writes. Numbers stay text.
struct Json {
  enum class Kind { kText, kList, kDict };
  Kind kind = Kind::kText;
  std::string text;                // of strings, numbers, true, false, null
  std::vector<Json> items;         // of lists, and of dictionaries in their order
  std::vector<std::string> names;  // of the items of a dictionary

  // Null when there is none.
  const Json* Find(std::string_view name) const;
  // The number that the text is; strings of digits, as protocol buffers write 64-bit ones, too.
  std::optional<double> AsNumber() const;
  // A list of whole numbers.
  std::optional<std::vector<int64_t>> AsInts() const;
};

// Null when the text is no JSON or nests deeper than 32. Linear.
std::optional<Json> ParseJson(std::string_view text);

}  // namespace tokamak
