#include "gen/element.h"

#include <algorithm>

#include "gen/random_bits.h"
#include "gen/select_scatter.h"
#include "gen/window.h"
#include "ir/bitcast.h"
#include "support/check.h"

// Elements of a region's values. Index expressions are emitted naively; the builder simplifies
// them. Both operands of a select are computed, so coordinates are clamped wherever an element may
// be out of bounds (pad, concatenate, dynamic-update-slice).

namespace tokamak {
namespace {

// Maximum kernel values and recursion depth; larger regions are rejected. Chosen: they bound
// compile time and stack.
constexpr size_t kMaxNodes = 8000;
constexpr int kMaxRecursion = 2000;
// Operands of an elementwise op that need no allocation (chosen: clamp and select have three).
constexpr size_t kFewOperands = 4;
constexpr uint32_t kFreeSlot = UINT32_MAX;  // of the hash table of instructions
// Slots per instruction, at least. Chosen: numbers of a region's instructions are close together,
// so half of the slots free make most lookups one step.
constexpr size_t kSlotsPerInstr = 2;

}  // namespace

ElementArrays LocalElements(KernelBuilder& b, const std::string& name, ElementType type,
                            Space space, int64_t size) {
  ElementArrays arrays{};
  for (size_t component = 0; component < (IsComplex(type) ? 2u : 1u); ++component)
    arrays[component] = b.Local(name, ComputeType(type), space, size);
  return arrays;
}

Element ReadElement(KernelBuilder& b, const ElementArrays& arrays, ElementType type, Scalar index) {
  Element value{b.Read(arrays[0], index), {}};
  if (IsComplex(type)) value[1] = b.Read(arrays[1], index);
  return value;
}

void StoreElement(KernelBuilder& b, const ElementArrays& arrays, Scalar index,
                  const Element& value) {
  for (size_t component = 0; component < value.size(); ++component)
    if (value[component].ok()) b.Store(arrays[component], index, value[component]);
}

Element Choose(Scalar condition, const Element& yes, const Element& no) {
  Element chosen;
  for (size_t component = 0; component < yes.size(); ++component)
    if (yes[component].ok()) chosen[component] = Choose(condition, yes[component], no[component]);
  return chosen;
}

Coordinates Delinearized(KernelBuilder& b, Scalar linear, const Dims& dims) {
  Coordinates at(dims.size());
  int64_t stride = 1;
  size_t first = 0;  // the first dimension larger than 1: it needs no remainder
  while (first < dims.size() && dims[first] == 1) ++first;
  for (size_t d = dims.size(); d-- > 0;) {
    if (dims[d] == 1) {
      at[d] = b.Index(0);
      continue;
    }
    at[d] = linear / b.Index(stride);
    if (d != first) at[d] = at[d] % b.Index(dims[d]);
    stride *= dims[d];
  }
  return at;
}

Scalar Linearized(KernelBuilder& b, const Coordinates& at, const Dims& dims) {
  Scalar sum = b.Index(0);
  int64_t stride = 1;
  for (size_t d = dims.size(); d-- > 0;) {
    if (dims[d] != 1) sum = sum + at[d] * b.Index(stride);
    stride *= dims[d];
  }
  return sum;
}

Coordinates ReadCoordinates(const IndexMap& map, const Coordinates& result,
                            const Coordinates& iterated) {
  Coordinates at;
  for (const IndexExpr& expr : map.dims) {
    size_t variable = map.terms[expr.first_term].variable;
    at.push_back(variable < result.size() ? result[variable] : iterated[variable - result.size()]);
  }
  return at;
}

Scalar PositionOf(KernelBuilder& b, const IndexMap& map, const IndexExpr& expr,
                  const Coordinates& variables) {
  Scalar at;
  for (const IndexTerm& term : map.TermsOf(expr)) {
    Scalar product = variables[term.variable];
    if (term.coefficient != 1) product = product * b.Index(term.coefficient);
    at = at.ok() ? at + product : product;
  }
  if (!at.ok()) return b.Index(expr.offset);
  return expr.offset == 0 ? at : at + b.Index(expr.offset);
}

ElementEmitter::ElementEmitter(KernelBuilder& b, const FusedRegion& region) : b_(b) {
  states_.reserve(region.instrs.size() + region.inputs.size());
  size_t slots = 1;
  while (slots < kSlotsPerInstr * states_.capacity()) slots *= 2;
  slots_.assign(slots, kFreeSlot);
  for (const Instr* instr : region.instrs) StateOf(*instr).in_region = true;
  for (const Instr* input : region.inputs) {
    ArrayId array = AddArgument(*input, 0, input->shape(), Access::kRead);
    StateOf(*input).input = array;
  }
  for (const Instr* root : region.roots) {
    ResultShapes parts = ResultShapesOf(root->shape());
    Access access = root->op() == Op::kScatter ? Access::kReadWrite : Access::kWrite;
    StateOf(*root).outputs_begin = outputs_.size();
    for (size_t i = 0; i < parts.size(); ++i)
      outputs_.push_back(AddArgument(*root, i, parts[i], access));
  }
}

// The slot of an instruction, or the free one where it belongs.
size_t ElementEmitter::SlotOf(const Instr& instr) const {
  size_t mask = slots_.size() - 1, slot = static_cast<size_t>(instr.id()) & mask;
  while (slots_[slot] != kFreeSlot && states_[slots_[slot]].instr != &instr)
    slot = (slot + 1) & mask;
  return slot;
}

const ElementEmitter::InstrState* ElementEmitter::Known(const Instr& instr) const {
  uint32_t number = slots_[SlotOf(instr)];
  return number == kFreeSlot ? nullptr : &states_[number];
}

ElementEmitter::InstrState& ElementEmitter::StateOf(const Instr& instr) {
  if (kSlotsPerInstr * (states_.size() + 1) > slots_.size()) GrowSlots();
  uint32_t& number = slots_[SlotOf(instr)];
  if (number == kFreeSlot) {
    number = static_cast<uint32_t>(states_.size());
    states_.emplace_back().instr = &instr;
  }
  return states_[number];
}

void ElementEmitter::GrowSlots() {
  slots_.assign(slots_.size() + slots_.size(), kFreeSlot);
  for (size_t i = 0; i < states_.size(); ++i)
    slots_[SlotOf(*states_[i].instr)] = static_cast<uint32_t>(i);
}

ArrayId ElementEmitter::InputOf(const Instr& input) const {
  const InstrState* state = Known(input);
  TOK_CHECK(state != nullptr && state->input, "not an input of the region");
  return *state->input;
}

ArrayId ElementEmitter::OutputOf(const Instr& root, size_t result_index) const {
  const InstrState* state = Known(root);
  TOK_CHECK(state != nullptr && state->outputs_begin, "not a root of the region");
  return outputs_[*state->outputs_begin + result_index];
}

Scalar ElementEmitter::LinearIndexOf(const Coordinates& at, const Dims& dims) {
  auto is_same = [](Scalar coordinate, ValueId id) { return coordinate.id() == id; };
  for (const LinearizedIndex& known : linearized_)
    if (known.index.ok() && known.dims == dims &&
        std::equal(at.begin(), at.end(), known.at.begin(), known.at.end(), is_same))
      return known.index;
  Scalar index = Linearized(b_, at, dims);
  LinearizedIndex& next = linearized_[next_linearized_];
  next_linearized_ = (next_linearized_ + 1) % linearized_.size();
  next.at.clear();
  for (Scalar coordinate : at) next.at.push_back(coordinate.id());
  next.dims = dims;
  return next.index = index;
}

std::string NameOfArgument(const Instr& instr, size_t result_index) {
  std::string name =
      instr.name().empty() ? "v" + std::to_string(static_cast<uint32_t>(instr.id())) : instr.name();
  if (result_index > 0) name += "_" + std::to_string(result_index);
  return name;
}

ArrayId ElementEmitter::AddArgument(const Instr& instr, size_t result_index, const Shape& shape,
                                    Access access) {
  int64_t count = shape.ElementCount() * (IsComplex(shape.type()) ? 2 : 1);
  return b_.Argument({.name = NameOfArgument(instr, result_index),
                      .type = StorageType(shape.type()),
                      .access = access,
                      .size = count,
                      .alignment = BytesOf(StorageType(shape.type()))});
}

void ElementEmitter::Fail(const std::string& why) {
  if (failure_.empty()) failure_ = why;
}

Element ElementEmitter::Zero(ElementType type) {
  Element zero;
  zero[0] = b_.Constant(ComputeType(type), 0);
  if (IsComplex(type)) zero[1] = zero[0];
  return zero;
}

Element ElementEmitter::At(const Instr& instr, const Coordinates& at, size_t result_index) {
  const InstrState* state = Known(instr);
  if (instr.op() == Op::kGetTupleElement && state != nullptr && state->in_region)
    return At(*instr.operand(0), at, static_cast<size_t>(instr.attrs<TupleIndexAttrs>().index));
  auto type = [&] { return ResultShapesOf(instr.shape())[result_index].type(); };
  if (!failure_.empty()) return Zero(type());
  if (state != nullptr)
    for (const BoundElement& bound : state->bound) {
      if (bound.result_index != result_index) continue;
      auto is_same = [](Scalar coordinate, ValueId id) { return coordinate.id() == id; };
      if (std::equal(at.begin(), at.end(), bound.at.begin(), bound.at.end(), is_same))
        return bound.value;
      Fail("a reduction's result is needed outside its row");
      return Zero(type());
    }
  if (const Element* known = memo_.Find(instr, result_index, at)) return *known;
  if (b_.kernel().nodes.size() > kMaxNodes || recursion_depth_ > kMaxRecursion) {
    Fail("the kernel would be too large");
    return Zero(type());
  }
  ++recursion_depth_;
  std::shared_ptr<ElementSource> source = state != nullptr ? state->source : nullptr;
  Element value =
      source != nullptr ? source->At(at, result_index) : Compute(instr, at, result_index);
  --recursion_depth_;
  memo_.Add(instr, result_index, at, value);
  return value;
}

void ElementEmitter::Bind(const Instr& instr, size_t result_index, const Coordinates& at,
                          Element value) {
  std::vector<BoundElement>& all = StateOf(instr).bound;
  auto bound = std::find_if(all.begin(), all.end(), [&](const BoundElement& of) {
    return of.result_index == result_index;
  });
  if (bound == all.end()) bound = all.emplace(all.end());
  bound->result_index = result_index;
  bound->at.clear();
  for (Scalar coordinate : at) bound->at.push_back(coordinate.id());
  bound->value = value;
}

void ElementEmitter::SetSource(const Instr& instr, std::shared_ptr<ElementSource> element_source) {
  StateOf(instr).source = std::move(element_source);
}

void ElementEmitter::Memoize(const Instr& instr, const Coordinates& at, Element value) {
  memo_.Set(instr, 0, at, value);
}

void ElementEmitter::Store(const Instr& root, size_t result_index, const Coordinates& at,
                           Element value) {
  StoreLinear(root, result_index,
              LinearIndexOf(at, ResultShapesOf(root.shape())[result_index].dims()), value);
}

void ElementEmitter::StoreLinear(const Instr& root, size_t result_index, Scalar index,
                                 Element value) {
  if (!failure_.empty()) return;
  ElementType type = ResultShapesOf(root.shape())[result_index].type();
  ArrayId array = OutputOf(root, result_index);
  Element stored = ToStorage(b_, type, value);
  if (!IsComplex(type)) {
    b_.Store(array, index, stored[0]);
    return;
  }
  b_.Store(array, index * b_.Index(2), stored[0]);
  b_.Store(array, index * b_.Index(2) + b_.Index(1), stored[1]);
}

Element ElementEmitter::LoadLinear(const Instr& instr, Scalar index) {
  ElementType type = instr.shape().type();
  const InstrState* state = Known(instr);
  if (state != nullptr && state->provided) {
    if (state->provided->index == index.id()) return state->provided->value;
    if (!state->provided->load_otherwise) {
      Fail("an input is needed at another index than provided");
      return Zero(type);
    }
  }
  if (state == nullptr || !state->input) {
    // The array that an update writes in place is not an input of the region.
    Fail(std::string(instr.info().name) + ": an update that is not stored reads it");
    return Zero(type);
  }
  ArrayId array = *state->input;
  Element loaded;
  if (IsComplex(type)) {
    loaded[0] = b_.Load(array, index * b_.Index(2));
    loaded[1] = b_.Load(array, index * b_.Index(2) + b_.Index(1));
  } else {
    loaded[0] = b_.Load(array, index);
  }
  return FromStorage(b_, type, loaded);
}

Element ElementEmitter::ReadRoot(const Instr& root, Scalar index) {
  ElementType type = root.shape().type();
  ArrayId array = OutputOf(root);
  if (!IsComplex(type)) return FromStorage(b_, type, {b_.Read(array, index), {}});
  Scalar real = b_.Read(array, index * b_.Index(2));
  return FromStorage(b_, type, {real, b_.Read(array, index * b_.Index(2) + b_.Index(1))});
}

void ElementEmitter::OverrideLoad(const Instr& input, Scalar index, Element value,
                                  bool load_otherwise) {
  StateOf(input).provided = Provided{index.id(), value, load_otherwise};
}

Scalar ElementEmitter::LoadStored(const Instr& input, Scalar index) {
  return b_.Load(InputOf(input), index);
}

Element ElementEmitter::Operand(const Instr& instr, size_t i, const Coordinates& at) {
  const Instr& operand = *instr.operand(i);
  // The predicate of a select and the bounds of a clamp may be scalars.
  return At(operand, operand.shape().IsScalar() ? Coordinates() : at);
}

Element ElementEmitter::Compute(const Instr& instr, const Coordinates& at, size_t result_index) {
  if (IsImmediate(instr)) return Immediate(instr);
  if (!IsInRegion(instr)) return LoadLinear(instr, LinearIndexOf(at, instr.shape().dims()));
  switch (instr.op()) {
    case Op::kIota:
      return Iota(instr, at);
    case Op::kRngBitGenerator:
      return RandomBits(instr, at);
    case Op::kOptimizationBarrier:
      return instr.operand_count() == 1 ? At(*instr.operand(0), at, result_index)
                                        : At(*instr.operand(result_index), at);
    case Op::kCopy:
    case Op::kDomain:
    case Op::kShardingConstraint:
    case Op::kReshard:
    case Op::kPropagationBarrier:
      return At(*instr.operand(0), at);
    case Op::kBitcast:
    case Op::kReshape:
      return Reshape(instr, at);
    case Op::kPad:
      return Pad(instr, at);
    case Op::kConcatenate:
      return Concatenate(instr, at);
    case Op::kDynamicUpdateSlice:
      return DynamicUpdateSlice(instr, at);
    case Op::kBitcastConvert:
      return BitcastConvert(instr, at);
    case Op::kMap:
      return Map(instr, at);
    case Op::kReduceWindow:
      return ReduceWindow(instr, at, result_index);
    case Op::kSelectAndScatter:
      return SelectAndScatterAt(b_, *this, instr, at);
    default:
      break;
  }
  if (instr.info().Is(kElementwise)) return Elementwise(instr, at);
  if (instr.info().Is(kDataMovement))
    if (std::optional<IndexMap> map = IndexMapOf(instr, 0))
      return At(*instr.operand(0), OperandCoordinates(instr, *map, at));
  Fail(std::string(instr.info().name) + ": it is not an elementwise op");
  return Zero(ResultShapesOf(instr.shape())[result_index].type());
}

Element ElementEmitter::Immediate(const Instr& instr) {
  ElementType type = instr.shape().type();
  const Literal& literal = instr.attrs<ConstantAttrs>().literal;
  if (type == ElementType::kC128 || type == ElementType::kC64) {
    std::complex<double> value = literal.ComplexAt(0);
    ScalarType scalar = ComputeType(type);
    return {b_.Constant(scalar, value.real()), b_.Constant(scalar, value.imag())};
  }
  ScalarType storage = StorageType(type);
  return FromStorage(b_, type, {b_.ConstantBits(storage, literal.BitsAt(0)), {}});
}

// c + e^x, as in sigmoids: the value of e^x does not matter where it is negligible against c.
std::optional<Element> ElementEmitter::TryConstantPlusExp(const Instr& instr,
                                                          const Coordinates& at) {
  // Minimum value of c, by definition of the precondition of formulas::ExpOfTerm.
  constexpr double kMinConstant = 0x1p-60;
  if (instr.op() != Op::kAdd || instr.shape().type() != ElementType::kF32) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    const Instr& exp = *instr.operand(i);
    if (exp.op() != Op::kExp || exp.users().size() != 1) continue;
    const InstrState* state = Known(exp);
    if (state == nullptr || !state->in_region || state->outputs_begin) continue;
    Element other = Operand(instr, 1 - i, at);
    const ScalarNode& node = b_.kernel().node(other[0].id());
    if (node.prim != Prim::kConst || !(DoubleOfBits(node.type, node.bits) >= kMinConstant))
      continue;
    Element x = Operand(exp, 0, at);
    if (!failure_.empty()) return Zero(instr.shape().type());
    return Element{other[0] + formulas::ExpOfTerm(x[0]), {}};
  }
  return std::nullopt;
}

Element ElementEmitter::Elementwise(const Instr& instr, const Coordinates& at) {
  if (std::optional<Element> sum = TryConstantPlusExp(instr, at)) return *sum;
  InlineVector<Element, kFewOperands> operands;
  for (size_t i = 0; i < instr.operand_count(); ++i) operands.push_back(Operand(instr, i, at));
  if (!failure_.empty()) return Zero(instr.shape().type());
  OpCall call{.op = instr.op(),
              .type = instr.shape().type(),
              .from = instr.operand(instr.op() == Op::kSelect ? 2 : 0)->shape().type(),
              .operands = operands,
              .attrs = &instr.attrs()};
  std::optional<Element> value = ApplyOp(b_, call);
  if (value) return *value;
  Fail(std::string(instr.info().name) + " of " + std::string(HloName(call.from)) +
       ": it has no scalar formula");
  return Zero(call.type);
}

Element ElementEmitter::Reshape(const Instr& instr, const Coordinates& at) {
  const Instr& from = *instr.operand(0);
  Scalar linear = LinearIndexOf(at, instr.shape().dims());
  // Inputs are row-major, so a linear index works for any shape.
  const InstrState* state = Known(from);
  bool is_made = state != nullptr && (state->in_region || state->source != nullptr);
  if (!is_made && !IsImmediate(from)) return LoadLinear(from, linear);
  return At(from, Delinearized(b_, linear, from.shape().dims()));
}

Element ElementEmitter::Iota(const Instr& instr, const Coordinates& at) {
  ElementType type = instr.shape().type();
  Scalar index = at[static_cast<size_t>(instr.attrs<IotaAttrs>().dimension)];
  // Shortcut for types that can represent every index.
  if (type == ElementType::kS32 || type == ElementType::kU32 || type == ElementType::kU64 ||
      type == ElementType::kS64)
    return {index.As(ComputeType(type)), {}};
  ElementType from =
      instr.shape().ElementCount() <= INT32_MAX ? ElementType::kS32 : ElementType::kS64;
  return ConvertElement(b_, from, type, {index.As(ComputeType(from)), {}});
}

// The index along one dimension of an operand. An index that may be out of bounds is clamped, and
// `inside` is narrowed to the elements that exist.
Scalar ElementEmitter::CoordinateOf(const Instr& instr, const IndexMap& map, const IndexExpr& expr,
                                    const Coordinates& variables, Scalar* inside) {
  Scalar at = PositionOf(b_, map, expr, variables);
  if (expr.start.Moves()) {
    Scalar start = StartIndex(instr, expr.start, variables);
    at = expr.start.is_subtracted ? at - start : at + start;
  }
  if (!expr.last) return at;
  bool is_block = expr.start.kind != RunTimeStart::Kind::kNone;
  if (is_block) {  // compared like the windows of a scatter, so that equal comparisons are one
                   // value
    *inside = *inside & (b_.Index(0) <= at) & (at < b_.Index(*expr.last + 1));
  } else {
    *inside = *inside & (b_.Index(0) <= at) & (at <= b_.Index(*expr.last));
  }
  Scalar clamped = LesserOf(GreaterOf(at, b_.Index(0)), b_.Index(*expr.last));
  if (expr.divisor == 1) return clamped;
  *inside = *inside & (clamped % b_.Index(expr.divisor) == b_.Index(0));
  return clamped / b_.Index(expr.divisor);
}

Coordinates ElementEmitter::OperandCoordinates(const Instr& instr, const IndexMap& map,
                                               const Coordinates& variables, Scalar* inside) {
  Coordinates at;
  at.reserve(map.dims.size());
  for (const IndexExpr& expr : map.dims)
    at.push_back(CoordinateOf(instr, map, expr, variables, inside));
  return at;
}

Scalar ElementEmitter::StartIndex(const Instr& instr, const RunTimeStart& start,
                                  Coordinates variables) {
  variables.push_back(b_.Index(start.component));  // the component variable of the index operand
  if (!start.Moves()) return b_.Index(0);
  Coordinates at = OperandCoordinates(instr, *IndexMapOf(instr, start.operand), variables);
  Scalar value = At(*instr.operand(start.operand), at)[0], last = b_.Index(start.last);
  if (start.kind == RunTimeStart::Kind::kFromEnd) {
    value = value.As(ScalarType::kIndex);
    value = Choose(value < b_.Index(0), value + b_.Index(start.last + 1), value);
  } else if (value.type() == ScalarType::kU64) {
    value = LesserOf(value, b_.ConstantBits(ScalarType::kU64, static_cast<Bits>(start.last)));
    return LesserOf(value.As(ScalarType::kIndex), last);
  }
  return LesserOf(GreaterOf(value.As(ScalarType::kIndex), b_.Index(0)), last);
}

Element ElementEmitter::Pad(const Instr& instr, const Coordinates& at) {
  Scalar inside = b_.ConstantBits(ScalarType::kPred, 1);
  Coordinates from = OperandCoordinates(instr, *IndexMapOf(instr, 0), at, &inside);
  Element padding = At(*instr.operand(1), {});
  return Choose(inside, At(*instr.operand(0), from), padding);
}

Element ElementEmitter::Concatenate(const Instr& instr, const Coordinates& at) {
  auto along = static_cast<size_t>(instr.attrs<DimensionAttrs>().dimension);
  Element value;
  int64_t end = instr.shape().dim(along);
  for (size_t i = instr.operand_count(); i-- > 0;) {
    int64_t size = instr.operand(i)->shape().dim(along);
    int64_t begin = end - size;
    end = begin;
    if (size == 0) continue;
    Coordinates from = at;
    // Skip operands that the range of the index excludes.
    Range range = b_.RangeOf(at[along]);
    if (range.low >= begin + size || range.high < begin) continue;
    from[along] = LesserOf(GreaterOf(at[along] - b_.Index(begin), b_.Index(0)), b_.Index(size - 1));
    Element operand = At(*instr.operand(i), from);
    value = value[0].ok() ? Choose(at[along] < b_.Index(begin + size), operand, value) : operand;
  }
  return value;
}

Element ElementEmitter::DynamicUpdateSlice(const Instr& instr, const Coordinates& at) {
  Scalar inside = b_.ConstantBits(ScalarType::kPred, 1);
  Coordinates from = OperandCoordinates(instr, *IndexMapOf(instr, 1), at, &inside);
  return Choose(inside, At(*instr.operand(1), from), At(*instr.operand(0), at));
}

Coordinates ElementEmitter::UpdateDestination(const Instr& instr, const Coordinates& at) {
  IndexMap map = *IndexMapOf(instr, 1);
  Coordinates position = at;
  for (size_t d = 0; d < at.size(); ++d)
    if (map.dims[d].start.Moves()) position[d] = at[d] + StartIndex(instr, map.dims[d].start, at);
  return position;
}

Element ElementEmitter::RandomBits(const Instr& instr, const Coordinates& at) {
  return RandomBitsAt(b_, instr, RandomState(instr), at);
}

RandomStateWords ElementEmitter::RandomState(const Instr& instr) {
  RandomStateWords words;
  int64_t count = instr.operand(0)->shape().dim(0);
  for (size_t i = 0; i < words.size(); ++i) {
    auto word = static_cast<int64_t>(i);
    words[i] = At(*instr.operand(0), {b_.Index(word < count ? word : 0)})[0];
  }
  return words;
}

Element ElementEmitter::BitcastConvert(const Instr& instr, const Coordinates& at) {
  const Instr& operand = *instr.operand(0);
  ElementType from = operand.shape().type(), to = instr.shape().type();
  auto [from_bits, to_bits] = WidthsOfBitcast(operand.shape(), instr.shape());
  if (from == to) return At(operand, at);
  auto bits_of = [&](const Coordinates& position) {
    Scalar stored = ToStorage(b_, from, At(operand, position))[0];
    if (from == ElementType::kPred) return stored.As(ScalarType::kU8);
    return stored.BitsAs(BitsTypeOf(stored.type()));
  };
  Scalar bits;
  ScalarType wide = BitsTypeOf(StorageType(to_bits > from_bits ? to : from));
  if (from_bits == to_bits) {
    bits = bits_of(at);
  } else if (from_bits > to_bits) {
    Coordinates position(at.begin(), at.end() - 1);
    Scalar shift = (at.back() * b_.Index(to_bits)).As(wide);
    bits = (bits_of(position) >> shift).As(BitsTypeOf(StorageType(to)));
    if (to_bits < 8) bits = bits & b_.Constant(bits.type(), (1 << to_bits) - 1);
  } else {
    for (int i = 0; i < to_bits / from_bits; ++i) {
      Coordinates position = at;
      position.push_back(b_.Index(i));
      Scalar shifted = bits_of(position).As(wide) << b_.Constant(wide, i * from_bits);
      bits = bits.ok() ? bits | shifted : shifted;
    }
  }
  if (to == ElementType::kPred) return {bits != 0, {}};
  return FromStorage(b_, to, {bits.BitsAs(StorageType(to)), {}});
}

void ElementEmitter::AssumeTapsInBounds(Scalar coordinate, const Dims& dims) {
  in_bounds_coordinate_ = coordinate;
  in_bounds_dims_ = dims;
  memo_.Clear();
}

bool ElementEmitter::AssumesTapInBounds(const Instr& window, size_t d, Scalar coordinate) const {
  return in_bounds_coordinate_.ok() && coordinate.id() == in_bounds_coordinate_.id() &&
         d + 1 == in_bounds_dims_.size() &&
         ResultShapesOf(window.shape())[0].dims() == in_bounds_dims_;
}

Element ElementEmitter::ReduceWindow(const Instr& instr, const Coordinates& at,
                                     size_t result_index) {
  if (IsLongWindow(instr)) {
    Fail("a long window's result is needed at another element");
    return Zero(ResultShapesOf(instr.shape())[result_index].type());
  }
  std::vector<Element> results = WindowAt(b_, *this, instr, at);
  for (size_t i = 0; i < results.size(); ++i)
    if (i != result_index) memo_.Add(instr, i, at, results[i]);
  return results[result_index];
}

Element ElementEmitter::Map(const Instr& instr, const Coordinates& at) {
  std::vector<Element> arguments;
  for (size_t i = 0; i < instr.operand_count(); ++i) arguments.push_back(Operand(instr, i, at));
  std::optional<std::vector<Element>> results =
      ApplyBody(b_, *instr.called(0), arguments, /*wide=*/false);
  if (results) return (*results)[0];
  Fail("map: its computation has no scalar formula");
  return Zero(instr.shape().type());
}

}  // namespace tokamak
