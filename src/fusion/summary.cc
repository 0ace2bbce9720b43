#include "fusion/summary.h"

#include <algorithm>
#include <span>

#include "fusion/values.h"
#include "gen/contract.h"
#include "gen/window.h"

namespace tokamak {
namespace {

// Elements per task of the grid, roughly, for load balance in the cost model. Chosen.
constexpr double kElementsOfTask = 1024;

// Number of contiguous result elements that repeat one operand element: it is computed once for
// them.
double BroadcastFactor(const Instr& broadcast) {
  const Shape& to = broadcast.shape();
  const Dims& dimensions = broadcast.attrs<DimensionsAttrs>().dimensions;
  double factor = 1;
  for (int64_t d = to.rank(); d-- > 0;) {
    if (std::find(dimensions.begin(), dimensions.end(), d) != dimensions.end()) break;
    factor *= static_cast<double>(to.dim(static_cast<size_t>(d)));
  }
  return factor;
}

std::vector<PipeOps> ListOf(const Work& work) {
  std::vector<PipeOps> list;
  for (size_t pipe = 0; pipe < kPipes; ++pipe)
    if (work.ops[pipe] != 0) list.push_back({pipe, work.ops[pipe]});
  return list;
}

void Add(Work& work, const std::vector<PipeOps>& list, double times) {
  for (const PipeOps& ops : list) work.ops[ops.pipe] += ops.count * times;
}

}  // namespace

void Summarizer::Learn(const Instr& instr, Facts& facts) {
  const Shape& shape = instr.shape();
  const Shape& first = shape.IsTuple() ? shape.elements()[0] : shape;
  facts.count = std::max(1.0, static_cast<double>(first.ElementCount()));
  facts.bytes = static_cast<double>(BytesOfParts(instr));
}

void Summarizer::LearnAll(const Instr& instr, Facts& facts) {
  facts.is_known = true;
  if (instr.op() == Op::kReduce) facts.reduced_count = CountOf(*instr.operand(0)) / facts.count;
  facts.uses.reserve(instr.operand_count());
  for (size_t i = 0; i < instr.operand_count(); ++i) facts.uses.push_back(UseOf(instr, i));
  Work unit;
  AddElementOp(unit, instr, 1, machine_);
  facts.unit = ListOf(unit);
}

Summarizer::Use Summarizer::UseOf(const Instr& instr, size_t operand) {
  Facts& of = FactsOf(*instr.operand(operand));
  double count = of.count, own = CountOf(instr);
  switch (instr.op()) {
    case Op::kReshape:
    case Op::kCopy:
    case Op::kGetTupleElement:
    case Op::kScan:
      return {&of, Reach::kSame, 1, own};
    case Op::kBroadcast:
      return {&of, Reach::kRepeated, BroadcastFactor(instr), own};
    case Op::kReduce:
      return {&of, operand < instr.operand_count() / 2 ? Reach::kReduced : Reach::kSame, 1, own};
    case Op::kDot:
      // A contraction packs its operands into panels, which are recomputed for some of its tiles.
      // Other loops evaluate both operands for every multiplication.
      if (IsForContract(instr, machine_))
        return {&of, Reach::kFixed,
                count * static_cast<double>(TimesMade(instr, operand, machine_)), own};
      return {&of, Reach::kTimes, std::max(1.0, count / own), own};
    case Op::kConcatenate:
    case Op::kPad:
      return {&of, Reach::kSubset, 1, own};
    case Op::kReduceWindow:
      return {&of, Reach::kTimes, operand == 0 ? static_cast<double>(TapsOf(instr)) : 1, own};
    case Op::kScatter:
    case Op::kSort:
    case Op::kDynamicUpdateSlice:
      return {&of, Reach::kFixed, count, own};
    default:
      break;
  }
  bool same = instr.info().Is(kElementwise) && count == own;
  return {&of, same ? Reach::kSame : Reach::kTimes, 1, own};
}

void Summarizer::CountElements(const FusedRegion& region) {
  auto clear = [](Facts& facts) { facts.same_elements = facts.elsewhere = 0; };
  for (const Instr* instr : region.instrs) clear(FullFactsOf(*instr));
  for (const Instr* input : region.inputs) clear(FactsOf(*input));
  for (const Instr* root : region.roots)
    facts_[root].same_elements =
        root->op() == Op::kDynamicUpdateSlice ? CountOf(*root->operand(1)) : CountOf(*root);
  for (size_t i = region.instrs.size(); i-- > 0;) {
    const Facts& facts = facts_[region.instrs[i]];
    double times = facts.evals();
    for (const Use& use : facts.uses) {
      Facts& of = *use.operand;
      auto same_elements = [&](double n) { of.same_elements = std::max(of.same_elements, n); };
      switch (use.reach) {
        case Reach::kSame:
          same_elements(times);
          break;
        case Reach::kRepeated:
          same_elements(std::max(times / use.number, std::min(times, of.count)));
          break;
        case Reach::kReduced:
          same_elements(times * of.count / use.own);
          break;
        case Reach::kFixed:
          same_elements(use.number);
          break;
        case Reach::kTimes:
          of.elsewhere += times * use.number;
          break;
        case Reach::kSubset:
          of.elsewhere += std::min(times, times * of.count / use.own);
          break;
      }
    }
  }
}

void Summarizer::AddAccess(Access access, ElementType type, double elements, Work& work) {
  auto number = static_cast<size_t>(type);
  if (number >= accesses_.size()) accesses_.resize(number + 1);
  AccessOps& of_one = accesses_[number][static_cast<size_t>(access)];
  if (!of_one.is_known) {
    Work unit;
    (access == Access::kLoad ? AddLoads : AddStores)(unit, 1, type, machine_);
    of_one = {ListOf(unit), true};
  }
  Add(work, of_one.ops, elements);
}

void Summarizer::AddStoresOf(const Instr& root, Work& work) {
  const Shape& shape = root.shape();
  for (const Shape& part : shape.IsTuple() ? std::span(shape.elements()) : std::span(&shape, 1)) {
    double stored = IsUpdate(root) ? CountOf(*root.operand(root.op() == Op::kScatter ? 2 : 1))
                                   : static_cast<double>(part.ElementCount());
    work.writes += stored * static_cast<double>(part.ByteSize()) /
                   std::max(static_cast<double>(part.ElementCount()), 1.0);
    AddAccess(Access::kStore, part.type(), stored, work);
  }
}

Work Summarizer::Of(const FusedRegion& region) {
  CountElements(region);
  Work work;
  double most = 1;
  for (const Instr* instr : region.instrs) {
    const Facts& facts = facts_[instr];
    // For a reduction, count the reduced elements.
    double times = facts.evals() * facts.reduced_count;
    most = std::max(most, times);
    Add(work, facts.unit, times);
  }
  for (const Instr* input : region.inputs) {
    const Facts& facts = facts_[input];
    double loads = facts.evals();
    work.reads += facts.bytes * std::min(1.0, loads / facts.count);
    if (input->shape().IsArray()) AddAccess(Access::kLoad, input->shape().type(), loads, work);
  }
  for (const Instr* root : region.roots) AddStoresOf(*root, work);
  work.tasks = std::max(1.0, most / kElementsOfTask);
  // Typical block size and registers per thread of generated kernels. Chosen: a kernel does not
  // exist yet.
  if (machine_.is_gpu()) {
    work.threads = 256;
    work.thread_registers = 40;
  }
  return work;
}

}  // namespace tokamak
