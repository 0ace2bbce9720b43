#include "driver/as_given.h"

#include <algorithm>
#include <unordered_set>

#include "cost/work.h"
#include "rewrite/fuse/facts.h"
#include "rewrite/fuse/judge.h"

namespace tokamak {
namespace {

// Takes no launch: places, names and control.
bool IsNoKernel(const Instr& instr) {
  switch (instr.op()) {
    case Op::kParameter:
    case Op::kConstant:
    case Op::kTuple:
    case Op::kGetTupleElement:
    case Op::kBitcast:
    case Op::kWhile:
    case Op::kConditional:
    case Op::kCall:
    case Op::kAfterAll:
    case Op::kAddDependency:
    case Op::kOptimizationBarrier:
    case Op::kDomain:
    case Op::kPartitionId:
    case Op::kReplicaId:
    case Op::kAsyncUpdate:
    case Op::kAsyncDone:
    case Op::kCopyDone:
    case Op::kAllReduceDone:
    case Op::kAllGatherDone:
    case Op::kCollectivePermuteDone:
    case Op::kSendDone:
    case Op::kRecvDone:
      return true;
    default:
      return false;
  }
}

bool IsLibrary(const Instr& instr) {
  return instr.op() == Op::kCustomCall || instr.op() == Op::kDot ||
         instr.op() == Op::kConvolution || instr.op() == Op::kFft || instr.op() == Op::kCholesky ||
         instr.op() == Op::kTriangularSolve;
}

// Nothing goes in or out: a call by name, or what was put together for a library.
bool IsOpaque(const Instr& instr) {
  return instr.op() == Op::kCustomCall ||
         (instr.op() == Op::kFusion && instr.attrs<FusionAttrs>().kind == FusionKind::kCustom);
}

std::vector<const Instr*> BodyOf(const Instr& instr) {
  if (instr.op() != Op::kFusion) return {&instr};
  std::vector<const Instr*> body;
  for (const Instr* in : instr.called(0)->Instrs())
    if (in->op() != Op::kParameter && in->op() != Op::kTuple) body.push_back(in);
  return body;
}

// Kernels that read a value, and "the result" or control flow where it leaves; each once.
std::vector<const Instr*> ReadersOf(const Instr& kernel) {
  std::vector<const Instr*> readers;
  std::unordered_set<const Instr*> seen;
  std::vector<const Instr*> open = {&kernel};
  while (!open.empty()) {
    const Instr* value = open.back();
    open.pop_back();
    for (const Instr* user : value->users()) {
      if (!seen.insert(user).second) continue;
      bool is_name = user->op() == Op::kGetTupleElement || user->op() == Op::kBitcast;
      if (is_name) open.push_back(user);
      if (!is_name) readers.push_back(user);
    }
  }
  return readers;
}

std::string CauseOf(FusionRule rule) {
  switch (rule) {
    case FusionRule::kConcatMultiUser:
      return "concatenate with several users";
    case FusionRule::kReductionRoot:
      return "reduction";
    case FusionRule::kKernelSize:
    case FusionRule::kRegisters:
      return "limit";
    case FusionRule::kExpensiveOp:
      return "expensive op";
    case FusionRule::kSeveralResults:
      return "tuple";
    case FusionRule::kOpKind:
      return "op kind";
    default: {
      std::string_view name = InfoOf(rule).name;
      return std::string(name.substr(name.find('.') + 1));
    }
  }
}

class GivenReader {
 public:
  GivenReader(const Module& module, const Machine& machine)
      : module_(module),
        machine_(machine),
        context_(log_),
        judge_(module, context_, /*control_binds=*/false) {}

  GivenProgram Run() {
    for (const Computation* computation : fuse::RunningComputations(module_))
      for (const Instr* instr : computation->PostOrder())
        if (!IsNoKernel(*instr)) Add(*instr);
    return std::move(program_);
  }

 private:
  void Add(const Instr& instr) {
    GivenKernel kernel;
    kernel.name = LabelOf(instr);
    kernel.computation = instr.parent()->name();
    kernel.kind = std::string(instr.info().name);
    if (instr.op() == Op::kFusion) kernel.kind = ToText(instr.attrs<FusionAttrs>().kind);
    if (IsLibrary(instr)) kernel.kind = "library";
    program_.fusions += instr.op() == Op::kFusion ? 1 : 0;
    program_.library += IsLibrary(instr) ? 1 : 0;
    std::unordered_set<std::string> seen;
    auto add_lines = [&](const Instr& of) {
      for (std::string& line : SourceLines(of))
        if (seen.insert(line).second) kernel.lines.push_back(std::move(line));
    };
    add_lines(instr);
    for (const Instr* in : BodyOf(instr)) {
      bool computes = in->op() != Op::kConstant && in->op() != Op::kBitcast;
      kernel.ops += computes ? 1 : 0;
      if (in->origins() != OriginId::kNone) add_lines(*in);
    }
    for (const Instr* operand : fuse::DistinctOperands(instr))
      kernel.reads += fuse::BytesOf(operand->shape());
    kernel.writes = fuse::BytesOf(instr.shape());
    kernel.us = PriceIt(instr, kernel);
    program_.kernels.push_back(std::move(kernel));
    AddBoundaries(instr);
  }

  static std::string ToText(FusionKind kind) {
    switch (kind) {
      case FusionKind::kLoop:
        return "kLoop";
      case FusionKind::kInput:
        return "kInput";
      case FusionKind::kOutput:
        return "kOutput";
      default:
        return "kCustom";
    }
  }

  // From its instructions: how XLA's kernels are made is not known.
  std::optional<double> PriceIt(const Instr& instr, const GivenKernel& kernel) const {
    if (instr.op() == Op::kCustomCall || instr.info().Is(kCollective)) return std::nullopt;
    Work work;
    work.reads = static_cast<double>(kernel.reads);
    work.writes = static_cast<double>(kernel.writes);
    for (const Instr* in : BodyOf(instr)) {
      if (!in->shape().IsArray() || in->shape().HasDynamicDims()) continue;
      bool folds = in->op() == Op::kReduce || in->op() == Op::kReduceWindow;
      bool is_known = in->info().Is(kElementwise) || in->info().Is(kDataMovement) || folds ||
                      in->op() == Op::kDot || in->op() == Op::kIota;
      const Shape& shape = folds ? in->operand(0)->shape() : in->shape();
      if (is_known && shape.IsArray() && !shape.HasDynamicDims())
        AddElementOp(work, *in, static_cast<double>(shape.ElementCount()), machine_);
    }
    for (const Instr* operand : fuse::DistinctOperands(instr))
      if (operand->shape().IsArray() && !operand->shape().HasDynamicDims())
        AddLoads(work, static_cast<double>(operand->shape().ElementCount()),
                 operand->shape().type(), machine_);
    constexpr double kBytesOfATask = 4096;
    work.tasks = std::max(1.0, work.writes / kBytesOfATask);
    return PriceOf(work, machine_).total();
  }

  void AddBoundaries(const Instr& kernel) {
    std::vector<const Instr*> readers = ReadersOf(kernel);
    bool is_root = kernel.parent()->root() == &kernel;
    if (is_root) AddBoundary(kernel, nullptr, readers.size());
    for (const Instr* reader : readers) AddBoundary(kernel, reader, readers.size());
  }

  void AddBoundary(const Instr& kernel, const Instr* reader, size_t readers) {
    GivenBoundary boundary;
    boundary.from = LabelOf(kernel);
    boundary.bytes = fuse::BytesOf(kernel.shape());
    bool leaves =
        reader == nullptr || (reader->op() == Op::kTuple && reader == reader->parent()->root());
    boundary.to = leaves ? "result" : LabelOf(*reader);
    if (leaves || reader->op() == Op::kTuple) {
      boundary.cause = "tuple";
    } else if (IsNoKernel(*reader)) {
      boundary.cause = std::string(reader->info().name);
    } else if (IsOpaque(kernel) || IsOpaque(*reader)) {
      const Instr& call = IsOpaque(kernel) ? kernel : *reader;
      boundary.cause = "custom call";
      boundary.because = call.op() == Op::kCustomCall ? call.attrs<CustomCallAttrs>().target
                                                      : "a fusion for a library";
    } else {
      Ask(kernel, *reader, readers, boundary);
    }
    program_.boundaries.push_back(std::move(boundary));
  }

  void Ask(const Instr& kernel, const Instr& reader, size_t readers, GivenBoundary& boundary) {
    fuse::Judgement refused = judge_.MayEnter(kernel, reader);
    const Instr& root = fuse::RootOf(kernel);
    if (!refused && readers > 1 && root.op() == Op::kConcatenate)
      refused = fuse::Refusal{FusionRule::kConcatMultiUser, std::to_string(readers) + " users"};
    if (!refused && readers > 1) refused = judge_.MayBeCopied(kernel);
    if (!refused && fuse::IsExpensive(kernel))
      refused = fuse::Refusal{FusionRule::kExpensiveOp, "the merger leaves such fusions alone"};
    if (!refused) {
      boundary.cause = "none of the paper's rules";
      return;
    }
    bool folds = root.op() == Op::kReduce || root.op() == Op::kReduceWindow;
    boundary.cause = folds ? "reduction" : CauseOf(refused->rule);
    boundary.rule = InfoOf(refused->rule).name;
    boundary.because = refused->because;
  }

  const Module& module_;
  const Machine& machine_;
  DecisionLog log_;
  PassContext context_;
  fuse::Judge judge_;
  GivenProgram program_;
};

}  // namespace

std::vector<std::string> SourceLines(const Instr& instr) {
  const Module& module = *instr.parent()->module();
  std::vector<std::string> lines;
  for (const Origin* origin : module.origins().Of(instr.origins())) {
    if (origin->frame == FrameId::kNone) continue;
    const Frame& frame = module.origins().frame(origin->frame);
    lines.push_back(frame.file + ":" + std::to_string(frame.line) +
                    (frame.function.empty() ? "" : " (" + frame.function + ")"));
  }
  if (lines.empty() && instr.pos().line > 0)
    lines.push_back(module.file + ":" + std::to_string(instr.pos().line));
  return lines;
}

GivenProgram ReadGiven(const Module& module, const Machine& machine) {
  return GivenReader(module, machine).Run();
}

}  // namespace tokamak
