#include "fusion/chain_moves.h"

#include <algorithm>
#include <unordered_set>

#include "analysis/dot_chains.h"
#include "analysis/packed_preds.h"
#include "fusion/instr_predicates.h"
#include "gen/dot_dimensions.h"
#include "gen/gpu/operand_view.h"
#include "kernel/kernel.h"

namespace tokamak {
namespace {

// Values to look at from a first dot to all second dots that use it. Chosen: several times what
// attention with dropout and its gradients have; it bounds the search.
constexpr size_t kMaxAfterFirst = 600;

// An operand without views, which are read in place, and without the conversion of a narrower
// array, which the kernel's multiplies do not need.
struct ChainOperand {
  const Instr* stored = nullptr;
  // The conversion, and the views that follow it; empty if there is no conversion.
  std::vector<const Instr*> converted;
};

ChainOperand OperandOf(const Instr& operand) {
  ChainOperand result;
  const Instr* value = &operand;
  for (; gpu::IsView(*value); value = value->operand(0)) result.converted.push_back(value);
  constexpr int64_t kNarrowBits = 16;  // bits of bf16 and f16 (IEEE 754)
  if (value->op() == Op::kConvert && value->shape().type() == ElementType::kF32 &&
      InfoOf(value->operand(0)->shape().type()).bits == kNarrowBits) {
    result.converted.push_back(value);
    for (value = value->operand(0); gpu::IsView(*value);) value = value->operand(0);
  } else {
    result.converted.clear();
  }
  result.stored = value;
  return result;
}

// The operands of the dots of a chain that are in memory.
std::vector<const Instr*> OperandsOf(const DotChain& chain) {
  std::vector<const Instr*> operands;
  for (const DotChain::First& first : chain.firsts)
    for (const Instr* operand : first.dot->operands()) operands.push_back(operand);
  for (const DotChain::Second& second : chain.seconds) operands.push_back(&second.values());
  return operands;
}

// Whether the columns of a second dot may fit a tile; it rules out most dots at once.
bool MayBeSecond(const Instr& dot) {
  if (dot.op() != Op::kDot || !dot.shape().IsArray()) return false;
  DotDimensions dims(dot);
  return std::min(dims.m, dims.n) <= TileCopy::kMaxBox;
}

// A kernel of the chain: a second dot's, or one that ends in a reduction.
struct ChainPart {
  const Instr* last = nullptr;
  const ChainSlice* slice = nullptr;
  std::vector<const Instr*> masks = {};  // that it reads; set by ChainMove
};

class ChainMove {
 public:
  ChainMove(const CandidatePlan& candidate, std::vector<ChainPart> parts)
      : candidate_(candidate), parts_(std::move(parts)) {
    for (ChainPart& part : parts_) part.masks = MasksOf(part);
  }

  // False if there is nothing to change. With `joins`, second dots of the same rows and columns
  // have one kernel.
  bool Make(bool joins, Change& change) {
    change = {};
    FindKernels(joins);
    FindDropped();
    AddReductions();
    AddRows();
    if (kernels_.empty()) return false;
    SetRecomputed();
    for (const Kernel& kernel : kernels_) {
      for (int group : kernel.groups) change.removed.push_back(group);
      change.added.push_back(kernel.group);
    }
    for (int group : dropped_) change.removed.push_back(group);
    AddOthers(change);
    for (const ChainPart& part : parts_)
      for (const Instr* operand : OperandsOf(part.slice->chain))
        AddStored(*OperandOf(*operand).stored, change);
    for (const Instr* words : words_) AddStored(*words, change);
    for (FusionGroup& group : change.added) InOrder(group.roots);
    return true;
  }
  bool HasJoined() const { return has_joined_; }

 private:
  struct Kernel {
    std::vector<int> groups;  // that it replaces
    std::vector<const ChainPart*> parts;
    FusionGroup group;
  };

  void InOrder(std::vector<const Instr*>& roots) const {
    std::ranges::sort(roots, {}, [&](const Instr* root) { return candidate_.PositionOf(*root); });
    roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
  }

  // One for each group with second dots.
  void FindKernels(bool joins) {
    kernels_.clear();
    has_joined_ = false;
    for (const ChainPart& part : parts_) {
      if (part.last->op() != Op::kDot) continue;
      int group = candidate_.ComputedIn(*part.last)[0];
      auto same = std::ranges::find_if(kernels_, [&](const Kernel& kernel) {
        return std::ranges::count(kernel.groups, group) > 0 ||
               (joins && MayJoin(*kernel.parts[0], part));
      });
      if (same == kernels_.end()) {
        kernels_.push_back({{group}, {&part}, candidate_.group(group)});
        continue;
      }
      same->parts.push_back(&part);
      if (std::ranges::count(same->groups, group) > 0) continue;
      has_joined_ = true;
      same->groups.push_back(group);
      const FusionGroup& other = candidate_.group(group);
      std::ranges::copy(other.roots, std::back_inserter(same->group.roots));
      std::ranges::copy(other.recomputed, std::back_inserter(same->group.recomputed));
    }
  }

  // Whether two second dots have the same rows and columns, and no reductions.
  static bool MayJoin(const ChainPart& x, const ChainPart& y) {
    auto contracts = [](const ChainPart& part) {
      const DotChain& chain = part.slice->chain;
      Dims dims;
      for (const DotChain::First& first : chain.firsts)
        if (chain.column)
          dims.push_back(static_cast<int64_t>(std::ranges::find(first.along, *chain.column) -
                                              first.along.begin()));
      return dims;
    };
    auto shares = [&](const Instr* dot) { return y.slice->chain.IsFirst(*dot); };
    if (x.slice->given.empty() || y.slice->given.empty()) return false;
    for (size_t i = 0; i < x.slice->chain.firsts.size(); ++i) {
      const Instr* dot = x.slice->chain.firsts[i].dot;
      if (!shares(dot)) continue;
      const auto& firsts = y.slice->chain.firsts;
      auto j = static_cast<size_t>(std::ranges::find(firsts, dot, &DotChain::First::dot) -
                                   firsts.begin());
      Dims of_x = contracts(x), of_y = contracts(y);
      return i < of_x.size() && j < of_y.size() && of_x[i] == of_y[j];
    }
    return false;
  }

  bool IsOfKernels(int group) const {
    return std::ranges::any_of(kernels_, [&](const Kernel& kernel) {
      return std::ranges::count(kernel.groups, group) > 0;
    });
  }
  bool IsDropped(int group) const { return std::ranges::count(dropped_, group) > 0; }

  // Whether other groups read the value.
  bool IsNeededBeside(const Instr& value) const {
    return candidate_.MustBeStored(value) ||
           std::ranges::any_of(candidate_.ConsumersOf(value), [&](int consumer) {
             return !IsOfKernels(consumer) && !IsDropped(consumer);
           });
  }
  bool IsReductionOfPart(const Instr& value) const {
    return std::ranges::any_of(parts_, [&](const ChainPart& part) {
      return part.last == &value && value.op() == Op::kReduce;
    });
  }

  // The groups that store values of the chain, except those with values for others.
  void FindDropped() {
    dropped_.clear();
    converted_.clear();
    auto add = [&](const Instr& value) {
      int group = candidate_.GroupOf(value);
      if (group >= 0 && !IsOfKernels(group) && !IsDropped(group)) dropped_.push_back(group);
    };
    for (const ChainPart& part : parts_) {
      for (const Instr* instr : part.slice->instrs) add(*instr);
      for (const Instr* operand : OperandsOf(part.slice->chain))
        for (const Instr* converted : OperandOf(*operand).converted) {
          add(*converted);
          converted_.push_back(converted);
        }
      for (const Instr* mask : part.masks)
        if (!IsNeededBeside(*mask)) add(*mask);
    }
    auto has_others = [&](int group) {
      return std::ranges::any_of(candidate_.group(group).roots, [&](const Instr* root) {
        return !IsReductionOfPart(*root) && IsNeededBeside(*root) && IsOfChain(*root) &&
               !IsOfRowsOfPart(*root);
      });
    };
    while (true) {
      auto kept = std::ranges::find_if(dropped_, has_others);
      if (kept == dropped_.end()) return;
      dropped_.erase(kept);
    }
  }

  // Masks that the part reads: stored preds that follow from nothing as large as themselves, as
  // those of causal attention and of dropout. Of packed ones, the words are stored instead.
  std::vector<const Instr*> MasksOf(const ChainPart& part) {
    std::vector<const Instr*> open, masks;
    std::unordered_set<const Instr*> seen(part.slice->instrs.begin(), part.slice->instrs.end());
    auto add_operands = [&](const Instr& value) {
      for (const Instr* operand : value.operands())
        if (seen.insert(operand).second) open.push_back(operand);
    };
    for (const Instr* instr : part.slice->instrs)
      if (instr->op() != Op::kDot) add_operands(*instr);
    while (!open.empty() && seen.size() < kMaxAfterFirst) {
      const Instr& value = *open.back();
      open.pop_back();
      if (const Instr* words = PackedWordsOf(value).array)
        if (seen.insert(words).second && !ContainsInstr(words_, words)) words_.push_back(words);
      bool is_stored = candidate_.GroupOf(value) >= 0, is_mask = is_stored && IsMask(value);
      if (is_mask) masks.push_back(&value);
      if ((is_mask || !is_stored) && !candidate_.IsOutsideKernels(value)) add_operands(value);
    }
    return masks;
  }
  bool IsMask(const Instr& pred) const {
    if (!pred.shape().IsArray() || pred.shape().type() != ElementType::kPred) return false;
    std::vector<const Instr*> open = {&pred};
    for (size_t i = 0; i < open.size(); ++i) {
      const Instr& value = *open[i];
      if (i > kMaxAfterFirst) return false;
      // Kernels read the words.
      if (ContainsInstr(words_, &value) || PackedWordsOf(value).array != nullptr) continue;
      bool is_given =
          i > 0 && (candidate_.GroupOf(value) >= 0 || candidate_.IsOutsideKernels(value));
      bool is_smaller =
          value.shape().IsArray() && value.shape().ElementCount() < pred.shape().ElementCount();
      if (is_given && is_smaller) continue;
      bool is_cheap = value.info().Is(kElementwise) || IsFreeToRecompute(value) ||
                      value.op() == Op::kTranspose || value.op() == Op::kConcatenate;
      if (is_given || !is_cheap) return false;
      for (const Instr* operand : value.operands())
        if (!ContainsInstr(open, operand)) open.push_back(operand);
    }
    return true;
  }

  // Whether others store or compute the value.
  bool IsGiven(const Instr& value) const {
    int group = candidate_.GroupOf(value);
    return (group >= 0 && !IsDropped(group)) || candidate_.IsOutsideKernels(value);
  }

  // Whether a value follows from the reductions of a part alone, such as the logarithms of sums. A
  // kernel of the chain can store it.
  bool IsOfRowsOfPart(const Instr& root) const {
    return std::ranges::any_of(parts_, [&](const ChainPart& part) { return IsOfRows(root, part); });
  }
  bool IsOfRows(const Instr& root, const ChainPart& part) const {
    if (!part.slice->given.empty()) return false;
    std::vector<const Instr*> open = {&root};
    bool reduces = false;
    for (size_t i = 0; i < open.size(); ++i) {
      const Instr& value = *open[i];
      bool is_inside = ContainsInstr(part.slice->instrs, &value);
      if (is_inside && value.op() == Op::kReduce) {
        reduces = true;
        continue;
      }
      if (is_inside || value.op() == Op::kDot || i > kMaxAfterFirst) return false;
      if (i > 0 && IsGiven(value)) continue;
      for (const Instr* operand : value.operands())
        if (!ContainsInstr(open, operand)) open.push_back(operand);
    }
    return reduces;
  }

  // Whether a value that a dropped group stores is computed by the chain: it follows from the first
  // dots, or is a converted operand.
  bool IsOfChain(const Instr& root) const {
    return ContainsInstr(converted_, &root) || DependsOnChain(root);
  }
  bool DependsOnChain(const Instr& root) const {
    std::vector<const Instr*> open = {&root};
    for (size_t i = 0; i < open.size(); ++i) {
      const Instr& value = *open[i];
      bool is_first = std::ranges::any_of(
          parts_, [&](const ChainPart& part) { return part.slice->chain.IsFirst(value); });
      if (is_first || i > kMaxAfterFirst) return true;
      if (i > 0 && IsGiven(value)) continue;
      for (const Instr* operand : value.operands())
        if (!ContainsInstr(open, operand)) open.push_back(operand);
    }
    return false;
  }

  // Values of rows that dropped groups store become results of a kernel that reduces the rows.
  void AddRows() {
    auto reduces_rows_of = [&](const Kernel& kernel, const Instr& root) {
      return std::ranges::any_of(kernel.parts,
                                 [&](const ChainPart* part) { return IsOfRows(root, *part); });
    };
    for (int group : dropped_)
      for (const Instr* root : candidate_.group(group).roots) {
        if (IsReductionOfPart(*root) || !IsNeededBeside(*root)) continue;
        auto kernel = std::ranges::find_if(
            kernels_, [&](const Kernel& other) { return reduces_rows_of(other, *root); });
        if (kernel != kernels_.end()) kernel->group.roots.push_back(root);
      }
  }

  // Other values of dropped groups are still stored, except masks: a thread would load single
  // elements of them, and dead columns are known by their masks.
  void AddOthers(Change& change) const {
    for (int group : dropped_)
      for (const Instr* root : candidate_.group(group).roots) {
        bool is_only_mask = !IsNeededBeside(*root) && IsMask(*root);
        if (!IsReductionOfPart(*root) && !IsOfChain(*root) && !is_only_mask)
          change.added.push_back(FusionGroup{{root}, {}});
      }
  }

  // Reductions become roots of a kernel that computes them, or have their own.
  void AddReductions() {
    size_t dots = kernels_.size();
    for (const ChainPart& part : parts_) {
      if (part.last->op() != Op::kReduce) continue;
      int group = candidate_.GroupOf(*part.last);
      if (group >= 0 && !IsDropped(group)) continue;
      bool is_added = false;
      for (size_t i = 0; i < dots && !is_added; ++i)
        for (const ChainPart* other : kernels_[i].parts)
          if (!is_added && other->slice->given.empty() &&
              ContainsInstr(other->slice->instrs, part.last)) {
            kernels_[i].group.roots.push_back(part.last);
            is_added = true;
          }
      if (!is_added) kernels_.push_back({{}, {&part}, {{part.last}, {}}});
    }
  }

  // Values that other groups still store, and masks, are computed again, except reductions that are
  // given.
  void SetRecomputed() {
    for (Kernel& kernel : kernels_) {
      std::vector<const Instr*>& recomputed = kernel.group.recomputed;
      auto add = [&](const Instr& value) {
        int group = candidate_.GroupOf(value);
        bool is_stored =
            group >= 0 && !IsDropped(group) && std::ranges::count(kernel.groups, group) == 0;
        if (is_stored && !ContainsInstr(recomputed, &value)) recomputed.push_back(&value);
      };
      for (const ChainPart* part : kernel.parts) {
        for (const Instr* instr : part->slice->instrs) add(*instr);
        for (const Instr* operand : OperandsOf(part->slice->chain))
          for (const Instr* converted : OperandOf(*operand).converted) add(*converted);
        for (const Instr* mask : part->masks) {
          if (IsNeededBeside(*mask) && !ContainsInstr(recomputed, mask)) recomputed.push_back(mask);
          add(*mask);
        }
      }
    }
  }

  // A value that no group stores gets its own group.
  void AddStored(const Instr& value, Change& change) const {
    bool is_group = std::ranges::any_of(
        change.added, [&](const FusionGroup& group) { return ContainsInstr(group.roots, &value); });
    if (is_group || !MayBeRoot(value) || candidate_.IsOutsideKernels(value)) return;
    int group = candidate_.GroupOf(value);
    if (group >= 0 && std::ranges::count(change.removed, group) == 0) return;
    for (int other : candidate_.ComputedIn(value)) {
      if (std::ranges::count(change.removed, other) > 0) continue;
      change.removed.push_back(other);
      change.added.push_back(candidate_.group(other));
    }
    change.added.push_back(FusionGroup{{&value}, {}});
  }

  const CandidatePlan& candidate_;
  std::vector<ChainPart> parts_;
  std::vector<Kernel> kernels_;
  std::vector<const Instr*> words_;  // of the masks
  std::vector<int> dropped_;
  std::vector<const Instr*> converted_;  // ChainOperand::converted of all operands
  bool has_joined_ = false;
};

// All second dots that use a first dot of the slice, or of each other's, with the reductions that
// they need; ordered.
std::vector<ChainPart> PartsOf(const CandidatePlan& candidate, const ChainSlice& start,
                               ChainSlices& slices) {
  std::vector<ChainPart> parts;
  std::unordered_set<const Instr*> seen;
  std::vector<const Instr*> open;
  auto add_firsts = [&](const ChainSlice& slice) {
    for (const DotChain::First& first : slice.chain.firsts)
      if (seen.insert(first.dot).second) open.push_back(first.dot);
  };
  auto add = [&](const Instr& last) {
    const ChainSlice* slice = slices.BestOf(last);
    bool is_known = std::ranges::count(parts, &last, &ChainPart::last) > 0;
    if (slice != nullptr && !is_known) parts.push_back({&last, slice});
  };
  add_firsts(start);
  while (!open.empty() && seen.size() < kMaxAfterFirst) {
    const Instr* next = open.back();
    open.pop_back();
    for (const Instr* user : next->users()) {
      if (!seen.insert(user).second) continue;
      if (user->op() != Op::kDot) {
        open.push_back(user);
        continue;
      }
      if (!MayBeSecond(*user) || candidate.ComputedIn(*user).size() != 1) continue;
      size_t before = parts.size();
      add(*user);
      if (parts.size() > before) add_firsts(*parts.back().slice);
    }
  }
  // Reductions that follow from the first dots.
  for (size_t i = 0; i < parts.size(); ++i) {
    for (const Instr* reduce : parts[i].slice->given)
      if (seen.contains(reduce)) add(*reduce);
  }
  std::ranges::sort(parts, {},
                    [&](const ChainPart& part) { return candidate.PositionOf(*part.last); });
  return parts;
}

void AddMove(const CandidatePlan& candidate, int group, std::vector<ChainPart> parts,
             std::vector<Move>& moves) {
  const DotChain& chain = parts[0].slice->chain;
  const Instr& scores = chain.scores();
  ChainMove move(candidate, std::move(parts));
  Change change;
  for (bool joins : {true, false})
    if (move.Make(joins, change) && (joins == move.HasJoined() || !joins))
      moves.push_back({"fusion.chain", &scores, candidate.group(group).roots[0], change});
}

}  // namespace

void AddChainMoves(const CandidatePlan& candidate, int group, ChainSlices& slices,
                   std::vector<Move>& moves) {
  if (!slices.has_kernels() || candidate.computation().CountOf(Op::kDot) < 2) return;
  const std::vector<const Instr*>& instrs = candidate.region(group).instrs;
  for (const Instr* instr : instrs) {
    if (!MayBeSecond(*instr) || candidate.ComputedIn(*instr).size() != 1) continue;
    const ChainSlice* slice = slices.BestOf(*instr);
    if (slice == nullptr || ContainsInstr(instrs, &slice->chain.scores())) continue;
    std::vector<ChainPart> parts = PartsOf(candidate, *slice, slices);
    // Enumerated once, at the first of the second dots that read stored values of the chain.
    auto first = std::ranges::find_if(parts, [&](const ChainPart& part) {
      return part.last->op() == Op::kDot &&
             !ContainsInstr(candidate.region(candidate.ComputedIn(*part.last)[0]).instrs,
                            &part.slice->chain.scores());
    });
    bool is_single = slice->given.empty() && parts.size() > 1;
    if (first != parts.end() && first->last == instr) AddMove(candidate, group, parts, moves);
    if (is_single) AddMove(candidate, group, {{instr, slice}}, moves);
  }
}

}  // namespace tokamak
