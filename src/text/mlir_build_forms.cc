// Ops that express another op under a different name or form: custom calls of checks,
// chlo.broadcast_*, stablehlo.dot and similar.

#include <algorithm>
#include <cstring>

#include "text/mlir_ops.h"

namespace tokamak {
namespace {

const std::string* SymbolNameOf(const AttrValue& value) {
  if (const auto* symbol = value.As<SymbolAttr>()) return &symbol->name;
  return value.As<std::string>();
}

}  // namespace

Status MlirBuilder::CustomCall() {
  std::string target = in_.String("call_target_name");
  if (target == "check.expect_eq") return CheckCall(CheckKind::kEqual);
  if (target == "check.expect_close") return CheckCall(CheckKind::kClose);
  if (target == "check.expect_almost_eq") return CheckCall(CheckKind::kAlmostEqual);
  if (target == "check.eq") {
    in_.Take("has_side_effect");
    if (in_.failed()) return in_.TakeError();
    return Finish(Op::kCheckEq, std::move(operands_), {});
  }
  if (target.starts_with("mhlo.") && in_.Take("mhlo.attributes") != nullptr)
    return ForeignOp(target);
  TOK_TRY(Attrs attrs, Convert());
  const AttrValue* called = in_.Take("called_computations");
  const auto* list = called == nullptr ? nullptr : called->As<AttrList>();
  if (called != nullptr && list == nullptr)
    return OpError(ErrorCode::kMlirAttributeMeaning, "called_computations: expected a list");
  Instr* instr = Append(Op::kCustomCall, ResultShape(), std::move(operands_), std::move(attrs));
  size_t count = list == nullptr ? 0 : list->size();
  if (count > 0) instr->set_called(std::vector<Computation*>(count));
  for (size_t i = 0; i < count; ++i) {
    const std::string* name = SymbolNameOf((*list)[i]);
    if (name == nullptr)
      return OpError(ErrorCode::kMlirAttributeMeaning, "called_computations: expected symbols");
    importer_.CallSymbol(instr, i, *name, input_.pos);
  }
  return Finish(instr, input_.results.size());
}

Status MlirBuilder::CheckCall(CheckKind kind) {
  in_.Take("has_side_effect");
  in_.Take("api_version");
  in_.Take("backend_config");
  for (const char* name : {"called_computations", "operand_layouts", "result_layouts",
                           "output_operand_aliases", "result_tilings"})
    in_.Take(name);
  CheckAttrs attrs;
  attrs.kind = kind;
  if (in_.failed()) return in_.TakeError();
  return Finish(Op::kCheck, std::move(operands_), std::move(attrs));
}

// custom_call @mhlo.topk(...) {mhlo.attributes = {k = 2 : i64}}: an op that the producer's version
// of StableHLO lacked.
Status MlirBuilder::ForeignOp(std::string_view op_name) {
  const AttrValue* value = in_.Take("mhlo.attributes");
  const auto* dict = value->As<AttrDict>();
  std::string plain(op_name.substr(5));
  const MlirOp* known = nullptr;
  for (const char* dialect : {"mhlo.", "chlo.", "stablehlo."})
    if (known == nullptr) known = FindMlirOp(dialect + plain);
  if (known == nullptr || known->action != MlirAction::kPlain || dict == nullptr)
    return OpError(ErrorCode::kMlirUnknownOp, "no dialect has the op " + std::string(op_name));
  std::vector<MlirAttr> attrs;
  for (const AttrEntry& entry : *dict) attrs.push_back({entry.name, entry.value});
  std::vector<Instr*> operands(input_.operands.begin(), input_.operands.end());
  MlirOpInput inner = input_;
  inner.op = known;
  inner.attrs = attrs;
  inner.operands = operands;
  inner.cache = nullptr;
  return importer_.AddOp(inner, values_);
}

Status MlirBuilder::Dot() {
  if (operands_.size() != 2)
    return OpError(ErrorCode::kMlirOperandCount,
                   "takes 2 operands, " + std::to_string(operands_.size()) + " given");
  TOK_TRY(Attrs converted, Convert());
  DotAttrs attrs = converted.As<DotAttrs>();
  int64_t lhs_rank = operands_[0]->shape().rank();
  if (lhs_rank == 0 || operands_[1]->shape().rank() == 0)
    return OpError(ErrorCode::kMlirOperandCount, "takes vectors and matrices, a scalar given");
  attrs.lhs_contracting = {lhs_rank - 1};
  attrs.rhs_contracting = {0};
  return Finish(Op::kDot, std::move(operands_), std::move(attrs));
}

Status MlirBuilder::Broadcast() {
  if (operands_.size() != 1)
    return OpError(ErrorCode::kMlirOperandCount,
                   "takes 1 operand, " + std::to_string(operands_.size()) + " given");
  const AttrValue* given = in_.Take("broadcast_sizes");
  if (given == nullptr) given = in_.Take("sizes");  // the printed form
  if (given == nullptr) in_.Missing("broadcast_sizes");
  Dims sizes = given == nullptr ? Dims{} : in_.Of<Dims>("broadcast_sizes", *given);
  if (in_.failed()) return in_.TakeError();
  DimensionsAttrs attrs;
  for (int64_t i = 0; i < operands_[0]->shape().rank(); ++i)
    attrs.dimensions.push_back(static_cast<int64_t>(sizes.size()) + i);
  return Finish(Op::kBroadcast, std::move(operands_), std::move(attrs));
}

// Broadcasts each operand to the shape of the result, by broadcast_dimensions if its rank is
// smaller, otherwise by aligning the trailing dimensions.
Status MlirBuilder::ChloBroadcast() {
  const AttrValue* given = in_.Take("broadcast_dimensions");
  Dims dimensions;
  if (given != nullptr) dimensions = in_.Of<Dims>("broadcast_dimensions", *given);
  TOK_TRY(Attrs attrs, Convert());
  if (input_.results.size() != 1 || !input_.results[0].IsArray())
    return OpError(ErrorCode::kMlirResultCount, "has one array as its result");
  const Shape& result = input_.results[0];
  for (Instr*& operand : operands_) {
    const Shape& shape = operand->shape();
    if (!shape.IsArray()) return OpError(ErrorCode::kMlirOperandTypes, "takes arrays");
    if (SameDims(shape, result)) continue;
    if (!shape.IsStaticArray() || !result.IsStaticArray())
      return OpError(ErrorCode::kMlirDynamicForm,
                     "cannot broadcast " + ToString(shape) + " to " + ToString(result));
    DimensionsAttrs map;
    int64_t offset = result.rank() - shape.rank();
    bool by_list =
        given != nullptr && offset > 0 && static_cast<int64_t>(dimensions.size()) == shape.rank();
    if (offset < 0)
      return OpError(ErrorCode::kMlirOperandTypes,
                     "cannot broadcast " + ToString(shape) + " to " + ToString(result));
    for (int64_t i = 0; i < shape.rank(); ++i)
      map.dimensions.push_back(by_list ? dimensions[static_cast<size_t>(i)] : offset + i);
    operand = Append(Op::kBroadcast, shape.WithDims(result.dims()), {operand}, std::move(map));
  }
  return Finish(input_.op->op, std::move(operands_), std::move(attrs));
}

// chlo.constant_like: a number in the shape of another value.
Status MlirBuilder::ConstantLike() {
  const AttrValue* value = in_.Take("value");
  if (value == nullptr) in_.Missing("value");
  if (in_.failed()) return in_.TakeError();
  if (input_.results.size() != 1 || !input_.results[0].IsStaticArray())
    return OpError(ErrorCode::kMlirDynamicForm, "the shape of its result is not static");
  const Shape& shape = input_.results[0];
  Literal scalar;
  if (const auto* number = value->As<FloatAttr>()) {
    scalar = Literal::Scalar(shape.type(), number->value);
  } else if (const auto* whole = value->As<IntAttr>()) {
    scalar = Literal::ScalarInt(shape.type(), whole->value);
  } else if (const auto* flag = value->As<bool>()) {
    scalar = Literal::ScalarInt(shape.type(), *flag ? 1 : 0);
  } else if (const auto* literal = value->As<Literal>(); literal != nullptr &&
                                                         literal->shape().type() == shape.type() &&
                                                         literal->shape().ElementCount() == 1) {
    scalar = *literal;
  } else {
    return OpError(ErrorCode::kMlirAttributeMeaning, "value: expected a number");
  }
  Literal splat = Literal::Splat(shape, scalar.data());
  return Finish(Op::kConstant, {}, ConstantAttrs{std::move(splat)});
}

// builtin.unrealized_conversion_cast converts between dialects with two spellings of one type.
Status MlirBuilder::Cast() {
  if (operands_.size() != input_.results.size())
    return OpError(ErrorCode::kMlirOperandCount,
                   "has " + std::to_string(operands_.size()) + " operands and " +
                       std::to_string(input_.results.size()) + " results");
  values_.insert(values_.end(), operands_.begin(), operands_.end());
  return Ok();
}

Status MlirBuilder::Tuple() {
  // tokamak.whole: the tuple returned by an op with several results.
  if (!input_.attrs.empty() && in_.Take("tokamak.whole") != nullptr && !operands_.empty()) {
    Instr* first = operands_[0];
    if (first->op() == Op::kGetTupleElement && !(first->shape() == input_.results[0]))
      first = first->operand(0);
    if (!Compatible(first->shape(), input_.results[0]))
      return OpError(
          ErrorCode::kMlirAttributeMeaning,
          "tokamak.whole: " + ToString(first->shape()) + " is not " + ToString(input_.results[0]));
    values_.push_back(first);
    return Ok();
  }
  return Plain();
}

Status MlirBuilder::CrossReplicaSum() {
  if (operands_.size() != 1 || input_.results.size() != 1 || !input_.results[0].IsArray())
    return OpError(ErrorCode::kMlirOperandCount, "takes and gives one array");
  TOK_TRY(Attrs attrs, Convert());
  Computation* sum = importer_.module().AddComputation({});
  sum->is_public = false;
  Shape scalar = Shape::Scalar(input_.results[0].type());
  Instr* x = sum->AppendParameter(0, scalar);
  Instr* y = sum->AppendParameter(1, scalar);
  sum->set_root(sum->Append(Op::kAdd, scalar, {x, y}));
  Instr* instr = Append(Op::kAllReduce, ResultShape(), std::move(operands_), std::move(attrs));
  instr->set_called({sum});
  return Finish(instr, 1);
}

Status MlirBuilder::RunParallel() {
  RunParallelAttrs attrs;
  std::vector<std::string> called;
  auto symbol = [&](const AttrValue& value) -> std::string {
    const std::string* name = SymbolNameOf(value);
    if (name == nullptr) in_.Fail("programs", "expected symbols");
    return name == nullptr ? std::string() : *name;
  };
  if (const AttrValue* infeed = in_.Take("infeed")) {
    if (const auto* list = infeed->As<AttrList>())
      for (const AttrValue& item : *list) attrs.infeed.push_back(symbol(item));
  }
  const AttrValue* programs = in_.Take("programs");
  const auto* rows = programs == nullptr ? nullptr : programs->As<AttrList>();
  if (rows == nullptr) in_.Missing("programs");
  for (size_t r = 0; rows != nullptr && r < rows->size(); ++r) {
    const auto* row = (*rows)[r].As<AttrList>();
    if (row == nullptr) in_.Fail("programs", "expected a list of lists");
    Dims& indices = attrs.programs.emplace_back();
    for (size_t i = 0; row != nullptr && i < row->size(); ++i) {
      std::string name = symbol((*row)[i]);
      auto it = std::find(called.begin(), called.end(), name);
      indices.push_back(it - called.begin());
      if (it == called.end()) called.push_back(name);
    }
  }
  if (in_.failed()) return in_.TakeError();
  Instr* instr = Append(Op::kRunParallel, ResultShape(), std::move(operands_), std::move(attrs));
  instr->set_called(std::vector<Computation*>(called.size()));
  for (size_t i = 0; i < called.size(); ++i) importer_.CallSymbol(instr, i, called[i], input_.pos);
  return Finish(instr, input_.results.size());
}

}  // namespace tokamak
