// Transformations that preserve the values of a program.
#include "ir/clone.h"
#include "ir/compare.h"
#include "random/check.h"
#include "random/plan_order.h"
#include "text/read.h"
#include "text/write.h"

namespace tokamak::fuzz {
namespace {

// Checks that the interpreter is deterministic.
class Clone : public Transformation {
 public:
  std::string name() const override { return "clone"; }
  Result<std::unique_ptr<Module>> Apply(const Module& module) const override {
    return CloneModule(module);
  }
};

// Prints and parses; the result must also be equal.
class RoundTrip : public Transformation {
 public:
  explicit RoundTrip(bool hlo) : hlo_(hlo) {}
  std::string name() const override { return hlo_ ? "hlo" : "mlir"; }
  Result<std::unique_ptr<Module>> Apply(const Module& module) const override {
    std::string text = hlo_ ? WriteHloText(module) : WriteStablehloText(module);
    TOK_TRY(std::unique_ptr<Module> again,
            hlo_ ? ReadHloText(text, "printed") : ReadMlirText(text, "printed"));
    std::string difference = FirstDifference(module, *again);
    if (!difference.empty())
      return MakeError(ErrorCode::kRoundTripDiffers, "reads back differently: " + difference);
    if (StructuralHash(module) != StructuralHash(*again))
      return MakeError(ErrorCode::kRoundTripDiffers, "equal modules have different hashes");
    return again;
  }

 private:
  bool hlo_;
};

}  // namespace

std::unique_ptr<Transformation> TransformationNamed(std::string_view name) {
  if (name == "clone") return std::make_unique<Clone>();
  if (name == "hlo") return std::make_unique<RoundTrip>(true);
  if (name == "mlir") return std::make_unique<RoundTrip>(false);
  if (name.starts_with("on:")) return BackendNamed(name);
  if (name == "plans:shuffled") return PlanShuffle();
  return PassNamed(name);
}

std::vector<std::string> TransformationNames() {
  std::vector<std::string> names{"clone", "hlo", "mlir"};
  for (std::string& pass : PassNames()) names.push_back(std::move(pass));
  return names;
}

}  // namespace tokamak::fuzz
