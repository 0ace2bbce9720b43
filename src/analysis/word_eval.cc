// Abstract interpretation of integer code over symbolic words (word_terms.h), for recognizing
// random number generators. An array is one term, the same for all elements up to broadcasting; a
// scalar counter or a table of rotation distances is a number and is folded. A threefry loop can be
// evaluated because its trip count and rotations are numbers:
//
//   while (i < 5): x0 += x1; x1 = rotl(x1, r[i]) ^ x0; i += 1     i, r[i]: numbers; x0, x1: terms
//
// Unknown values become leaves. Outside of calls, a leaf is identified by its instruction. Inside a
// called computation the same instruction stands for another value in each evaluation, so it
// becomes a fresh leaf. kNoTerm means "not a word", and never equals another term. Evaluation is
// bounded by depth, trip count and a budget of instructions.

#include "analysis/word_eval.h"

#include <algorithm>

#include "analysis/index_map.h"
#include "ir/compare_direction.h"

namespace tokamak {
namespace {

// Nesting of calls and loops evaluated at most. Chosen.
constexpr int kMaxDepth = 8;
constexpr int kMaxWordTrips = 32;  // iterations of a loop evaluated; threefry loops have 5 or 20

uint64_t WordMaskOf(ElementType type) {
  int bits = InfoOf(type).bits;
  return bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
}

int64_t SignedOf(ElementType type, uint64_t bits) {
  if (!IsSigned(type)) return static_cast<int64_t>(bits);
  int unused = 64 - InfoOf(type).bits;
  return static_cast<int64_t>(bits << unused) >> unused;
}

bool IsIntegerOrPred(const Shape& shape) {
  return shape.IsArray() && shape.quant() == nullptr &&
         (IsInteger(shape.type()) || shape.type() == ElementType::kPred);
}

// Constant folding of integer ops: loop counters and tables of rotation distances.
std::optional<uint64_t> FoldNumbers(const Instr& instr, std::span<const uint64_t> x) {
  ElementType from = instr.operand(0)->shape().type();
  uint64_t mask = WordMaskOf(instr.shape().type()),
           width = static_cast<uint64_t>(InfoOf(from).bits);
  switch (instr.op()) {
    case Op::kAdd:
      return from == ElementType::kPred ? x[0] | x[1] : (x[0] + x[1]) & mask;
    case Op::kSubtract:
      return (x[0] - x[1]) & mask;
    case Op::kMultiply:
      return (x[0] * x[1]) & mask;
    case Op::kNegate:
      return (0 - x[0]) & mask;
    case Op::kNot:
      return ~x[0] & mask;
    case Op::kAnd:
      return x[0] & x[1];
    case Op::kOr:
      return x[0] | x[1];
    case Op::kXor:
      return x[0] ^ x[1];
    case Op::kShiftLeft:
      return x[1] >= width ? 0 : (x[0] << x[1]) & mask;
    case Op::kShiftRightLogical:
      return x[1] >= width ? 0 : x[0] >> x[1];
    case Op::kSelect:
      return x[0] != 0 ? x[1] : x[2];
    case Op::kConvert:
      if (instr.shape().type() == ElementType::kPred) return x[0] != 0 ? 1 : 0;
      return static_cast<uint64_t>(SignedOf(from, x[0])) & mask;
    case Op::kRemainder: {
      if (x[1] == 0 || (IsSigned(from) && (SignedOf(from, x[0]) < 0 || SignedOf(from, x[1]) < 0)))
        return std::nullopt;
      return x[0] % x[1];
    }
    case Op::kCompare: {
      CompareDirection direction = instr.attrs<CompareAttrs>().direction;
      bool holds = IsSigned(from) ? Holds(SignedOf(from, x[0]), direction, SignedOf(from, x[1]))
                                  : Holds(x[0], direction, x[1]);
      return holds ? 1 : 0;
    }
    default:
      return std::nullopt;
  }
}

// The broadcast that an op performs; nullopt if it does anything else.
std::optional<BroadcastMap> BroadcastMapOf(const Instr& instr) {
  const Dims &from = instr.operand(0)->shape().dims(), &to = instr.shape().dims();
  std::optional<IndexMap> map = IndexMapOf(instr, 0);
  if (!map || !map->ReadsOneFixedElement()) return std::nullopt;
  BroadcastMap broadcast_map{to, std::vector<int>(to.size(), -1)};
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d] == 1) continue;
    std::optional<size_t> dim = map->SameDim(d, from[d]);
    if (!dim) return std::nullopt;
    broadcast_map.sources[*dim] = static_cast<int>(d);
  }
  return broadcast_map;
}

// The element at `starts` of a constant.
std::optional<uint64_t> ElementOf(const Literal& literal, const Dims& starts) {
  int64_t offset = 0;
  const Dims& dims = literal.shape().dims();
  for (size_t i = 0; i < dims.size(); ++i) {
    if (starts[i] < 0 || starts[i] >= dims[i]) return std::nullopt;
    offset = offset * dims[i] + starts[i];
  }
  return literal.BitsAt(offset);
}

}  // namespace

bool IsWord(const Shape& shape) {
  return shape.IsArray() && shape.quant() == nullptr &&
         (shape.type() == ElementType::kU32 || shape.type() == ElementType::kS32);
}

size_t LeafCountOf(const Shape& shape) {
  if (!shape.IsTuple()) return 1;
  size_t count = 0;
  for (const Shape& element : shape.elements()) count += LeafCountOf(element);
  return count;
}

uint8_t WordWorkOf(const Computation& computation, const WordWorks& known) {
  uint8_t work = 0;
  bool may = computation.CountOf(Op::kShiftLeft) > 0 || computation.CountOf(Op::kXor) > 0 ||
             computation.has_callers();
  if (!may) return work;
  for (const Instr* instr : computation.Instrs()) {
    bool word = IsWord(instr->shape());
    if (word && instr->op() == Op::kShiftLeft) work |= kShiftsWords;
    if (word && instr->op() == Op::kXor) work |= kMixesWords;
    bool calls =
        instr->op() == Op::kCall || instr->op() == Op::kFusion || instr->op() == Op::kWhile;
    for (const Computation* callee : calls ? instr->called() : std::span<Computation* const>())
      work |= known.at(callee);
    if (work == kAllWordWork) break;
  }
  return work;
}

bool WordEval::IsWorthLookingInto(const Instr& instr) const {
  uint8_t work = 0;
  for (const Computation* callee : instr.called()) work |= works_.at(callee);
  return instr.op() == Op::kWhile ? work == kAllWordWork : work != 0;
}

TermList WordEval::Opaque(const Instr& instr, bool inside) {
  if (!instr.shape().IsTuple()) {
    if (!instr.shape().IsStaticArray()) return {kNoTerm};
    const Dims& dims = instr.shape().dims();
    bool same = !inside || instr.op() == Op::kConstant;
    return {same ? terms_.Leaf(&instr, 0, dims) : terms_.NewLeaf(dims)};
  }
  TermList all;
  std::vector<const Shape*> open = {&instr.shape()};
  while (!open.empty()) {
    const Shape* shape = open.back();
    open.pop_back();
    if (shape->IsTuple()) {
      for (size_t i = shape->elements().size(); i-- > 0;) open.push_back(&shape->elements()[i]);
      continue;
    }
    bool known = shape->IsStaticArray();
    WordTerm leaf = !known ? kNoTerm
                    : inside
                        ? terms_.NewLeaf(shape->dims())
                        : terms_.Leaf(&instr, static_cast<uint32_t>(all.size()), shape->dims());
    all.push_back(leaf);
  }
  return all;
}

// Shifts, sums and xors of words.
WordTerm WordEval::OfWords(const Instr& instr, WordTerm x, WordTerm y) {
  switch (instr.op()) {
    case Op::kAdd:
      return terms_.Add(x, y);
    case Op::kSubtract:
      return terms_.Subtract(x, y);
    case Op::kNegate:
      return terms_.Subtract(terms_.Number(0), x);
    case Op::kXor:
      return terms_.Xor(x, y);
    case Op::kNot:
      return terms_.Xor(x, terms_.Number(0xffffffff));
    case Op::kOr:
      return terms_.Or(x, y);
    case Op::kShiftLeft:
      return terms_.IsNumber(y) ? terms_.ShiftLeft(x, terms_.node(y).number) : kNoTerm;
    case Op::kShiftRightLogical:
      return terms_.IsNumber(y) ? terms_.ShiftRight(x, terms_.node(y).number) : kNoTerm;
    default:
      return kNoTerm;
  }
}

// Numbers are equal in all elements and survive any movement. A one-element slice of a constant is
// a number; its dynamic start is clamped as the op requires. Other movements must be broadcasts.
WordTerm WordEval::OfMovement(const Instr& instr, WordTerm x, TermOperands operands) {
  if (terms_.IsNumber(x)) return x;
  bool one = instr.shape().ElementCount() == 1;
  const Instr* base = terms_.node(x).kind == TermKind::kLeaf ? terms_.leaf(x).base : nullptr;
  bool constant = base != nullptr && base->op() == Op::kConstant &&
                  x == terms_.Leaf(base, 0, base->shape().dims());
  if (one && constant && (instr.op() == Op::kSlice || instr.op() == Op::kDynamicSlice)) {
    Dims starts;
    if (instr.op() == Op::kSlice) starts = instr.attrs<SliceAttrs>().starts;
    for (size_t i = 1; i < operands.size(); ++i) {
      if (!terms_.IsNumber(operands[i]->front())) return kNoTerm;
      int64_t last = base->shape().dim(i - 1) - 1;
      int64_t start =
          SignedOf(instr.operand(i)->shape().type(), terms_.node(operands[i]->front()).number);
      starts.push_back(std::clamp<int64_t>(start, 0, last));
    }
    std::optional<uint64_t> bits = ElementOf(base->attrs<ConstantAttrs>().literal, starts);
    return bits ? terms_.Number(*bits) : kNoTerm;
  }
  std::optional<BroadcastMap> broadcast_map = BroadcastMapOf(instr);
  return broadcast_map ? terms_.Broadcast(x, *broadcast_map) : kNoTerm;
}

// The term of an array op; kNoTerm if the op is not integer arithmetic on known terms.
WordTerm WordEval::OfArray(const Instr& instr, TermOperands operands) {
  if (instr.op() == Op::kConstant) {
    const Literal& literal = instr.attrs<ConstantAttrs>().literal;
    bool one = literal.is_splat() || literal.shape().ElementCount() == 1;
    return one && literal.shape().ElementCount() > 0 ? terms_.Number(literal.BitsAt(0)) : kNoTerm;
  }
  if (operands.empty() || instr.shape().HasDynamicDims()) return kNoTerm;
  for (size_t i = 0; i < operands.size(); ++i)
    if (!IsIntegerOrPred(instr.operand(i)->shape()) || operands[i]->front() == kNoTerm)
      return kNoTerm;
  switch (instr.op()) {
    case Op::kCopy:
      return operands[0]->front();
    case Op::kBroadcast:
    case Op::kTranspose:
    case Op::kReshape:
    case Op::kSlice:
    case Op::kDynamicSlice:
      return OfMovement(instr, operands[0]->front(), operands);
    case Op::kBitcastConvert:
    case Op::kConvert:
      if (IsWord(instr.shape()) && IsWord(instr.operand(0)->shape())) return operands[0]->front();
      if (instr.op() == Op::kBitcastConvert) return kNoTerm;
      break;
    default:
      break;
  }
  bool words = instr.info().Is(kElementwise) && instr.op() != Op::kMap && operands.size() <= 3;
  if (!words) return kNoTerm;
  std::vector<uint64_t> numbers;
  for (const TermList* operand : operands)
    if (terms_.IsNumber(operand->front())) numbers.push_back(terms_.node(operand->front()).number);
  if (numbers.size() == operands.size()) {
    std::optional<uint64_t> folded = FoldNumbers(instr, numbers);
    return folded ? terms_.Number(*folded) : kNoTerm;
  }
  if (!IsWord(instr.shape()) || !IsWord(instr.operand(0)->shape())) return kNoTerm;
  return OfWords(instr, operands[0]->front(), operands.size() > 1 ? operands[1]->front() : kNoTerm);
}

// Never fails: a value without a term becomes one leaf per array of its shape.
TermList WordEval::Of(const Instr& instr, TermOperands operands, bool inside, int depth) {
  switch (instr.op()) {
    case Op::kTuple: {
      TermList all;
      for (const TermList* operand : operands)
        all.insert(all.end(), operand->begin(), operand->end());
      return all;
    }
    case Op::kGetTupleElement: {
      const std::vector<Shape>& elements = instr.operand(0)->shape().elements();
      size_t index = static_cast<size_t>(instr.attrs<TupleIndexAttrs>().index), first = 0;
      // O(1) for a flat tuple.
      bool flat = instr.operand(0)->shape().depth() == 1 && elements.size() == operands[0]->size();
      if (flat) first = index;
      for (size_t i = 0; !flat && i < index; ++i) first += LeafCountOf(elements[i]);
      auto begin = operands[0]->begin() + static_cast<ptrdiff_t>(first);
      return {begin, begin + static_cast<ptrdiff_t>(LeafCountOf(elements[index]))};
    }
    case Op::kCall:
    case Op::kFusion:
    case Op::kWhile: {
      if (!IsWorthLookingInto(instr)) return Opaque(instr, inside);
      TermList arguments;
      for (const TermList* operand : operands)
        arguments.insert(arguments.end(), operand->begin(), operand->end());
      std::optional<TermList> results = instr.op() == Op::kWhile
                                            ? RunLoop(instr, std::move(arguments), depth)
                                            : Run(*instr.called(0), arguments, depth + 1);
      if (results && results->size() == LeafCountOf(instr.shape())) return *std::move(results);
      return Opaque(instr, inside);
    }
    default:
      break;
  }
  WordTerm term = IsIntegerOrPred(instr.shape()) ? OfArray(instr, operands) : kNoTerm;
  return term == kNoTerm ? Opaque(instr, inside) : TermList{term};
}

std::optional<TermList> WordEval::Run(const Computation& computation, const TermList& arguments,
                                      int depth) {
  budget_ -= static_cast<int64_t>(computation.size());
  if (depth > kMaxDepth || budget_ < 0) return std::nullopt;
  InstrMap<TermList> found(computation);
  size_t next = 0;
  for (const Instr* parameter : computation.parameters()) {
    size_t count = LeafCountOf(parameter->shape());
    if (next + count > arguments.size()) return std::nullopt;
    auto begin = arguments.begin() + static_cast<ptrdiff_t>(next);
    found[parameter].assign(begin, begin + static_cast<ptrdiff_t>(count));
    next += count;
  }
  if (next != arguments.size()) return std::nullopt;
  std::vector<const TermList*> operands;
  for (const Instr* instr : computation.PostOrder()) {
    if (instr->op() == Op::kParameter) continue;
    operands.clear();
    for (const Instr* operand : instr->operands()) operands.push_back(&found[operand]);
    found[instr] = Of(*instr, operands, true, depth);
  }
  return found[computation.root()];
}

// Nullopt unless the condition folds to a number in every iteration, and to 0 within kMaxWordTrips.
std::optional<TermList> WordEval::RunLoop(const Instr& loop, TermList state, int depth) {
  for (int iteration = 0; iteration < kMaxWordTrips; ++iteration) {
    std::optional<TermList> again = Run(*loop.called(0), state, depth + 1);
    if (!again || again->size() != 1 || !terms_.IsNumber((*again)[0])) return std::nullopt;
    if (terms_.node((*again)[0]).number == 0) return state;
    std::optional<TermList> next = Run(*loop.called(1), state, depth + 1);
    if (!next || next->size() != state.size()) return std::nullopt;
    state = *std::move(next);
  }
  return std::nullopt;
}

}  // namespace tokamak
