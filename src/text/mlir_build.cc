// Builds instructions from ops: plain ops, control flow, calls.

#include <algorithm>

#include "text/mlir_ops.h"
#include "text/mlir_plain.h"
#include "text/mlir_sdy.h"

namespace tokamak {
namespace {

// Attributes by which our writer preserves information that MLIR cannot express.
constexpr std::string_view kResults = "tokamak.results";
constexpr std::string_view kCalled = "tokamak.called";
constexpr std::string_view kCaptures = "tokamak.captures";

const std::string* SymbolName(const AttrValue& value) {
  if (const auto* symbol = value.As<SymbolAttr>()) return &symbol->name;
  return value.As<std::string>();
}

// The number of regions of the op, or -1 for any number.
int RegionCount(Op op) {
  std::span<const std::string_view> roles = CalledRoles(op);
  if (!roles.empty() && roles.back().back() == '*') return -1;
  return static_cast<int>(roles.size());
}

}  // namespace

Attrs ReadPlainAttrs(MlirAttrReader& in) {
  AttrDict dict;
  for (const MlirAttr& attr : in.attrs()) {
    if (attr.name.find('.') != std::string_view::npos) continue;
    Set(dict, std::string(attr.name), attr.value);
    in.Take(attr.name);
  }
  Attrs attrs;
  std::string problem = FromPlainDict(in.op(), dict, attrs);
  if (!problem.empty()) in.Fail(problem, "unknown, or of another kind");
  return attrs;
}

Error MlirBuilder::OpError(ErrorCode code, std::string message) const {
  return importer_.At(input_.pos, code, input_.op->name + ": " + std::move(message));
}

Instr* MlirBuilder::Append(Op op, Shape shape, std::vector<Instr*> operands, Attrs attrs) {
  Instr* instr =
      importer_.current()->Append(op, std::move(shape), std::move(operands), std::move(attrs));
  instr->set_pos(input_.pos);
  instr->set_origins(input_.origins);
  return instr;
}

Shape MlirBuilder::ResultShape() const {
  if (input_.results.size() == 1) return input_.results[0];
  return Shape::Tuple({input_.results.begin(), input_.results.end()});
}

Result<Attrs> MlirBuilder::Convert() {
  if (input_.cache != nullptr && input_.cache->filled) return input_.cache->attrs;
  Attrs attrs = input_.op->convert(in_);
  if (in_.failed()) return in_.TakeError();
  if (input_.cache != nullptr && !in_.used_shapes()) *input_.cache = {true, attrs};
  return attrs;
}

Status MlirBuilder::Run() {
  if (input_.op->action != MlirAction::kMesh) {
    operands_.assign(input_.operands.begin(), input_.operands.end());
    importer_.Localize(operands_);
  }
  switch (input_.op->action) {
    case MlirAction::kPlain:
      return Plain();
    case MlirAction::kReturn:
      return importer_.AddReturn(input_);
    case MlirAction::kCall:
      return Call();
    case MlirAction::kComposite:
      return Composite();
    case MlirAction::kCustomCall:
      return CustomCall();
    case MlirAction::kIf:
      return Conditional(true);
    case MlirAction::kCase:
      return Conditional(false);
    case MlirAction::kWhile:
      return While();
    case MlirAction::kDot:
      return Dot();
    case MlirAction::kBroadcast:
      return Broadcast();
    case MlirAction::kChloBroadcast:
      return ChloBroadcast();
    case MlirAction::kConstantLike:
      return ConstantLike();
    case MlirAction::kCast:
      return Cast();
    case MlirAction::kTuple:
      return Tuple();
    case MlirAction::kCrossReplicaSum:
      return CrossReplicaSum();
    case MlirAction::kRunParallel:
      return RunParallel();
    case MlirAction::kNamedComputation:
      return NamedComputation();
    case MlirAction::kMesh:
      return MeshOp();
  }
  return Ok();
}

// Sets the values, extras and called computations of an appended instruction.
Status MlirBuilder::Finish(Instr* instr, size_t results) {
  const AttrValue* kept = nullptr;
  if (!input_.attrs.empty()) {
    kept = in_.Take(kResults);
    const AttrValue* captures = in_.Take(kCaptures);
    const IntAttr* count = captures == nullptr ? nullptr : captures->As<IntAttr>();
    if (count != nullptr && count->value >= 0 &&
        count->value <= static_cast<int64_t>(instr->operand_count()))
      instr->set_captures(static_cast<size_t>(count->value));
    TOK_RETURN_IF_ERROR(importer_.ApplyExtras(instr, in_.attrs(), in_.used(), input_.pos));
  }
  if (results == 1 && input_.results.size() == 1) {
    values_.push_back(instr);
    return Ok();
  }
  // tokamak.results: only the first results are extracted here.
  int64_t taken = static_cast<int64_t>(results);
  if (kept != nullptr) {
    taken = in_.Of<int64_t>(kResults, *kept);
    if (in_.failed()) return in_.TakeError();
    if (taken < 0 || taken > static_cast<int64_t>(results))
      return OpError(ErrorCode::kMlirAttributeMeaning, "tokamak.results: more than the op has");
  }
  const Shape whole = instr->shape();
  for (size_t i = 0; i < results; ++i) {
    Instr* value = instr;
    if (static_cast<int64_t>(i) < taken)
      value = Append(Op::kGetTupleElement, whole.elements()[i], {instr},
                     TupleIndexAttrs{static_cast<int64_t>(i)});
    values_.push_back(value);
  }
  return Ok();
}

Status MlirBuilder::Finish(Op op, std::vector<Instr*> operands, Attrs attrs, size_t captures) {
  Instr* instr = Append(op, ResultShape(), std::move(operands), std::move(attrs));
  if (!input_.regions.empty()) {
    instr->set_called({input_.regions.begin(), input_.regions.end()});
    instr->set_captures(captures);
  }
  return Finish(instr, input_.results.size());
}

Status MlirBuilder::Plain() {
  TOK_TRY(Attrs attrs, Convert());
  const OpInfo& info = InfoOf(input_.op->op);
  if (info.arity >= 0 && info.op != Op::kCheckEq &&
      static_cast<size_t>(info.arity) != operands_.size())
    return OpError(ErrorCode::kMlirOperandCount, "takes " + std::to_string(info.arity) +
                                                     " operands, " +
                                                     std::to_string(operands_.size()) + " given");
  const AttrValue* called = input_.attrs.empty() ? nullptr : in_.Take(kCalled);
  if (called != nullptr) return CallNamed(*called, std::move(attrs));
  int regions = RegionCount(info.op);
  if (regions >= 0 && info.op != Op::kAsyncDone && info.op != Op::kAsyncUpdate &&
      static_cast<size_t>(regions) != input_.regions.size())
    return OpError(ErrorCode::kMlirRegionCount, "takes " + std::to_string(regions) + " regions, " +
                                                    std::to_string(input_.regions.size()) +
                                                    " given");
  size_t captures = 0;
  for (Instr* outer : importer_.captures()) {
    operands_.push_back(outer);
    ++captures;
  }
  return Finish(info.op, std::move(operands_), std::move(attrs), captures);
}

// tokamak.called = [@a, @b]: the op calls functions and its regions are ignored.
Status MlirBuilder::CallNamed(const AttrValue& names, Attrs attrs) {
  const auto* list = names.As<AttrList>();
  if (list == nullptr)
    return OpError(ErrorCode::kMlirAttributeMeaning, "tokamak.called: expected a list of symbols");
  std::vector<Instr*> operands = std::move(operands_);
  bool is_branch = input_.op->op == Op::kConditional;
  size_t captures = 0;
  if (const AttrValue* count = in_.Take(kCaptures))
    captures = static_cast<size_t>(in_.Of<int64_t>(kCaptures, *count));
  if (in_.failed()) return in_.TakeError();
  for (size_t i = 0; i < input_.regions.size(); ++i) {
    // A region that calls the function passes it outer values.
    const Instr* call = nullptr;
    for (const Instr* instr : input_.regions[i]->Instrs())
      if (instr->op() == Op::kCall && call == nullptr) call = instr;
    if (call == nullptr || (!is_branch && i > 0)) continue;
    size_t first =
        is_branch ? 0 : call->operand_count() - std::min(captures, call->operand_count());
    for (size_t k = first; k < call->operand_count(); ++k) {
      Instr* outer = importer_.OuterOf(i, call->operand(k));
      if (outer == nullptr)
        return OpError(ErrorCode::kMlirAttributeMeaning, "tokamak.called: operand " +
                                                             std::to_string(k) +
                                                             " of the call is not from "
                                                             "outside");
      operands.push_back(outer);
    }
  }
  importer_.DropRegions(input_.regions);
  Instr* instr = Append(input_.op->op, ResultShape(), std::move(operands), std::move(attrs));
  instr->set_captures(captures);
  instr->set_called(std::vector<Computation*>(list->size()));
  for (size_t i = 0; i < list->size(); ++i) {
    const std::string* name = SymbolName((*list)[i]);
    if (name == nullptr)
      return OpError(ErrorCode::kMlirAttributeMeaning, "tokamak.called: expected symbols");
    importer_.CallSymbol(instr, i, *name, input_.pos);
  }
  return Finish(instr, input_.results.size());
}

Status MlirBuilder::Call() {
  std::string callee = in_.String("callee");
  if (callee.empty()) in_.Missing("callee");
  in_.Take("no_inline");
  if (in_.failed()) return in_.TakeError();
  int64_t captures = in_.Int(kCaptures, 0);
  if (in_.failed()) return in_.TakeError();
  Instr* instr = Append(Op::kCall, ResultShape(), std::move(operands_));
  instr->set_captures(static_cast<size_t>(captures));
  importer_.CallSymbol(instr, 0, callee, input_.pos);
  return Finish(instr, input_.results.size());
}

Status MlirBuilder::Composite() {
  const AttrValue* decomposition = in_.Take("decomposition");
  TOK_TRY(Attrs attrs, Convert());
  const std::string* symbol = decomposition == nullptr ? nullptr : SymbolName(*decomposition);
  if (decomposition != nullptr && symbol == nullptr)
    return OpError(ErrorCode::kMlirAttributeMeaning, "decomposition: expected a symbol");
  size_t captures = importer_.captures().size();
  for (Instr* outer : importer_.captures()) operands_.push_back(outer);
  Instr* instr = Append(Op::kComposite, ResultShape(), std::move(operands_), std::move(attrs));
  // The decomposition first, then the regions.
  std::vector<Computation*> called;
  if (symbol != nullptr) called.push_back(nullptr);
  called.insert(called.end(), input_.regions.begin(), input_.regions.end());
  instr->set_called(std::move(called));
  instr->set_captures(captures);
  if (symbol != nullptr) importer_.CallSymbol(instr, 0, *symbol, input_.pos);
  return Finish(instr, input_.results.size());
}

Status MlirBuilder::Conditional(bool is_if) {
  if (operands_.size() != 1)
    return OpError(ErrorCode::kMlirOperandCount,
                   "takes 1 operand, " + std::to_string(operands_.size()) + " given");
  if (input_.regions.empty() || (is_if && input_.regions.size() != 2))
    return OpError(ErrorCode::kMlirRegionCount,
                   std::string("takes ") + (is_if ? "2" : "1 or more") + " regions, " +
                       std::to_string(input_.regions.size()) + " given");
  for (size_t i = 0; i < input_.regions.size(); ++i) {
    size_t own = input_.regions[i]->parameters().size() - importer_.captures(i).size();
    if (own != 0) return OpError(ErrorCode::kMlirOperandCount, "its regions take no arguments");
  }
  if (const AttrValue* called = in_.Take(kCalled)) return CallNamed(*called, {});
  for (size_t i = 0; i < input_.regions.size(); ++i)
    for (Instr* outer : importer_.captures(i)) operands_.push_back(outer);
  return Finish(Op::kConditional, std::move(operands_), {});
}

Status MlirBuilder::While() {
  if (input_.regions.size() != 2)
    return OpError(ErrorCode::kMlirRegionCount,
                   "takes 2 regions, " + std::to_string(input_.regions.size()) + " given");
  if (const AttrValue* called = in_.Take(kCalled)) return CallNamed(*called, {});
  std::span<Instr* const> captures = importer_.captures();
  if (captures.empty()) return Finish(Op::kWhile, std::move(operands_), {});
  // Captured values are carried unchanged, after the others.
  const size_t own = operands_.size();
  std::vector<Shape> shapes;
  operands_.insert(operands_.end(), captures.begin(), captures.end());
  for (const Instr* operand : operands_) shapes.push_back(operand->shape());
  for (size_t i = 0; i < std::min(own, input_.results.size()); ++i) shapes[i] = input_.results[i];
  Computation& body = *input_.regions[1];
  Instr* old_root = body.root();
  bool returns_all = own == 1 || (old_root->op() == Op::kTuple && old_root->users().empty() &&
                                  old_root->operand_count() == own);
  if (!returns_all || body.parameters().size() != operands_.size() ||
      input_.regions[0]->parameters().size() != operands_.size())
    return OpError(ErrorCode::kMlirOperandCount, "its regions take or return other than the " +
                                                     std::to_string(own) + " carried values");
  std::vector<Instr*> carried;
  if (own == 1) {
    carried = {old_root};
  } else {
    carried.assign(old_root->operands().begin(), old_root->operands().end());
  }
  for (size_t i = own; i < operands_.size(); ++i) carried.push_back(body.parameter(i));
  std::vector<Shape> body_shapes;
  for (const Instr* value : carried) body_shapes.push_back(value->shape());
  Instr* root = body.Append(Op::kTuple, Shape::Tuple(std::move(body_shapes)), std::move(carried));
  root->set_pos(old_root->pos());
  root->set_origins(old_root->origins());
  body.set_root(root);
  if (own != 1) body.Remove(old_root);
  Instr* instr = Append(Op::kWhile, Shape::Tuple(std::move(shapes)), std::move(operands_));
  instr->set_called({input_.regions.begin(), input_.regions.end()});
  TOK_RETURN_IF_ERROR(importer_.ApplyExtras(instr, in_.attrs(), in_.used(), input_.pos));
  for (size_t i = 0; i < own; ++i)
    values_.push_back(Append(Op::kGetTupleElement, instr->shape().elements()[i], {instr},
                             TupleIndexAttrs{static_cast<int64_t>(i)}));
  return Ok();
}

Status MlirBuilder::NamedComputation() {
  if (input_.regions.size() != 1)
    return OpError(ErrorCode::kMlirRegionCount,
                   "takes 1 region, " + std::to_string(input_.regions.size()) + " given");
  size_t captures = importer_.captures().size();
  for (Instr* outer : importer_.captures()) operands_.push_back(outer);
  importer_.NameComputation(input_.regions[0], in_.String("name"));
  if (in_.failed()) return in_.TakeError();
  return Finish(Op::kCall, std::move(operands_), {}, captures);
}

Status MlirBuilder::MeshOp() {
  const AttrValue* value = in_.Take("mesh");
  std::optional<Mesh> mesh;
  if (value != nullptr) mesh = MeshFromAttr(*value);
  if (!mesh) return OpError(ErrorCode::kMlirSharding, "expected a mesh");
  mesh->name = in_.String("sym_name");
  if (in_.failed()) return in_.TakeError();
  return importer_.AddMesh(std::move(*mesh), input_.pos);
}

}  // namespace tokamak
