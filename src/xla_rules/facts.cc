// Predicates that XLA's GPU fusion passes test (arXiv 2301.13062), for the passes that reproduce
// XLA's plans. A fusion has a property if an instruction in its body has it; questions about an
// operand follow the operand's parameter through the body to the results (AnyUseIn).
//
// The lists of cheap and expensive ops, and the types for which they are expensive, are XLA's. The
// planner (src/fusion) does not use them. Every predicate is linear in the body; RegistersOf is the
// maximum number of live 32-bit registers if the body runs in post-order.

#include "xla_rules/facts.h"

#include <algorithm>
#include <unordered_set>

#include "analysis/effects.h"
#include "analysis/index_map.h"
#include "rewrite/bodies.h"
#include "support/ceil_div.h"

namespace tokamak::fuse {
namespace {

std::vector<Instr*> Distinct(std::span<Instr* const> instrs) {
  std::vector<Instr*> distinct;
  std::unordered_set<const Instr*> seen;
  for (Instr* instr : instrs)
    if (seen.insert(instr).second) distinct.push_back(instr);
  return distinct;
}

bool IsStaticArray(const Shape& shape) {
  return shape.IsStaticArray() && shape.quant() == nullptr;
}

bool HasStaticArrays(const Instr& instr) {
  auto is_plain = [](const Instr* operand) { return IsStaticArray(operand->shape()); };
  const Shape& shape = instr.shape();
  bool result = IsStaticArray(shape) ||
                (shape.IsTuple() && !shape.elements().empty() &&
                 std::all_of(shape.elements().begin(), shape.elements().end(), IsStaticArray));
  return result && std::all_of(instr.operands().begin(), instr.operands().end(), is_plain);
}

bool MovesElements(Op op) {
  switch (op) {
    case Op::kBitcast:
    case Op::kBitcastConvert:
    case Op::kBroadcast:
    case Op::kConcatenate:
    case Op::kCopy:
    case Op::kDynamicSlice:
    case Op::kDynamicUpdateSlice:
    case Op::kGather:
    case Op::kPad:
    case Op::kReshape:
    case Op::kReverse:
    case Op::kSlice:
    case Op::kTranspose:
      return true;
    default:
      return false;
  }
}

// XLA treats these as cheap for every type.
bool IsCheapOp(Op op) {
  switch (op) {
    case Op::kAdd:
    case Op::kAnd:
    case Op::kCeil:
    case Op::kClamp:
    case Op::kCompare:
    case Op::kComplex:
    case Op::kConj:
    case Op::kConstant:
    case Op::kConvert:
    case Op::kFloor:
    case Op::kFma:
    case Op::kImag:
    case Op::kIota:
    case Op::kIsFinite:
    case Op::kMaximum:
    case Op::kMinimum:
    case Op::kMultiply:
    case Op::kNegate:
    case Op::kNot:
    case Op::kOr:
    case Op::kParameter:
    case Op::kPopulationCount:
    case Op::kReal:
    case Op::kReducePrecision:
    case Op::kRoundAfz:
    case Op::kRoundEven:
    case Op::kSelect:
    case Op::kShiftLeft:
    case Op::kShiftRightArithmetic:
    case Op::kShiftRightLogical:
    case Op::kSquare:
    case Op::kSubtract:
    case Op::kTuple:
    case Op::kXor:
      return true;
    default:
      return MovesElements(op) && op != Op::kGather;
  }
}

bool IsExpensiveOp(const Instr& instr) {
  if (IsCheapOp(instr.op())) return false;
  if (!instr.shape().IsArray()) return true;
  ElementType type = instr.shape().type();
  switch (instr.op()) {
    case Op::kAbs:
    case Op::kSign:
    case Op::kSin:
    case Op::kCos:
      return IsComplex(instr.operand(0)->shape().type());
    case Op::kDivide:
    case Op::kSqrt:
    case Op::kRsqrt:
    case Op::kExp:
      return type != ElementType::kF32 && type != ElementType::kF16;
    default:
      return true;
  }
}

// Whether one use of `operand` reads some of its elements several times.
bool ReusesDirectly(const Instr& user, const Instr& operand) {
  auto is_at = [&](size_t i) { return user.operand_count() > i && user.operand(i) == &operand; };
  switch (user.op()) {
    case Op::kBroadcast:
    case Op::kDot:
    case Op::kConvolution:
      return true;
    case Op::kGather:
      return true;
    case Op::kReduceWindow:
      return ReadsRepeatedly(user);
    case Op::kPad:
      return is_at(1);
    case Op::kDynamicSlice:
      return !is_at(0);
    case Op::kDynamicUpdateSlice:
      return !is_at(0) && !is_at(1);
    case Op::kReduce: {
      for (size_t i = 0; i < user.operand_count() / 2; ++i)
        if (is_at(i)) return false;
      return true;
    }
    default:
      return false;
  }
}

// Calls the predicate for each use of `operand` on the paths to the results of `user`.
template <typename F>
bool AnyUseIn(const Instr& user, const Instr& operand, F&& asked) {
  if (user.op() != Op::kFusion) return asked(user, operand);
  const Computation& body = *user.called(0);
  std::unordered_set<const Instr*> seen;
  std::vector<const Instr*> open;
  for (size_t i = 0; i < user.operand_count(); ++i)
    if (user.operand(i) == &operand) open.push_back(body.parameter(i));
  while (!open.empty()) {
    const Instr* value = open.back();
    open.pop_back();
    for (const Instr* next : value->users()) {
      if (asked(*next, *value)) return true;
      if (seen.insert(next).second) open.push_back(next);
    }
  }
  return false;
}

template <typename F>
bool AnyInstr(const Instr& instr, F&& asked) {
  if (instr.op() != Op::kFusion) return asked(instr);
  std::vector<Instr*> instrs = instr.called(0)->Instrs();
  return std::any_of(instrs.begin(), instrs.end(), [&](const Instr* in) { return asked(*in); });
}

int64_t RegistersOfValue(const Instr& instr) {
  if (!instr.shape().IsArray() || instr.op() == Op::kConstant) return 0;
  constexpr int64_t kRegisterBytes = 4;  // bytes of a register (CUDA programming guide)
  return CeilDiv(BytesOf(instr.shape().type()), kRegisterBytes);
}

}  // namespace

std::vector<Instr*> DistinctUsers(const Instr& instr) {
  return Distinct(instr.users());
}

std::vector<Instr*> DistinctOperands(const Instr& instr) {
  return Distinct(instr.operands());
}

bool HasOneUser(const Instr& instr) {
  std::span<Instr* const> users = instr.users();
  return !users.empty() && instr.parent()->root() != &instr &&
         std::all_of(users.begin(), users.end(), [&](Instr* user) { return user == users[0]; });
}

// A fusion that returns a parameter unchanged is excluded, because it does not compute that result.
bool IsFusion(const Instr& instr) {
  if (instr.op() != Op::kFusion || !HasStaticArrays(instr)) return false;
  FusionKind kind = instr.attrs<FusionAttrs>().kind;
  if (kind != FusionKind::kLoop && kind != FusionKind::kInput) return false;
  const Instr& root = *instr.called(0)->root();
  auto is_parameter = [](const Instr* result) { return result->op() == Op::kParameter; };
  if (is_parameter(&root) || std::ranges::any_of(root.operands(), [&](const Instr* result) {
        return root.op() == Op::kTuple && is_parameter(result);
      }))
    return false;
  return std::ranges::all_of(instr.called(0)->Instrs(),
                             [&](const Instr* in) { return is_parameter(in) || IsPlain(*in); });
}

bool IsHorizontal(const Instr& instr) {
  return instr.op() == Op::kFusion &&
         Find(instr.extras().frontend_attributes, kHorizontalMark) != nullptr;
}

const Instr& RootOf(const Instr& instr) {
  return instr.op() == Op::kFusion ? *instr.called(0)->root() : instr;
}

int64_t InstrsOf(const Instr& instr) {
  if (instr.op() != Op::kFusion) return 1;
  const Computation& body = *instr.called(0);
  return static_cast<int64_t>(body.size() - body.parameters().size());
}

int64_t RegistersOf(const Instr& instr) {
  if (instr.op() != Op::kFusion) return RegistersOfValue(instr);
  const Computation& body = *instr.called(0);
  InstrMap<int64_t> uses(body, 0);
  int64_t held = 0, most = 0;
  // A parameter becomes live at its first use.
  for (const Instr* in : body.PostOrder()) {
    for (const Instr* operand : in->operands()) {
      if (operand->op() == Op::kParameter && uses[operand] == 0) held += RegistersOfValue(*operand);
      ++uses[operand];
    }
    held += in->op() == Op::kParameter ? 0 : RegistersOfValue(*in);
    most = std::max(most, held);
    for (const Instr* operand : in->operands())
      if (uses[operand] == static_cast<int64_t>(operand->users().size()) && uses[operand] > 0) {
        held -= RegistersOfValue(*operand);
        uses[operand] = -1;  // a repeated operand is released once
      }
  }
  return most;
}

int64_t ResultsOf(const Instr& instr) {
  return instr.shape().IsTuple() ? static_cast<int64_t>(instr.shape().elements().size()) : 1;
}

int64_t BytesOf(const Shape& shape) {
  if (shape.IsArray()) return shape.HasDynamicDims() ? 0 : shape.ByteSize();
  int64_t bytes = 0;
  if (shape.IsTuple())
    for (const Shape& element : shape.elements()) bytes += BytesOf(element);
  return bytes;
}

bool MayEnd(const Instr& instr) {
  if (IsFusion(instr)) return !IsHorizontal(instr);
  if (!IsPlain(instr) || !HasStaticArrays(instr) || instr.operand_count() == 0) return false;
  if (instr.info().Is(kElementwise) || MovesElements(instr.op())) return true;
  return instr.op() == Op::kReduce || instr.op() == Op::kReduceWindow ||
         (instr.op() == Op::kScatter && instr.shape().IsArray());
}

bool MayPrecede(const Instr& instr) {
  if (instr.op() == Op::kConstant || instr.op() == Op::kIota) return HasStaticArrays(instr);
  return MayEnd(instr) && instr.op() != Op::kScatter && RootOf(instr).op() != Op::kScatter;
}

bool IsExpensive(const Instr& instr) {
  return AnyInstr(instr, IsExpensiveOp);
}

bool ReusesElements(const Instr& user, const Instr& operand) {
  return AnyUseIn(user, operand, ReusesDirectly);
}

bool ReadsRepeatedly(const Instr& instr) {
  switch (instr.op()) {
    case Op::kGather:
    case Op::kBroadcast:
      return instr.shape().ElementCount() > instr.operand(0)->shape().ElementCount();
    case Op::kReduceWindow: {
      const Window& window = instr.attrs<WindowAttrs>().window;
      return std::any_of(window.begin(), window.end(),
                         [](const WindowDim& dim) { return dim.size > dim.stride; });
    }
    default:
      return false;
  }
}

bool ReadsRepeatedly(const Instr& user, const Instr& operand) {
  return AnyUseIn(user, operand, [](const Instr& in, const Instr&) { return ReadsRepeatedly(in); });
}

bool HoldsInnerLoop(const Instr& instr) {
  // Input elements per result element. Chosen: a longer inner loop dominates the cost of its
  // element.
  constexpr int64_t kFewInputs = 10;
  return AnyInstr(instr, [](const Instr& in) {
    return (in.op() == Op::kReduce || in.op() == Op::kReduceWindow) &&
           ReadsPerElement(in) > kFewInputs;
  });
}

int64_t ReducedElements(const Instr& reduce) {
  return reduce.op() == Op::kReduce ? ReadsPerElement(reduce) : 0;
}

// Looks at the innermost dimension larger than 1: if it is not innermost in the operand, reads are
// not coalesced.
bool Transposes(const Instr& instr) {
  return AnyInstr(instr, [](const Instr& in) {
    if (in.op() != Op::kTranspose) return false;
    const Dims& order = in.attrs<DimensionsAttrs>().dimensions;
    for (size_t i = order.size(); i-- > 0;)
      if (in.shape().dim(i) > 1)
        return std::any_of(order.begin() + static_cast<std::ptrdiff_t>(i), order.end(),
                           [&](int64_t from) {
                             const Dims& dims = in.operand(0)->shape().dims();
                             return std::any_of(dims.begin() + from + 1, dims.end(),
                                                [](int64_t dim) { return dim > 1; });
                           });
    return false;
  });
}

bool UpdatesInPlace(const Instr& user, const Instr& operand) {
  return AnyUseIn(user, operand, [](const Instr& in, const Instr& value) {
    return (in.op() == Op::kDynamicUpdateSlice || in.op() == Op::kScatter) &&
           in.operand(0) == &value;
  });
}

bool IsUnary(const Instr& instr) {
  auto is_array = [](const Instr* operand) {
    bool filled = operand->op() == Op::kBroadcast && operand->operand(0)->shape().IsScalar();
    return operand->shape().ElementCount() > 1 && !filled && operand->op() != Op::kIota;
  };
  std::vector<Instr*> operands = DistinctOperands(instr);
  return std::count_if(operands.begin(), operands.end(), is_array) <= 1;
}

}  // namespace tokamak::fuse
