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
bool IsCommutativeInFirstTwo(const Instr& instr) {
  return IsCommutative(instr.op()) || instr.op() == Op::kFma;
}

// Elements of a small slice at most. Chosen: it takes one or two cache lines of f32 wherever it
// starts; the start of a larger one matters for cache lines and vector alignment.
constexpr int64_t kMaxSmallSliceElements = 16;

bool IsSmallSlice(const Instr& instr) {
  return instr.op() == Op::kSlice && instr.shape().ElementCount() <= kMaxSmallSliceElements;
}

}  // namespace

const FusedRegionHasher::InstrHashes& FusedRegionHasher::InstrHashesOf(const Instr& instr) {
  InstrHashes& hashes = instr_hashes_[&instr];
  if (hashes.is_computed) return hashes;
  Hasher hasher;
  hashes.shape = instr.shape().Hash();
  hasher.Add(instr.op());
  hasher.Add(hashes.shape);
  bool is_small = IsSmallSlice(instr);
  if (is_small) {
    // A slice that starts at 0 stays distinct from the others.
    for (int64_t start : instr.attrs<SliceAttrs>().starts) hasher.Add(start != 0);
    for (int64_t stride : instr.attrs<SliceAttrs>().strides) hasher.Add(stride);
    hashes.without_slice_starts = hasher.digest();
  }
  hasher.Add(HashAttrs(instr.op(), instr.attrs()));
  for (const Computation* callee : instr.called()) hasher.Add(BodyHash(*callee));
  hashes.with_slice_starts = hasher.digest();
  if (!is_small) hashes.without_slice_starts = hashes.with_slice_starts;
  hashes.is_computed = true;
  return hashes;
}

void FusedRegionHasher::HashNodes(const FusedRegion& region) {
  bool has_small_slices = false;  // some instruction has two different InstrHashes
  for (const Instr* instr : region.instrs) {
    bool either = IsCommutativeInFirstTwo(*instr);
    has_small_slices = has_small_slices || InstrHashesOf(*instr).without_slice_starts !=
                                               InstrHashesOf(*instr).with_slice_starts;
    for (size_t i = 0; i < instr->operand_count(); ++i) {
      const Instr* operand = instr->operand(i);
      if (!IsInRegion(*operand) || !nodes_[operand].is_input) continue;
      nodes_[operand].node_hash +=
          MixedHash(InstrHashesOf(*instr).without_slice_starts + (either && i < 2 ? 0 : i));
    }
  }
  for (const Instr* input : region.inputs) {
    RegionNode& node = nodes_[input];
    node.node_hash = node.exact_node_hash = MixedHash(node.node_hash ^ InstrHashesOf(*input).shape);
  }
  for (const Instr* instr : region.instrs) {
    RegionNode& node = nodes_[instr];
    node.is_swapped =
        IsCommutativeInFirstTwo(*instr) && IsBefore(*instr->operand(1), *instr->operand(0));
    Hasher hasher, exact;
    hasher.Add(InstrHashesOf(*instr).without_slice_starts);
    for (size_t i = 0; i < instr->operand_count(); ++i)
      hasher.Add(NodeHashOf(OperandOf(*instr, i)));
    node.node_hash = node.exact_node_hash = hasher.digest();
    if (!has_small_slices) continue;
    exact.Add(InstrHashesOf(*instr).with_slice_starts);
    for (size_t i = 0; i < instr->operand_count(); ++i)
      exact.Add(ExactNodeHashOf(OperandOf(*instr, i)));
    node.exact_node_hash = exact.digest();
  }
}

void FusedRegionHasher::HashInstr(const Instr& instr, Hasher& hasher) {
  hasher.Add(InstrHashesOf(instr).without_slice_starts);
  for (size_t i = 0; i < instr.operand_count(); ++i) {
    const Instr& operand = OperandOf(instr, i);
    hasher.Add(IsInRegion(operand) ? uint64_t{numbers_.NumberOf(operand)}
                                   : InstrHashesOf(operand).without_slice_starts);
  }
  numbers_.NumberOf(instr);
}

// Post-order, operands from first to last.
void FusedRegionHasher::HashRoot(const Instr& root, Hasher& hasher) {
  if (numbers_.Has(root)) return;
  stack_.push_back({&root, 0});
  while (!stack_.empty()) {
    Frame& frame = stack_.back();
    if (frame.next_operand == frame.instr->operand_count()) {
      if (!numbers_.Has(*frame.instr)) HashInstr(*frame.instr, hasher);
      stack_.pop_back();
      continue;
    }
    const Instr& operand = OperandOf(*frame.instr, frame.next_operand++);
    if (!IsInRegion(operand) || numbers_.Has(operand)) continue;
    if (nodes_[&operand].is_input) {
      numbers_.NumberOf(operand);
      hasher.Add(InstrHashesOf(operand).shape);
    } else {
      stack_.push_back({&operand, 0});
    }
  }
}

uint64_t FusedRegionHasher::HashOf(const FusedRegion& region) {
  Hasher hasher;
  numbers_.Reset();
  ++epoch_;
  for (const Instr* input : region.inputs) nodes_[input] = {epoch_, true};
  for (const Instr* instr : region.instrs) nodes_[instr] = {epoch_, false};
  HashNodes(region);
  // Roots in canonical order; equal ones in the given order.
  roots_ = region.roots;
  if (roots_.size() > 1)
    std::stable_sort(roots_.begin(), roots_.end(), [&](const Instr* x, const Instr* y) {
      return nodes_[x].sort_key() < nodes_[y].sort_key();
    });
  for (const Instr* root : roots_) HashRoot(*root, hasher);
  // Instructions that lead to no root, if any.
  for (const Instr* instr : region.instrs) HashRoot(*instr, hasher);
  for (const Instr* root : roots_) hasher.Add(numbers_.NumberOf(*root));
  return hasher.digest();
}

uint64_t FusedRegionHasher::ExactHashOf(const FusedRegion& region) {
  Hasher hasher;
  numbers_.Reset();
  hasher.Add(region.inputs.size());
  for (const Instr* input : region.inputs) {
    numbers_.NumberOf(*input);
    hasher.Add(InstrHashesOf(*input).shape);
  }
  for (const Instr* instr : region.instrs) {
    hasher.Add(InstrHashesOf(*instr).with_slice_starts);
    for (const Instr* operand : instr->operands())
      hasher.Add(IsImmediate(*operand) ? InstrHashesOf(*operand).with_slice_starts
                                       : uint64_t{numbers_.NumberOf(*operand)});
    numbers_.NumberOf(*instr);
  }
  for (const Instr* root : region.roots) hasher.Add(numbers_.NumberOf(*root));
  return hasher.digest();
}

FusedRegionKey FusedRegionHasher::KeyOf(const FusedRegion& region) {
  FusedRegionKey key{HashOf(region)};
  auto before = [&](const Instr* x, const Instr* y) {
    return numbers_.NumberOf(*x) < numbers_.NumberOf(*y);
  };
  key.interface.reserve(region.inputs.size() + region.roots.size());
  key.interface = region.inputs;
  key.interface.insert(key.interface.end(), region.roots.begin(), region.roots.end());
  auto roots = key.interface.begin() + static_cast<int64_t>(region.inputs.size());
  std::sort(key.interface.begin(), roots, before);
  std::sort(roots, key.interface.end(), before);
  key.numbers.reserve(region.instrs.size());
  for (const Instr* instr : region.instrs) key.numbers.push_back(numbers_.NumberOf(*instr));
  return key;
}

}  // namespace tokamak
