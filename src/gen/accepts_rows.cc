// Predicts without generating code whether the rows generator accepts a region. The generator
// rejects a region if the result of a reduction is needed outside its own row. Which elements are
// needed follows from the shapes: this file propagates indices from the roots and the reduced
// values down to the reductions, as the element emitter would, but symbolically. Data-dependent
// indices are answered with kUnknown.

#include "gen/accepts_rows.h"

#include <algorithm>
#include <array>
#include <bit>

#include "analysis/index_map.h"
#include "gen/row_levels.h"

namespace tokamak {
namespace {

// A coordinate (i / stride) % size, where i is the row index or the index of the element in its
// row.
struct Digit {
  enum class Of : uint8_t { kZero, kRow, kElement, kUnknown };
  Of of = Of::kUnknown;
  int64_t stride = 0, size = 0;
  bool operator==(const Digit&) const = default;
};
using MixedRadixIndex = std::vector<Digit>;  // one digit per dimension

// Upper bounds on kernel values per op and per operation of its formula (threefry has only
// operations that are counted); below the last one the size does not matter. Chosen: together they
// stay below kMaxNodes (element.cc), so a region that is accepted here builds.
constexpr int64_t kRowsNodesOfOp = 8, kRowsNodesOfFlop = 12, kRowsFewNodes = 6000;
// Copies of the loop body for a row that is not whole vectors: one for them, one for the rest
// (structure of the generated loop).
constexpr int64_t kCopiesWithRest = 2;
// Elements. Chosen: a multiple of the vector length on every machine.
constexpr int64_t kWholeRow = 64;
// Distinct indices at which one instruction is analyzed. Chosen: bounds the work.
constexpr size_t kVisitsOfInstr = 8;

// The coordinates in `dims` of a linear index composed of these digits, the last one varying
// fastest.
MixedRadixIndex Split(MixedRadixIndex digits, const Dims& dims) {
  MixedRadixIndex at(dims.size());
  for (size_t d = dims.size(); d-- > 0;) {
    if (dims[d] == 1) {
      at[d] = {Digit::Of::kZero};
      continue;
    }
    while (!digits.empty() && digits.back().size == 1) digits.pop_back();
    if (digits.empty() || digits.back().of == Digit::Of::kUnknown ||
        digits.back().size % dims[d] != 0)
      return MixedRadixIndex(dims.size());
    Digit& last = digits.back();
    at[d] = {last.of, last.stride, dims[d]};
    last.stride *= dims[d];
    last.size /= dims[d];
  }
  return at;
}

// Merges adjacent digits that form one contiguous range.
MixedRadixIndex Joined(const MixedRadixIndex& at, const Dims& dims) {
  MixedRadixIndex digits;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 1) continue;
    if (at[d].of == Digit::Of::kZero || at[d].of == Digit::Of::kUnknown) return {Digit{}};
    if (!digits.empty() && digits.back().of == at[d].of &&
        digits.back().stride == at[d].stride * at[d].size) {
      digits.back() = {at[d].of, at[d].stride, at[d].size * digits.back().size};
    } else {
      digits.push_back(at[d]);
    }
  }
  return digits;
}

class RowAccessChecker {
 public:
  explicit RowAccessChecker(const FusedRegion& region) : region_(region) {}

  Accepts Run() {
    RowLevels found;
    bool any = std::none_of(region_.roots.begin(), region_.roots.end(), [&](const Instr* root) {
      return ResultShapesOf(root->shape())[0].ElementCount() > ResultCount();
    });
    if (!AnalyzeRowLevels(region_, found, any).empty()) return Accepts::kNo;
    rows_ = found.row_count;
    row_ = found.row_length;
    NoteInside();
    if (IsLarge(found)) return Accepts::kUnknown;
    first_ = ElementAt(found.levels[0][0]);
    for (const std::vector<Reducer>& level : found.levels)
      for (const Reducer& reducer : level) Accumulate(reducer);
    for (const Instr* root : region_.roots) Write(*root, found.levels[0][0]);
    return answer_;
  }

 private:
  int64_t ResultCount() const {
    for (const Instr* instr : region_.instrs)
      if (instr->op() == Op::kReduce) return ResultShapesOf(instr->shape())[0].ElementCount();
    return 0;
  }

  // Whether the code might exceed the size limit of a kernel. Each level and the final loop
  // evaluate their operands, and a second time for a row's remainder that does not fill a vector.
  bool IsLarge(const RowLevels& found) {
    int64_t nodes = 0;
    for (const std::vector<Reducer>& level : found.levels) {
      std::vector<const Instr*> reduced_dims;
      for (const Reducer& reducer : level) {
        nodes += NodesOf(*reducer.instr);
        for (const Instr* operand : reducer.instr->operands()) reduced_dims.push_back(operand);
      }
      nodes += NodesBehind(std::move(reduced_dims));
    }
    nodes += NodesBehind({region_.roots.begin(), region_.roots.end()});
    return nodes * (row_ % kWholeRow == 0 ? 1 : kCopiesWithRest) > kRowsFewNodes;
  }

  static int64_t NodesOf(const Instr& instr) {
    return kRowsNodesOfOp + (instr.op() == Op::kThreefry2x32 ? 1 : kRowsNodesOfFlop) *
                                instr.info().flops_per_element;
  }

  // Kernel values of everything that these values need, down to reductions.
  int64_t NodesBehind(std::vector<const Instr*> open) {
    int64_t nodes = 0;
    ++walk_;
    while (!open.empty()) {
      const Instr* instr = open.back();
      open.pop_back();
      Inside* inside = Find(*instr);
      if (inside == nullptr || inside->walk == walk_) continue;
      inside->walk = walk_;
      nodes += NodesOf(*instr);
      if (instr->op() == Op::kReduce) continue;
      for (const Instr* operand : instr->operands()) open.push_back(operand);
    }
    return nodes;
  }

  Digit Row() const { return {Digit::Of::kRow, 1, rows_}; }
  Digit Element() const { return {Digit::Of::kElement, 1, row_}; }

  MixedRadixIndex ElementAt(const Reducer& reducer) const {
    const Dims& dims = reducer.input().dims();
    MixedRadixIndex at(dims.size());
    auto assign = [&](const Dims& dimensions, Digit number) {
      Dims own;
      for (int64_t d : dimensions) own.push_back(dims[static_cast<size_t>(d)]);
      MixedRadixIndex digits = Split({number}, own);
      for (size_t i = 0; i < own.size(); ++i) at[static_cast<size_t>(dimensions[i])] = digits[i];
    };
    assign(reducer.kept_dims, Row());
    assign(reducer.reduced_dims, Element());
    return at;
  }

  void Accumulate(const Reducer& reducer) {
    MixedRadixIndex at = ElementAt(reducer);
    // Values that loops cache for each other are computed at the indices of the first loop.
    if (reducer.input().rank() == static_cast<int64_t>(first_.size()) && at != first_)
      return Open();
    for (size_t i = 0; i < reducer.instr->operand_count(); ++i)
      Visit(*reducer.instr->operand(i), NumberOf(i < reducer.input_count ? at : MixedRadixIndex()));
  }

  void Write(const Instr& root, const Reducer& like) {
    for (const Shape& part : ResultShapesOf(root.shape())) {
      if (part.ElementCount() == rows_) {
        Visit(root, NumberOf(Split({Row()}, part.dims())));
      } else if (!root.shape().IsArray() || part.ElementCount() != rows_ * row_) {
        answer_ = Accepts::kNo;
      } else {
        bool same_shape = part.dims() == like.input().dims();
        Visit(root, NumberOf(same_shape ? first_ : Split({Row(), Element()}, part.dims())));
      }
    }
  }

  void Open() {
    if (answer_ == Accepts::kYes) answer_ = Accepts::kUnknown;
  }

  // Interns an index: most indices recur.
  uint32_t NumberOf(MixedRadixIndex assign) {
    auto it = std::find(indices_.begin(), indices_.end(), assign);
    auto number = static_cast<uint32_t>(it - indices_.begin());
    if (it == indices_.end()) indices_.push_back(std::move(assign));
    return number;
  }

  void Visit(const Instr& instr, uint32_t at) {
    Inside* inside = answer_ == Accepts::kYes ? Find(instr) : nullptr;
    if (inside == nullptr || IsImmediate(instr)) return;
    auto end = inside->seen.begin() + inside->visits;
    if (std::find(inside->seen.begin(), end, at) != end) return;
    if (inside->visits == kVisitsOfInstr) return Open();
    inside->seen[inside->visits++] = at;
    if (instr.op() == Op::kReduce) return CheckReduction(instr, indices_[at]);
    if (instr.op() != Op::kMap && instr.info().Is(kElementwise)) {
      for (const Instr* operand : instr.operands())
        Visit(*operand, operand->shape().IsScalar() ? NumberOf({}) : at);
      return;
    }
    Move(instr, at);
  }

  // Propagates an index through an op that moves elements.
  void Move(const Instr& instr, uint32_t number) {
    if (instr.op() == Op::kCopy || instr.op() == Op::kGetTupleElement)
      return Visit(*instr.operand(0), number);
    const MixedRadixIndex at = indices_[number];
    switch (instr.op()) {
      case Op::kIota:
        return;
      case Op::kReshape: {
        const Dims& from = instr.operand(0)->shape().dims();
        return Visit(*instr.operand(0), NumberOf(Split(Joined(at, instr.shape().dims()), from)));
      }
      case Op::kRngBitGenerator:  // element code needs the whole state
        for (const Instr* operand : instr.operands())
          Visit(*operand, NumberOf(MixedRadixIndex(operand->shape().dims().size())));
        return;
      default:
        break;
    }
    // An update in place has code of its own.
    bool moves = instr.info().Is(kDataMovement) && instr.op() != Op::kDynamicUpdateSlice;
    if (!moves || !HasIndexMap(instr, 0)) return Open();
    for (size_t i = 0; i < instr.operand_count(); ++i)
      Visit(*instr.operand(i), NumberOf(OperandIndex(*IndexMapOf(instr, i), at)));
  }

  // An operand's coordinate is unknown unless it is one of the result's, or 0.
  static MixedRadixIndex OperandIndex(const IndexMap& map, const MixedRadixIndex& at) {
    MixedRadixIndex from(map.dims.size());
    for (size_t d = 0; d < from.size(); ++d) {
      const IndexExpr& expr = map.dims[d];
      std::span<const IndexTerm> terms = map.TermsOf(expr);
      if (expr.offset != 0 || expr.divisor != 1 || expr.modulus != 0 || expr.start.Moves() ||
          !map.AlwaysHolds(expr))
        continue;
      if (terms.empty()) {
        from[d] = {Digit::Of::kZero};
      } else if (terms.size() == 1 && terms[0].coefficient == 1 &&
                 terms[0].variable < map.result_rank) {
        from[d] = at[terms[0].variable];
      }
    }
    return from;
  }

  // Only the result of the current row is available.
  void CheckReduction(const Instr& reduce, const MixedRadixIndex& at) {
    MixedRadixIndex own = Split({Row()}, ResultShapesOf(reduce.shape())[0].dims());
    if (own == at && std::find(at.begin(), at.end(), Digit{}) == at.end()) return;
    auto unknown = [](const Digit& digit) { return digit.of == Digit::Of::kUnknown; };
    bool open =
        std::any_of(at.begin(), at.end(), unknown) || std::any_of(own.begin(), own.end(), unknown);
    answer_ = open ? Accepts::kUnknown : Accepts::kNo;
  }

  // An instruction of the region, and the indices at which it was visited.
  struct Inside {
    const Instr* instr;
    std::array<uint32_t, kVisitsOfInstr> seen = {};  // interned indices
    uint32_t visits = 0, walk = 0;
  };
  void NoteInside() {
    inside_.reserve(region_.instrs.size());
    slots_.resize(std::bit_ceil(2 * region_.instrs.size()));
    for (const Instr* instr : region_.instrs) {
      inside_.push_back({instr});
      slots_[SlotOf(*instr)] = static_cast<uint32_t>(inside_.size());
    }
  }
  // The hash slot of an instruction, occupied or free.
  size_t SlotOf(const Instr& instr) const {
    size_t slot = static_cast<size_t>(instr.id()) & (slots_.size() - 1);
    while (slots_[slot] != 0 && inside_[slots_[slot] - 1].instr != &instr)
      slot = (slot + 1) & (slots_.size() - 1);
    return slot;
  }
  Inside* Find(const Instr& instr) {
    uint32_t number = slots_[SlotOf(instr)];
    return number != 0 ? &inside_[number - 1] : nullptr;
  }

  const FusedRegion& region_;
  std::vector<Inside> inside_;
  // Open-addressing hash table of positions in inside_ plus 1; 0: free.
  std::vector<uint32_t> slots_;
  std::vector<MixedRadixIndex> indices_;
  uint32_t walk_ = 0;
  int64_t rows_ = 0, row_ = 0;
  MixedRadixIndex first_;  // index of a row element in the first reduction's input
  Accepts answer_ = Accepts::kYes;
};

}  // namespace

Accepts AcceptsRows(const FusedRegion& region) {
  return RowAccessChecker(region).Run();
}

}  // namespace tokamak
