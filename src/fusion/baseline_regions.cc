#include "fusion/baseline_regions.h"

#include <algorithm>

#include "fusion/instr_predicates.h"
#include "fusion/make_region.h"
#include "fusion/region_limits.h"
#include "gen/contract.h"
#include "gen/element.h"
#include "gen/gpu/operand_view.h"
#include "gen/reducer.h"
#include "gen/scan.h"
#include "gen/select_scatter.h"
#include "gen/sort_schedule.h"
#include "gen/window.h"
#include "support/hash.h"

namespace tokamak {
namespace {

// Operations per element up to which losing vectorization in a scalar scan is acceptable. Chosen:
// as scalars they cost about what storing and reloading the scan's result does.
constexpr int64_t kFewOps = 8;
// Elements of a row from which a broadcast operand counts as computed once per row: the generator
// hoists it out of the loop over the row. Chosen: its cost per element is then a few percent.
constexpr int64_t kMinHoistedRowLength = 64;
// Indices at which data movement, or another cheap value, may be recomputed per element of the
// domain. Chosen: each index repeats the code; up to here recomputing costs less than a store and
// the loads.
constexpr int64_t kMaxIndicesPerElement = 16, kMaxCheapIndicesPerElement = 4;
// Operations of a cheap elementwise instruction, at most. Chosen: computing it again costs less
// than a load.
constexpr int64_t kCheapOps = 2;
// How many times each element of a value that is not cheap may be computed. Chosen: a third time
// costs more than storing and loading it.
constexpr int64_t kMaxRepetitions = 2;
// Indices per element at which counting them saturates. Chosen: above both limits.
constexpr int64_t kManyIndicesPerElement = 1 << 20;
// Instructions of a region from which its inputs are counted. Chosen: bounds planning time.
constexpr size_t kMinCountedInstrs = 8;
// How often a contraction may recompute a cheap operand instead of storing it. Chosen: each panel
// of the other side repeats it, and a few repetitions cost less than the traffic.
constexpr int64_t kMaxPanelRepetitions = 4;
// Instructions that one reachability query may visit, beyond which it answers yes; after
// kFewVisited it computes a tighter bound for the walk (LastDependencyPosition). Chosen: bounds
// planning time.
constexpr size_t kRegionMaxVisited = 4000, kFewVisited = 32;

// Free to recompute: data movement.
bool CostsNothing(const Instr& instr) {
  return instr.info().Is(kDataMovement) || instr.op() == Op::kIota || instr.op() == Op::kConstant;
}

bool IsCheap(const Instr& instr) {
  return CostsNothing(instr) ||
         (instr.info().Is(kElementwise) && instr.info().flops_per_element <= kCheapOps &&
          instr.op() != Op::kMap);
}

// Whether the region has a vectorized scan.
bool InVectors(const GrowingRegion& growing, const Machine& machine) {
  return std::any_of(growing.instrs.begin(), growing.instrs.end(), [&](const Instr* instr) {
    return instr->op() == Op::kScan && ScanOf(*instr).RunsInParallelLanes(machine);
  });
}

// How many windows read each element of the input, rounded up.
int64_t TimesSeen(const Instr& window) {
  int64_t seen = ReadsPerElement(window) * ResultElementCount(window),
          of = ResultElementCount(*window.operand(0));
  return std::max<int64_t>(1, (seen + of - 1) / of);
}

// Arrays at least as large as a reduction's input from which it is computed (a bounded walk).
std::unordered_set<const Instr*> ArraysBehind(const Instr& reduce) {
  // Arrays found at most. Chosen: bounds planning time.
  constexpr size_t kLookAt = 64;
  std::unordered_set<const Instr*> found;
  std::vector<const Instr*> open = {reduce.operand(0)};
  while (!open.empty() && found.size() < kLookAt) {
    const Instr* instr = open.back();
    open.pop_back();
    if (!instr->shape().IsArray() ||
        ResultElementCount(*instr) < ResultElementCount(*reduce.operand(0)))
      continue;
    if (!found.insert(instr).second || IsReduceDotOrScan(*instr)) continue;
    if (instr->info().Is(kElementwise) || instr->info().Is(kDataMovement))
      for (const Instr* operand : instr->operands()) open.push_back(operand);
  }
  return found;
}

bool ShareAnArray(const Instr& x, const Instr& y) {
  std::unordered_set<const Instr*> of_x = ArraysBehind(x), of_y = ArraysBehind(y);
  return std::any_of(of_x.begin(), of_x.end(), [&](const Instr* instr) {
    return of_y.contains(instr) && instr->op() != Op::kConstant && instr->op() != Op::kIota;
  });
}

// Whether a broadcast repeats each element over at least kMinHoistedRowLength contiguous elements
// of its result.
bool RepeatsAlongRows(const Instr& broadcast) {
  const Shape &from = broadcast.operand(0)->shape(), &to = broadcast.shape();
  const Dims& dimensions = broadcast.attrs<DimensionsAttrs>().dimensions;
  int64_t next = 0, row = to.ElementCount();
  for (size_t i = 0; i < dimensions.size(); ++i) {
    if (from.dim(i) == 1) continue;
    while (next < dimensions[i] && to.dim(static_cast<size_t>(next)) == 1) ++next;
    if (dimensions[i] != next) return false;
    row /= to.dim(static_cast<size_t>(next++));
  }
  return row >= kMinHoistedRowLength;
}

// Whether all users in the region need one element of the instruction per long row: the generator
// then computes it outside of the loop over the row.
bool IsOncePerRow(const Instr& instr, const GrowingRegion& growing, int depth) {
  // Levels of users to look through. Chosen: bounds planning time.
  constexpr int kMaxUserDepth = 16;
  if (depth > kMaxUserDepth) return false;
  for (const Instr* user : instr.users()) {
    if (!growing.evaluations.contains(user)) continue;
    if (user->op() == Op::kBroadcast) {
      if (!RepeatsAlongRows(*user)) return false;
      continue;
    }
    bool same_shape = user->info().Is(kElementwise) || user->op() == Op::kReshape;
    if (!same_shape || ResultElementCount(*user) != ResultElementCount(instr) ||
        !IsOncePerRow(*user, growing, depth + 1))
      return false;
  }
  return true;
}

// Whether a contraction's operand is smaller than the array it is computed from, and another kernel
// computes that array: better that kernel stores the smaller one.
bool WidensPanels(const Instr& instr, const GrowingRegion& growing) {
  bool feeds = std::any_of(instr.users().begin(), instr.users().end(), [&](const Instr* user) {
    return user->op() == Op::kDot && growing.evaluations.contains(user);
  });
  if (!feeds || growing.choice.kind != GeneratorKind::kContract) return false;
  return std::any_of(instr.operands().begin(), instr.operands().end(), [&](const Instr* operand) {
    return operand->op() != Op::kParameter && operand->op() != Op::kConstant &&
           operand->shape().IsArray() && operand->shape().ByteSize() > instr.shape().ByteSize();
  });
}

// Whether the left operand of the region's last contraction is computed from the instruction.
bool FeedsLeft(const Instr& instr, const GrowingRegion& growing) {
  auto dot = std::find_if(growing.instrs.begin(), growing.instrs.end(),
                          [](const Instr* inside) { return inside->op() == Op::kDot; });
  if (dot == growing.instrs.end()) return false;
  std::vector<const Instr*> behind = {(*dot)->operand(0)};
  std::unordered_set<const Instr*> seen;
  while (!behind.empty()) {
    const Instr* next = behind.back();
    behind.pop_back();
    if (next == &instr) return true;
    if (!growing.evaluations.contains(next) || !seen.insert(next).second) continue;
    for (const Instr* operand : next->operands()) behind.push_back(operand);
  }
  return false;
}

}  // namespace

const std::string& KernelFeasibilityCache::WhyNoKernel(const FusedRegion& region,
                                                       GeneratorKind kind) {
  Hasher hasher;
  hasher.Add(hasher_.HashOf(region));
  hasher.Add(kind);
  auto [it, is_new] = reasons_.try_emplace(hasher.digest());
  if (!is_new) return it->second;
  BuildOutcome outcome = BuildRegion(region, kind, machine_, "probe");
  if (!outcome.built)
    it->second = outcome.why_not.empty() ? "no generator supports it" : outcome.why_not;
  return it->second;
}

BaselineRegions::BaselineRegions(const Computation& computation,
                                 const std::vector<Instr*>& topological_order,
                                 const Machine& machine, KernelFeasibilityCache& feasibility)
    : machine_(machine),
      feasibility_(feasibility),
      regions_of_(computation),
      positions_(computation),
      last_visits_(computation, 0) {
  for (size_t i = 0; i < topological_order.size(); ++i) positions_[topological_order[i]] = i;
}

bool BaselineRegions::MustBeStored(const Instr& instr) const {
  if (instr.parent()->root() == &instr || instr.is_control_predecessor()) return true;
  return std::any_of(instr.users().begin(), instr.users().end(), [&](const Instr* user) {
    // The kernel of an update does not read the array that it updates.
    bool updated = IsPartialUpdate(*user) && user->operand(0) == &instr;
    return regions_of_[user].empty() || updated;
  });
}

std::vector<int> BaselineRegions::ConsumerRegions(const Instr& instr) const {
  std::vector<int> regions;
  std::vector<const Instr*> users(instr.users().begin(), instr.users().end());
  std::sort(users.begin(), users.end(),
            [&](const Instr* x, const Instr* y) { return positions_[x] < positions_[y]; });
  for (const Instr* user : users)
    for (int region : regions_of_[user])
      if (std::find(regions.begin(), regions.end(), region) == regions.end())
        regions.push_back(region);
  return regions;
}

void BaselineRegions::StartRegion(const Instr& instr) {
  GrowingRegion growing;
  growing.instrs = {&instr};
  growing.roots = {&instr};
  growing.evaluations[&instr] = {};
  growing.ops_per_element = instr.info().flops_per_element;
  growing.operand_count = static_cast<int64_t>(instr.operand_count());
  growing.choice = InitialChoice(instr, machine_);
  regions_of_[&instr].push_back(static_cast<int>(regions_.size()));
  regions_.push_back(std::move(growing));
  bounds_.push_back({positions_[&instr], positions_[&instr]});
}

GrowingRegion BaselineRegions::CopyWith(const Instr& instr, int region) const {
  GrowingRegion growing = regions_[static_cast<size_t>(region)];
  Grow(growing, instr, EvaluationsIn(instr, region));
  return growing;
}

void BaselineRegions::Grow(GrowingRegion& growing, const Instr& instr,
                           GrowingRegion::Evaluations evaluations) const {
  growing.evaluations[&instr] = evaluations;
  growing.instrs.push_back(&instr);
  growing.ops_per_element += instr.info().flops_per_element;
  growing.operand_count += static_cast<int64_t>(instr.operand_count());
  ExtendChoice(growing.choice, instr, machine_);
}

// Counts inputs. The cheap bound: each internal value that is not a root is an operand of another
// one, so it is not an input.
bool BaselineRegions::ExceedsInputLimit(const Instr& instr, int region, bool is_copied) const {
  const GrowingRegion& growing = regions_[static_cast<size_t>(region)];
  if (!is_copied && growing.instrs.size() < kMinCountedInstrs) return false;
  auto inside = static_cast<int64_t>(growing.instrs.size() + 1 - growing.roots.size());
  auto operands = growing.operand_count + static_cast<int64_t>(instr.operand_count());
  if (operands - inside <= static_cast<int64_t>(kMaxInputs)) return false;
  // Elements of tuples are separate inputs.
  size_t inputs = 0;
  bool has_tuple_elements = instr.op() == Op::kGetTupleElement;
  ++walk_id_;
  last_visits_[&instr] = walk_id_;
  for (const Instr* in : growing.instrs) {
    last_visits_[in] = walk_id_;
    has_tuple_elements = has_tuple_elements || in->op() == Op::kGetTupleElement;
  }
  auto count = [&](const Instr& consumer) {
    for (const Instr* operand : consumer.operands()) {
      if (last_visits_[operand] == walk_id_ || IsImmediate(*operand)) continue;
      last_visits_[operand] = walk_id_;
      ++inputs;
    }
  };
  for (const Instr* in : growing.instrs) count(*in);
  count(instr);
  if (!has_tuple_elements && inputs <= kMaxInputs) return false;
  return FinishGrowing(CopyWith(instr, region)).inputs.size() > kMaxInputs;
}

// Elementwise users need the value at the index at which they are computed themselves; each user
// that moves elements needs it at another index.
GrowingRegion::Evaluations BaselineRegions::EvaluationsIn(const Instr& instr, int region) const {
  const GrowingRegion& growing = regions_[static_cast<size_t>(region)];
  GrowingRegion::Evaluations evaluations{0, false};
  int64_t same_shape = 0;
  std::unordered_set<const Instr*> seen;
  for (const Instr* user : instr.users()) {
    auto it = growing.evaluations.find(user);
    if (it == growing.evaluations.end() || !seen.insert(user).second) continue;
    bool moves =
        user->info().Is(kDataMovement) && user->op() != Op::kReshape && user->op() != Op::kCopy;
    bool packed = user->op() == Op::kDot && growing.choice.kind == GeneratorKind::kContract;
    evaluations.per_multiply_add |=
        it->second.per_multiply_add || (user->op() == Op::kDot && !packed);
    for (size_t i = 0; packed && i < user->operand_count(); ++i)
      if (user->operand(i) == &instr)
        evaluations.panel_repetitions =
            std::max(evaluations.panel_repetitions, RecomputeCount(*user, i, machine_));
    evaluations.panel_repetitions =
        std::max(evaluations.panel_repetitions, it->second.panel_repetitions);
    evaluations.has_unused = evaluations.has_unused || it->second.has_unused ||
                             user->op() == Op::kConcatenate || user->op() == Op::kPad;
    if (user->op() == Op::kSelectAndScatter) {
      evaluations.indices_per_element += it->second.indices_per_element * TapsPerResult(*user);
    } else if (user->op() == Op::kReduceWindow) {
      evaluations.indices_per_element += it->second.indices_per_element * TimesSeen(*user);
    } else if (moves) {
      evaluations.indices_per_element += it->second.indices_per_element;
    } else {
      same_shape = std::max(same_shape, it->second.indices_per_element);
    }
  }
  evaluations.indices_per_element = std::min<int64_t>(
      std::max<int64_t>(evaluations.indices_per_element + same_shape, 1), kManyIndicesPerElement);
  return evaluations;
}

void BaselineRegions::Add(const Instr& instr, int region) {
  Grow(regions_[static_cast<size_t>(region)], instr, EvaluationsIn(instr, region));
  regions_of_[&instr].push_back(region);
}

void BaselineRegions::AddRoot(const Instr& instr, int region) {
  Add(instr, region);
  regions_[static_cast<size_t>(region)].roots.push_back(&instr);
  size_t& earliest = bounds_[static_cast<size_t>(region)].earliest_root_position;
  earliest = std::min(earliest, positions_[&instr]);
}

FusedRegion BaselineRegions::FinishGrowing(const GrowingRegion& growing) const {
  return MakeRegion(growing.instrs, growing.roots, positions_);
}

FusedRegion BaselineRegions::Finish(int region) const {
  return FinishGrowing(regions_[static_cast<size_t>(region)]);
}

std::string BaselineRegions::WhyNotInternalReduceDotOrScan(const Instr& instr, int region) const {
  const GrowingRegion& growing = regions_[static_cast<size_t>(region)];
  for (const Instr* root : growing.roots)
    if (IsPartialUpdate(*root)) return "an in-place update cannot share a kernel with a reduction";
  GrowingRegion with = CopyWith(instr, region);
  if (with.choice.kind == GeneratorKind::kRows && instr.op() != Op::kReduce)
    return "a contraction cannot share a kernel with row reductions";
  if ((with.choice.kind == GeneratorKind::kScan) != (instr.op() == Op::kScan))
    return "a scan cannot share a kernel with other reductions";
  if (instr.op() == Op::kScan && !ScanOf(instr).RunsInParallelLanes(machine_) &&
      growing.ops_per_element > kFewOps)
    return "its consumers would no longer be vectorized";
  // The generator decides whether the result is used at the index where it is computed.
  return feasibility_.WhyNoKernel(FinishGrowing(with), with.choice.kind);
}

std::string BaselineRegions::WhyNotInternal(const Instr& instr, int region,
                                            size_t region_count) const {
  const GrowingRegion& growing = regions_[static_cast<size_t>(region)];
  if (growing.instrs.size() >= kMaxInstrs)
    return "the region has reached the limit of instructions";
  if (IsPartialUpdate(instr)) return "an in-place update must be the root of its kernel";
  bool sorts = growing.choice.kind == GeneratorKind::kSort;
  if (instr.op() == Op::kSort ||
      (sorts && (IsReduceDotOrScan(instr) || !CanFuseProducers(*growing.roots[0], machine_))))
    return "a sort needs its own kernel";
  // Reading the very slice that is overwritten is fine; any other read might see new values.
  const Instr& root = *growing.roots[0];
  if (IsPartialUpdate(root) && (root.op() == Op::kScatter || instr.op() != Op::kDynamicSlice))
    for (const Instr* operand : instr.operands())
      if (operand == root.operand(0)) return "it reads the array that the region overwrites";
  if (growing.choice.kind == GeneratorKind::kScan && !IsCheap(instr) &&
      !InVectors(growing, machine_))
    return "it would no longer be vectorized";
  if (IsReduceDotOrScan(instr) || instr.shape().IsTuple()) {
    if (region_count > 1) return "it would be reduced " + std::to_string(region_count) + " times";
    return WhyNotInternalReduceDotOrScan(instr, region);
  }
  if (region_count > 1 && !IsCheap(instr))
    return "it would be computed " + std::to_string(region_count) + " times";
  int64_t count = ResultElementCount(instr);
  if (count > 1 && growing.choice.domain_size / kMaxRepetitions > count && !CostsNothing(instr) &&
      !IsCheap(instr) && !IsOncePerRow(instr, growing, 0))
    return "each of its elements would be computed " +
           std::to_string(growing.choice.domain_size / count) + " times";
  for (const Instr* user : instr.users()) {
    const std::vector<int>& in = regions_of_[user];
    if (std::find(in.begin(), in.end(), region) == in.end()) continue;
    if (user->op() == Op::kReduceWindow && !IsLongWindow(*user) &&
        instr.info().flops_per_element * ReadsPerElement(*user) > kMaxOpsPerElement)
      return "it would be expanded for each window element";
  }
  // Bulk copies read an operand through a slice of it in place.
  bool is_bulk_view = machine_.async_multiply && instr.op() == Op::kSlice && gpu::IsView(instr);
  if (!is_bulk_view && WidensPanels(instr, growing) &&
      !CanComputeOperandWithRowReductions(instr, region, false))
    return "its operands are larger and would be stored instead";
  GrowingRegion::Evaluations evaluations = EvaluationsIn(instr, region);
  bool repeats = is_bulk_view || instr.op() == Op::kBroadcast || instr.op() == Op::kReshape ||
                 instr.op() == Op::kIota || instr.op() == Op::kConstant;
  if (evaluations.panel_repetitions > (repeats          ? INT64_MAX
                                       : IsCheap(instr) ? kMaxPanelRepetitions
                                                        : 1))
    return "each of its elements would be computed " +
           std::to_string(evaluations.panel_repetitions) + " times for the contraction";
  if (evaluations.per_multiply_add && !CostsNothing(instr))
    return "each of its elements would be computed for each use by the contraction";
  if (evaluations.has_unused && !IsCheap(instr))
    return "it would be computed for all elements, but only some are needed";
  if (evaluations.indices_per_element > (CostsNothing(instr) ? kMaxIndicesPerElement
                                         : IsCheap(instr)    ? kMaxCheapIndicesPerElement
                                                             : 1))
    return "it is needed at " + std::to_string(evaluations.indices_per_element) +
           " indices per element";
  if (growing.ops_per_element + instr.info().flops_per_element > kMaxOpsPerElement)
    return "the region has reached the limit of operations per element";
  return ExceedsInputLimit(instr, region, region_count > 1) ? "the region reads too many arrays"
                                                            : "";
}

bool BaselineRegions::CanComputeOperandWithRowReductions(const Instr& operand, int region,
                                                         bool is_stored) const {
  const GrowingRegion& before = regions_[static_cast<size_t>(region)];
  GrowingRegion with = before;
  std::unordered_set<const Instr*> stored;
  auto collect = [&] {
    with = before;
    for (std::vector<const Instr*> open = {&operand}; !open.empty();) {
      const Instr* next = open.back();
      open.pop_back();
      bool behind = next->info().Is(kElementwise) || next->op() == Op::kBroadcast ||
                    next->op() == Op::kReshape || IsRowReduction(*next);
      if (!behind || stored.contains(next) || with.instrs.size() >= kMaxInstrs ||
          !with.evaluations.emplace(next, GrowingRegion::Evaluations()).second)
        continue;
      with.instrs.push_back(next);
      for (const Instr* next_operand : next->operands()) open.push_back(next_operand);
    }
  };
  collect();
  for (size_t i = before.instrs.size(); i < with.instrs.size(); ++i)
    for (const Instr* user : with.instrs[i]->users())
      if (!with.evaluations.contains(user) && !IsCheap(*with.instrs[i]) &&
          with.instrs[i] != &operand)
        stored.insert(with.instrs[i]);
  if (!stored.empty() && !is_stored) return false;
  collect();
  if (is_stored) with.roots.push_back(&operand);
  bool reduces =
      std::any_of(with.instrs.begin() + static_cast<int64_t>(before.instrs.size()),
                  with.instrs.end(), [](const Instr* made) { return made->op() == Op::kReduce; });
  return reduces && feasibility_.WhyNoKernel(FinishGrowing(with), with.choice.kind).empty();
}

std::string BaselineRegions::WhyNotRoot(const Instr& instr, int region) const {
  const GrowingRegion& growing = regions_[static_cast<size_t>(region)];
  bool contracts = growing.choice.kind == GeneratorKind::kContract;
  bool rows = growing.choice.kind == GeneratorKind::kRows || contracts;
  if (growing.choice.kind == GeneratorKind::kLoop &&
      ComputedElementCount(instr) != growing.choice.domain_size)
    return "its element count differs from that of the region's roots";
  if (IsPartialUpdate(instr) || instr.shape().IsTuple()) return "it needs its own kernel";
  if (IsReduceDotOrScan(instr) && (!rows || contracts))
    return "a reduction with other consumers needs its own kernel";
  if (CostsNothing(instr)) return "it only moves data";
  if (growing.choice.kind != GeneratorKind::kLoop && !rows)
    return "only loop and row kernels can store intermediate values";
  for (const Instr* root : growing.roots)
    if (IsPartialUpdate(*root)) return "an in-place update must be the only root of its kernel";
  if (WouldMakeCycle(instr, region)) return "cycle: a consumer outside the region is needed inside";
  if (contracts) {
    bool made =
        FeedsLeft(instr, growing) && CanComputeOperandWithRowReductions(instr, region, true);
    return made ? "" : "a contraction can store only the rows of its left operand";
  }
  if (std::string why = WhyNotInternal(instr, region, 1); !why.empty() || !rows) return why;
  return WhyBuildFails(CopyWith(instr, region), instr);
}

std::string BaselineRegions::WhyBuildFails(GrowingRegion extended, const Instr& root) const {
  extended.roots.push_back(&root);
  return feasibility_.WhyNoKernel(FinishGrowing(extended), extended.choice.kind);
}

std::string BaselineRegions::WhyNotSiblingRoot(const Instr& instr, int region) const {
  const GrowingRegion& growing = regions_[static_cast<size_t>(region)];
  if (instr.info().Is(kElementwise)) return WhyNotSiblingOfLoop(instr, region);
  if (instr.op() != Op::kReduce || instr.shape().IsTuple()) return "it is not a reduction";
  if (growing.instrs.size() >= kMaxInstrs)
    return "the region has reached the limit of instructions";
  if (growing.choice.kind != GeneratorOfReduceDotOrScan(instr, machine_))
    return "the region uses another reduction generator";
  const Instr* like = nullptr;
  for (const Instr* root : growing.roots)
    if (root->op() == Op::kReduce) like = root;
  if (like == nullptr || like->operand(0)->shape().dims() != instr.operand(0)->shape().dims() ||
      like->attrs<DimensionsAttrs>().dimensions != instr.attrs<DimensionsAttrs>().dimensions)
    return "it reduces other dimensions or another shape";
  if (!ShareAnArray(*like, instr)) return "it reads no array that the region reads";
  if (HasPathTo(instr, region)) return "the region needs it";
  return WhyBuildFails(CopyWith(instr, region), instr);
}

std::vector<const Instr*> BaselineRegions::ExpensiveProducers(std::vector<const Instr*> worklist,
                                                              int64_t element_count) const {
  // Instructions visited at most. Chosen: bounds planning time.
  constexpr size_t kLookAt = 256;
  std::vector<const Instr*> found;
  ++walk_id_;
  for (size_t looked_at = 0; !worklist.empty() && looked_at < kLookAt;) {
    const Instr* instr = worklist.back();
    worklist.pop_back();
    if (!instr->shape().IsArray() || ResultElementCount(*instr) != element_count ||
        last_visits_[instr] == walk_id_)
      continue;
    last_visits_[instr] = walk_id_;
    ++looked_at;
    if (!instr->info().Is(kElementwise)) continue;
    if (!IsCheap(*instr)) found.push_back(instr);
    for (const Instr* operand : instr->operands()) worklist.push_back(operand);
  }
  return found;
}

std::string BaselineRegions::WhyNotSiblingOfLoop(const Instr& instr, int region) const {
  const GrowingRegion& growing = regions_[static_cast<size_t>(region)];
  if (growing.choice.kind != GeneratorKind::kLoop) return "the region is not an elementwise loop";
  if (growing.instrs.size() >= kMaxInstrs)
    return "the region has reached the limit of instructions";
  for (const Instr* root : growing.roots)
    if (IsPartialUpdate(*root) || !root->info().Is(kElementwise) ||
        root->shape().dims() != instr.shape().dims())
      return "the region iterates over another shape";
  int64_t count = ResultElementCount(instr);
  std::vector<const Instr*> own = ExpensiveProducers({&instr}, count);
  std::vector<const Instr*> others = ExpensiveProducers(growing.instrs, count);
  ++walk_id_;
  for (const Instr* expensive : others) last_visits_[expensive] = walk_id_;
  auto is_other = [&](const Instr* expensive) { return last_visits_[expensive] == walk_id_; };
  if (std::none_of(own.begin(), own.end(), is_other)) return "they compute nothing in common";
  std::erase_if(own, is_other);
  int64_t flops = 0;
  for (const std::vector<const Instr*>* list : {&own, &others})
    for (const Instr* expensive : *list) flops += expensive->info().flops_per_element;
  if (flops > kMaxOpsPerElement)
    return "the region has reached the limit of operations per element";
  return HasPathTo(instr, region) ? "the region needs it" : "";
}

bool BaselineRegions::WouldMakeCycle(const Instr& instr, int region) const {
  for (const Instr* user : instr.users()) {
    bool reaches = regions_of_[user].empty() && HasPathTo(*user, region);
    for (int other : regions_of_[user]) {
      if (other == region) continue;  // computed there too, perhaps
      for (const Instr* root : regions_[static_cast<size_t>(other)].roots)
        reaches = reaches || HasPathTo(*root, region);
    }
    if (reaches) return true;
  }
  return false;
}

// A later instruction leads to the region only through a region that starts later and has an
// earlier root. Regions are created from the last instruction to the first.
size_t BaselineRegions::LastDependencyPosition(int region) const {
  size_t last = bounds_[static_cast<size_t>(region)].last_position;
  if (static_cast<size_t>(region) > kRegionMaxVisited) return SIZE_MAX;
  for (auto i = static_cast<size_t>(region); i-- > 0;)
    if (bounds_[i].earliest_root_position <= last) last = std::max(last, bounds_[i].last_position);
  return last;
}

bool BaselineRegions::HasPathTo(const Instr& from, int region) const {
  ++walk_id_;
  last_region_visits_.resize(regions_.size(), 0);
  size_t count = 0, last = SIZE_MAX;
  std::vector<const Instr*> open;
  auto add = [&](const Instr* instr) {
    if (last_visits_[instr] == walk_id_ || positions_[instr] > last) return;
    last_visits_[instr] = walk_id_;
    open.push_back(instr);
  };
  add(&from);
  while (!open.empty()) {
    const Instr* instr = open.back();
    open.pop_back();
    if (++count > kRegionMaxVisited) return true;
    if (count == kFewVisited) last = LastDependencyPosition(region);
    for (int in : regions_of_[instr]) {
      if (in == region) return true;
      uint32_t& seen = last_region_visits_[static_cast<size_t>(in)];
      if (seen == walk_id_) continue;
      seen = walk_id_;
      for (const Instr* root : regions_[static_cast<size_t>(in)].roots) add(root);
    }
    for (const Instr* user : instr->users()) add(user);
  }
  return false;
}

}  // namespace tokamak
