// From a draft, which is what a line says, to an instruction of the module.
#include <charconv>

#include "ir/infer.h"
#include "text/hlo_attr_value.h"
#include "text/hlo_reader.h"

namespace tokamak {
namespace {

bool IsAsync(Op op) {
  return op == Op::kAsyncStart || op == Op::kAsyncUpdate;
}

}  // namespace

Instr* HloReader::MakeInstr(Draft& draft) {
  if (draft.op == Op::kParameter) {
    const auto& parameters = computation_->parameters();
    auto number = static_cast<size_t>(draft.parameter);
    if (number < parameters.size() && parameters[number] != nullptr) {
      cursor_.Fail(ErrorCode::kHloBadParameter,
                   "parameter " + std::to_string(number) + " is written twice", draft.op_start);
      return nullptr;
    }
  }
  if (draft.is_composite) MakeComposite(draft);
  Computation* wrapped = nullptr;
  if (draft.wrapped && draft.op == Op::kAsyncStart && !MakeWrapped(draft, wrapped)) return nullptr;
  if (draft.async.execution_thread == "main") draft.async.execution_thread.clear();
  if (draft.op == Op::kAsyncStart) draft.attrs = draft.async;
  if (!draft.shape && !InferMissingShape(draft)) return nullptr;

  Instr* instr = nullptr;
  if (draft.op == Op::kParameter) {
    instr = computation_->AppendParameter(draft.parameter, std::move(*draft.shape),
                                          std::string(draft.name));
    instr->set_attrs(std::move(draft.attrs));
  } else {
    instr = computation_->Append(draft.op, std::move(*draft.shape), std::move(draft.operands),
                                 std::move(draft.attrs), std::string(draft.name));
  }
  if (wrapped != nullptr) instr->set_called({wrapped});
  Link(instr, draft);
  return instr;
}

// Places, origins, extras and references: what every new instruction gets.
void HloReader::Link(Instr* instr, const Draft& draft) {
  instr->set_pos(cursor_.PosOf(draft.op_start));
  instr->set_origins(draft.origins);
  instr->set_captures(static_cast<size_t>(draft.captures));
  if (draft.extras != nullptr) instr->mutable_extras() = *draft.extras;
  for (auto [name, where] : draft.control) control_links_.push_back({instr, name, where});

  bool is_later_half = draft.op == Op::kAsyncUpdate || draft.op == Op::kAsyncDone;
  if (is_later_half && instr->operand_count() == 1 && IsAsync(instr->operand(0)->op())) {
    // The start says what runs and where; its other halves need not repeat it.
    Instr* start = instr->operand(0);
    AsyncAttrs inherited;
    inherited.execution_thread = start->attrs<AsyncAttrs>().execution_thread;
    instr->set_attrs(inherited);
    if (!start->called().empty()) {
      instr->set_called({start->called(0)});
      return;
    }
    // Known only at the end of the module: the link of the start is copied.
    for (size_t i = call_links_.size(); i-- > 0 && draft.called.empty();) {
      if (call_links_[i].instr != start) continue;
      CallLink copy{instr, call_links_[i].names};
      call_links_.push_back(std::move(copy));
      return;
    }
  }
  bool is_wrapped = draft.wrapped && draft.op == Op::kAsyncStart;
  if (draft.called.empty() || is_wrapped) return;
  std::vector<Computation*> called;
  for (auto [name, where] : draft.called) {
    Computation* computation = FindComputation(name);
    if (computation == nullptr || computation == computation_) break;
    called.push_back(computation);
  }
  if (called.size() == draft.called.size()) {
    instr->set_called(std::move(called));
  } else {
    call_links_.push_back({instr, draft.called});
  }
}

// op-start(x) runs a computation that holds op alone.
bool HloReader::MakeWrapped(Draft& draft, Computation*& wrapped) {
  bool is_known = draft.shape && draft.shape->IsTuple() && draft.shape->elements().size() >= 2;
  if (!is_known) {
    return cursor_.Fail(ErrorCode::kHloBadShape,
                        "async-start: the shape is not ((operands), results, ...)", draft.op_start);
  }
  wrapped = module_->AddComputation("async_wrapped");
  wrapped->is_public = false;
  wrapped->execution_thread =
      draft.async.execution_thread == "main" ? "" : draft.async.execution_thread;
  std::vector<Instr*> parameters;
  for (size_t i = 0; i < draft.operands.size(); ++i) {
    parameters.push_back(wrapped->AppendParameter(static_cast<int64_t>(i),
                                                  draft.operands[i]->shape(), "async_param"));
  }
  Instr* root = wrapped->Append(*draft.wrapped, draft.shape->elements()[1], std::move(parameters),
                                std::move(draft.attrs), "async_op");
  root->set_pos(cursor_.PosOf(draft.op_start));
  root->set_origins(draft.origins);
  wrapped->set_root(root);
  if (!draft.called.empty()) call_links_.push_back({root, std::move(draft.called)});
  draft.called.clear();
  return true;
}

// call(...), is_composite=true keeps the rest in frontend attributes.
void HloReader::MakeComposite(Draft& draft) {
  AttrDict& dict = draft.Extras().frontend_attributes;
  auto text = [&](std::string_view name) -> const std::string* {
    const AttrValue* value = Find(dict, name);
    return value == nullptr ? nullptr : value->As<std::string>();
  };
  const std::string* name = text("composite.name");
  const std::string* version = text("composite.version");
  const std::string* attributes = text("composite.attributes");
  if (name == nullptr) return;
  CompositeAttrs composite;
  composite.name = *name;
  if (version != nullptr) {
    const char* end = version->data() + version->size();
    auto [stop, fault] = std::from_chars(version->data(), end, composite.version);
    if (fault != std::errc() || stop != end) return;
  }
  if (attributes != nullptr && !attributes->empty()) {
    std::optional<AttrDict> parsed = ParseHloAttrDict(*attributes);
    if (!parsed) return;
    composite.attributes = std::move(*parsed);
  }
  std::erase_if(dict, [](const AttrEntry& entry) {
    return entry.name == "composite.name" || entry.name == "composite.version" ||
           entry.name == "composite.attributes";
  });
  draft.op = Op::kComposite;
  draft.attrs = std::move(composite);
}

bool HloReader::InferMissingShape(Draft& draft) {
  std::vector<Shape> operands;
  operands.reserve(draft.operands.size());
  for (const Instr* operand : draft.operands) operands.push_back(operand->shape());
  std::vector<Computation*> called;
  for (auto [name, where] : draft.called) {
    Computation* computation = FindComputation(name);
    if (computation == nullptr || computation->root() == nullptr) {
      return cursor_.Fail(
          ErrorCode::kHloNoShape,
          std::string(InfoOf(draft.op).name) + ": written without a shape and before what it calls",
          draft.op_start);
    }
    called.push_back(computation);
  }
  bool is_explicit = draft.op == Op::kParameter || draft.op == Op::kConstant ||
                     draft.op == Op::kIota || draft.op == Op::kCustomCall;
  if (is_explicit) {
    return cursor_.Fail(ErrorCode::kHloNoShape,
                        std::string(InfoOf(draft.op).name) + ": written without a shape",
                        draft.op_start);
  }
  InferInput input{.op = draft.op,
                   .operands = operands,
                   .attrs = draft.attrs,
                   .called = called,
                   .captures = static_cast<size_t>(draft.captures),
                   .written = nullptr};
  Result<Shape> shape = InferShape(input);
  if (!shape.ok()) return cursor_.Fail(shape.error().code, shape.error().message, draft.op_start);
  draft.shape = std::move(shape.value());
  return true;
}

}  // namespace tokamak
