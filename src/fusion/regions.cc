#include "fusion/regions.h"

#include <algorithm>

#include "fusion/values.h"
#include "gen/contract.h"
#include "gen/element.h"
#include "gen/gpu/gpu.h"
#include "gen/reducer.h"
#include "gen/scan.h"
#include "gen/select_scatter.h"
#include "gen/window.h"
#include "support/hash.h"

namespace tokamak {
namespace {

// Operations per element up to which losing vectorization in a scalar scan is acceptable. Chosen.
constexpr int64_t kFewFlops = 8;
// Sites at which data movement may be recomputed per element. Chosen.
constexpr int64_t kMaxSites = 16;
// How often a contraction may recompute a cheap operand instead of storing it. Chosen.
constexpr int64_t kMaxTimes = 4;
// Instructions that one reachability query may visit, beyond which it answers yes; after
// kFewVisited it computes a tighter bound for the walk (LastPositionBefore). Chosen: bounds
// planning time.
constexpr size_t kRegionMaxVisited = 4000, kFewVisited = 32;

// Free to recompute: data movement.
bool CostsNothing(const Instr& instr) {
  return instr.info().Is(kDataMovement) || instr.op() == Op::kIota || instr.op() == Op::kConstant;
}

bool IsCheap(const Instr& instr) {
  return CostsNothing(instr) || (instr.info().Is(kElementwise) &&
                                 instr.info().flops_per_element <= 2 && instr.op() != Op::kMap);
}

// Whether the region has a vectorized scan.
bool InVectors(const OpenRegion& open, const Machine& machine) {
  return std::any_of(open.instrs.begin(), open.instrs.end(), [&](const Instr* instr) {
    return instr->op() == Op::kScan && ScanOf(*instr).InVectors(machine);
  });
}

// How many windows read each element of the input, rounded up.
int64_t TimesSeen(const Instr& window) {
  int64_t seen = TapsOf(window) * CountOf(window), of = CountOf(*window.operand(0));
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
    if (!instr->shape().IsArray() || CountOf(*instr) < CountOf(*reduce.operand(0))) continue;
    if (!found.insert(instr).second || IsReduction(*instr)) continue;
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

// Whether a broadcast repeats each element over at least kLongRow contiguous elements of its
// result.
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
  return row >= kLongRow;
}

// Whether all users in the region need one element of the instruction per long row: the generator
// then computes it outside of the loop over the row.
bool IsOncePerRow(const Instr& instr, const OpenRegion& open, int depth) {
  // Recursion limit. Chosen: bounds planning time.
  constexpr int kMaxDepth = 16;
  if (depth > kMaxDepth) return false;
  for (const Instr* user : instr.users()) {
    if (!open.costs.contains(user)) continue;
    if (user->op() == Op::kBroadcast) {
      if (!RepeatsAlongRows(*user)) return false;
      continue;
    }
    bool same_shape = user->info().Is(kElementwise) || user->op() == Op::kReshape;
    if (!same_shape || CountOf(*user) != CountOf(instr) || !IsOncePerRow(*user, open, depth + 1))
      return false;
  }
  return true;
}

// Whether a contraction's operand is smaller than the array it is computed from, and another kernel
// computes that array: better that kernel stores the smaller one.
bool WidensPanels(const Instr& instr, const OpenRegion& open) {
  bool feeds = std::any_of(instr.users().begin(), instr.users().end(), [&](const Instr* user) {
    return user->op() == Op::kDot && open.costs.contains(user);
  });
  if (!feeds || open.shape.kind != GeneratorKind::kContract) return false;
  return std::any_of(instr.operands().begin(), instr.operands().end(), [&](const Instr* operand) {
    return operand->op() != Op::kParameter && operand->op() != Op::kConstant &&
           operand->shape().IsArray() && operand->shape().ByteSize() > instr.shape().ByteSize();
  });
}

// Whether the left operand of the region's last contraction is computed from the instruction.
bool FeedsLeft(const Instr& instr, const OpenRegion& open) {
  auto dot = std::find_if(open.instrs.begin(), open.instrs.end(),
                          [](const Instr* inside) { return inside->op() == Op::kDot; });
  if (dot == open.instrs.end()) return false;
  std::vector<const Instr*> behind = {(*dot)->operand(0)};
  std::unordered_set<const Instr*> seen;
  while (!behind.empty()) {
    const Instr* next = behind.back();
    behind.pop_back();
    if (next == &instr) return true;
    if (!open.costs.contains(next) || !seen.insert(next).second) continue;
    for (const Instr* operand : next->operands()) behind.push_back(operand);
  }
  return false;
}

}  // namespace

const std::string& KernelProbes::WhyNot(const FusedRegion& region, GeneratorKind kind) {
  Hasher hasher;
  hasher.Add(hasher_.Of(region));
  hasher.Add(kind);
  auto [it, is_new] = known_.try_emplace(hasher.digest());
  if (!is_new) return it->second;
  BuildOutcome outcome = BuildRegion(region, kind, machine_, "probe");
  if (!outcome.built)
    it->second = outcome.why_not.empty() ? "no generator supports it" : outcome.why_not;
  return it->second;
}

OpenRegions::OpenRegions(const Computation& computation, const std::vector<Instr*>& order,
                         const Machine& machine, KernelProbes& probes)
    : machine_(machine),
      probes_(probes),
      members_(computation),
      positions_(computation),
      seen_(computation, 0) {
  for (size_t i = 0; i < order.size(); ++i) positions_[order[i]] = i;
}

bool OpenRegions::IsNeededAsArray(const Instr& instr) const {
  if (instr.parent()->root() == &instr || instr.is_control_predecessor()) return true;
  return std::any_of(instr.users().begin(), instr.users().end(), [&](const Instr* user) {
    // The kernel of an update does not read the array that it updates.
    bool updated = IsUpdate(*user) && user->operand(0) == &instr;
    return members_[user].empty() || updated;
  });
}

std::vector<int> OpenRegions::ConsumerRegions(const Instr& instr) const {
  std::vector<int> regions;
  std::vector<const Instr*> users(instr.users().begin(), instr.users().end());
  std::sort(users.begin(), users.end(),
            [&](const Instr* x, const Instr* y) { return positions_[x] < positions_[y]; });
  for (const Instr* user : users)
    for (int region : members_[user])
      if (std::find(regions.begin(), regions.end(), region) == regions.end())
        regions.push_back(region);
  return regions;
}

void OpenRegions::Begin(const Instr& instr) {
  OpenRegion open;
  open.instrs = {&instr};
  open.roots = {&instr};
  open.costs[&instr] = {};
  open.flops = instr.info().flops_per_element;
  open.operands = static_cast<int64_t>(instr.operand_count());
  open.shape = BeginShape(instr, machine_);
  members_[&instr].push_back(static_cast<int>(regions_.size()));
  regions_.push_back(std::move(open));
  ends_.push_back({positions_[&instr], positions_[&instr]});
}

OpenRegion OpenRegions::With(const Instr& instr, int region) const {
  OpenRegion open = regions_[static_cast<size_t>(region)];
  Grow(open, instr, CostIn(instr, region));
  return open;
}

void OpenRegions::Grow(OpenRegion& open, const Instr& instr, OpenRegion::Cost cost) const {
  open.costs[&instr] = cost;
  open.instrs.push_back(&instr);
  open.flops += instr.info().flops_per_element;
  open.operands += static_cast<int64_t>(instr.operand_count());
  GrowShape(open.shape, instr, machine_);
}

// Counts inputs. The cheap bound: each internal value that is not a root is an operand of another
// one, so it is not an input.
bool OpenRegions::ReadsTooMuch(const Instr& instr, int region, bool copied) const {
  const OpenRegion& open = regions_[static_cast<size_t>(region)];
  if (!copied && open.instrs.size() < 8) return false;
  auto inside = static_cast<int64_t>(open.instrs.size() + 1 - open.roots.size());
  auto operands = open.operands + static_cast<int64_t>(instr.operand_count());
  if (operands - inside <= static_cast<int64_t>(kMaxInputs)) return false;
  // Elements of tuples are separate inputs.
  size_t inputs = 0;
  bool has_parts = instr.op() == Op::kGetTupleElement;
  ++walk_;
  seen_[&instr] = walk_;
  for (const Instr* in : open.instrs) {
    seen_[in] = walk_;
    has_parts = has_parts || in->op() == Op::kGetTupleElement;
  }
  auto count = [&](const Instr& consumer) {
    for (const Instr* operand : consumer.operands()) {
      if (seen_[operand] == walk_ || IsImmediate(*operand)) continue;
      seen_[operand] = walk_;
      ++inputs;
    }
  };
  for (const Instr* in : open.instrs) count(*in);
  count(instr);
  if (!has_parts && inputs <= kMaxInputs) return false;
  return FinishOpen(With(instr, region)).inputs.size() > kMaxInputs;
}

// Elementwise users need the value at the index at which they are computed themselves; each user
// that moves elements needs it at another index.
OpenRegion::Cost OpenRegions::CostIn(const Instr& instr, int region) const {
  const OpenRegion& open = regions_[static_cast<size_t>(region)];
  OpenRegion::Cost cost{0, false};
  int64_t same_shape = 0;
  std::unordered_set<const Instr*> seen;
  for (const Instr* user : instr.users()) {
    auto it = open.costs.find(user);
    if (it == open.costs.end() || !seen.insert(user).second) continue;
    bool moves =
        user->info().Is(kDataMovement) && user->op() != Op::kReshape && user->op() != Op::kCopy;
    bool packed = user->op() == Op::kDot && open.shape.kind == GeneratorKind::kContract;
    cost.per_product |= it->second.per_product || (user->op() == Op::kDot && !packed);
    for (size_t i = 0; packed && i < user->operand_count(); ++i)
      if (user->operand(i) == &instr)
        cost.times = std::max(cost.times, TimesMade(*user, i, machine_));
    cost.times = std::max(cost.times, it->second.times);
    cost.in_vain = cost.in_vain || it->second.in_vain || user->op() == Op::kConcatenate ||
                   user->op() == Op::kPad;
    if (user->op() == Op::kSelectAndScatter) {
      cost.sites += it->second.sites * TapsAsked(*user);
    } else if (user->op() == Op::kReduceWindow) {
      cost.sites += it->second.sites * TimesSeen(*user);
    } else if (moves) {
      cost.sites += it->second.sites;
    } else {
      same_shape = std::max(same_shape, it->second.sites);
    }
  }
  cost.sites = std::min<int64_t>(std::max<int64_t>(cost.sites + same_shape, 1), 1 << 20);
  return cost;
}

void OpenRegions::Add(const Instr& instr, int region) {
  Grow(regions_[static_cast<size_t>(region)], instr, CostIn(instr, region));
  members_[&instr].push_back(region);
}

void OpenRegions::AddRoot(const Instr& instr, int region) {
  Add(instr, region);
  regions_[static_cast<size_t>(region)].roots.push_back(&instr);
  size_t& first = ends_[static_cast<size_t>(region)].first_root;
  first = std::min(first, positions_[&instr]);
}

FusedRegion OpenRegions::FinishOpen(const OpenRegion& open) const {
  return OrderedRegion(open.instrs, open.roots, positions_);
}

FusedRegion OpenRegions::Finish(int region) const {
  return FinishOpen(regions_[static_cast<size_t>(region)]);
}

std::string OpenRegions::WhyNotReduction(const Instr& instr, int region) const {
  const OpenRegion& open = regions_[static_cast<size_t>(region)];
  for (const Instr* root : open.roots)
    if (IsUpdate(*root)) return "an in-place update cannot share a kernel with a reduction";
  OpenRegion with = With(instr, region);
  if (with.shape.kind == GeneratorKind::kRows && instr.op() != Op::kReduce)
    return "a contraction cannot share a kernel with row reductions";
  if ((with.shape.kind == GeneratorKind::kScan) != (instr.op() == Op::kScan))
    return "a scan cannot share a kernel with other reductions";
  if (instr.op() == Op::kScan && !ScanOf(instr).InVectors(machine_) && open.flops > kFewFlops)
    return "its consumers would no longer be vectorized";
  // The generator decides whether the result is used at the index where it is computed.
  return probes_.WhyNot(FinishOpen(with), with.shape.kind);
}

std::string OpenRegions::WhyNot(const Instr& instr, int region, size_t copies) const {
  const OpenRegion& open = regions_[static_cast<size_t>(region)];
  if (open.instrs.size() >= kMaxInstrs) return "the region has reached the limit of instructions";
  if (IsUpdate(instr)) return "an in-place update must be the root of its kernel";
  bool sorts = open.shape.kind == GeneratorKind::kSort;
  if (instr.op() == Op::kSort ||
      (sorts && (IsReduction(instr) || !machine_.is_gpu() || !gpu::LoadsOnce(*open.roots[0]))))
    return "a sort needs its own kernel";
  // Reading the very slice that is overwritten is fine; any other read might see new values.
  const Instr& root = *open.roots[0];
  if (IsUpdate(root) && (root.op() == Op::kScatter || instr.op() != Op::kDynamicSlice))
    for (const Instr* operand : instr.operands())
      if (operand == root.operand(0)) return "it reads the array that the region overwrites";
  if (open.shape.kind == GeneratorKind::kScan && !IsCheap(instr) && !InVectors(open, machine_))
    return "it would no longer be vectorized";
  if (IsReduction(instr) || instr.shape().IsTuple()) {
    if (copies > 1) return "it would be reduced " + std::to_string(copies) + " times";
    return WhyNotReduction(instr, region);
  }
  if (copies > 1 && !IsCheap(instr))
    return "it would be computed " + std::to_string(copies) + " times";
  int64_t count = CountOf(instr);
  if (count > 1 && open.shape.domain / 2 > count && !CostsNothing(instr) && !IsCheap(instr) &&
      !IsOncePerRow(instr, open, 0))
    return "each of its elements would be computed " + std::to_string(open.shape.domain / count) +
           " times";
  for (const Instr* user : instr.users()) {
    const std::vector<int>& in = members_[user];
    if (std::find(in.begin(), in.end(), region) == in.end()) continue;
    if (user->op() == Op::kReduceWindow && !IsLongWindow(*user) &&
        instr.info().flops_per_element * TapsOf(*user) > kMaxFlops)
      return "it would be expanded for each window element";
  }
  if (WidensPanels(instr, open) && !MayMakeRows(instr, region, false))
    return "its operands are larger and would be stored instead";
  OpenRegion::Cost cost = CostIn(instr, region);
  bool repeats = instr.op() == Op::kBroadcast || instr.op() == Op::kReshape ||
                 instr.op() == Op::kIota || instr.op() == Op::kConstant;
  if (cost.times > (repeats ? INT64_MAX : IsCheap(instr) ? kMaxTimes : 1))
    return "each of its elements would be computed " + std::to_string(cost.times) +
           " times for the contraction";
  if (cost.per_product && !CostsNothing(instr))
    return "each of its elements would be computed for each use by the contraction";
  if (cost.in_vain && !IsCheap(instr))
    return "it would be computed for all elements, but only some are needed";
  if (cost.sites > (CostsNothing(instr) ? kMaxSites : IsCheap(instr) ? 4 : 1))
    return "it is needed at " + std::to_string(cost.sites) + " indices per element";
  if (open.flops + instr.info().flops_per_element > kMaxFlops)
    return "the region has reached the limit of operations per element";
  return ReadsTooMuch(instr, region, copies > 1) ? "the region reads too many arrays" : "";
}

// Whether the region can compute an operand of its contraction together with the row reductions
// that the operand depends on, none of which is needed elsewhere. `kept`: the operand itself is
// also stored, and values that it is computed from may be loaded.
bool OpenRegions::MayMakeRows(const Instr& instr, int region, bool kept) const {
  const OpenRegion& before = regions_[static_cast<size_t>(region)];
  OpenRegion with = before;
  std::unordered_set<const Instr*> stored;
  auto collect = [&] {
    with = before;
    for (std::vector<const Instr*> open = {&instr}; !open.empty();) {
      const Instr* next = open.back();
      open.pop_back();
      bool behind = next->info().Is(kElementwise) || next->op() == Op::kBroadcast ||
                    next->op() == Op::kReshape || IsRowReduction(*next);
      if (!behind || stored.contains(next) || with.instrs.size() >= kMaxInstrs ||
          !with.costs.emplace(next, OpenRegion::Cost()).second)
        continue;
      with.instrs.push_back(next);
      for (const Instr* operand : next->operands()) open.push_back(operand);
    }
  };
  collect();
  for (size_t i = before.instrs.size(); i < with.instrs.size(); ++i)
    for (const Instr* user : with.instrs[i]->users())
      if (!with.costs.contains(user) && !IsCheap(*with.instrs[i]) && with.instrs[i] != &instr)
        stored.insert(with.instrs[i]);
  if (!stored.empty() && !kept) return false;
  collect();
  if (kept) with.roots.push_back(&instr);
  bool reduces =
      std::any_of(with.instrs.begin() + static_cast<int64_t>(before.instrs.size()),
                  with.instrs.end(), [](const Instr* made) { return made->op() == Op::kReduce; });
  return reduces && probes_.WhyNot(FinishOpen(with), with.shape.kind).empty();
}

std::string OpenRegions::WhyNotRoot(const Instr& instr, int region) const {
  const OpenRegion& open = regions_[static_cast<size_t>(region)];
  bool contracts = open.shape.kind == GeneratorKind::kContract;
  bool rows = open.shape.kind == GeneratorKind::kRows || contracts;
  if (open.shape.kind == GeneratorKind::kLoop && ElementsOf(instr) != open.shape.domain)
    return "its element count differs from that of the region's roots";
  if (IsUpdate(instr) || instr.shape().IsTuple()) return "it needs its own kernel";
  if (IsReduction(instr) && (!rows || contracts))
    return "a reduction with other consumers needs its own kernel";
  if (CostsNothing(instr)) return "it only moves data";
  if (open.shape.kind != GeneratorKind::kLoop && !rows)
    return "only loop and row kernels can store intermediate values";
  for (const Instr* root : open.roots)
    if (IsUpdate(*root)) return "an in-place update must be the only root of its kernel";
  if (IsNeededInside(instr, region)) return "cycle: a consumer outside the region is needed inside";
  if (contracts) {
    bool made = FeedsLeft(instr, open) && MayMakeRows(instr, region, true);
    return made ? "" : "a contraction can store only the rows of its left operand";
  }
  if (std::string why = WhyNot(instr, region, 1); !why.empty() || !rows) return why;
  return WhyNotBuilt(With(instr, region), instr);
}

std::string OpenRegions::WhyNotBuilt(OpenRegion with, const Instr& root) const {
  with.roots.push_back(&root);
  return probes_.WhyNot(FinishOpen(with), with.shape.kind);
}

std::string OpenRegions::WhyNotBeside(const Instr& instr, int region) const {
  const OpenRegion& open = regions_[static_cast<size_t>(region)];
  if (instr.info().Is(kElementwise)) return WhyNotBesideLoop(instr, region);
  if (instr.op() != Op::kReduce || instr.shape().IsTuple()) return "it is not a reduction";
  if (open.instrs.size() >= kMaxInstrs) return "the region has reached the limit of instructions";
  if (open.shape.kind != KindOfReduction(instr, machine_))
    return "the region uses another reduction generator";
  const Instr* like = nullptr;
  for (const Instr* root : open.roots)
    if (root->op() == Op::kReduce) like = root;
  if (like == nullptr || like->operand(0)->shape().dims() != instr.operand(0)->shape().dims() ||
      like->attrs<DimensionsAttrs>().dimensions != instr.attrs<DimensionsAttrs>().dimensions)
    return "it reduces other dimensions or another shape";
  if (!ShareAnArray(*like, instr)) return "it reads no array that the region reads";
  if (Reaches(instr, region)) return "the region needs it";
  return WhyNotBuilt(With(instr, region), instr);
}

std::vector<const Instr*> OpenRegions::ExpensiveProducers(std::vector<const Instr*> open,
                                                          int64_t count) const {
  // Instructions visited at most. Chosen: bounds planning time.
  constexpr size_t kLookAt = 256;
  std::vector<const Instr*> found;
  ++walk_;
  for (size_t looked_at = 0; !open.empty() && looked_at < kLookAt;) {
    const Instr* instr = open.back();
    open.pop_back();
    if (!instr->shape().IsArray() || CountOf(*instr) != count || seen_[instr] == walk_) continue;
    seen_[instr] = walk_;
    ++looked_at;
    if (!instr->info().Is(kElementwise)) continue;
    if (!IsCheap(*instr)) found.push_back(instr);
    for (const Instr* operand : instr->operands()) open.push_back(operand);
  }
  return found;
}

std::string OpenRegions::WhyNotBesideLoop(const Instr& instr, int region) const {
  const OpenRegion& open = regions_[static_cast<size_t>(region)];
  if (open.shape.kind != GeneratorKind::kLoop) return "the region is not an elementwise loop";
  if (open.instrs.size() >= kMaxInstrs) return "the region has reached the limit of instructions";
  for (const Instr* root : open.roots)
    if (IsUpdate(*root) || !root->info().Is(kElementwise) ||
        root->shape().dims() != instr.shape().dims())
      return "the region iterates over another shape";
  int64_t count = CountOf(instr);
  std::vector<const Instr*> own = ExpensiveProducers({&instr}, count);
  std::vector<const Instr*> others = ExpensiveProducers(open.instrs, count);
  ++walk_;
  for (const Instr* expensive : others) seen_[expensive] = walk_;
  auto is_other = [&](const Instr* expensive) { return seen_[expensive] == walk_; };
  if (std::none_of(own.begin(), own.end(), is_other)) return "they compute nothing in common";
  std::erase_if(own, is_other);
  int64_t flops = 0;
  for (const std::vector<const Instr*>* list : {&own, &others})
    for (const Instr* expensive : *list) flops += expensive->info().flops_per_element;
  if (flops > kMaxFlops) return "the region has reached the limit of operations per element";
  return Reaches(instr, region) ? "the region needs it" : "";
}

bool OpenRegions::IsNeededInside(const Instr& instr, int region) const {
  for (const Instr* user : instr.users()) {
    bool reaches = members_[user].empty() && Reaches(*user, region);
    for (int other : members_[user]) {
      if (other == region) continue;  // computed there too, perhaps
      for (const Instr* root : regions_[static_cast<size_t>(other)].roots)
        reaches = reaches || Reaches(*root, region);
    }
    if (reaches) return true;
  }
  return false;
}

// A later instruction leads to the region only through a region that starts later and has an
// earlier root. Regions are created from the last instruction to the first.
size_t OpenRegions::LastPositionBefore(int region) const {
  size_t last = ends_[static_cast<size_t>(region)].last;
  if (static_cast<size_t>(region) > kRegionMaxVisited) return SIZE_MAX;
  for (auto i = static_cast<size_t>(region); i-- > 0;)
    if (ends_[i].first_root <= last) last = std::max(last, ends_[i].last);
  return last;
}

// Whether the region depends on `from`, directly or through other regions.
bool OpenRegions::Reaches(const Instr& from, int region) const {
  ++walk_;
  seen_regions_.resize(regions_.size(), 0);
  size_t count = 0, last = SIZE_MAX;
  std::vector<const Instr*> open;
  auto add = [&](const Instr* instr) {
    if (seen_[instr] == walk_ || positions_[instr] > last) return;
    seen_[instr] = walk_;
    open.push_back(instr);
  };
  add(&from);
  while (!open.empty()) {
    const Instr* instr = open.back();
    open.pop_back();
    if (++count > kRegionMaxVisited) return true;
    if (count == kFewVisited) last = LastPositionBefore(region);
    for (int in : members_[instr]) {
      if (in == region) return true;
      uint32_t& seen = seen_regions_[static_cast<size_t>(in)];
      if (seen == walk_) continue;
      seen = walk_;
      for (const Instr* root : regions_[static_cast<size_t>(in)].roots) add(root);
    }
    for (const Instr* user : instr->users()) add(user);
  }
  return false;
}

}  // namespace tokamak
