#include "fusion/summary.h"

#include <algorithm>

#include "fusion/values.h"
#include "gen/contract.h"
#include "gen/window.h"

namespace tokamak {
namespace {

// What a loop does at a time, roughly: a grid of so many elements each.
constexpr double kElementsOfTask = 1024;

// Neighbours in the result that a broadcast gives one element: it is computed once for them.
double StretchOf(const Instr& broadcast) {
  const Shape& to = broadcast.shape();
  const Dims& dimensions = broadcast.attrs<DimensionsAttrs>().dimensions;
  double stretch = 1;
  for (int64_t d = to.rank(); d-- > 0;) {
    if (std::find(dimensions.begin(), dimensions.end(), d) != dimensions.end()) break;
    stretch *= static_cast<double>(to.dim(static_cast<size_t>(d)));
  }
  return stretch;
}

}  // namespace

const Summarizer::Facts& Summarizer::FactsOf(const Instr& instr) {
  Facts& facts = facts_[&instr];
  if (facts.count >= 0) return facts;
  const Shape& shape = instr.shape();
  const Shape& first = shape.IsTuple() ? shape.elements()[0] : shape;
  facts.count = std::max(1.0, static_cast<double>(first.ElementCount()));
  facts.bytes = static_cast<double>(BytesOfParts(instr));
  facts.elementwise = instr.info().Is(kElementwise);
  return facts;
}

// The instruction is computed `times` times: how often its operand is.
void Summarizer::CountOperand(const Instr& instr, size_t operand, double times) {
  const Instr& of = *instr.operand(operand);
  Evals& evals = evals_[&of];
  double count = CountOf(of), own = CountOf(instr);
  auto alike = [&](double n) { evals.alike = std::max(evals.alike, n); };
  switch (instr.op()) {
    case Op::kReshape:
    case Op::kCopy:
    case Op::kGetTupleElement:
    case Op::kScan:
      return alike(times);
    case Op::kBroadcast:
      return alike(std::max(times / StretchOf(instr), std::min(times, count)));
    case Op::kReduce:
      if (operand < instr.operand_count() / 2) return alike(times * count / own);
      return alike(times);
    case Op::kDot:
      // The panels of a contraction are made for some of its tiles again; other loops ask for both
      // operands at every multiplication.
      if (IsForContract(instr, machine_))
        return alike(count * static_cast<double>(TimesMade(instr, operand, machine_)));
      evals.elsewhere += times * std::max(1.0, count / own);
      return;
    case Op::kConcatenate:
    case Op::kPad:
      evals.elsewhere += std::min(times, times * count / own);
      return;
    case Op::kReduceWindow:
      evals.elsewhere += operand == 0 ? times * static_cast<double>(TapsOf(instr)) : times;
      return;
    case Op::kScatter:
    case Op::kSort:
    case Op::kDynamicUpdateSlice:
      return alike(count);
    default:
      break;
  }
  if (FactsOf(instr).elementwise && count == own) return alike(times);
  evals.elsewhere += times;
}

void Summarizer::CountElements(const Region& region) {
  for (const Instr* instr : region.instrs) evals_[instr] = {};
  for (const Instr* input : region.inputs) evals_[input] = {};
  for (const Instr* root : region.roots)
    evals_[root].alike =
        root->op() == Op::kDynamicUpdateSlice ? CountOf(*root->operand(1)) : CountOf(*root);
  for (size_t i = region.instrs.size(); i-- > 0;) {
    const Instr& instr = *region.instrs[i];
    for (size_t operand = 0; operand < instr.operand_count(); ++operand)
      CountOperand(instr, operand, evals_[&instr].all());
  }
}

const Work& Summarizer::UnitOf(const Instr& instr) {
  std::vector<Work>& unit = facts_[&instr].unit;
  if (unit.empty()) {
    unit.emplace_back();
    AddElementOp(unit[0], instr, 1, machine_);
  }
  return unit[0];
}

Work Summarizer::Of(const Region& region) {
  CountElements(region);
  Work work;
  double most = 1;
  for (const Instr* instr : region.instrs) {
    double times = evals_[instr].all();
    // Of a reduction, what is folded.
    if (instr->op() == Op::kReduce) times *= CountOf(*instr->operand(0)) / CountOf(*instr);
    most = std::max(most, times);
    const Work& unit = UnitOf(*instr);
    for (size_t pipe = 0; pipe < kPipes; ++pipe) work.ops[pipe] += unit.ops[pipe] * times;
  }
  for (const Instr* input : region.inputs) {
    double loads = evals_[input].all();
    work.reads += FactsOf(*input).bytes * std::min(1.0, loads / CountOf(*input));
    if (input->shape().IsArray()) AddLoads(work, loads, input->shape().type(), machine_);
  }
  for (const Instr* root : region.roots)
    for (const Shape& part : PartsOf(root->shape())) {
      bool update = IsUpdate(*root);
      double stored = update ? CountOf(*root->operand(root->op() == Op::kScatter ? 2 : 1))
                             : static_cast<double>(part.ElementCount());
      work.writes += stored * static_cast<double>(part.ByteSize()) /
                     std::max(static_cast<double>(part.ElementCount()), 1.0);
      AddStores(work, stored, part.type(), machine_);
    }
  work.tasks = std::max(1.0, most / kElementsOfTask);
  if (machine_.is_gpu()) {
    work.threads = 256;
    work.words = 40;
  }
  return work;
}

}  // namespace tokamak
