// Module verifier. Shapes and attributes of an instruction are verified by inference: the shape
// must be what InferShape returns for its operands. This file adds the checks of structure:
//
//   computation   a root; parameters numbered 0 to n - 1; no cycle of operands
//   instruction   operands in the same computation; callees in the module
//   module        calls have no cycle; names (meshes, functions) exist; the header is consistent
//
// Structure is checked before inference, which dereferences operands and callees. Errors carry the
// text position of the instruction and notes with the shapes of its operands. Linear in the module.

#include <unordered_map>
#include <unordered_set>

#include <fmt/core.h>

#include "ir/infer.h"
#include "ir/verify_shape.h"

namespace tokamak {
namespace {

// Maximum number of operand notes per error. Chosen.
constexpr size_t kMostNotes = 4;

Error At(const Instr& instr, ErrorCode code, std::string text) {
  return MakeError(code, std::string(instr.info().name) + ": " + std::move(text), SpanOf(instr));
}

Error At(const Computation& computation, ErrorCode code, std::string text) {
  TextSpan where;
  where.file = computation.module()->file;
  if (computation.pos.line > 0) {
    where.line = static_cast<int>(computation.pos.line);
    where.column = static_cast<int>(computation.pos.column);
  } else if (computation.pos.column > 0) {
    where.offset = computation.pos.column;
  }
  return MakeError(code, std::move(text), where);
}

std::string NameOf(const Instr& instr) {
  return instr.name().empty() ? fmt::format("%{}", static_cast<uint32_t>(instr.id()))
                              : instr.name();
}

// Adds a note per operand with its shape and source location.
void AddOperandNotes(const Instr& instr, Error& error) {
  for (size_t i = 0; i < std::min(instr.operand_count(), kMostNotes); ++i) {
    const Instr& operand = *instr.operand(i);
    std::string note = fmt::format("{} is {}", NameOf(operand), ToString(operand.shape()));
    TextSpan span = SpanOf(operand);
    if (span.line > 0) note += fmt::format(", from {}:{}", span.file, span.line);
    error.notes.push_back(std::move(note));
  }
}

Status VerifyWith(const Instr& instr, std::vector<Shape>& operands) {
  operands.clear();
  for (const Instr* operand : instr.operands()) operands.push_back(operand->shape());
  Status sound = VerifyShape(instr.shape(), instr.info().name);
  if (!sound.ok()) {
    sound.error().where = SpanOf(instr);
    return sound;
  }
  InferInput input{instr.op(),     operands,         instr.attrs(),
                   instr.called(), instr.captures(), &instr.shape()};
  auto inferred = InferShape(input);
  if (inferred.ok()) [[likely]]
    return Ok();
  Error error = std::move(inferred.error());
  error.where = SpanOf(instr);
  AddOperandNotes(instr, error);
  return error;
}

class ModuleVerifier {
 public:
  explicit ModuleVerifier(const Module& module) : module_(module) {
    for (const auto& computation : module.computations()) known_.insert(computation.get());
  }

  Status Run() {
    for (const auto& computation : module_.computations())
      TOK_RETURN_IF_ERROR(Structure(*computation));
    TOK_RETURN_IF_ERROR(Calls());
    for (const auto& computation : module_.computations())
      for (const Instr* instr : computation->Instrs()) {
        TOK_RETURN_IF_ERROR(VerifyWith(*instr, operands_));
        TOK_RETURN_IF_ERROR(Names(*instr));
      }
    if (module_.entry() != nullptr && !known_.contains(module_.entry()))
      return MakeError(ErrorCode::kEntryElsewhere,
                       "module: the entry is not one of its computations");
    return VerifyModuleHeader(module_);
  }

 private:
  Status Structure(const Computation& computation) {
    const Instr* root = computation.root();
    if (root == nullptr || root->parent() != &computation)
      return At(computation, ErrorCode::kNoRoot,
                fmt::format("computation {} has no root", computation.name()));
    TOK_RETURN_IF_ERROR(Parameters(computation));
    std::vector<Instr*> instrs = computation.Instrs();
    if (!InProgramOrder(instrs)) TOK_RETURN_IF_ERROR(SomeOrder(computation, instrs));
    for (const Instr* instr : instrs) {
      TOK_RETURN_IF_ERROR(Neighbours(computation, *instr));
      for (const Computation* called : instr->called())
        if (!known_.contains(called))
          return At(*instr, ErrorCode::kCalledElsewhere,
                    "a called computation is not one of the module");
    }
    return Ok();
  }

  // Entities that an instruction references by name must exist in the module.
  Status Names(const Instr& instr) {
    if (instr.op() == Op::kRunParallel) {
      for (const std::string& function : instr.attrs<RunParallelAttrs>().infeed)
        if (module_.FindComputation(function) == nullptr)
          return At(instr, ErrorCode::kUnknownFunction,
                    fmt::format("there is no function {}", function));
    }
    return VerifyMeshes(instr, module_);
  }

  Status Parameters(const Computation& computation) {
    for (size_t i = 0; i < computation.parameters().size(); ++i) {
      const Instr* parameter = computation.parameter(i);
      if (parameter == nullptr)
        return At(computation, ErrorCode::kParameterMissing,
                  fmt::format("computation {} has {} parameters, number {} is missing",
                              computation.name(), computation.parameters().size(), i));
    }
    return Ok();
  }

  Status Neighbours(const Computation& computation, const Instr& instr) {
    for (const Instr* operand : instr.operands())
      if (operand->parent() != &computation)
        return At(instr, ErrorCode::kOperandElsewhere,
                  fmt::format("operand {} belongs to computation {}, its user to {}",
                              NameOf(*operand), operand->parent()->name(), computation.name()));
    for (const Instr* before : instr.extras().control_predecessors)
      if (before->parent() != &computation)
        return At(instr, ErrorCode::kControlPredecessor,
                  fmt::format("control predecessor {} belongs to computation {}", NameOf(*before),
                              before->parent()->name()));
    if (instr.op() == Op::kParameter) return Number(computation, instr);
    return Ok();
  }

  Status Number(const Computation& computation, const Instr& parameter) {
    int64_t number = parameter.attrs<ParameterAttrs>().number;
    if (number < 0 || number >= static_cast<int64_t>(computation.parameters().size()))
      return At(parameter, ErrorCode::kParameterMissing,
                fmt::format("number {} is not one of the {} parameters of {}", number,
                            computation.parameters().size(), computation.name()));
    const Instr* owner = computation.parameter(static_cast<size_t>(number));
    if (owner == &parameter) return Ok();
    return At(parameter, ErrorCode::kParameterTwice,
              fmt::format("{} and {} are both parameter {} of {}", NameOf(*owner),
                          NameOf(parameter), number, computation.name()));
  }

  static bool InProgramOrder(const std::vector<Instr*>& instrs) {
    for (const Instr* instr : instrs) {
      for (const Instr* operand : instr->operands())
        if (operand->parent() == instr->parent() && operand->id() >= instr->id()) return false;
      for (const Instr* before : instr->extras().control_predecessors)
        if (before->parent() == instr->parent() && before->id() >= instr->id()) return false;
    }
    return true;
  }

  // HLO text may reference an operand before its definition; only a cycle is an error.
  Status SomeOrder(const Computation& computation, const std::vector<Instr*>& instrs) {
    for (const Instr* instr : instrs) TOK_RETURN_IF_ERROR(Neighbours(computation, *instr));
    std::vector<Instr*> order = computation.PostOrder();
    InstrMap<char> done(computation);
    for (const Instr* instr : order) {
      done[instr] = true;
      for (const Instr* operand : instr->operands())
        if (!done[operand] || operand == instr)
          return At(
              *instr, ErrorCode::kOperandAfterUse,
              fmt::format("operand {} of {} depends on it", NameOf(*operand), NameOf(*instr)));
      for (const Instr* before : instr->extras().control_predecessors)
        if (!done[before] || before == instr)
          return At(*instr, ErrorCode::kControlPredecessor,
                    fmt::format("control predecessor {} of {} depends on it", NameOf(*before),
                                NameOf(*instr)));
    }
    return Ok();
  }

  Status Calls() {
    if (module_.CalleesFirst().size() == module_.computations().size()) return Ok();
    // Finds an instruction on a cycle, to name it in the message.
    std::unordered_set<const Computation*> finished;
    for (const auto& start : module_.computations()) {
      auto [call, callee] = FindCycle(*start, finished);
      if (call != nullptr)
        return At(*call, ErrorCode::kCallCycle,
                  fmt::format("{} calls {}, which leads back to it", call->parent()->name(),
                              callee->name()));
    }
    return Ok();
  }

  // Iterative depth-first search; an edge to a computation that is still open closes a cycle.
  std::pair<const Instr*, const Computation*> FindCycle(
      const Computation& start, std::unordered_set<const Computation*>& finished) const {
    using Call = std::pair<const Instr*, const Computation*>;
    struct Open {
      const Computation* computation;
      std::vector<Call> calls;
    };
    std::vector<Open> stack;
    std::unordered_set<const Computation*> open;
    auto push = [&](const Computation& computation) {
      Open entry{&computation, {}};
      for (const Instr* instr : computation.Instrs())
        for (const Computation* callee : instr->called()) entry.calls.emplace_back(instr, callee);
      open.insert(&computation);
      stack.push_back(std::move(entry));
    };
    if (!finished.contains(&start)) push(start);
    while (!stack.empty()) {
      if (stack.back().calls.empty()) {
        finished.insert(stack.back().computation);
        open.erase(stack.back().computation);
        stack.pop_back();
        continue;
      }
      Call call = stack.back().calls.back();
      stack.back().calls.pop_back();
      if (open.contains(call.second)) return call;
      if (!finished.contains(call.second)) push(*call.second);
    }
    return {nullptr, nullptr};
  }

  const Module& module_;
  std::unordered_set<const Computation*> known_;
  std::vector<Shape> operands_;
};

}  // namespace

Status VerifyInstr(const Instr& instr) {
  std::vector<Shape> operands;
  return VerifyWith(instr, operands);
}

Status VerifyModule(const Module& module) {
  return ModuleVerifier(module).Run();
}

}  // namespace tokamak
