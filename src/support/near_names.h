#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

// Suggestions for misspelt names: the only place that decides which names are close. Used wherever
// a user's word is looked up in a list of names. The time is the product of the lengths, per name.

// The names in the order of their edit distance (insertions, deletions and substitutions; case is
// ignored) from the word, at most `most` of them. Equal distances keep their order.
std::vector<std::string_view> NearestNames(std::string_view word,
                                           const std::vector<std::string_view>& names, size_t most);

// "; did you mean 'NAME'?" for the nearest name, or "" if none resembles the word: fewer than a
// third of the characters may differ, or the word is a part of the name.
std::string DidYouMean(std::string_view word, const std::vector<std::string_view>& names);

// "'x' is none of a, b and c", followed by a suggestion as above.
std::string NoneOf(std::string_view word, const std::vector<std::string_view>& names);

// A word shortened for messages: a whole file may have been pasted.
std::string ShownWord(std::string_view word);

}  // namespace tokamak
