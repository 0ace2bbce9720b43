#include "support/near_names.h"

#include <algorithm>

namespace tokamak {
namespace {

// Characters (chosen: fits a line).
constexpr size_t kLongestShown = 60;
// Characters of a name that are compared (chosen: longer than any name of ours).
constexpr size_t kLongestName = 200;
// Names compared with a word. A program of a million instructions must still fail at once (chosen).
constexpr size_t kMaxNames = 10'000;
// A word of fewer characters is a part of too many names (chosen).
constexpr size_t kShortestPart = 3;

char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = Lower(c);
  return lower;
}

// Levenshtein distance.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t above = row[j];
      size_t substituted = diagonal + (Lower(a[i - 1]) == Lower(b[j - 1]) ? 0 : 1);
      row[j] = std::min({above + 1, row[j - 1] + 1, substituted});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

std::vector<std::string_view> NearestNames(std::string_view word,
                                           const std::vector<std::string_view>& names,
                                           size_t most) {
  word = word.substr(0, kLongestShown);
  std::vector<std::pair<size_t, std::string_view>> ranked;
  for (std::string_view name : names) {
    if (ranked.size() == kMaxNames) break;
    ranked.emplace_back(EditDistance(word, name.substr(0, kLongestName)), name);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& x, const auto& y) { return x.first < y.first; });
  std::vector<std::string_view> nearest;
  for (size_t i = 0; i < std::min(most, ranked.size()); ++i) nearest.push_back(ranked[i].second);
  return nearest;
}

std::string DidYouMean(std::string_view word, const std::vector<std::string_view>& names) {
  auto meant = [](std::string_view name) { return "; did you mean '" + std::string(name) + "'?"; };
  word = word.substr(0, kLongestShown);
  std::vector<std::string_view> nearest = NearestNames(word, names, 1);
  if (nearest.empty()) return "";
  std::string_view first = nearest[0].substr(0, kLongestName);
  if (EditDistance(word, first) * 3 < std::max(word.size(), first.size())) return meant(nearest[0]);
  if (word.size() < kShortestPart) return "";
  auto part = std::find_if(names.begin(), names.end(), [&](std::string_view name) {
    return Lower(name.substr(0, kLongestName)).find(Lower(word)) != std::string::npos;
  });
  return part == names.end() ? "" : meant(*part);
}

std::string NoneOf(std::string_view word, const std::vector<std::string_view>& names) {
  std::string text = "'" + ShownWord(word) + "' is none of ";
  for (size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + std::string(names[i]);
  return text + DidYouMean(word, names);
}

std::string ShownWord(std::string_view word) {
  return word.size() <= kLongestShown ? std::string(word)
                                      : std::string(word.substr(0, kLongestShown)) + "...";
}

}  // namespace tokamak
