// Preds that cost much and that several kernels of a chain of dots need, as the mask of dropout in
// attention and its gradients, are computed once and stored as bits:
//
//   keep = compare(random bits, ...)             words = reduce-or(keep << column % 32)
//   x    = select(keep, weights, 0)        ->    bits  = words[column / 32] >> column % 32 & 1
//                                                x     = select(bits == 1, weights, 0)
//
// Each kernel of the chain would otherwise compute the random bits again, or all of them would be
// stored as bytes, which a thread of such a kernel loads one at a time. The kernels copy the words
// of a tile to shared memory (gen/gpu/chain_words.h); all other ones compute the bits like any
// other value.
//
// Words without live columns (analysis/live_columns.h) are not computed. Kernels of chains do not
// read them; for all others the preds are
//
//   select(live, bits == 1, keep)

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>

#include "analysis/dot_chains.h"
#include "analysis/packed_preds.h"
#include "cost/machine.h"
#include "cost/work.h"
#include "gen/gpu/chain_tiling.h"
#include "gen/gpu/chain_words.h"
#include "gen/gpu/gpu.h"
#include "gen/region.h"
#include "ir/builder.h"
#include "passes/passes.h"
#include "rewrite/edit_computations.h"
#include "rewrite/editor.h"

namespace tokamak {
namespace {

// Ops of a pred, and values that follow from it before the dots. Chosen: more than attention with
// dropout has; they bound the search.
constexpr size_t kMaxPredOps = 100, kMaxAfterPred = 100;

double CountOf(const Instr& instr) {
  return static_cast<double>(instr.shape().ElementCount());
}

bool IsComputedByElement(const Instr& instr) {
  switch (instr.op()) {
    case Op::kBroadcast:
    case Op::kConcatenate:
    case Op::kConstant:
    case Op::kIota:
    case Op::kPad:
    case Op::kReshape:
    case Op::kReverse:
    case Op::kRngBitGenerator:
    case Op::kSlice:
    case Op::kTranspose:
      return true;
    default:
      return instr.info().Is(kElementwise) && instr.op() != Op::kMap;
  }
}

// The ops that compute a pred from arrays of at most one element per word of it; empty if it is
// computed otherwise.
std::vector<const Instr*> OpsOf(const Instr& pred) {
  std::vector<const Instr*> ops = {&pred};
  std::unordered_set<const Instr*> seen = {&pred};
  for (size_t i = 0; i < ops.size(); ++i) {
    for (const Instr* operand : ops[i]->operands()) {
      if (!seen.insert(operand).second) continue;
      if (!IsPlainArray(operand->shape())) return {};
      if (IsComputedByElement(*operand)) {
        ops.push_back(operand);
      } else if (operand->shape().ElementCount() * kPredsPerWord > pred.shape().ElementCount()) {
        return {};
      }
    }
    if (ops.size() > kMaxPredOps) return {};
  }
  return ops;
}

// The kernels of chains that read a pred.
struct PredUses {
  int with_reductions = 0;  // each second dot has its own
  // Kernels that are given the reductions, with the last dimension of the pred along their columns
  // or their rows: all second dots share one.
  bool by_columns = false, by_rows = false;
  double live = 0;  // the largest part of the elements that one of them needs
  // The words that any of them needs; nullopt: all.
  std::optional<LiveWords> words = {};
  bool has_limits = true;

  int kernels() const { return with_reductions + (by_columns ? 1 : 0) + (by_rows ? 1 : 0); }
};

// The part of the scores that are live.
double LivePart(const DotChain& chain, const LiveColumns& live) {
  int64_t rows = chain.row_count(), columns = chain.column_count(), all = 0;
  if (live.masked != nullptr && !live.first && !live.last) return 1;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t first = live.first ? std::max(row + *live.first, int64_t{0}) : 0;
    int64_t last = live.last ? std::min(row + *live.last, columns - 1) : columns - 1;
    all += std::max(last - first + 1, int64_t{0});
  }
  return static_cast<double>(all) / (static_cast<double>(rows) * static_cast<double>(columns));
}

class PredPacker {
 public:
  PredPacker(Instr& pred, PassContext& context) : pred_(pred), context_(context) {}

  bool Run() {
    ops_ = OpsOf(pred_);
    // Most preds are cheap: whether several kernels compute them takes longer to find.
    if (ops_.empty() ||
        Gain({.with_reductions = 1, .by_columns = true, .by_rows = true, .live = 1}) <= 0)
      return false;
    PredUses uses = FindUses();
    if (uses.kernels() < 2) return false;
    double before_us = BeforeUs(uses), after_us = AfterUs(uses);
    if (after_us >= before_us) {
      context_.Rejected("contraction.pack-pred", pred_, nullptr,
                        fmt::format("{:.1f} us, not less than {:.1f}", after_us, before_us));
      return false;
    }
    context_.AcceptedByCost("contraction.pack-pred", pred_, before_us, after_us,
                            fmt::format("{} kernels read it", uses.kernels()));
    Pack(uses.has_limits ? uses.words : std::nullopt);
    return true;
  }

 private:
  double Gain(const PredUses& uses) const { return BeforeUs(uses) - AfterUs(uses); }

  // Each kernel computes it.
  double BeforeUs(const PredUses& uses) const {
    CostEstimate cost = EstimateCost(WorkOfPred(uses.live), context_.machine());
    return uses.kernels() * (cost.total() - cost.launch);
  }
  // One kernel computes and stores it, each loads it.
  double AfterUs(const PredUses& uses) const {
    const Machine& machine = context_.machine();
    double words = CountOf(pred_) / kPredsPerWord, bytes = words * BytesOf(ElementType::kU32);
    Work pack = WorkOfPred(uses.has_limits && uses.words ? uses.live : 1),
         unpack = WorkOfElements(uses.live);
    pack.writes = bytes;
    pack[Pipe::kSimple] += CountOf(pred_);  // an or
    unpack.reads = bytes * uses.live;
    unpack[Pipe::kSimple] += 2 * CountOf(pred_) * uses.live;  // a shift, a comparison
    CostEstimate loads = EstimateCost(unpack, machine);
    return EstimateCost(pack, machine).total() + uses.kernels() * (loads.total() - loads.launch);
  }

  Work WorkOfElements(double part) const {
    Work work;
    work.tasks = std::ceil(CountOf(pred_) * part / gpu::kBlockThreads);
    work.threads = gpu::kBlockThreads;
    return work;
  }
  Work WorkOfPred(double part) const {
    Work work = WorkOfElements(part);
    for (const Instr* op : ops_)
      AddElementOp(work, *op, std::min(CountOf(*op), CountOf(pred_)) * part, context_.machine());
    return work;
  }

  PredUses FindUses() {
    // Values of the pred's dimensions that follow from it, and the dots after them.
    std::unordered_set<const Instr*> same = {&pred_}, seen = same;
    std::vector<const Instr*> open = {&pred_}, dots;
    while (!open.empty() && seen.size() < kMaxAfterPred) {
      const Instr& at = *open.back();
      open.pop_back();
      for (const Instr* user : at.users()) {
        if (!seen.insert(user).second) continue;
        (user->op() == Op::kDot ? dots : open).push_back(user);
        bool is_same = same.contains(&at) && user->info().Is(kElementwise) &&
                       user->shape().dims() == pred_.shape().dims();
        if (is_same) same.insert(user);
      }
    }
    PredUses uses;
    // Only kernels of chains may read words that are live for them.
    uses.has_limits = open.empty() && !seen.contains(pred_.parent()->root());
    for (const Instr* dot : dots) {
      bool is_use = false;
      for (ChainReductions reductions : {ChainReductions::kInside, ChainReductions::kGiven})
        if (!is_use) is_use = AddUse(*dot, reductions, same, uses);
      if (!is_use) uses.has_limits = false;
    }
    return uses;
  }

  // Whether a kernel computes the chain that ends at a dot, and reads the pred.
  bool AddUse(const Instr& dot, ChainReductions reductions,
              const std::unordered_set<const Instr*>& same, PredUses& uses) {
    std::optional<ChainSlice> slice = ChainSliceOf(dot, reductions);
    if (!slice) return false;
    FusedRegion region{&*dot.parent(), slice->instrs, InputsOf(slice->instrs), {&dot}};
    gpu::ChainRegion found;
    if (!gpu::FindChain(region, found).empty() ||
        gpu::ChainSchedules(region, context_.machine()).empty())
      return false;
    for (const Instr* instr : slice->instrs) {
      const Dims* along = found.along->Of(*instr);
      bool reads = along != nullptr && instr->info().Is(kElementwise) &&
                   std::ranges::any_of(instr->operands(), [&](const Instr* operand) {
                     return same.contains(operand) && found.along->Of(*operand) == nullptr;
                   });
      if (!reads || along->size() != pred_.shape().dims().size()) continue;
      if (reductions == ChainReductions::kInside) {
        ++uses.with_reductions;
      } else {
        (found.chain.IsOfColumns(along->back()) ? uses.by_columns : uses.by_rows) = true;
      }
      uses.live = std::max(uses.live, LivePart(found.chain, found.live));
      AddLimits(found, *along, uses);
      return true;
    }
    return false;
  }

  static void AddLimits(const gpu::ChainRegion& found, const Dims& along, PredUses& uses) {
    const DotChain& chain = found.chain;
    bool is_of_columns = chain.column == along.back();
    std::optional<int64_t> line = is_of_columns ? chain.row : chain.column;
    auto at = std::ranges::find_if(along, [&](int64_t dim) { return line == dim; });
    auto [first, last] = gpu::LiveLineOf(found.live, is_of_columns);
    auto* masked = const_cast<Instr*>(found.live.masked);
    LiveWords words{at - along.begin(), first, last, masked};
    bool is_known = is_of_columns || chain.row == along.back();
    if (!is_known || at == along.end() || (!first && !last)) {
      uses.has_limits = false;
    } else if (!uses.words) {
      uses.words = words;
    } else if (uses.words->line != words.line || uses.words->masked != masked) {
      uses.has_limits = false;
    } else {
      auto& all = *uses.words;
      all.first = all.first && first ? std::optional(std::min(*all.first, *first)) : std::nullopt;
      all.last = all.last && last ? std::optional(std::max(*all.last, *last)) : std::nullopt;
      if (!all.first && !all.last) uses.has_limits = false;
    }
  }

  void Pack(const std::optional<LiveWords>& live) {
    std::vector<std::pair<Instr*, size_t>> uses;
    for (Instr* user : pred_.users())
      for (size_t i = 0; i < user->operand_count(); ++i)
        if (user->operand(i) == &pred_) uses.emplace_back(user, i);
    Editor make = Editor::Beside(pred_);
    Dims dims = pred_.shape().dims();
    int64_t columns = dims.back();
    dims.back() = RoundUp(CeilDiv(columns, kPredsPerWord), kLineWords);
    Instr* preds = Unpacked(make, *Words(make, dims, live), columns);
    if (live) {
      Instr* is_live = IsLive(make, pred_.shape().dims(), false, *live);
      preds = make.Make(Op::kSelect, preds->shape(), {is_live, preds, &pred_});
    }
    for (auto [user, i] : uses) user->set_operand(i, preds);
  }

  // Bit positions, and ones, for the preds of words with these dimensions.
  static Shape BitsOf(Dims words) {
    words.push_back(kPredsPerWord);
    return Shape::Array(ElementType::kU32, std::move(words));
  }
  static Instr* Numbers(Editor& make, const Shape& bits) {
    return make.Make(Op::kIota, bits, {}, IotaAttrs{bits.rank() - 1});
  }

  // Whether words are live: of preds with these dimensions, as LiveWordsOf has it; or of bits,
  // whose last dimensions are the words and the bits.
  static Instr* IsLive(Editor& make, const Dims& dims, bool of_bits, const LiveWords& live) {
    Shape index = Shape::Array(ElementType::kS32, dims);
    Shape pred = Shape::Array(ElementType::kPred, dims);
    auto number = [&](int64_t x) {
      return make.Filled(index, Literal::ScalarInt(ElementType::kS32, x));
    };
    auto iota = [&](int64_t d) { return make.Make(Op::kIota, index, {}, IotaAttrs{d}); };
    auto end_of_word = [&](Op op, int64_t bits) {
      if (!of_bits) return make.Make(op, index, {iota(index.rank() - 1), number(bits)});
      Instr* begin =
          make.Make(Op::kMultiply, index, {iota(index.rank() - 2), number(kPredsPerWord)});
      if (op == Op::kAnd) return begin;
      return make.Make(Op::kAdd, index, {begin, number(kPredsPerWord - 1)});
    };
    auto limit = [&](int64_t offset, CompareDirection direction, Op op, int64_t bits) {
      Instr* line = make.Make(Op::kAdd, index, {iota(live.line), number(offset)});
      return make.Make(Op::kCompare, pred, {line, end_of_word(op, bits)},
                       CompareAttrs{direction, CompareType::kNone});
    };
    Instr* all = nullptr;
    if (live.last) all = limit(*live.last, CompareDirection::kGe, Op::kAnd, -kPredsPerWord);
    if (live.first) {
      Instr* first = limit(*live.first, CompareDirection::kLe, Op::kOr, kPredsPerWord - 1);
      all = all == nullptr ? first : make.Make(Op::kAnd, pred, {all, first});
    }
    if (live.masked == nullptr) return all;
    Shape mask = Shape::Array(live.masked->shape().type(), dims);
    Instr* shown = make.Make(Op::kCompare, pred,
                             {make.Make(Op::kBroadcast, mask, {live.masked}, DimensionsAttrs{}),
                              make.Filled(mask, Literal::Scalar(mask.type(), -HUGE_VAL))},
                             CompareAttrs{CompareDirection::kNe, CompareType::kNone});
    return make.Make(Op::kOr, pred, {all, shown});
  }

  Instr* Words(Editor& make, const Dims& dims, const std::optional<LiveWords>& live) {
    Instr* preds = &pred_;
    Dims padded = pred_.shape().dims();
    padded.back() = dims.back() * kPredsPerWord;
    if (padded != pred_.shape().dims()) {
      Dims none(padded.size(), 0), high = none;
      high.back() = padded.back() - pred_.shape().dims().back();
      Instr* never = make.Constant(Literal::ScalarInt(ElementType::kPred, 0));
      preds = make.Make(Op::kPad, Shape::Array(ElementType::kPred, padded), {preds, never},
                        PadAttrs{none, high, none});
    }
    Shape bits = BitsOf(dims);
    preds = make.Make(Op::kReshape, Shape::Array(ElementType::kPred, bits.dims()), {preds});
    Instr* shifted = make.Make(Op::kShiftLeft, bits,
                               {make.Converted(preds, ElementType::kU32), Numbers(make, bits)});
    if (live) {
      Instr* is_live = IsLive(make, bits.dims(), true, *live);
      Instr* none = make.Filled(bits, Literal::ScalarInt(ElementType::kU32, 0));
      shifted = make.Make(Op::kSelect, bits, {is_live, shifted, none});
    }
    Builder b(pred_, pred_.name() + "_or");
    Instr* x = b.Parameter(Shape::Scalar(ElementType::kU32));
    Instr* y = b.Parameter(Shape::Scalar(ElementType::kU32));
    Computation* both = b.FinishValid(b.Or(x, y));
    Instr* zero = make.Constant(Literal::ScalarInt(ElementType::kU32, 0));
    return make.Make(Op::kReduce, Shape::Array(ElementType::kU32, dims), {shifted, zero},
                     DimensionsAttrs{{bits.rank() - 1}}, both);
  }

  // As analysis/packed_preds.h has it.
  static Instr* Unpacked(Editor& make, Instr& words, int64_t columns) {
    Dims dims = words.shape().dims();
    Shape bits = BitsOf(dims);
    DimensionsAttrs all;
    for (int64_t d = 0; d < words.shape().rank(); ++d) all.dimensions.push_back(d);
    Instr* repeated = make.Make(Op::kBroadcast, bits, {&words}, std::move(all));
    Instr* shifted = make.Make(Op::kShiftRightLogical, bits, {repeated, Numbers(make, bits)});
    Instr* one = make.Filled(bits, Literal::ScalarInt(ElementType::kU32, 1));
    Instr* bit = make.Make(Op::kAnd, bits, {shifted, one});
    Instr* preds = make.Make(Op::kCompare, Shape::Array(ElementType::kPred, bits.dims()),
                             {bit, one}, CompareAttrs{CompareDirection::kEq, CompareType::kNone});
    dims.back() *= kPredsPerWord;
    preds = make.Make(Op::kReshape, Shape::Array(ElementType::kPred, dims), {preds});
    if (dims.back() == columns) return preds;
    SliceAttrs first{Dims(dims.size(), 0), dims, Dims(dims.size(), 1)};
    first.limits.back() = dims.back() = columns;
    return make.Make(Op::kSlice, Shape::Array(ElementType::kPred, dims), {preds}, std::move(first));
  }

  Instr& pred_;
  PassContext& context_;
  std::vector<const Instr*> ops_;
};

}  // namespace

// Record contraction.pack-pred.
Result<Changed> PackPreds(Module& module, PassContext& context) {
  if (!context.machine().async_multiply) return Changed::kNo;
  return EditComputations(module, [&](Computation& computation) {
    if (computation.CountOf(Op::kDot) < 2) return false;
    bool changed = false;
    for (Instr* instr : computation.Instrs()) {
      bool is_pred = IsPlainArray(instr->shape()) && instr->shape().type() == ElementType::kPred &&
                     instr->shape().rank() > 1 && instr->info().Is(kElementwise) &&
                     !HasControlDependencies(*instr);
      // The ops of preds are cheap; what they compare may not be.
      if (!is_pred || instr->op() != Op::kCompare) continue;
      changed |= PredPacker(*instr, context).Run();
    }
    return changed;
  });
}

}  // namespace tokamak
