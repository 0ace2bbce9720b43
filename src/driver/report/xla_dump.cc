// Analyzes a program that XLA has fused already (text after optimizations): its kernels, and why
// each value is stored between two of them. A kernel is a fusion, a library call or a single
// instruction; views, tuples and control flow do not count.
//
//   fusion.1 --4 MiB--> fusion.2      cause: reduction; because: 1024 elements
//
// For each boundary the rules of XLA's fusion passes (xla_rules) are evaluated as if the two
// were candidates; the first rule that rejects them is the cause. Control dependences of a
// scheduled program are ignored, because the scheduler added them after fusion. Times are estimated
// from the instructions, since the code of XLA's kernels is unknown.

#include "driver/report/xla_dump.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "analysis/running_computations.h"
#include "cost/work.h"
#include "xla_rules/facts.h"
#include "xla_rules/fusion_rules.h"

namespace tokamak {
namespace {

// Instructions without a launch: views, names and control flow.
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

// No fusion into or out of it: a custom call, or a fusion built for a library.
bool IsOpaque(const Instr& instr) {
  return instr.op() == Op::kCustomCall ||
         (instr.op() == Op::kFusion && instr.attrs<FusionAttrs>().kind == FusionKind::kCustom);
}

// `InstrOf`: Instr or const Instr.
template <typename InstrOf>
std::vector<InstrOf*> BodyOf(InstrOf& instr) {
  if (instr.op() != Op::kFusion) return {&instr};
  std::vector<InstrOf*> body;
  for (InstrOf* in : instr.called(0)->Instrs())
    if (in->op() != Op::kParameter && in->op() != Op::kTuple) body.push_back(in);
  return body;
}

// Kernels that read a value, and the result or control flow instruction through which it leaves;
// without duplicates.
std::vector<const Instr*> ConsumersOf(const Instr& kernel) {
  std::vector<const Instr*> consumers;
  std::unordered_set<const Instr*> seen;
  std::vector<const Instr*> open = {&kernel};
  while (!open.empty()) {
    const Instr* value = open.back();
    open.pop_back();
    for (const Instr* user : value->users()) {
      if (!seen.insert(user).second) continue;
      bool is_name = user->op() == Op::kGetTupleElement || user->op() == Op::kBitcast;
      if (is_name) open.push_back(user);
      if (!is_name) consumers.push_back(user);
    }
  }
  return consumers;
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

void AddKernelsOf(const Computation& computation, std::unordered_set<const Computation*>& seen,
                  std::vector<Instr*>& kernels) {
  if (!seen.insert(&computation).second) return;
  for (Instr* instr : computation.PostOrder()) {
    if (!IsNoKernel(*instr)) kernels.push_back(instr);
    if (!RunsComputations(instr->op())) continue;
    for (const Computation* called : instr->called()) AddKernelsOf(*called, seen, kernels);
  }
}

// The launches of a program; a kernel's number is its index. A kernel has a greater number than
// those whose values it reads: the numbers of a loop's kernels are those of its place in the order.
std::vector<Instr*> KernelsOf(const Module& module) {
  std::vector<Instr*> kernels;
  std::unordered_set<const Computation*> seen;
  AddKernelsOf(*module.entry(), seen, kernels);
  return kernels;
}

class DumpReader {
 public:
  DumpReader(const Module& module, const Machine& machine)
      : module_(module),
        machine_(machine),
        context_(log_),
        rules_(module, context_, /*control_binds=*/false) {}

  DumpedProgram Run() {
    std::vector<Instr*> kernels = KernelsOf(module_);
    for (const Instr* instr : kernels) Add(*instr);
    for (const Instr* instr : kernels) AddBoundaries(*instr);
    return std::move(program_);
  }

 private:
  void Add(const Instr& instr) {
    DumpedKernel kernel;
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
    kernel.us = EstimateKernels({&instr}, static_cast<double>(kernel.writes));
    numbers_.emplace(&instr, program_.kernels.size());
    program_.kernels.push_back(std::move(kernel));
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

  static bool HasEstimate(const Instr& instr) {
    return instr.op() != Op::kCustomCall && !instr.info().Is(kCollective);
  }

  // The work of one kernel that does the work of these. Estimated from their instructions: the code
  // of XLA's kernels is not known.
  std::optional<double> EstimateKernels(const std::vector<const Instr*>& kernels,
                                        double writes) const {
    Work work;
    work.writes = writes;
    std::unordered_set<const Instr*> read(kernels.begin(), kernels.end());  // and what is made
    for (const Instr* kernel : kernels) {
      if (!HasEstimate(*kernel)) return std::nullopt;
      for (const Instr* in : BodyOf(*kernel)) AddWork(*in, work);
      for (const Instr* operand : fuse::DistinctOperands(*kernel)) {
        const Instr* from = operand;
        while (from->op() == Op::kBitcast || from->op() == Op::kGetTupleElement)
          from = from->operand(0);
        if (from != kernel && read.contains(from)) continue;
        read.insert(operand);
        work.reads += static_cast<double>(fuse::BytesOf(operand->shape()));
        if (operand->shape().IsStaticArray())
          AddLoads(work, static_cast<double>(operand->shape().ElementCount()),
                   operand->shape().type(), machine_);
      }
    }
    SetGrid(work);
    return EstimateCost(work, machine_).total();
  }

  // The grid of the estimated kernel: on a GPU, one like those of our loop kernels.
  void SetGrid(Work& work) const {
    if (machine_.is_gpu()) {
      // Threads per block, registers per thread, and bytes of a thread: an f32 element. (Chosen,
      // as small loops have them: tests/fusion/dumps/bert_layer.txt is estimated at 29 us, and
      // takes 82 us as a plan of our kernels. With one thread per block it was 655 us.)
      constexpr double kThreads = 256, kRegisters = 32, kBytesOfAThread = 4;
      work.threads = kThreads;
      work.thread_registers = kRegisters;
      work.tasks = std::max(work.reads, work.writes) / (kThreads * kBytesOfAThread);
    } else {
      // Bytes of one task (chosen).
      constexpr double kBytesOfATask = 4096;
      work.tasks = work.writes / kBytesOfATask;
    }
    work.tasks = std::max(1.0, work.tasks);
  }

  void AddWork(const Instr& in, Work& work) const {
    if (!in.shape().IsStaticArray()) return;
    bool reduces = in.op() == Op::kReduce || in.op() == Op::kReduceWindow;
    bool is_known = in.info().Is(kElementwise) || in.info().Is(kDataMovement) || reduces ||
                    in.op() == Op::kDot || in.op() == Op::kIota;
    const Shape& shape = reduces ? in.operand(0)->shape() : in.shape();
    if (is_known && shape.IsStaticArray())
      AddElementOp(work, in, static_cast<double>(shape.ElementCount()), machine_);
  }

  void AddBoundaries(const Instr& kernel) {
    std::vector<const Instr*> consumers = ConsumersOf(kernel);
    bool is_root = kernel.parent()->root() == &kernel;
    if (is_root) AddBoundary(kernel, nullptr, consumers.size());
    for (const Instr* consumer : consumers) AddBoundary(kernel, consumer, consumers.size());
  }

  void AddBoundary(const Instr& kernel, const Instr* consumer, size_t consumers) {
    DumpedBoundary boundary;
    boundary.from = LabelOf(kernel);
    boundary.bytes = fuse::BytesOf(kernel.shape());
    bool leaves = consumer == nullptr ||
                  (consumer->op() == Op::kTuple && consumer == consumer->parent()->root());
    boundary.to = leaves ? "result" : LabelOf(*consumer);
    boundary.producer = numbers_.at(&kernel);
    if (consumer != nullptr)
      if (auto found = numbers_.find(consumer); found != numbers_.end())
        AddCosts(kernel, *consumer, consumers, found->second, boundary);
    if (leaves || consumer->op() == Op::kTuple) {
      boundary.cause = "tuple";
    } else if (IsNoKernel(*consumer)) {
      boundary.cause = std::string(consumer->info().name);
    } else if (IsOpaque(kernel) || IsOpaque(*consumer)) {
      const Instr& call = IsOpaque(kernel) ? kernel : *consumer;
      boundary.cause = "custom call";
      boundary.because = call.op() == Op::kCustomCall ? call.attrs<CustomCallAttrs>().target
                                                      : "a fusion for a library";
    } else {
      Ask(kernel, *consumer, consumers, boundary);
    }
    program_.boundaries.push_back(std::move(boundary));
  }

  void AddCosts(const Instr& kernel, const Instr& consumer, size_t consumers, size_t number,
                DumpedBoundary& boundary) const {
    boundary.consumer = number;
    std::optional<double> from = program_.kernels[boundary.producer].us;
    std::optional<double> to = program_.kernels[number].us;
    if (!from || !to) return;
    boundary.apart_us = *from + *to;
    bool is_stored = consumers > 1 || kernel.parent()->root() == &kernel;
    auto writes = static_cast<double>(fuse::BytesOf(consumer.shape()));
    if (is_stored) writes += static_cast<double>(fuse::BytesOf(kernel.shape()));
    boundary.fused_us = EstimateKernels({&kernel, &consumer}, writes);
  }

  // Tests whether the kernel may enter this user, then whether it may be duplicated into all users,
  // then the merger's rule on expensive ops.
  void Ask(const Instr& kernel, const Instr& consumer, size_t consumers, DumpedBoundary& boundary) {
    fuse::MaybeRejection rejection = rules_.MayEnter(kernel, consumer);
    const Instr& root = fuse::RootOf(kernel);
    if (!rejection && consumers > 1 && root.op() == Op::kConcatenate)
      rejection =
          fuse::Rejection{FusionRule::kConcatMultiUser, std::to_string(consumers) + " users"};
    if (!rejection && consumers > 1) rejection = rules_.MayBeCopied(kernel);
    if (!rejection && fuse::IsExpensive(kernel))
      rejection = fuse::Rejection{FusionRule::kExpensiveOp, "the merger skips such fusions"};
    if (!rejection) {
      boundary.cause = "none of the paper's rules";
      return;
    }
    bool reduces = root.op() == Op::kReduce || root.op() == Op::kReduceWindow;
    boundary.cause = reduces ? "reduction" : CauseOf(rejection->rule);
    boundary.rule = InfoOf(rejection->rule).name;
    boundary.because = rejection->because;
  }

  const Module& module_;
  const Machine& machine_;
  DecisionLog log_;
  PassContext context_;
  fuse::FusionRules rules_;
  std::unordered_map<const Instr*, size_t> numbers_;  // of kernels
  DumpedProgram program_;
};

constexpr std::string_view kKernelMark = "dumped_kernel=";

}  // namespace

std::string SourceLineOf(const Frame& frame) {
  return frame.file + ":" + std::to_string(frame.line) +
         (frame.function.empty() ? "" : " (" + frame.function + ")");
}

std::vector<std::string> SourceLines(const Instr& instr) {
  const Module& module = *instr.parent()->module();
  std::vector<std::string> lines;
  for (const Origin* origin : module.origins().Of(instr.origins())) {
    if (origin->frame == FrameId::kNone) continue;
    lines.push_back(SourceLineOf(module.origins().frame(origin->frame)));
  }
  if (lines.empty() && instr.pos().line > 0)
    lines.push_back(module.file + ":" + std::to_string(instr.pos().line));
  return lines;
}

void MarkDumpedKernels(Module& module) {
  OriginTable& origins = module.origins();
  int64_t number = 0;
  for (Instr* kernel : KernelsOf(module)) {
    OriginId id = origins.AddMark(kKernelMark, number++);
    for (Instr* in : BodyOf(*kernel)) in->set_origins(origins.Merge(in->origins(), id));
  }
}

std::vector<size_t> DumpedKernelsOf(const Instr& instr) {
  const OriginTable& origins = instr.parent()->module()->origins();
  std::vector<int64_t> marks = origins.MarksOf(instr.origins(), kKernelMark);
  return {marks.begin(), marks.end()};
}

namespace {

// The fusions of one computation, by id of the instructions. Fusions are numbered in the order in
// which they run, and a value of one fusion reaches only those with greater numbers: so no two
// fusions read each other's values, whatever passes have merged and moved.
std::vector<FusionTag> TagsOf(const Computation& computation) {
  struct Level {
    int last = -1;            // of the fusions that the value depends on
    bool is_outside = false;  // no fusion computes it
  };
  std::vector<FusionTag> tags(computation.id_limit());
  InstrMap<Level> levels(computation);
  for (const Instr* instr : computation.PostOrder()) {
    int last = -1, outside = -2;
    for (const Instr* operand : instr->operands()) {
      last = std::max(last, levels[operand].last);
      if (levels[operand].is_outside) outside = std::max(outside, levels[operand].last);
    }
    int fusion = last;  // of an instruction without a mark
    std::vector<size_t> marks = DumpedKernelsOf(*instr);
    if (!marks.empty()) fusion = static_cast<int>(std::ranges::max(marks));
    bool is_source = instr->op() == Op::kParameter || instr->op() == Op::kConstant;
    if (!is_source && !IsNoKernel(*instr) && fusion >= last && fusion > outside && fusion >= 0) {
      tags[static_cast<size_t>(instr->id())].fusion = fusion;
      last = fusion;
    } else {
      levels[instr].is_outside = !is_source;
    }
    levels[instr].last = last;
  }
  return tags;
}

}  // namespace

FusionTags DumpedFusionsOf(const Module& module) {
  FusionTags tags;
  tags.of.resize(module.computations().size());
  std::unordered_map<const Computation*, size_t> numbers;
  for (size_t i = 0; i < module.computations().size(); ++i)
    numbers.emplace(module.computations()[i].get(), i);
  for (const Computation* computation : RunningComputations(module)) {
    std::vector<FusionTag>& own = tags.of[numbers.at(computation)];
    own = TagsOf(*computation);
    for (const FusionTag& tag : own) tags.count = std::max(tags.count, tag.fusion + 1);
  }
  return tags;
}

DumpedProgram ReadXlaDump(const Module& module, const Machine& machine) {
  return DumpReader(module, machine).Run();
}

}  // namespace tokamak
