#include "fusion/kernel_cache.h"

#include <algorithm>

#include "gen/element.h"
#include "ir/compare.h"

namespace tokamak {
namespace {

// Kernel IR values in the cache at most. Chosen: some 100 MB, less than a compiler may take.
constexpr size_t kMaxCachedValues = 2'000'000;

bool IsSameOp(const Instr& x, const Instr& y) {
  return x.op() == y.op() && x.shape() == y.shape() && EqualAttrs(x.op(), x.attrs(), y.attrs()) &&
         SameExtras(x, y) &&
         std::ranges::equal(x.called(), y.called(), [](const Computation* a, const Computation* b) {
           return a == b || SameBody(*a, *b);
         });
}

// The number of a parameter or tuple element does not affect the kernel.
bool IsSameInput(const Instr& x, const Instr& y) {
  bool numbered = x.op() == Op::kParameter || x.op() == Op::kGetTupleElement;
  return numbered ? x.op() == y.op() && x.shape() == y.shape() : IsSameOp(x, y);
}

}  // namespace

BuiltKernel RebindKernel(const FusedRegion& region, const KernelBuildResult& result,
                         std::string name) {
  BuiltKernel built = *result.outcome.built;
  built.kernel.name = std::move(name);
  if (region.roots == result.region.roots && region.inputs == result.region.inputs) return built;
  built.arguments = ArgumentsOf(region);
  for (size_t i = 0; i < built.arguments.size(); ++i) {
    const KernelArgument& argument = built.arguments[i];
    built.kernel.arrays[i].name = NameOfArgument(*argument.instr, argument.result_index);
  }
  for (auto& [output, updated] : built.must_alias)
    updated = built.arguments[output].instr->operand(0);
  return built;
}

std::shared_ptr<const KernelBuildResult> KernelCache::BuildOrGet(
    const FusedRegion& region, GeneratorKind kind, std::optional<Schedule> requested) {
  uint64_t hash = hasher_.ExactHashOf(region);
  auto [first, last] = results_.equal_range(hash);
  for (auto it = first; it != last; ++it)
    if (it->second->kind == kind && it->second->requested == requested &&
        IsSame(it->second->region, region))
      return it->second;
  auto result = std::make_shared<KernelBuildResult>(
      KernelBuildResult{.region = region, .kind = kind, .requested = requested, .outcome = {}});
  result->outcome = VerifyOrReject(Build(region, kind, requested));
  if (result->outcome.built) cached_ir_values_ += result->outcome.built->kernel.nodes.size();
  if (cached_ir_values_ <= kMaxCachedValues) results_.emplace(hash, result);
  return result;
}

BuildOutcome KernelCache::Build(const FusedRegion& region, GeneratorKind kind,
                                const std::optional<Schedule>& requested) const {
  if (requested && requested->kind == kind)
    if (BuildOutcome outcome = BuildRegion(region, *requested, machine_, "probe"); outcome.built)
      return outcome;
  BuildOutcome outcome = BuildRegion(region, kind, machine_, "probe");
  if (extensions_ == nullptr || !extensions_->HasGenerator()) return outcome;
  std::optional<BuiltKernel> offered =
      extensions_->Generate(region, outcome.built ? &*outcome.built : nullptr, kind);
  if (offered) outcome = {std::move(offered), ""};
  return outcome;
}

bool KernelCache::IsSame(const FusedRegion& cached, const FusedRegion& requested) {
  cached_numbers_.Reset();
  requested_numbers_.Reset();
  auto same = [&](const Instr* x, const Instr* y) {
    return cached_numbers_.NumberOf(*x) == requested_numbers_.NumberOf(*y);
  };
  auto same_operand = [&](const Instr* x, const Instr* y) {
    return IsImmediate(*x) ? x == y || (IsImmediate(*y) && IsSameOp(*x, *y)) : same(x, y);
  };
  auto same_input = [&](const Instr* x, const Instr* y) {
    return same(x, y) && IsSameInput(*x, *y);
  };
  auto same_instr = [&](const Instr* x, const Instr* y) {
    return IsSameOp(*x, *y) && std::ranges::equal(x->operands(), y->operands(), same_operand) &&
           same(x, y);
  };
  return std::ranges::equal(cached.inputs, requested.inputs, same_input) &&
         std::ranges::equal(cached.instrs, requested.instrs, same_instr) &&
         std::ranges::equal(cached.roots, requested.roots, same);
}

}  // namespace tokamak
