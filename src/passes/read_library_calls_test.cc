// Configurations of library calls are text from outside: none may end the process.

#include <gtest/gtest.h>

#include "ir/builder.h"
#include "passes/passes.h"

namespace tokamak {
namespace {

// What the pass records about a matrix product with this configuration.
std::string RecordOf(const std::string& config) {
  Module module("m");
  Builder b(module, "main");
  Instr* x = b.Parameter(Shape::Array(ElementType::kF32, {4, 8}), "x");
  Instr* y = b.Parameter(Shape::Array(ElementType::kF32, {8, 2}), "y");
  CustomCallAttrs attrs;
  attrs.target = "__cublas$gemm";
  attrs.backend_config = config;
  Instr* product =
      b.Append(Op::kCustomCall, {x, y}, attrs, {.shape = Shape::Array(ElementType::kF32, {4, 2})});
  module.set_entry(b.Finish(product).value());
  DecisionLog log;
  PassContext context(log);
  Step step{Pass::kReadLibraryCalls};
  auto runs = RunPasses(module, {&step, 1}, context, {});
  EXPECT_TRUE(runs.ok());
  return log.all().empty() ? "" : ToString(log.all()[0]);
}

TEST(LibraryCalls, OddConfigurationsAreReasons) {
  const std::string dims =
      R"("dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":[0]})";
  EXPECT_NE(RecordOf("{" + dims + "}").find("library.read"), std::string::npos);
  const std::pair<std::string, std::string> kept[] = {
      {"[1, 2", "not JSON"},
      {"{\"alpha_real\": 1e999}", "not JSON"},
      {"\"\xff\"", "not JSON"},
      {"[]", "no dimension numbers"},
      {"7", "no dimension numbers"},
      {"{\"gemm_backend_config\": null}", "no dimension numbers"},
      {"{\"dot_dimension_numbers\": 3}", "its dimensions do not"},
      {"{" + dims + ", \"alpha_real\": \"much\"}", "alpha_real is not a number"},
      {"{" + dims + ", \"epilogue\": [\"RELU\"]}", "epilogue is not a string"},
      {R"({"dot_dimension_numbers":{"lhs_contracting_dimensions":[[1]]}})",
       "not a list of numbers"},
      {R"({"dot_dimension_numbers":{"lhs_contracting_dimensions":[1e300]}})",
       "not a list of numbers"},
  };
  for (const auto& [config, reason] : kept)
    EXPECT_NE(RecordOf(config).find(reason), std::string::npos)
        << config << ": " << RecordOf(config);
}

TEST(LibraryCalls, DeepConfigurationsDoNotExhaustTheStack) {
  constexpr size_t kDepth = 100'000;
  const std::string deep = std::string(kDepth, '[') + std::string(kDepth, ']');
  EXPECT_NE(RecordOf(deep).find("no dimension numbers"), std::string::npos);
  EXPECT_NE(RecordOf("{\"new_field\": " + deep + "}").find("new_field"), std::string::npos);
  EXPECT_NE(RecordOf(std::string(kDepth, '[')).find("not JSON"), std::string::npos);
}

}  // namespace
}  // namespace tokamak
