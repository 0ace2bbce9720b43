// Builds instructions of the module from parsed lines (ParsedInstr).
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

Instr* HloReader::MakeInstr(ParsedInstr& parsed_instr) {
  if (parsed_instr.op == Op::kParameter) {
    const auto& parameters = computation_->parameters();
    auto number = static_cast<size_t>(parsed_instr.parameter);
    if (number < parameters.size() && parameters[number] != nullptr) {
      cursor_.Fail(ErrorCode::kHloBadParameter,
                   "parameter " + std::to_string(number) + " is written twice",
                   parsed_instr.op_start);
      return nullptr;
    }
  }
  if (parsed_instr.is_composite) MakeComposite(parsed_instr);
  Computation* wrapped = nullptr;
  if (parsed_instr.wrapped && parsed_instr.op == Op::kAsyncStart &&
      !MakeWrapped(parsed_instr, wrapped))
    return nullptr;
  if (parsed_instr.async.execution_thread == "main") parsed_instr.async.execution_thread.clear();
  if (parsed_instr.op == Op::kAsyncStart) parsed_instr.attrs = parsed_instr.async;
  if (!parsed_instr.shape && !InferMissingShape(parsed_instr)) return nullptr;

  Instr* instr = nullptr;
  if (parsed_instr.op == Op::kParameter) {
    instr = computation_->AppendParameter(parsed_instr.parameter, std::move(*parsed_instr.shape),
                                          std::string(parsed_instr.name));
    instr->set_attrs(std::move(parsed_instr.attrs));
  } else {
    instr = computation_->Append(parsed_instr.op, std::move(*parsed_instr.shape),
                                 std::move(parsed_instr.operands), std::move(parsed_instr.attrs),
                                 std::string(parsed_instr.name));
  }
  if (wrapped != nullptr) instr->set_called({wrapped});
  Link(instr, parsed_instr);
  return instr;
}

// Sets positions, origins, extras and references, which every new instruction has.
void HloReader::Link(Instr* instr, const ParsedInstr& parsed_instr) {
  instr->set_pos(cursor_.PosOf(parsed_instr.op_start));
  instr->set_origins(parsed_instr.origins);
  instr->set_captures(static_cast<size_t>(parsed_instr.captures));
  if (parsed_instr.extras != nullptr) instr->mutable_extras() = *parsed_instr.extras;
  for (auto [name, where] : parsed_instr.control) control_links_.push_back({instr, name, where});

  bool is_later_half = parsed_instr.op == Op::kAsyncUpdate || parsed_instr.op == Op::kAsyncDone;
  if (is_later_half && instr->operand_count() == 1 && IsAsync(instr->operand(0)->op())) {
    // The start op specifies the computation and the execution thread; the update and done ops may
    // omit them.
    Instr* start = instr->operand(0);
    AsyncAttrs inherited;
    inherited.execution_thread = start->attrs<AsyncAttrs>().execution_thread;
    instr->set_attrs(inherited);
    if (!start->called().empty()) {
      instr->set_called({start->called(0)});
      return;
    }
    // Call targets are resolved at the end of the module, so the link of the start is copied.
    for (size_t i = call_links_.size(); i-- > 0 && parsed_instr.called.empty();) {
      if (call_links_[i].instr != start) continue;
      CallLink copy{instr, call_links_[i].names};
      call_links_.push_back(std::move(copy));
      return;
    }
  }
  bool is_wrapped = parsed_instr.wrapped && parsed_instr.op == Op::kAsyncStart;
  if (parsed_instr.called.empty() || is_wrapped) return;
  std::vector<Computation*> called;
  for (auto [name, where] : parsed_instr.called) {
    Computation* computation = FindComputation(name);
    if (computation == nullptr || computation == computation_) break;
    called.push_back(computation);
  }
  if (called.size() == parsed_instr.called.size()) {
    instr->set_called(std::move(called));
  } else {
    call_links_.push_back({instr, parsed_instr.called});
  }
}

// op-start(x) runs a computation that contains only op.
bool HloReader::MakeWrapped(ParsedInstr& parsed_instr, Computation*& wrapped) {
  bool is_known = parsed_instr.shape && parsed_instr.shape->IsTuple() &&
                  parsed_instr.shape->elements().size() >= 2;
  if (!is_known) {
    return cursor_.Fail(ErrorCode::kHloBadShape,
                        "async-start: the shape is not ((operands), results, ...)",
                        parsed_instr.op_start);
  }
  wrapped = module_->AddComputation("async_wrapped");
  wrapped->is_public = false;
  wrapped->execution_thread =
      parsed_instr.async.execution_thread == "main" ? "" : parsed_instr.async.execution_thread;
  std::vector<Instr*> parameters;
  for (size_t i = 0; i < parsed_instr.operands.size(); ++i) {
    parameters.push_back(wrapped->AppendParameter(
        static_cast<int64_t>(i), parsed_instr.operands[i]->shape(), "async_param"));
  }
  Instr* root = wrapped->Append(*parsed_instr.wrapped, parsed_instr.shape->elements()[1],
                                std::move(parameters), std::move(parsed_instr.attrs), "async_op");
  root->set_pos(cursor_.PosOf(parsed_instr.op_start));
  root->set_origins(parsed_instr.origins);
  wrapped->set_root(root);
  if (!parsed_instr.called.empty()) call_links_.push_back({root, std::move(parsed_instr.called)});
  parsed_instr.called.clear();
  return true;
}

// call(...), is_composite=true stores the rest in frontend attributes.
void HloReader::MakeComposite(ParsedInstr& parsed_instr) {
  AttrDict& dict = parsed_instr.Extras().frontend_attributes;
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
    auto [stop, conversion_error] = std::from_chars(version->data(), end, composite.version);
    if (conversion_error != std::errc() || stop != end) return;
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
  parsed_instr.op = Op::kComposite;
  parsed_instr.attrs = std::move(composite);
}

bool HloReader::InferMissingShape(ParsedInstr& parsed_instr) {
  std::vector<Shape> operands;
  operands.reserve(parsed_instr.operands.size());
  for (const Instr* operand : parsed_instr.operands) operands.push_back(operand->shape());
  std::vector<Computation*> called;
  for (auto [name, where] : parsed_instr.called) {
    Computation* computation = FindComputation(name);
    if (computation == nullptr || computation->root() == nullptr) {
      return cursor_.Fail(ErrorCode::kHloNoShape,
                          std::string(InfoOf(parsed_instr.op).name) +
                              ": written without a shape, and before the computation that it calls",
                          parsed_instr.op_start);
    }
    called.push_back(computation);
  }
  bool is_explicit = parsed_instr.op == Op::kParameter || parsed_instr.op == Op::kConstant ||
                     parsed_instr.op == Op::kIota || parsed_instr.op == Op::kCustomCall;
  if (is_explicit) {
    return cursor_.Fail(ErrorCode::kHloNoShape,
                        std::string(InfoOf(parsed_instr.op).name) + ": written without a shape",
                        parsed_instr.op_start);
  }
  InferInput input{.op = parsed_instr.op,
                   .operands = operands,
                   .attrs = parsed_instr.attrs,
                   .called = called,
                   .captures = static_cast<size_t>(parsed_instr.captures),
                   .written = nullptr};
  Result<Shape> shape = InferShape(input);
  if (!shape.ok())
    return cursor_.Fail(shape.error().code, shape.error().message, parsed_instr.op_start);
  parsed_instr.shape = std::move(shape.value());
  return true;
}

}  // namespace tokamak
