#include "text/mlir_import.h"

#include <algorithm>

#include "support/limits.h"
#include "text/mlir_ops.h"
#include "text/mlir_sdy.h"

namespace tokamak {
namespace {

// Constants are copied into a region instead of being captured.
bool IsCopied(const Instr& instr) {
  return instr.op() == Op::kConstant;
}

}  // namespace

MlirImporter::MlirImporter(std::string file) : module_(std::make_unique<Module>()) {
  module_->file = std::move(file);
}

Error MlirImporter::At(TextPos pos, ErrorCode code, std::string message) const {
  TextSpan span;
  span.file = module_->file;
  if (pos.line > 0) {
    span.line = static_cast<int>(pos.line);
    span.column = static_cast<int>(pos.column);
  } else {
    span.offset = pos.column;
  }
  return MakeError(code, std::move(message), std::move(span));
}

Status MlirImporter::AddMesh(Mesh mesh, TextPos pos) {
  for (const Mesh& other : module_->meshes)
    if (other.name == mesh.name)
      return At(pos, ErrorCode::kMlirSymbol, "sdy.mesh: @" + mesh.name + " is defined twice");
  module_->meshes.push_back(std::move(mesh));
  return Ok();
}

Status MlirImporter::BeginFunction(const MlirFunction& function) {
  Computation* computation = module_->AddComputation(std::string(function.name));
  if (!functions_.emplace(computation->name(), computation).second)
    return At(function.pos, ErrorCode::kMlirSymbol,
              "func.func: @" + computation->name() + " is defined twice");
  computation->is_public = function.is_public;
  computation->pos = function.pos;
  computation->origins = function.origins;
  frames_.emplace_back();
  frames_.back().computation = computation;
  frames_.back().pos = function.pos;
  return Ok();
}

Result<Instr*> MlirImporter::AddArgument(Shape shape, std::string_view name,
                                         std::span<const MlirAttr> attrs, TextPos pos,
                                         OriginId origins) {
  Frame& frame = frames_.back();
  Instr* parameter = frame.computation->AppendParameter(static_cast<int64_t>(frame.arguments++),
                                                        std::move(shape), std::string(name));
  parameter->set_pos(pos);
  parameter->set_origins(origins);
  TOK_RETURN_IF_ERROR(AddArgumentAttrs(parameter, attrs, pos));
  return parameter;
}

Status MlirImporter::AddArgumentAttrs(Instr* argument, std::span<const MlirAttr> attrs,
                                      TextPos pos) {
  for (const MlirAttr& attr : attrs) TOK_RETURN_IF_ERROR(ApplyArgumentAttr(argument, attr, pos));
  return Ok();
}

Status MlirImporter::EndFunction(std::span<const Shape> results,
                                 std::span<const std::vector<MlirAttr>> result_attrs,
                                 std::span<const MlirAttr> attrs, TextPos pos) {
  Frame& frame = frames_.back();
  Computation& computation = *frame.computation;
  if (!frame.terminated)
    return At(pos, ErrorCode::kMlirTerminator,
              "func.func: @" + computation.name() + " does not end in a return");
  Shape declared =
      results.size() == 1 ? results[0] : Shape::Tuple({results.begin(), results.end()});
  if (!Compatible(declared, computation.root()->shape()))
    return At(frame.pos, ErrorCode::kMlirReturnTypes,
              "func.func: @" + computation.name() + " declares " + ToString(declared) +
                  " and returns " + ToString(computation.root()->shape()));
  TOK_RETURN_IF_ERROR(ApplyResultAttrs(computation, result_attrs, pos));
  TOK_RETURN_IF_ERROR(ApplyFunctionAttrs(computation, attrs, pos));
  TOK_RETURN_IF_ERROR(ResolveControl(frame));
  frames_.pop_back();
  return Ok();
}

void MlirImporter::BeginRegions(const MlirOp& op) {
  RegionGroup group;
  group.shared =
      op.action != MlirAction::kCase && op.action != MlirAction::kIf && op.op != Op::kConditional;
  group.depth = frames_.size();
  if (group.shared) group.captures.emplace_back();
  groups_.push_back(std::move(group));
}

Status MlirImporter::BeginRegion(TextPos pos) {
  if (frames_.size() >= static_cast<size_t>(kMaxNesting))
    return At(pos, ErrorCode::kTooDeep,
              "regions are nested deeper than " + std::to_string(kMaxNesting));
  Computation* outer = frames_.back().computation;
  Computation* computation = module_->AddComputation({});
  computation->is_public = false;
  computation->pos = pos;
  computation->origins = outer->origins;
  frames_.emplace_back();
  frames_.back().computation = computation;
  frames_.back().pos = pos;
  frames_.back().computations = module_->computations().size() - 1;
  frames_.back().pending = pending_.size();
  if (!groups_.back().shared) groups_.back().captures.emplace_back();
  return Ok();
}

Result<Computation*> MlirImporter::EndRegion(TextPos pos) {
  Frame& frame = frames_.back();
  if (!frame.terminated)
    return At(pos, ErrorCode::kMlirTerminator, "a region does not end in a return");
  TOK_RETURN_IF_ERROR(ResolveControl(frame));
  Computation* computation = frame.computation;
  groups_.back().done.push_back(std::move(frame));
  frames_.pop_back();
  return computation;
}

void MlirImporter::EndRegions() {
  done_ = std::move(groups_.back());
  groups_.pop_back();
  if (!done_.shared) return;
  // Every region takes the captures of all regions.
  const std::vector<Instr*>& outer = done_.captures[0].outer;
  for (Frame& frame : done_.done) {
    for (size_t i = 0; i < outer.size(); ++i) {
      size_t number = frame.arguments + i;
      const auto& parameters = frame.computation->parameters();
      if (number < parameters.size() && parameters[number] != nullptr) continue;
      frame.computation->AppendParameter(static_cast<int64_t>(number), outer[i]->shape());
    }
  }
}

std::span<Instr* const> MlirImporter::captures(size_t region) const {
  if (done_.captures.empty()) return {};
  return done_.captures[done_.shared ? 0 : region].outer;
}

Instr* MlirImporter::OuterOf(size_t region, const Instr* inner) const {
  if (region >= done_.done.size()) return nullptr;
  for (const auto& [outer, local] : done_.done[region].inner_of)
    if (local == inner) return const_cast<Instr*>(outer);
  return nullptr;
}

void MlirImporter::DropRegions(std::span<Computation* const> regions) {
  if (regions.empty() || done_.done.empty()) return;
  // Every computation added since the first region began belongs to the regions.
  size_t keep = done_.done.front().computations;
  pending_.resize(std::min(pending_.size(), done_.done.front().pending));
  while (module_->computations().size() > keep)
    module_->RemoveComputation(module_->computations().back().get());
}

void MlirImporter::NameComputation(Computation* computation, const std::string& name) {
  computation->set_name(name);
}

Instr* MlirImporter::LocalOf(Instr* outer, size_t depth) {
  Frame& frame = frames_[depth];
  if (outer->parent() == frame.computation || depth == 0) return outer;
  if (auto it = frame.inner_of.find(outer); it != frame.inner_of.end()) return it->second;
  Instr* inner = nullptr;
  if (IsCopied(*outer)) {
    inner =
        frame.computation->Append(outer->op(), outer->shape(), {}, outer->attrs(), outer->name());
    inner->set_pos(outer->pos());
    inner->set_origins(outer->origins());
  } else {
    Instr* next = LocalOf(outer, depth - 1);
    // The group whose regions lie directly inside frame depth - 1.
    auto group = std::find_if(groups_.begin(), groups_.end(),
                              [&](const RegionGroup& g) { return g.depth == depth; });
    Captures& captures = group->captures.back();
    auto [it, is_new] = captures.index.emplace(next, captures.outer.size());
    if (is_new) captures.outer.push_back(next);
    inner = frame.computation->AppendParameter(static_cast<int64_t>(frame.arguments + it->second),
                                               outer->shape(), outer->name());
    inner->set_pos(outer->pos());
    inner->set_origins(outer->origins());
  }
  frames_[depth].inner_of.emplace(outer, inner);
  return inner;
}

void MlirImporter::Localize(std::span<Instr*> operands) {
  Computation* here = frames_.back().computation;
  for (Instr*& operand : operands)
    if (operand->parent() != here) operand = LocalOf(operand, frames_.size() - 1);
}

Status MlirImporter::AddOp(const MlirOpInput& input, std::vector<Instr*>& values) {
  const MlirOp& op = *input.op;
  if (frames_.empty() && op.action != MlirAction::kMesh)
    return At(input.pos, ErrorCode::kMlirPlacement, op.name + ": stands outside a function");
  if (!frames_.empty() && frames_.back().terminated)
    return At(input.pos, ErrorCode::kMlirPlacement, op.name + ": stands after a terminator");
  if (input.regions.empty() && !done_.captures.empty()) done_ = {};
  return MlirBuilder(*this, input, values).Run();
}

Status MlirImporter::AddReturn(const MlirOpInput& input) {
  Frame& frame = frames_.back();
  std::vector<Instr*> operands(input.operands.begin(), input.operands.end());
  Localize(operands);
  frame.terminated = true;
  frame.pos = input.pos;
  if (operands.size() == 1) {
    frame.computation->set_root(operands[0]);
    return Ok();
  }
  std::vector<Shape> shapes;
  shapes.reserve(operands.size());
  for (const Instr* operand : operands) shapes.push_back(operand->shape());
  Instr* root =
      frame.computation->Append(Op::kTuple, Shape::Tuple(std::move(shapes)), std::move(operands));
  root->set_pos(input.pos);
  root->set_origins(input.origins);
  frame.computation->set_root(root);
  return Ok();
}

void MlirImporter::CallSymbol(Instr* instr, size_t index, std::string_view symbol, TextPos pos) {
  pending_.push_back({instr, index, std::string(symbol), pos});
}

Status MlirImporter::ResolveSymbols() {
  for (const PendingCall& call : pending_) {
    auto it = functions_.find(call.symbol);
    if (it == functions_.end())
      return At(call.pos, ErrorCode::kMlirSymbol,
                std::string(call.instr->info().name) + ": no function is named @" + call.symbol);
    std::vector<Computation*> called(call.instr->called().begin(), call.instr->called().end());
    if (called.size() <= call.index) called.resize(call.index + 1);
    called[call.index] = it->second;
    call.instr->set_called(std::move(called));
  }
  return Ok();
}

// Positions of instructions count parameters first, as equality does (ir/compare.h).
Status MlirImporter::ResolveControl(Frame& frame) {
  if (frame.control.empty()) return Ok();
  std::vector<Instr*> order = frame.computation->parameters();
  for (Instr* instr : frame.computation->Instrs())
    if (instr->op() != Op::kParameter) order.push_back(instr);
  for (auto& [instr, positions] : frame.control) {
    for (int64_t position : positions) {
      if (position < 0 || position >= static_cast<int64_t>(order.size()))
        return At(instr->pos(), ErrorCode::kMlirAttributeMeaning,
                  std::string(instr->info().name) + ": tokamak.control names instruction " +
                      std::to_string(position) + " of " + std::to_string(order.size()));
      instr->AddControlPredecessor(order[static_cast<size_t>(position)]);
    }
  }
  return Ok();
}

Status MlirImporter::FindEntry() {
  Computation* entry = nullptr;
  size_t visible = 0;
  for (const auto& [name, computation] : functions_) {
    if (!computation->is_public) continue;
    ++visible;
    entry = computation;
  }
  if (visible != 1) entry = nullptr;
  if (auto it = functions_.find("main"); it != functions_.end()) entry = it->second;
  module_->set_entry(entry);
  return ApplyFacts();
}

Result<std::unique_ptr<Module>> MlirImporter::Finish() {
  TOK_RETURN_IF_ERROR(ResolveSymbols());
  TOK_RETURN_IF_ERROR(FindEntry());
  TOK_RETURN_IF_ERROR(ApplyModuleFacts());
  return std::move(module_);
}

}  // namespace tokamak
