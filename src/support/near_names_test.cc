#include "support/near_names.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

const std::vector<std::string_view> kCommands = {"run", "check", "convert", "explain"};

TEST(NearNames, ANameThatDiffersInFewCharactersIsSuggested) {
  EXPECT_EQ(DidYouMean("exlpain", kCommands), "; did you mean 'explain'?");
  EXPECT_EQ(DidYouMean("Check", kCommands), "; did you mean 'check'?");
  EXPECT_EQ(DidYouMean("h100", {"host", "h200"}), "; did you mean 'h200'?");
}

TEST(NearNames, AnUnrelatedNameIsNotSuggested) {
  EXPECT_EQ(DidYouMean("frobnicate", kCommands), "");
  EXPECT_EQ(DidYouMean("gpu", {"cpu", "cuda"}), "") << "one letter of three is another name";
  EXPECT_EQ(DidYouMean("", kCommands), "");
  EXPECT_EQ(DidYouMean("x", {}), "");
}

TEST(NearNames, ANameThatContainsTheWordIsSuggested) {
  EXPECT_EQ(DidYouMean("expensive", {"xla.sibling", "xla.expensive-op"}),
            "; did you mean 'xla.expensive-op'?");
  EXPECT_EQ(DidYouMean("op", {"xla.sibling", "xla.expensive-op"}), "");
}

TEST(NearNames, NearestNamesAreSorted) {
  EXPECT_EQ(NearestNames("bb", {"cc", "b", "abb"}, 2), (std::vector<std::string_view>{"b", "abb"}));
}

TEST(NearNames, NoneOfListsAllNames) {
  EXPECT_EQ(NoneOf("serch", {"none", "greedy", "search"}),
            "'serch' is none of none, greedy and search; did you mean 'search'?");
  EXPECT_EQ(NoneOf(std::string(100, 'x'), {"a"}), "'" + std::string(60, 'x') + "...' is none of a");
}

}  // namespace
}  // namespace tokamak
