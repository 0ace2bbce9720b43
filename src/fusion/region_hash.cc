#include "fusion/region_hash.h"

#include <algorithm>

#include "ir/compare.h"

namespace tokamak {
namespace {

uint64_t MixedHash(uint64_t x) {
  Hasher hasher;
  hasher.Add(x);
  return hasher.digest();
}

// Whether its first two operands commute.
bool HasEitherOrder(const Instr& instr) {
  return IsCommutative(instr.op()) || instr.op() == Op::kFma;
}

// Elements of a slice up to which its start does not affect the cost. The start of a larger one
// matters for cache lines and vector alignment. Chosen.
constexpr int64_t kHashedFewElements = 16;

bool CutsOutFew(const Instr& instr) {
  return instr.op() == Op::kSlice && instr.shape().ElementCount() <= kHashedFewElements;
}

}  // namespace

const FusedRegionHasher::Own& FusedRegionHasher::OwnOf(const Instr& instr) {
  Own& own = own_[&instr];
  if (own.known) return own;
  Hasher hasher;
  own.shape = instr.shape().Hash();
  hasher.Add(instr.op());
  hasher.Add(own.shape);
  bool few = CutsOutFew(instr);
  if (few) {
    // A slice that starts at 0 stays distinct from the others.
    for (int64_t start : instr.attrs<SliceAttrs>().starts) hasher.Add(start != 0);
    for (int64_t stride : instr.attrs<SliceAttrs>().strides) hasher.Add(stride);
    own.all = hasher.digest();
  }
  hasher.Add(HashAttrs(instr.op(), instr.attrs()));
  for (const Computation* callee : instr.called()) hasher.Add(BodyHash(*callee));
  own.exact = hasher.digest();
  if (!few) own.all = own.exact;
  own.known = true;
  return own;
}

void FusedRegionHasher::HashDeeply(const FusedRegion& region) {
  bool cuts = false;  // some instruction has Own::all != Own::exact
  for (const Instr* instr : region.instrs) {
    bool either = HasEitherOrder(*instr);
    cuts = cuts || OwnOf(*instr).all != OwnOf(*instr).exact;
    for (size_t i = 0; i < instr->operand_count(); ++i) {
      const Instr* operand = instr->operand(i);
      if (!IsIn(*operand) || !marks_[operand].is_input) continue;
      marks_[operand].deep += MixedHash(OwnOf(*instr).all + (either && i < 2 ? 0 : i));
    }
  }
  for (const Instr* input : region.inputs) {
    Mark& mark = marks_[input];
    mark.deep = mark.exact = MixedHash(mark.deep ^ OwnOf(*input).shape);
  }
  for (const Instr* instr : region.instrs) {
    Mark& mark = marks_[instr];
    mark.is_swapped = HasEitherOrder(*instr) && IsBefore(*instr->operand(1), *instr->operand(0));
    Hasher hasher, exact;
    hasher.Add(OwnOf(*instr).all);
    for (size_t i = 0; i < instr->operand_count(); ++i) hasher.Add(DeepOf(OperandOf(*instr, i)));
    mark.deep = mark.exact = hasher.digest();
    if (!cuts) continue;
    exact.Add(OwnOf(*instr).exact);
    for (size_t i = 0; i < instr->operand_count(); ++i) exact.Add(ExactOf(OperandOf(*instr, i)));
    mark.exact = exact.digest();
  }
}

// An operand outside the region is an immediate, or the array that an update writes into.
void FusedRegionHasher::Add(const Instr& instr, Hasher& hasher) {
  hasher.Add(OwnOf(instr).all);
  for (size_t i = 0; i < instr.operand_count(); ++i) {
    const Instr& operand = OperandOf(instr, i);
    hasher.Add(IsIn(operand) ? uint64_t{numbers_.Of(operand)} : OwnOf(operand).all);
  }
  numbers_.Of(instr);
}

// Post-order, operands from first to last.
void FusedRegionHasher::HashRoot(const Instr& root, Hasher& hasher) {
  if (numbers_.Has(root)) return;
  open_.push_back({&root, 0});
  while (!open_.empty()) {
    Step& step = open_.back();
    if (step.next == step.instr->operand_count()) {
      if (!numbers_.Has(*step.instr)) Add(*step.instr, hasher);
      open_.pop_back();
      continue;
    }
    const Instr& operand = OperandOf(*step.instr, step.next++);
    if (!IsIn(operand) || numbers_.Has(operand)) continue;
    if (marks_[&operand].is_input) {
      numbers_.Of(operand);
      hasher.Add(OwnOf(operand).shape);
    } else {
      open_.push_back({&operand, 0});
    }
  }
}

uint64_t FusedRegionHasher::Of(const FusedRegion& region) {
  Hasher hasher;
  numbers_.Begin();
  ++epoch_;
  for (const Instr* input : region.inputs) marks_[input] = {epoch_, true};
  for (const Instr* instr : region.instrs) marks_[instr] = {epoch_, false};
  HashDeeply(region);
  // Roots in canonical order; equal ones in the given order.
  roots_ = region.roots;
  if (roots_.size() > 1)
    std::stable_sort(roots_.begin(), roots_.end(), [&](const Instr* x, const Instr* y) {
      return marks_[x].order() < marks_[y].order();
    });
  for (const Instr* root : roots_) HashRoot(*root, hasher);
  // Instructions that lead to no root, if any.
  for (const Instr* instr : region.instrs) HashRoot(*instr, hasher);
  for (const Instr* root : roots_) hasher.Add(numbers_.Of(*root));
  return hasher.digest();
}

uint64_t FusedRegionHasher::OfEach(const FusedRegion& region) {
  Hasher hasher;
  numbers_.Begin();
  hasher.Add(region.inputs.size());
  for (const Instr* input : region.inputs) {
    numbers_.Of(*input);
    hasher.Add(OwnOf(*input).shape);
  }
  for (const Instr* instr : region.instrs) {
    hasher.Add(OwnOf(*instr).exact);
    for (const Instr* operand : instr->operands())
      hasher.Add(IsImmediate(*operand) ? OwnOf(*operand).exact : uint64_t{numbers_.Of(*operand)});
    numbers_.Of(*instr);
  }
  for (const Instr* root : region.roots) hasher.Add(numbers_.Of(*root));
  return hasher.digest();
}

FusedRegionKey FusedRegionHasher::KeyOf(const FusedRegion& region) {
  FusedRegionKey key{Of(region)};
  auto before = [&](const Instr* x, const Instr* y) { return numbers_.Of(*x) < numbers_.Of(*y); };
  key.interface.reserve(region.inputs.size() + region.roots.size());
  key.interface = region.inputs;
  key.interface.insert(key.interface.end(), region.roots.begin(), region.roots.end());
  auto roots = key.interface.begin() + static_cast<int64_t>(region.inputs.size());
  std::sort(key.interface.begin(), roots, before);
  std::sort(roots, key.interface.end(), before);
  key.numbers.reserve(region.instrs.size());
  for (const Instr* instr : region.instrs) key.numbers.push_back(numbers_.Of(*instr));
  return key;
}

}  // namespace tokamak
