#include "runtime/c_compiler.h"

#include <cstdlib>

#include <gtest/gtest.h>

namespace tokamak {
namespace {

TEST(CompileC, CompilesAndReportsLines) {
  auto code = CompileC({"seven", "int seven(void) { return SEVEN; }", false, {"-DSEVEN=7"}});
  ASSERT_TRUE(code.ok()) << code.error().message;
  auto seven = reinterpret_cast<int (*)()>(code.value()->Find("seven"));
  ASSERT_NE(seven, nullptr);
  EXPECT_EQ(seven(), 7);
  EXPECT_EQ(code.value()->Find("eight"), nullptr);
  auto broken = CompileC({"broken", "#line 40 \"mine.c\"\nint f(void) { return x; }\n"});
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().code, ErrorCode::kCustomKernelSource);
  EXPECT_NE(broken.error().notes[0].find("mine.c:40:"), std::string::npos);
}

TEST(CompileC, HasALimitOfTime) {
  auto slow = CompileC({"slow", "int slow_to_compile;"}, std::chrono::milliseconds(0));
  ASSERT_FALSE(slow.ok());
  EXPECT_EQ(slow.error().code, ErrorCode::kCustomKernelCompiler);
  EXPECT_NE(slow.error().message.find("was stopped after 0 ms"), std::string::npos);
}

TEST(CompileC, ReportsAMissingCompiler) {
  setenv("TOKAMAK_CXX", "/no/such/compiler", 1);
  auto code = CompileC({"none", "int never_compiled;", true});
  unsetenv("TOKAMAK_CXX");
  ASSERT_FALSE(code.ok());
  EXPECT_EQ(code.error().code, ErrorCode::kCustomKernelCompiler);
  EXPECT_NE(code.error().notes[0].find("apt-get install g++"), std::string::npos);
}

}  // namespace
}  // namespace tokamak
