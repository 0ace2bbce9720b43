// A while as one kernel: all rounds for some places, whose values stay in registers, then for the
// next.

#include "gen/rounds.h"

#include <algorithm>

#include "gen/arms.h"
#include "gen/gpu/gpu.h"

namespace tokamak {
namespace {

// Rounds of fewer primitives wait for one another: more elements at a time fill the time.
constexpr size_t kShortBody = 24;
// Elements that a place writes to one array in a round.
constexpr int64_t kMostStored = 64;

void AddConstants(const Computation& computation, std::vector<const Instr*>& inputs) {
  for (const Instr* instr : computation.PostOrder()) {
    bool is_array = instr->op() == Op::kConstant && instr->shape().IsArray();
    if (is_array && !IsImmediate(*instr) && std::ranges::find(inputs, instr) == inputs.end())
      inputs.push_back(instr);
    if (instr->op() == Op::kWhile || instr->op() == Op::kConditional || instr->op() == Op::kCall)
      for (const Computation* called : instr->called()) AddConstants(*called, inputs);
  }
}

// The rows of a stacked value that rounds write, one update each.
struct StackedRows {
  size_t along = 0;
  int64_t size = 0, start = 0, step = 0, last = 0;
};

// Nothing when they are not known, or the counter wraps.
std::optional<StackedRows> RowsOf(const RoundsRegion& region, size_t carry) {
  if (region.rounds.value_or(0) == 0) return {};
  for (const ScanAccess& access : ScanAccesses(region.loop)) {
    if (access.carry != carry || !access.is_write) continue;
    std::optional<Induction> counter = InductionOf(region.loop, access.induction);
    if (!counter || !counter->start) return {};
    int64_t start = *counter->start, step = counter->step, later = *region.rounds - 1;
    if (std::abs(step) > INT32_MAX || start < INT32_MIN || start > INT32_MAX) return {};
    int64_t last = start + step * later;
    if (ValueAfter(*counter, static_cast<uint64_t>(later)) != last) return {};
    return StackedRows{static_cast<size_t>(access.dimension), access.size, start, step, last};
  }
  return {};
}

}  // namespace

RoundsRegion RoundsRegionOf(const Instr& instr) {
  RoundsRegion region;
  std::optional<WhileLoop> loop = LoopOf(const_cast<Instr*>(&instr));  // looks only
  if (!loop) {
    region.form.why_not = "it carries tuples";
    return region;
  }
  region.loop = *loop;
  region.form = FindIndependence(*loop);
  if (!region.form.why_not.empty()) return region;
  std::optional<uint64_t> trips = TripCount(*loop);
  if (trips && *trips <= INT32_MAX) region.rounds = static_cast<int64_t>(*trips);
  region.wanted.assign(loop->size(), false);
  for (const Instr* user : instr.users()) {
    if (user->op() == Op::kGetTupleElement)
      region.wanted[static_cast<size_t>(user->attrs<TupleIndexAttrs>().index)] = true;
    else
      region.wanted.assign(loop->size(), true);
  }
  if (instr.parent()->root() == &instr) region.wanted.assign(loop->size(), true);
  for (size_t i = 0; i < loop->size(); ++i) {
    CarryKind kind = region.form.carries[i].kind;
    if (kind == CarryKind::kStays) region.wanted[i] = false;
    const Instr* init = loop->init(i);
    if (kind != CarryKind::kStacked && !IsImmediate(*init) &&
        std::ranges::find(region.inputs, init) == region.inputs.end())
      region.inputs.push_back(init);
  }
  AddConstants(*loop->body, region.inputs);
  AddConstants(*loop->condition, region.inputs);
  return region;
}

bool IsCovered(const RoundsRegion& region, size_t carry) {
  std::optional<StackedRows> rows = RowsOf(region, carry);
  if (!rows || rows->size != 1 || rows->start != 0 || rows->step != 1) return false;
  const Shape& shape = region.loop.init(carry)->shape();
  if (shape.dim(rows->along) != *region.rounds) return false;
  const Shape& row = region.loop.next(carry)->operand(1)->shape();
  for (size_t d = 0; d < shape.dims().size(); ++d)
    if (d != rows->along && row.dim(d) != shape.dim(d)) return false;
  return true;
}

bool StacksAgain(const RoundsRegion& region) {
  for (size_t i = 0; i < region.loop.size(); ++i) {
    if (region.form.carries[i].kind != CarryKind::kStacked || !region.wanted[i]) continue;
    std::optional<StackedRows> rows = RowsOf(region, i);
    if (!rows || std::abs(rows->step) < rows->size) return true;
    // Past an end the index clamps.
    int64_t most = region.loop.init(i)->shape().dim(rows->along) - rows->size;
    if (std::min(rows->start, rows->last) < 0 || std::max(rows->start, rows->last) > most)
      return true;
  }
  return false;
}

RoundsKernel::RoundsKernel(KernelBuilder& b, const RoundsRegion& region) : b_(b), region_(region) {
  const Instr& loop = *region.loop.instr;
  read_ = {.computation = loop.parent(), .instrs = {}, .inputs = region.inputs, .roots = {}};
  top_ = std::make_unique<ElementEmitter>(b, read_);
  context_ = std::make_unique<RoundsContext>(
      RoundsContext{.b = b, .form = region.form, .top = *top_, .place = {}, .fault = {}});
  for (size_t i = 0; i < region.loop.size(); ++i) {
    if (!region.wanted[i]) continue;
    const Shape& shape = ShapeOf(i);
    std::string name = loop.name().empty() ? "loop" : loop.name();
    ScalarType type = StorageType(shape.type());
    outputs_.push_back(
        {i, b.Argument({.name = name + "_" + std::to_string(i),
                        .type = type,
                        .access = Access::kWrite,
                        .size = shape.ElementCount() * (IsComplex(shape.type()) ? 2 : 1),
                        .alignment = BytesOf(type)})});
  }
}

const Shape& RoundsKernel::ShapeOf(size_t carry) const {
  return region_.loop.init(carry)->shape();
}

Scalar RoundsKernel::Writes(const CarryForm& form, const OwnElements& own) {
  Scalar writes = alone_.ok() ? alone_ : b_.ConstantBits(ScalarType::kPred, 1);
  if (form.IsShared()) return first_ & writes;
  const Coordinates& place = context_->place;
  if (context_->group.threads > 1) writes = writes & (context_->group.member == b_.Index(0));
  const RoundsSpread& spread = context_->spread;
  if (spread.elements > 0 && !own.is_spread()) writes = writes & (spread.element == b_.Index(0));
  for (size_t a = 0; a < place.size(); ++a)
    if (std::ranges::find(form.axes, static_cast<int>(a)) == form.axes.end())
      writes = writes & (place[a] == b_.Index(0));
  return writes;
}

void RoundsKernel::StoreAt(const Output& output, const Coordinates& at, const Element& value) {
  const Shape& shape = ShapeOf(output.carry);
  Scalar index = Linearized(b_, at, shape.dims());
  Element stored = ToStorage(b_, shape.type(), value);
  if (!IsComplex(shape.type())) return b_.Store(output.array, index, stored[0]);
  b_.Store(output.array, index * b_.Index(2), stored[0]);
  b_.Store(output.array, index * b_.Index(2) + b_.Index(1), stored[1]);
}

void RoundsKernel::Look(RoundsFrame& body) {
  RoundsContext& context = *context_;
  for (const Output& output : outputs_) {
    const CarryForm& form = region_.form.carries[output.carry];
    if (form.kind != CarryKind::kStacked) continue;
    for (const Instr* update : UpdatesOf(region_.loop, output.carry)) {
      OwnElements own(context, update->operand(1)->shape(), form);
      if (own.count() > kMostStored) return context.Fail("a round stacks large parts");
      std::vector<std::pair<Coordinates, Element>> made;
      for (int64_t e = 0; e < own.count(); ++e) {
        Coordinates at = own.At(context, e);
        made.emplace_back(body.UpdatePlace(*update, at), body.At(*update->operand(1), at));
      }
      b_.If(Writes(form, own), [&] {
        for (const auto& [at, value] : made) StoreAt(output, at, value);
      });
    }
  }
}

CarriedValues RoundsKernel::Carried(const Coordinates& place, Scalar first,
                                    std::shared_ptr<ElementGiver> begin) {
  context_->place = place;
  context_->held = 0;
  first_ = first;
  return CarriedValues(*context_, region_.loop, region_.form.carries, region_.rounds,
                       std::move(begin));
}

std::shared_ptr<ElementGiver> RoundsKernel::KeptAt(Scalar slot) {
  return GiverOf([this, slot](const Coordinates& at, size_t i) {
    const Instr& init = *region_.loop.init(i);
    if (i >= kept_.size() || kept_[i].empty()) return context_->top.At(init, at);
    OwnElements own(*context_, init.shape(), region_.form.carries[i]);
    size_t e = 0;
    auto is_here = [&](const Coordinates& other) {
      return std::ranges::equal(at, other, {}, &Scalar::id, &Scalar::id);
    };
    while (e < kept_[i].size() && !is_here(own.At(*context_, static_cast<int64_t>(e)))) ++e;
    if (e == kept_[i].size()) {
      context_->Fail("an element is needed that is not kept");
      return context_->top.At(init, at);
    }
    Element value{b_.Read(kept_[i][e][0], slot), {}};
    if (init.shape().type() == ElementType::kPred) value[0] = value[0] != 0;
    if (IsComplex(init.shape().type())) value[1] = b_.Read(kept_[i][e][1], slot);
    return value;
  });
}

void RoundsKernel::WriteResults(CarriedValues& carried) {
  RoundsContext& context = *context_;
  carried.Read(std::nullopt);
  for (const Output& output : outputs_) {
    const CarryForm& form = region_.form.carries[output.carry];
    if (form.kind != CarryKind::kHeld) continue;
    OwnElements own(context, ShapeOf(output.carry), form);
    b_.If(Writes(form, own), [&] {
      for (int64_t e = 0; e < own.count(); ++e) {
        Coordinates at = own.At(context, e);
        StoreAt(output, at, carried.At(output.carry, at));
      }
    });
  }
}

void RoundsKernel::Run(const Coordinates& place, Scalar first) {
  CarriedValues carried = Carried(place, first, KeptAt({}));
  if (!context_->fault.empty()) return;
  EmitRounds(*context_, region_.loop, region_.rounds, carried, this);
  if (context_->fault.empty()) WriteResults(carried);
}

BuildOutcome RoundsKernel::Finish(int64_t grid, bool exact) {
  if (context_->fault.empty()) context_->Fail(top_->fault());
  if (!context_->fault.empty()) return {std::nullopt, context_->fault};
  BuiltKernel built;
  built.grid = grid;
  built.kernel = b_.Finish();
  for (const Instr* input : region_.inputs) built.arguments.push_back({.instr = input});
  std::vector<size_t> apart;  // written while others still read
  for (const Output& output : outputs_) {
    const CarryForm& form = region_.form.carries[output.carry];
    bool stacked = form.kind == CarryKind::kStacked, of_several = false;
    for (size_t a = 0; a < region_.form.sizes.size(); ++a)
      if (std::ranges::find(form.axes, static_cast<int>(a)) == form.axes.end()) of_several = true;
    // One of the places that have the same elements writes them, whenever it is done.
    if (stacked || of_several) apart.push_back(built.arguments.size());
    if (stacked) {
      if (!IsCovered(region_, output.carry))
        built.updates.emplace_back(built.arguments.size(), region_.loop.init(output.carry));
    }
    built.arguments.push_back(
        {.instr = region_.loop.instr, .part = output.carry, .is_output = true});
  }
  FinishFacts(built, exact);
  std::erase_if(built.in_place, [&](const std::pair<size_t, size_t>& pair) {
    return std::ranges::find(apart, pair.second) != apart.end();
  });
  for (const auto& [output, old] : built.updates)
    if (std::ranges::find(region_.inputs, old) != region_.inputs.end())
      return {std::nullopt, "it reads what it overwrites"};
  return {std::move(built), ""};
}

namespace {

BuildOutcome BuildOnCpu(const RoundsRegion& region, const Machine& machine,
                        const std::string& name) {
  KernelBuilder b(name);
  RoundsKernel kernel(b, region);
  int64_t count = region.form.Places();
  // Short ones wait so whatever the rounds: CartPole on Neoverse V1 takes 29 ms with two vectors
  // side by side, 24 with four.
  bool for_all = count >= 4 * machine.Lanes(32) * machine.cores;
  bool more = region.loop.body->size() < kShortBody || (machine.HasShortVectors() && for_all);
  int64_t vectors = more ? 4 : 2;
  int64_t lanes = std::min(vectors * machine.Lanes(32), PowerBelow(count));
  int64_t teams = (count + lanes - 1) / lanes;
  if (BuildOutcome blocks = BuildRoundsInBlocks(region, machine, lanes, name); blocks.built)
    return blocks;
  // The last team has some places of the one before it.
  bool again = count % lanes != 0 && StacksAgain(region);
  b.For("g", LoopRole::kGrid, b.Index(teams), [&](Scalar g) {
    Scalar begin = LesserOf(g * b.Index(lanes), b.Index(count - lanes));
    Scalar first = g == b.Index(0);
    auto run = [&](Scalar linear) {
      if (again) kernel.WriteWhere(linear >= g * b.Index(lanes));
      kernel.Run(Delinearized(b, linear, region.form.sizes), first);
    };
    if (lanes == 1) return run(begin);
    b.For("l", LoopRole::kVector, b.Index(lanes), [&](Scalar l) { run(begin + l); });
  });
  return kernel.Finish(teams, count % lanes == 0);
}

}  // namespace

BuildOutcome BuildRounds(const RoundsRegion& region, const Machine& machine,
                         const std::string& name) {
  BuildOutcome outcome = machine.is_gpu() ? gpu::BuildRounds(region, machine, name)
                                          : BuildOnCpu(region, machine, name);
  if (outcome.built && machine.is_gpu()) BranchAroundArms(outcome.built->kernel, machine);
  return outcome;
}

bool IsOneKernel(const Instr& loop, const Machine& machine) {
  RoundsRegion region = RoundsRegionOf(loop);
  return region.form.why_not.empty() && BuildRounds(region, machine, "rounds").built;
}

}  // namespace tokamak
