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

// What may as well be computed one by one.
constexpr int64_t kFewFlops = 8;
// Places at which something that only moves elements may be computed.
constexpr int64_t kMaxPlaces = 16;
// Times that something cheap is made again for a contraction, rather than stored.
constexpr int64_t kMaxTimes = 4;
// Instructions that one question about cycles may look at.
constexpr size_t kRegionMaxVisited = 4000, kFewVisited = 32;

// Costs nothing to compute again.
bool CostsNothing(const Instr& instr) {
  return instr.info().Is(kDataMovement) || instr.op() == Op::kIota || instr.op() == Op::kConstant;
}

bool IsCheap(const Instr& instr) {
  return CostsNothing(instr) || (instr.info().Is(kElementwise) &&
                                 instr.info().flops_per_element <= 2 && instr.op() != Op::kMap);
}

// Whether the scan of a region is made of vectors.
bool InVectors(const OpenRegion& open, const Machine& machine) {
  return std::any_of(open.instrs.begin(), open.instrs.end(), [&](const Instr* instr) {
    return instr->op() == Op::kScan && ScanOf(*instr).InVectors(machine);
  });
}

// How often each element is computed that a window looks at.
int64_t TimesSeen(const Instr& window) {
  int64_t seen = TapsOf(window) * CountOf(window), of = CountOf(*window.operand(0));
  return std::max<int64_t>(1, (seen + of - 1) / of);
}

// Arrays as large as a reduction's input that it is computed from, near it.
std::unordered_set<const Instr*> ArraysBehind(const Instr& reduce) {
  constexpr size_t kLookAt = 64;
  std::unordered_set<const Instr*> found;
  std::vector<const Instr*> open = {reduce.operand(0)};
  while (!open.empty() && found.size() < kLookAt) {
    const Instr* instr = open.back();
    open.pop_back();
    if (!instr->shape().IsArray() || CountOf(*instr) < CountOf(*reduce.operand(0))) continue;
    if (!found.insert(instr).second || IsFold(*instr)) continue;
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

// Whether a broadcast repeats each element for a stretch of its result.
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

// Whether all that needs the instruction in a region needs one element of it for a long row:
// computed outside of the loop over the row.
bool IsOncePerRow(const Instr& instr, const OpenRegion& open, int depth) {
  constexpr int kMaxDepth = 16;
  if (depth > kMaxDepth) return false;
  for (const Instr* user : instr.users()) {
    if (!open.costs.contains(user)) continue;
    if (user->op() == Op::kBroadcast) {
      if (!RepeatsAlongRows(*user)) return false;
      continue;
    }
    bool alike = user->info().Is(kElementwise) || user->op() == Op::kReshape;
    if (!alike || CountOf(*user) != CountOf(instr) || !IsOncePerRow(*user, open, depth + 1))
      return false;
  }
  return true;
}

// An operand of a contraction that is smaller than the array it is computed from, which some kernel
// makes: better it makes the smaller one.
bool WidensPanels(const Instr& instr, const OpenRegion& open) {
  bool feeds = std::any_of(instr.users().begin(), instr.users().end(), [&](const Instr* user) {
    return user->op() == Op::kDot && open.costs.contains(user);
  });
  if (!feeds || open.shape.kind != RegionKind::kContract) return false;
  return std::any_of(instr.operands().begin(), instr.operands().end(), [&](const Instr* operand) {
    return operand->op() != Op::kParameter && operand->op() != Op::kConstant &&
           operand->shape().IsArray() && operand->shape().ByteSize() > instr.shape().ByteSize();
  });
}

// Whether the left side of a region's last contraction is computed from the instruction.
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

const std::string& KernelProbes::WhyNot(const Region& region, RegionKind kind) {
  Hasher hasher;
  hasher.Add(hasher_.Of(region));
  hasher.Add(kind);
  auto [it, is_new] = known_.try_emplace(hasher.digest());
  if (!is_new) return it->second;
  BuildOutcome outcome = BuildRegion(region, kind, machine_, "probe");
  if (!outcome.built)
    it->second = outcome.why_not.empty() ? "no generator takes it" : outcome.why_not;
  return it->second;
}

RegionTable::RegionTable(const Computation& computation, const std::vector<Instr*>& order,
                         const Machine& machine, KernelProbes& probes)
    : machine_(machine),
      probes_(probes),
      members_(computation),
      places_(computation),
      seen_(computation, 0) {
  for (size_t i = 0; i < order.size(); ++i) places_[order[i]] = i;
}

bool RegionTable::IsNeededAsArray(const Instr& instr) const {
  if (instr.parent()->root() == &instr || instr.is_control_predecessor()) return true;
  return std::any_of(instr.users().begin(), instr.users().end(), [&](const Instr* user) {
    // What an update is written into is not read by its kernel.
    bool updated = IsUpdate(*user) && user->operand(0) == &instr;
    return members_[user].empty() || updated;
  });
}

std::vector<int> RegionTable::RegionsOfUsers(const Instr& instr) const {
  std::vector<int> regions;
  std::vector<const Instr*> users(instr.users().begin(), instr.users().end());
  std::sort(users.begin(), users.end(),
            [&](const Instr* x, const Instr* y) { return places_[x] < places_[y]; });
  for (const Instr* user : users)
    for (int region : members_[user])
      if (std::find(regions.begin(), regions.end(), region) == regions.end())
        regions.push_back(region);
  return regions;
}

void RegionTable::Begin(const Instr& instr) {
  OpenRegion open;
  open.instrs = {&instr};
  open.roots = {&instr};
  open.costs[&instr] = {};
  open.flops = instr.info().flops_per_element;
  open.operands = static_cast<int64_t>(instr.operand_count());
  open.shape = BeginShape(instr, machine_);
  members_[&instr].push_back(static_cast<int>(regions_.size()));
  regions_.push_back(std::move(open));
  ends_.push_back({places_[&instr], places_[&instr]});
}

OpenRegion RegionTable::With(const Instr& instr, int region) const {
  OpenRegion open = regions_[static_cast<size_t>(region)];
  Grow(open, instr, CostIn(instr, region));
  return open;
}

void RegionTable::Grow(OpenRegion& open, const Instr& instr, OpenRegion::Cost cost) const {
  open.costs[&instr] = cost;
  open.instrs.push_back(&instr);
  open.flops += instr.info().flops_per_element;
  open.operands += static_cast<int64_t>(instr.operand_count());
  GrowShape(open.shape, instr, machine_);
}

// What is inside and no root is an operand of something inside: those are no inputs.
bool RegionTable::ReadsTooMuch(const Instr& instr, int region, bool copied) const {
  const OpenRegion& open = regions_[static_cast<size_t>(region)];
  if (!copied && open.instrs.size() < 8) return false;
  auto inside = static_cast<int64_t>(open.instrs.size() + 1 - open.roots.size());
  auto operands = open.operands + static_cast<int64_t>(instr.operand_count());
  if (operands - inside <= static_cast<int64_t>(kMaxInputs)) return false;
  // Parts of tuples are inputs of their own.
  size_t inputs = 0;
  bool has_parts = instr.op() == Op::kGetTupleElement;
  ++walk_;
  seen_[&instr] = walk_;
  for (const Instr* in : open.instrs) {
    seen_[in] = walk_;
    has_parts = has_parts || in->op() == Op::kGetTupleElement;
  }
  auto count = [&](const Instr& reader) {
    for (const Instr* operand : reader.operands()) {
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

// Users that compute element by element need it where they are computed themselves; each that moves
// elements needs it somewhere else.
OpenRegion::Cost RegionTable::CostIn(const Instr& instr, int region) const {
  const OpenRegion& open = regions_[static_cast<size_t>(region)];
  OpenRegion::Cost cost{0, false};
  int64_t alike = 0;
  std::unordered_set<const Instr*> seen;
  for (const Instr* user : instr.users()) {
    auto it = open.costs.find(user);
    if (it == open.costs.end() || !seen.insert(user).second) continue;
    bool moves =
        user->info().Is(kDataMovement) && user->op() != Op::kReshape && user->op() != Op::kCopy;
    bool packed = user->op() == Op::kDot && open.shape.kind == RegionKind::kContract;
    cost.per_product |= it->second.per_product || (user->op() == Op::kDot && !packed);
    for (size_t i = 0; packed && i < user->operand_count(); ++i)
      if (user->operand(i) == &instr)
        cost.times = std::max(cost.times, TimesMade(*user, i, machine_));
    cost.times = std::max(cost.times, it->second.times);
    cost.in_vain = cost.in_vain || it->second.in_vain || user->op() == Op::kConcatenate ||
                   user->op() == Op::kPad;
    if (user->op() == Op::kSelectAndScatter) {
      cost.places += it->second.places * TapsAsked(*user);
    } else if (user->op() == Op::kReduceWindow) {
      cost.places += it->second.places * TimesSeen(*user);
    } else if (moves) {
      cost.places += it->second.places;
    } else {
      alike = std::max(alike, it->second.places);
    }
  }
  cost.places = std::min<int64_t>(std::max<int64_t>(cost.places + alike, 1), 1 << 20);
  return cost;
}

void RegionTable::Add(const Instr& instr, int region) {
  Grow(regions_[static_cast<size_t>(region)], instr, CostIn(instr, region));
  members_[&instr].push_back(region);
}

void RegionTable::AddRoot(const Instr& instr, int region) {
  Add(instr, region);
  regions_[static_cast<size_t>(region)].roots.push_back(&instr);
  size_t& first = ends_[static_cast<size_t>(region)].first_root;
  first = std::min(first, places_[&instr]);
}

Region RegionTable::FinishOpen(const OpenRegion& open) const {
  return OrderedRegion(open.instrs, open.roots, places_);
}

Region RegionTable::Finish(int region) const {
  return FinishOpen(regions_[static_cast<size_t>(region)]);
}

std::string RegionTable::WhyNotFold(const Instr& instr, int region) const {
  const OpenRegion& open = regions_[static_cast<size_t>(region)];
  for (const Instr* root : open.roots)
    if (IsUpdate(*root)) return "an update in place folds nothing";
  OpenRegion with = With(instr, region);
  if (with.shape.kind == RegionKind::kRows && instr.op() != Op::kReduce)
    return "a contraction and rows do not go together";
  if ((with.shape.kind == RegionKind::kScan) != (instr.op() == Op::kScan))
    return "a scan and other folds do not go together";
  if (instr.op() == Op::kScan && !ScanOf(instr).InVectors(machine_) && open.flops > kFewFlops)
    return "what uses it is computed sooner in vectors";
  // Whether its result is needed just where it is made, the generator knows.
  return probes_.WhyNot(FinishOpen(with), with.shape.kind);
}

std::string RegionTable::WhyNot(const Instr& instr, int region, size_t copies) const {
  const OpenRegion& open = regions_[static_cast<size_t>(region)];
  if (open.instrs.size() >= kMaxInstrs) return "the region has as many instructions as it may";
  if (IsUpdate(instr)) return "an update is made in place";
  bool sorts = open.shape.kind == RegionKind::kSort;
  if (instr.op() == Op::kSort ||
      (sorts && (IsFold(instr) || !machine_.is_gpu() || !gpu::LoadsOnce(*open.roots[0]))))
    return "a sort stands alone";
  // A slice that is read where it is written again is fine; all else would be read too late.
  const Instr& root = *open.roots[0];
  if (IsUpdate(root) && (root.op() == Op::kScatter || instr.op() != Op::kDynamicSlice))
    for (const Instr* operand : instr.operands())
      if (operand == root.operand(0)) return "it reads what the region overwrites";
  if (open.shape.kind == RegionKind::kScan && !IsCheap(instr) && !InVectors(open, machine_))
    return "it is computed sooner in vectors";
  if (IsFold(instr) || instr.shape().IsTuple()) {
    if (copies > 1) return "it would be folded " + std::to_string(copies) + " times";
    return WhyNotFold(instr, region);
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
      return "it would be written out for each tap of a window";
  }
  if (WidensPanels(instr, open) && !MayMakeRows(instr, region, false))
    return "more bytes would be stored without it";
  OpenRegion::Cost cost = CostIn(instr, region);
  bool repeats = instr.op() == Op::kBroadcast || instr.op() == Op::kReshape ||
                 instr.op() == Op::kIota || instr.op() == Op::kConstant;
  if (cost.times > (repeats ? INT64_MAX : IsCheap(instr) ? kMaxTimes : 1))
    return "each of its elements would be made " + std::to_string(cost.times) +
           " times for the contraction";
  if (cost.per_product && !CostsNothing(instr))
    return "each of its elements would be computed for each use by the contraction";
  if (cost.in_vain && !IsCheap(instr))
    return "it would be computed for all elements, and needed for some";
  if (cost.places > (CostsNothing(instr) ? kMaxPlaces : IsCheap(instr) ? 4 : 1))
    return "it is needed at " + std::to_string(cost.places) + " places for each element";
  if (open.flops + instr.info().flops_per_element > kMaxFlops)
    return "the region computes as much as it may";
  return ReadsTooMuch(instr, region, copies > 1) ? "the region reads too many arrays" : "";
}

// Whether the operand of a contraction may be made in the region together with the reductions of
// rows that it is computed from, none of which is needed elsewhere. `kept`: it is needed elsewhere
// itself, and what it is computed from may be in memory.
bool RegionTable::MayMakeRows(const Instr& instr, int region, bool kept) const {
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

std::string RegionTable::WhyNotRoot(const Instr& instr, int region) const {
  const OpenRegion& open = regions_[static_cast<size_t>(region)];
  bool contracts = open.shape.kind == RegionKind::kContract;
  bool rows = open.shape.kind == RegionKind::kRows || contracts;
  if (open.shape.kind == RegionKind::kLoop && ElementsOf(instr) != open.shape.domain)
    return "it has another number of elements than the region's roots";
  if (IsUpdate(instr) || instr.shape().IsTuple()) return "it stands alone";
  if (IsFold(instr) && (!rows || contracts)) return "a reduction that others need stands alone";
  if (CostsNothing(instr)) return "it only moves elements";
  if (open.shape.kind != RegionKind::kLoop && !rows)
    return "only loops and rows keep what they use";
  for (const Instr* root : open.roots)
    if (IsUpdate(*root)) return "an update has no other roots";
  if (IsNeededAgain(instr, region)) return "what uses it outside is needed inside";
  if (contracts) {
    bool made = FeedsLeft(instr, open) && MayMakeRows(instr, region, true);
    return made ? "" : "a contraction keeps nothing but the rows of its left side";
  }
  if (std::string why = WhyNot(instr, region, 1); !why.empty() || !rows) return why;
  return WhyNotBuilt(With(instr, region), instr);
}

std::string RegionTable::WhyNotBuilt(OpenRegion with, const Instr& root) const {
  with.roots.push_back(&root);
  return probes_.WhyNot(FinishOpen(with), with.shape.kind);
}

std::string RegionTable::WhyNotBeside(const Instr& instr, int region) const {
  const OpenRegion& open = regions_[static_cast<size_t>(region)];
  if (instr.info().Is(kElementwise)) return WhyNotBesideLoop(instr, region);
  if (instr.op() != Op::kReduce || instr.shape().IsTuple()) return "it is no reduction";
  if (open.instrs.size() >= kMaxInstrs) return "the region has as many instructions as it may";
  if (open.shape.kind != KindOfFold(instr, machine_)) return "the region folds in another way";
  const Instr* like = nullptr;
  for (const Instr* root : open.roots)
    if (root->op() == Op::kReduce) like = root;
  if (like == nullptr || like->operand(0)->shape().dims() != instr.operand(0)->shape().dims() ||
      like->attrs<DimensionsAttrs>().dimensions != instr.attrs<DimensionsAttrs>().dimensions)
    return "it folds elements of other places";
  if (!ShareAnArray(*like, instr)) return "it reads no array that the region reads";
  if (Reaches(instr, region)) return "the region needs it";
  return WhyNotBuilt(With(instr, region), instr);
}

std::vector<const Instr*> RegionTable::DearBehind(std::vector<const Instr*> open,
                                                  int64_t count) const {
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

std::string RegionTable::WhyNotBesideLoop(const Instr& instr, int region) const {
  const OpenRegion& open = regions_[static_cast<size_t>(region)];
  if (open.shape.kind != RegionKind::kLoop) return "the region is no loop";
  if (open.instrs.size() >= kMaxInstrs) return "the region has as many instructions as it may";
  for (const Instr* root : open.roots)
    if (IsUpdate(*root) || !root->info().Is(kElementwise) ||
        root->shape().dims() != instr.shape().dims())
      return "the region goes over other elements";
  int64_t count = CountOf(instr);
  std::vector<const Instr*> own = DearBehind({&instr}, count);
  std::vector<const Instr*> others = DearBehind(open.instrs, count);
  ++walk_;
  for (const Instr* dear : others) seen_[dear] = walk_;
  auto is_other = [&](const Instr* dear) { return seen_[dear] == walk_; };
  if (std::none_of(own.begin(), own.end(), is_other)) return "they compute nothing in common";
  std::erase_if(own, is_other);
  int64_t flops = 0;
  for (const std::vector<const Instr*>* list : {&own, &others})
    for (const Instr* dear : *list) flops += dear->info().flops_per_element;
  if (flops > kMaxFlops) return "the region computes as much as it may";
  return Reaches(instr, region) ? "the region needs it" : "";
}

bool RegionTable::IsNeededAgain(const Instr& instr, int region) const {
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

// What comes later leads back by a region only that begins later and has an earlier root. Regions
// begin from the last instruction to the first.
size_t RegionTable::LastPlaceBefore(int region) const {
  size_t last = ends_[static_cast<size_t>(region)].last;
  if (static_cast<size_t>(region) > kRegionMaxVisited) return SIZE_MAX;
  for (auto i = static_cast<size_t>(region); i-- > 0;)
    if (ends_[i].first_root <= last) last = std::max(last, ends_[i].last);
  return last;
}

// Whether an instruction of the region needs, perhaps through other regions, the value of `from`.
bool RegionTable::Reaches(const Instr& from, int region) const {
  ++walk_;
  seen_regions_.resize(regions_.size(), 0);
  size_t count = 0, last = SIZE_MAX;
  std::vector<const Instr*> open;
  auto add = [&](const Instr* instr) {
    if (seen_[instr] == walk_ || places_[instr] > last) return;
    seen_[instr] = walk_;
    open.push_back(instr);
  };
  add(&from);
  while (!open.empty()) {
    const Instr* instr = open.back();
    open.pop_back();
    if (++count > kRegionMaxVisited) return true;
    if (count == kFewVisited) last = LastPlaceBefore(region);
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
