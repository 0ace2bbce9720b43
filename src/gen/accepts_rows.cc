// The rows generator refuses a region when the result of a reduction is needed elsewhere than in
// its own row. Where elements are needed follows from shapes: here coordinates are followed from
// the roots and from what is folded down to the reductions, as the element emitter would, but as
// numbers in place of code. What only code can tell (a place that data decides) is left open.

#include "gen/accepts_rows.h"

#include <algorithm>
#include <array>
#include <bit>

#include "gen/row_levels.h"

namespace tokamak {
namespace {

// A coordinate: (which / stride) % size, of the row's number or of the element's in its row.
struct Digit {
  enum class Of : uint8_t { kZero, kRow, kElement, kUnknown };
  Of of = Of::kUnknown;
  int64_t stride = 0, size = 0;
  bool operator==(const Digit&) const = default;
};
using Place = std::vector<Digit>;  // a digit for each dimension

// More than the values that the emitter makes for an op and for each operation of its formula
// (threefry has no others than are counted), and how many are no matter.
constexpr int64_t kRowsNodesOfOp = 8, kRowsNodesOfFlop = 12, kRowsFewNodes = 6000;
// Elements that are whole vectors on every machine.
constexpr int64_t kWholeRow = 64;
// An instruction is looked at for so many places.
constexpr size_t kVisitsOfInstr = 8;

// The coordinates of an element of `dims`, whose number is made of these digits, the last of which
// counts fastest.
Place Split(Place digits, const Dims& dims) {
  Place at(dims.size());
  for (size_t d = dims.size(); d-- > 0;) {
    if (dims[d] == 1) {
      at[d] = {Digit::Of::kZero};
      continue;
    }
    while (!digits.empty() && digits.back().size == 1) digits.pop_back();
    if (digits.empty() || digits.back().of == Digit::Of::kUnknown ||
        digits.back().size % dims[d] != 0)
      return Place(dims.size());
    Digit& last = digits.back();
    at[d] = {last.of, last.stride, dims[d]};
    last.stride *= dims[d];
    last.size /= dims[d];
  }
  return at;
}

// Neighbours that count on are one.
Place Joined(const Place& at, const Dims& dims) {
  Place digits;
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

class Walker {
 public:
  explicit Walker(const Region& region) : region_(region) {}

  Accepts Run() {
    RowLevels found;
    bool any = std::none_of(region_.roots.begin(), region_.roots.end(), [&](const Instr* root) {
      return PartsOf(root->shape())[0].ElementCount() > ResultCount();
    });
    if (!FindRowLevels(region_, found, any).empty()) return Accepts::kNo;
    rows_ = found.rows;
    row_ = found.row;
    NoteInside();
    if (IsLarge(found)) return Accepts::kAskByBuilding;
    first_ = ElementAt(found.levels[0][0]);
    for (const std::vector<Reducer>& level : found.levels)
      for (const Reducer& reducer : level) Fold(reducer);
    for (const Instr* root : region_.roots) Write(*root, found.levels[0][0]);
    return answer_;
  }

 private:
  int64_t ResultCount() const {
    for (const Instr* instr : region_.instrs)
      if (instr->op() == Op::kReduce) return PartsOf(instr->shape())[0].ElementCount();
    return 0;
  }

  // Whether its code might be more than a kernel may have: each level folds, and the last loop
  // writes, what is behind it, and the end of a row that fills no vector once more.
  bool IsLarge(const RowLevels& found) {
    int64_t nodes = 0;
    for (const std::vector<Reducer>& level : found.levels) {
      std::vector<const Instr*> folded;
      for (const Reducer& reducer : level) {
        nodes += NodesOf(*reducer.instr);
        for (const Instr* operand : reducer.instr->operands()) folded.push_back(operand);
      }
      nodes += NodesBehind(std::move(folded));
    }
    nodes += NodesBehind({region_.roots.begin(), region_.roots.end()});
    return nodes * (row_ % kWholeRow == 0 ? 1 : 2) > kRowsFewNodes;
  }

  static int64_t NodesOf(const Instr& instr) {
    return kRowsNodesOfOp + (instr.op() == Op::kThreefry2x32 ? 1 : kRowsNodesOfFlop) *
                                instr.info().flops_per_element;
  }

  // Of all that some values need, down to what is folded.
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

  Place ElementAt(const Reducer& reducer) const {
    const Dims& dims = reducer.input().dims();
    Place at(dims.size());
    auto place = [&](const Dims& dimensions, Digit number) {
      Dims own;
      for (int64_t d : dimensions) own.push_back(dims[static_cast<size_t>(d)]);
      Place digits = Split({number}, own);
      for (size_t i = 0; i < own.size(); ++i) at[static_cast<size_t>(dimensions[i])] = digits[i];
    };
    place(reducer.kept, Row());
    place(reducer.reduced, Element());
    return at;
  }

  void Fold(const Reducer& reducer) {
    Place at = ElementAt(reducer);
    // What loops keep for each other is computed where the first of them needs it.
    if (reducer.input().rank() == static_cast<int64_t>(first_.size()) && at != first_)
      return Open();
    for (size_t i = 0; i < reducer.instr->operand_count(); ++i)
      Visit(*reducer.instr->operand(i), NumberOf(i < reducer.count ? at : Place()));
  }

  void Write(const Instr& root, const Reducer& like) {
    for (const Shape& part : PartsOf(root.shape())) {
      if (part.ElementCount() == rows_) {
        Visit(root, NumberOf(Split({Row()}, part.dims())));
      } else if (!root.shape().IsArray() || part.ElementCount() != rows_ * row_) {
        answer_ = Accepts::kNo;
      } else {
        bool alike = part.dims() == like.input().dims();
        Visit(root, NumberOf(alike ? first_ : Split({Row(), Element()}, part.dims())));
      }
    }
  }

  void Open() {
    if (answer_ == Accepts::kYes) answer_ = Accepts::kAskByBuilding;
  }

  // The number of a place: most are met again and again.
  uint32_t NumberOf(Place place) {
    auto it = std::find(places_.begin(), places_.end(), place);
    auto number = static_cast<uint32_t>(it - places_.begin());
    if (it == places_.end()) places_.push_back(std::move(place));
    return number;
  }

  void Visit(const Instr& instr, uint32_t at) {
    Inside* inside = answer_ == Accepts::kYes ? Find(instr) : nullptr;
    if (inside == nullptr || IsImmediate(instr)) return;
    auto end = inside->seen.begin() + inside->visits;
    if (std::find(inside->seen.begin(), end, at) != end) return;
    if (inside->visits == kVisitsOfInstr) return Open();
    inside->seen[inside->visits++] = at;
    if (instr.op() == Op::kReduce) return CheckFold(instr, places_[at]);
    if (instr.op() != Op::kMap && instr.info().Is(kElementwise)) {
      for (const Instr* operand : instr.operands())
        Visit(*operand, operand->shape().IsScalar() ? NumberOf({}) : at);
      return;
    }
    Move(instr, at);
  }

  // Where its operands are needed, of what moves elements.
  void Move(const Instr& instr, uint32_t number) {
    if (instr.op() == Op::kCopy || instr.op() == Op::kGetTupleElement)
      return Visit(*instr.operand(0), number);
    const Place at = places_[number];
    auto visit = [&](Place place) { Visit(*instr.operand(0), NumberOf(std::move(place))); };
    switch (instr.op()) {
      case Op::kIota:
        return;
      case Op::kBroadcast:
        return visit(BeforeBroadcast(instr, at));
      case Op::kTranspose: {
        const Dims& permutation = instr.attrs<DimensionsAttrs>().dimensions;
        Place from(at.size());
        for (size_t i = 0; i < at.size(); ++i) from[static_cast<size_t>(permutation[i])] = at[i];
        return visit(std::move(from));
      }
      case Op::kReshape:
        return visit(Split(Joined(at, instr.shape().dims()), instr.operand(0)->shape().dims()));
      case Op::kSlice:
        return visit(BeforeSlice(instr, at));
      case Op::kBitcastConvert: {
        const Shape& from = instr.operand(0)->shape();
        bool alike = from.rank() == instr.shape().rank();
        return visit(alike ? at : Place(from.dims().size()));
      }
      case Op::kConcatenate:
      case Op::kPad:
      case Op::kReverse:
      case Op::kDynamicSlice:
      case Op::kGather:
      case Op::kRngBitGenerator:  // every element has code of its own, from the whole state
        for (const Instr* operand : instr.operands())
          Visit(*operand, NumberOf(Place(operand->shape().dims().size())));
        return;
      default:
        return Open();
    }
  }

  static Place BeforeBroadcast(const Instr& instr, const Place& at) {
    const Dims& dimensions = instr.attrs<DimensionsAttrs>().dimensions;
    Place from(dimensions.size());
    for (size_t i = 0; i < from.size(); ++i)
      from[i] = instr.operand(0)->shape().dim(i) == 1 ? Digit{Digit::Of::kZero}
                                                      : at[static_cast<size_t>(dimensions[i])];
    return from;
  }

  static Place BeforeSlice(const Instr& instr, Place at) {
    const SliceAttrs& attrs = instr.attrs<SliceAttrs>();
    for (size_t d = 0; d < at.size(); ++d)
      if (attrs.starts[d] != 0 || (d < attrs.strides.size() && attrs.strides[d] != 1)) at[d] = {};
    return at;
  }

  // The result of the row at hand is known, and no other.
  void CheckFold(const Instr& reduce, const Place& at) {
    Place own = Split({Row()}, PartsOf(reduce.shape())[0].dims());
    if (own == at && std::find(at.begin(), at.end(), Digit{}) == at.end()) return;
    auto unknown = [](const Digit& digit) { return digit.of == Digit::Of::kUnknown; };
    bool open =
        std::any_of(at.begin(), at.end(), unknown) || std::any_of(own.begin(), own.end(), unknown);
    answer_ = open ? Accepts::kAskByBuilding : Accepts::kNo;
  }

  // An instruction of the region, and where it has been looked at.
  struct Inside {
    const Instr* instr;
    std::array<uint32_t, kVisitsOfInstr> seen = {};  // numbers of places
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
  // Where its number is, or would be.
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

  const Region& region_;
  std::vector<Inside> inside_;
  std::vector<uint32_t> slots_;  // numbers in inside_, from 1 on, by the instruction's; 0: none
  std::vector<Place> places_;
  uint32_t walk_ = 0;
  int64_t rows_ = 0, row_ = 0;
  Place first_;  // an element of a row, in what the first reduction folds
  Accepts answer_ = Accepts::kYes;
};

}  // namespace

Accepts AcceptsRows(const Region& region) {
  return Walker(region).Run();
}

}  // namespace tokamak
