#include "fusion/kernel_memo.h"

#include <algorithm>

#include "gen/element.h"
#include "ir/compare.h"

namespace tokamak {
namespace {

// Kernel IR values in the cache at most: some 100 MB. Chosen.
constexpr size_t kMaxValues = 2'000'000;

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

BuiltKernel KernelFor(const FusedRegion& region, const MadeKernel& made, std::string name) {
  BuiltKernel built = *made.outcome.built;
  built.kernel.name = std::move(name);
  if (region.roots == made.region.roots && region.inputs == made.region.inputs) return built;
  built.arguments = ArgumentsOf(region);
  for (size_t i = 0; i < built.arguments.size(); ++i) {
    const KernelArgument& argument = built.arguments[i];
    built.kernel.arrays[i].name = NameOfArgument(*argument.instr, argument.part);
  }
  for (auto& [output, updated] : built.updates) updated = built.arguments[output].instr->operand(0);
  return built;
}

std::shared_ptr<const MadeKernel> KernelMemo::Make(const FusedRegion& region, GeneratorKind kind) {
  uint64_t hash = hasher_.OfEach(region);
  auto [first, last] = made_.equal_range(hash);
  for (auto it = first; it != last; ++it)
    if (it->second->kind == kind && IsSame(it->second->region, region)) return it->second;
  auto made = std::make_shared<MadeKernel>(
      MadeKernel{region, kind, OnlyIfSound(BuildRegion(region, kind, machine_, "probe"))});
  if (made->outcome.built) values_ += made->outcome.built->kernel.nodes.size();
  if (values_ <= kMaxValues) made_.emplace(hash, made);
  return made;
}

// The same instructions in the same order with corresponding operands, and the same roots.
bool KernelMemo::IsSame(const FusedRegion& made, const FusedRegion& region) {
  of_made_.Begin();
  of_region_.Begin();
  auto same = [&](const Instr* x, const Instr* y) { return of_made_.Of(*x) == of_region_.Of(*y); };
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
  return std::ranges::equal(made.inputs, region.inputs, same_input) &&
         std::ranges::equal(made.instrs, region.instrs, same_instr) &&
         std::ranges::equal(made.roots, region.roots, same);
}

}  // namespace tokamak
