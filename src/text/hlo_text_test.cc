#include <gtest/gtest.h>

#include "ir/compare.h"
#include "text/hlo_sharding.h"
#include "text/read.h"
#include "text/write.h"

namespace tokamak {
namespace {

TEST(HloSharding, PrintsWhatItReads) {
  for (const char* text : {
           "{replicated}",
           "{maximal device=3}",
           "{manual shard_as 2}",
           "{devices=[2,1]0,1}",
           "{devices=[2,2]<=[2,2]T(1,0) last_tile_dim_replicate}",
           "{devices=[1,2,2]<=[4] last_tile_dims={manual, replicated}}",
           "{{replicated}, {devices=[2]<=[2] shard_like 1}}",
           "{mesh['x'=2,'y'=4], [{'x'}, {'y':(1)2, ?}p1], replicated={'y':(2)2}}",
       }) {
    std::vector<Mesh> meshes;
    Result<Sharding> sharding = ParseHloSharding(text, meshes);
    ASSERT_TRUE(sharding.ok()) << text;
    EXPECT_EQ(WriteHloSharding(sharding.value(), meshes), text);
  }
}

TEST(HloSharding, CountsDevices) {
  std::vector<Mesh> meshes;
  Result<Sharding> sharding = ParseHloSharding("{devices=[2,2]<=[3]}", meshes);
  ASSERT_FALSE(sharding.ok());
  EXPECT_EQ(sharding.error().message, "sharding: 4 tiles but 3 devices");
}

// Parses, prints and parses again; returns the text.
std::string Twice(const std::string& text) {
  Result<std::unique_ptr<Module>> module = ReadHloText(text, "t.hlo");
  if (!module.ok()) return Render(module.error(), text);
  std::string printed = WriteHloText(*module.value());
  Result<std::unique_ptr<Module>> again = ReadHloText(printed, "printed");
  if (!again.ok()) return Render(again.error(), printed);
  EXPECT_EQ(FirstDifference(*module.value(), *again.value()), "");
  return printed;
}

std::string Constant(const std::string& shape, const std::string& value) {
  std::string printed = Twice("ENTRY e { ROOT c = " + shape + " constant(" + value + ") }");
  size_t start = printed.find("constant("), stop = printed.find(")\n", start);
  if (start == std::string::npos) return printed;
  return printed.substr(start + 9, stop - start - 9);
}

TEST(HloLiteral, KeepsBits) {
  EXPECT_EQ(Constant("f32[4]", "{nan, -nan, nan(0x400123), -inf}"),
            "{nan, -nan, nan(0x400123), -inf}");
  EXPECT_EQ(Constant("f32[2]", "{0.1, -0}"), "{0.1, -0}");
  EXPECT_EQ(Constant("f64[]", "0.1"), "0.1");
  EXPECT_EQ(Constant("u64[]", "18446744073709551615"), "18446744073709551615");
  EXPECT_EQ(Constant("s4[2]", "{-8, 7}"), "{-8, 7}");
  EXPECT_EQ(Constant("c64[]", "(1, -2.5)"), "(1, -2.5)");
  EXPECT_EQ(Constant("f32[1000,1000]", "{{7, ...}}"), "{{7, ...}}");
  EXPECT_EQ(Constant("(f32[2], (s32[], pred[]))", "({1, 2}, (3, true))"), "({1, 2}, (3, true))");
}

TEST(HloReader, ReportsErrorLocations) {
  struct Case {
    const char* text;
    ErrorCode code;
    int line, column;
  };
  for (const Case& c : {
           Case{"ENTRY e {\n  ROOT a = f32[2] frob()\n}", ErrorCode::kHloUnknownOp, 2, 19},
           Case{"ENTRY e {\n  ROOT a = f32[2] negate(b)\n}", ErrorCode::kHloUnknownInstruction, 2,
                26},
           Case{"ENTRY e {\n  ROOT a = f32[2 parameter(0)\n}", ErrorCode::kHloSyntax, 2, 18},
           Case{"ENTRY e {\n  ROOT a = s4[] constant(8)\n}", ErrorCode::kHloBadLiteral, 2, 26},
           Case{"ENTRY e {\n  a = f32[] parameter(0)\n  ROOT a = f32[] negate(a)\n}",
                ErrorCode::kHloDuplicateName, 3, 8},
       }) {
    Result<std::unique_ptr<Module>> module = ReadHloText(c.text, "t.hlo");
    ASSERT_FALSE(module.ok()) << c.text;
    EXPECT_EQ(module.error().code, c.code) << module.error().message;
    EXPECT_EQ(module.error().where.line, c.line) << module.error().message;
    EXPECT_EQ(module.error().where.column, c.column) << module.error().message;
  }
}

TEST(HloText, KeepsTheOrderOfComputations) {
  std::string printed = Twice(
      "ENTRY main { x = f32[] parameter(0)\n ROOT y = f32[] call(x), to_apply=f }\n"
      "f { x = f32[] parameter(0)\n ROOT y = f32[] negate(x) }");
  EXPECT_LT(printed.find("f {"), printed.find("ENTRY main"));
  EXPECT_NE(printed.find("tokamak.order=\"1,0\""), std::string::npos);
}

}  // namespace
}  // namespace tokamak
