#include "fusion/region_work.h"

#include <algorithm>
#include <limits>
#include <span>

#include "analysis/index_map.h"
#include "fusion/instr_predicates.h"
#include "gen/contract.h"
#include "gen/gpu/affine_view.h"
#include "gen/select_scatter.h"

namespace tokamak {
namespace {

// Elements per task of the grid, roughly, for load balance in the cost model. Chosen: typical of
// the kernels that generators build; only regions without a kernel are estimated so.
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

// Thread blocks of a GPU kernel that stores arrays and also sums along their columns: each block
// computes all rows of a sum (gen/gpu/rows.cc).
double MaxBlocksOf(const FusedRegion& region) {
  double blocks = std::numeric_limits<double>::infinity();
  bool stores = std::ranges::any_of(region.roots,
                                    [](const Instr* root) { return root->op() != Op::kReduce; });
  if (!stores) return blocks;
  for (const Instr* root : region.roots) {
    if (root->op() != Op::kReduce) continue;
    const Dims& sizes = root->operand(0)->shape().dims();
    const Dims& reduced = root->attrs<DimensionsAttrs>().dimensions;
    if (reduced.empty() || std::ranges::count(reduced, root->operand(0)->shape().rank() - 1) > 0)
      continue;
    double outer = 1;
    for (int64_t d = 0; d < std::ranges::min(reduced); ++d)
      outer *= static_cast<double>(sizes[static_cast<size_t>(d)]);
    blocks = std::min(blocks, std::max(outer, 1.0));
  }
  return blocks;
}

}  // namespace

void RegionWorkEstimator::ComputeCounts(const Instr& instr, InstrWork& instr_work) {
  const Shape& shape = instr.shape();
  const Shape& first = shape.IsTuple() ? shape.elements()[0] : shape;
  instr_work.elements = std::max(1.0, static_cast<double>(first.ElementCount()));
  instr_work.bytes = static_cast<double>(ResultBytes(instr));
}

void RegionWorkEstimator::ComputeUses(const Instr& instr, InstrWork& instr_work) {
  instr_work.uses_computed = true;
  if (instr.op() == Op::kReduce)
    instr_work.reduced_elements = ElementsOf(*instr.operand(0)) / instr_work.elements;
  instr_work.operand_uses.reserve(instr.operand_count());
  for (size_t i = 0; i < instr.operand_count(); ++i)
    instr_work.operand_uses.push_back(UseOf(instr, i));
  Work one;
  AddElementOp(one, instr, 1, machine_);
  instr_work.ops_per_element = ListOf(one);
}

namespace {

// The elements of the array that the bulk copy engine reads for an operand of a dot, if the operand
// is a view by windows, slices or padding; 0 otherwise.
double WindowElements(const Instr& dot, size_t operand, const Machine& machine) {
  const Instr& side = *dot.operand(operand);
  if (!machine.async_multiply) return 0;
  if (!gpu::IsWindowed(side)) return 0;
  return static_cast<double>(gpu::AffineViewOf(side).array->shape().ElementCount());
}

}  // namespace

RegionWorkEstimator::Use RegionWorkEstimator::UseOf(const Instr& instr, size_t operand) {
  InstrWork& of = InstrWorkOf(*instr.operand(operand));
  double count = of.elements, own = ElementsOf(instr);
  switch (instr.op()) {
    case Op::kReshape:
    case Op::kCopy:
    case Op::kGetTupleElement:
    case Op::kScan:
      return {&of, EvaluationRate::kSame, 1, own};
    case Op::kBroadcast:
      return {&of, EvaluationRate::kBroadcast, BroadcastFactor(instr), own};
    case Op::kReduce:
      return {&of,
              operand < instr.operand_count() / 2 ? EvaluationRate::kPerReducedElement
                                                  : EvaluationRate::kSame,
              1, own};
    case Op::kDot:
      // A contraction packs its operands into panels, which are recomputed for some of its tiles.
      // Other loops evaluate both operands for every multiplication.
      if (CanUseContract(instr, machine_)) {
        double times = static_cast<double>(RecomputeCount(instr, operand, machine_));
        // The bulk copy engine reads windows as they are in memory.
        double window = std::min(WindowElements(instr, operand, machine_), count);
        return {&of, EvaluationRate::kFixed, count * times, own, window};
      }
      return {&of, EvaluationRate::kOtherIndices, std::max(1.0, count / own), own};
    case Op::kConcatenate:
    case Op::kPad:
      return {&of, EvaluationRate::kSubset, 1, own};
    case Op::kReduceWindow:
      return {&of, EvaluationRate::kOtherIndices,
              operand == 0 ? static_cast<double>(ReadsPerElement(instr)) : 1, own};
    case Op::kSelectAndScatter:
      return {&of, EvaluationRate::kOtherIndices,
              static_cast<double>(operand == 0   ? TapsPerResult(instr)
                                  : operand == 1 ? WindowsPerResult(instr)
                                                 : 1),
              own};
    case Op::kScatter:
    case Op::kSort:
    case Op::kDynamicUpdateSlice:
      return {&of, EvaluationRate::kFixed, count, own};
    default:
      break;
  }
  bool same = instr.info().Is(kElementwise) && count == own;
  return {&of, same ? EvaluationRate::kSame : EvaluationRate::kOtherIndices, 1, own};
}

// Whether only a view is between the operand of a dot and an input of the region. Otherwise
// the kernel computes each element of the windows.
bool RegionWorkEstimator::ReadsWindow(const FusedRegion& region, const Instr& dot, const Use& use) {
  for (const Instr* operand : dot.operands()) {
    if (&InstrWorkOf(*operand) != use.operand) continue;
    gpu::AffineView view = gpu::AffineViewOf(region, *operand);
    return view.array != nullptr && view.array->op() != Op::kGather && view.HasLines();
  }
  return false;
}

void RegionWorkEstimator::CountEvaluations(const FusedRegion& region) {
  auto clear = [](InstrWork& instr_work) {
    instr_work.shared_evals = instr_work.unshared_evals = 0;
  };
  for (const Instr* instr : region.instrs) clear(FullInstrWorkOf(*instr));
  for (const Instr* input : region.inputs) clear(InstrWorkOf(*input));
  for (const Instr* root : region.roots)
    instr_work_[root].shared_evals =
        root->op() == Op::kDynamicUpdateSlice ? ElementsOf(*root->operand(1)) : ElementsOf(*root);
  for (size_t i = region.instrs.size(); i-- > 0;) {
    const InstrWork& instr_work = instr_work_[region.instrs[i]];
    double times = instr_work.evals();
    for (const Use& use : instr_work.operand_uses) {
      InstrWork& of = *use.operand;
      auto share = [&](double n) { of.shared_evals = std::max(of.shared_evals, n); };
      switch (use.rate) {
        case EvaluationRate::kSame:
          share(times);
          break;
        case EvaluationRate::kBroadcast:
          share(std::max(times / use.factor, std::min(times, of.elements)));
          break;
        case EvaluationRate::kPerReducedElement:
          share(times * of.elements / use.user_elements);
          break;
        case EvaluationRate::kFixed:
          share(use.window > 0 && ReadsWindow(region, *region.instrs[i], use) ? use.window
                                                                              : use.factor);
          break;
        case EvaluationRate::kOtherIndices:
          of.unshared_evals += times * use.factor;
          break;
        case EvaluationRate::kSubset:
          of.unshared_evals += std::min(times, times * of.elements / use.user_elements);
          break;
      }
    }
  }
}

void RegionWorkEstimator::AddAccess(Access access, ElementType type, double elements, Work& work) {
  auto number = static_cast<size_t>(type);
  if (number >= accesses_.size()) accesses_.resize(number + 1);
  AccessOps& of_one = accesses_[number][static_cast<size_t>(access)];
  if (!of_one.is_computed) {
    Work one;
    (access == Access::kLoad ? AddLoads : AddStores)(one, 1, type, machine_);
    of_one = {ListOf(one), true};
  }
  Add(work, of_one.ops, elements);
}

void RegionWorkEstimator::AddStoresOf(const Instr& root, Work& work) {
  const Shape& shape = root.shape();
  for (const Shape& part : shape.IsTuple() ? std::span(shape.elements()) : std::span(&shape, 1)) {
    double stored = IsPartialUpdate(root)
                        ? ElementsOf(*root.operand(root.op() == Op::kScatter ? 2 : 1))
                        : static_cast<double>(part.ElementCount());
    work.writes += stored * static_cast<double>(part.ByteSize()) /
                   std::max(static_cast<double>(part.ElementCount()), 1.0);
    AddAccess(Access::kStore, part.type(), stored, work);
  }
}

Work RegionWorkEstimator::EstimateWork(const FusedRegion& region) {
  CountEvaluations(region);
  Work work;
  double most = 1;
  for (const Instr* instr : region.instrs) {
    const InstrWork& instr_work = instr_work_[instr];
    // For a reduction, count the reduced elements.
    double times = instr_work.evals() * instr_work.reduced_elements;
    most = std::max(most, times);
    Add(work, instr_work.ops_per_element, times);
  }
  for (const Instr* input : region.inputs) {
    const InstrWork& instr_work = instr_work_[input];
    double loads = instr_work.evals();
    work.reads += instr_work.bytes * std::min(1.0, loads / instr_work.elements);
    if (input->shape().IsArray()) AddAccess(Access::kLoad, input->shape().type(), loads, work);
  }
  for (const Instr* root : region.roots) AddStoresOf(*root, work);
  work.tasks = std::max(1.0, most / kElementsOfTask);
  if (machine_.is_gpu()) work.tasks = std::min(work.tasks, MaxBlocksOf(region));
  if (machine_.is_gpu()) {
    work.threads = kTypicalThreads;
    work.thread_registers = kTypicalThreadRegisters;
  }
  return work;
}

}  // namespace tokamak
