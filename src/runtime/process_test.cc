#include "runtime/process.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace tokamak {
namespace {

// Size and time of a file may equal those of another build; the linker's hash of its contents does
// not.
TEST(Process, TheBuildIsKnownByItsContents) {
  const std::string& id = BuildId();
  EXPECT_EQ(std::count(id.begin(), id.end(), '.'), 3) << id;
  size_t digits = id.find('.');
  EXPECT_GE(digits, 16u) << id;
  EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), digits) << id;
}

}  // namespace
}  // namespace tokamak
