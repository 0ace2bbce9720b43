// The CPU kernel of a fused loop (whole_loop.h): the vector lanes are points, and each vector of
// points runs all iterations with its values in registers before the next one starts.

#include "gen/whole_loop.h"

#include <algorithm>

#include "gen/gpu/gpu.h"
#include "gen/selects_to_branches.h"
#include "gen/whole_loop_tiles.h"

namespace tokamak {
namespace {

// Instructions. Chosen: shorter bodies are bound by latency, which more vectors per iteration hide;
// longer ones would spill registers.
constexpr size_t kShortBody = 24;
// Elements that a point stacks per iteration in one array. Chosen: bounds the unrolled code.
constexpr int64_t kMaxStored = 64;

void AddConstants(const Computation& computation, std::vector<const Instr*>& inputs) {
  for (const Instr* instr : computation.PostOrder()) {
    bool is_array = instr->op() == Op::kConstant && instr->shape().IsArray();
    if (is_array && !IsImmediate(*instr) && std::ranges::find(inputs, instr) == inputs.end())
      inputs.push_back(instr);
    if (RunsComputations(instr->op()))
      for (const Computation* called : instr->called()) AddConstants(*called, inputs);
  }
}

// The rows of a stacked value that the iterations write, one update per iteration.
struct StackedRows {
  size_t along = 0;
  int64_t size = 0, start = 0, step = 0, last = 0;
};

// Returns nullopt if they are unknown or the counter wraps around.
std::optional<StackedRows> RowsOf(const WholeLoopRegion& region, size_t carry) {
  if (region.trip_count.value_or(0) == 0) return {};
  for (const ScanAccess& access : ScanAccesses(region.loop)) {
    if (access.carry != carry || !access.is_write) continue;
    std::optional<Induction> counter = InductionOf(region.loop, access.induction);
    if (!counter || !counter->start) return {};
    int64_t start = *counter->start, step = counter->step, later = *region.trip_count - 1;
    if (std::abs(step) > INT32_MAX || start < INT32_MIN || start > INT32_MAX) return {};
    int64_t last = start + step * later;
    if (ValueAfter(*counter, static_cast<uint64_t>(later)) != last) return {};
    return StackedRows{static_cast<size_t>(access.dimension), access.size, start, step, last};
  }
  return {};
}

}  // namespace

WholeLoopRegion WholeLoopRegionOf(const Instr& instr) {
  WholeLoopRegion region;
  std::optional<WhileLoop> loop = LoopOf(const_cast<Instr*>(&instr));  // LoopOf does not modify it
  if (!loop) {
    region.independence.why_not = "it carries tuples";
    return region;
  }
  region.loop = *loop;
  region.independence = FindIndependence(*loop);
  if (!region.independence.why_not.empty()) return region;
  std::optional<uint64_t> trips = TripCount(*loop);
  if (trips && *trips <= INT32_MAX) region.trip_count = static_cast<int64_t>(*trips);
  region.has_output.assign(loop->size(), false);
  for (const Instr* user : instr.users()) {
    if (user->op() == Op::kGetTupleElement)
      region.has_output[static_cast<size_t>(user->attrs<TupleIndexAttrs>().index)] = true;
    else
      region.has_output.assign(loop->size(), true);
  }
  if (instr.parent()->root() == &instr) region.has_output.assign(loop->size(), true);
  for (size_t i = 0; i < loop->size(); ++i) {
    CarryKind kind = region.independence.carries[i].kind;
    if (kind == CarryKind::kInvariant) region.has_output[i] = false;
    const Instr* init = loop->init(i);
    if (kind != CarryKind::kStacked && !IsImmediate(*init) &&
        std::ranges::find(region.inputs, init) == region.inputs.end())
      region.inputs.push_back(init);
  }
  AddConstants(*loop->body, region.inputs);
  AddConstants(*loop->condition, region.inputs);
  return region;
}

bool IsFullyOverwritten(const WholeLoopRegion& region, size_t carry) {
  std::optional<StackedRows> rows = RowsOf(region, carry);
  if (!rows || rows->size != 1 || rows->start != 0 || rows->step != 1) return false;
  const Shape& shape = region.loop.init(carry)->shape();
  if (shape.dim(rows->along) != *region.trip_count) return false;
  const Shape& row = region.loop.next(carry)->operand(1)->shape();
  for (size_t d = 0; d < shape.dims().size(); ++d)
    if (d != rows->along && row.dim(d) != shape.dim(d)) return false;
  return true;
}

bool MayOverwriteStackedRows(const WholeLoopRegion& region) {
  for (size_t i = 0; i < region.loop.size(); ++i) {
    if (region.independence.carries[i].kind != CarryKind::kStacked || !region.has_output[i])
      continue;
    std::optional<StackedRows> rows = RowsOf(region, i);
    if (!rows || std::abs(rows->step) < rows->size) return true;
    // Out of bounds, the start index is clamped.
    int64_t most = region.loop.init(i)->shape().dim(rows->along) - rows->size;
    if (std::min(rows->start, rows->last) < 0 || std::max(rows->start, rows->last) > most)
      return true;
  }
  return false;
}

WholeLoopKernel::WholeLoopKernel(KernelBuilder& b, const WholeLoopRegion& region)
    : b_(b), region_(region), overwrites_rows_(MayOverwriteStackedRows(region)) {
  const Instr& loop = *region.loop.instr;
  load_region_ = {.computation = loop.parent(), .instrs = {}, .inputs = region.inputs, .roots = {}};
  memory_emitter_ = std::make_unique<ElementEmitter>(b, load_region_);
  context_ =
      std::make_unique<WholeLoopContext>(WholeLoopContext{.b = b,
                                                          .independence = region.independence,
                                                          .memory_emitter = *memory_emitter_,
                                                          .point = {},
                                                          .failure = {}});
  for (size_t i = 0; i < region.loop.size(); ++i) {
    if (!region.has_output[i]) continue;
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

const Shape& WholeLoopKernel::ShapeOf(size_t carry) const {
  return region_.loop.init(carry)->shape();
}

Scalar WholeLoopKernel::StorePredicate(const CarryForm& form, const PointElements& own) {
  Scalar writes = store_predicate_.ok() ? store_predicate_ : b_.ConstantBits(ScalarType::kPred, 1);
  // Points that store the same elements store equal bits, unless later iterations overwrite them:
  // then a single point stores.
  bool overwrites = overwrites_rows_ && form.kind == CarryKind::kStacked;
  if (form.IsUniform() && !overwrites) return stores_uniform_ & writes;
  const Coordinates& point = context_->point;
  if (context_->group.threads > 1) writes = writes & (context_->group.member == b_.Index(0));
  const WholeLoopMapping& thread_map = context_->thread_map;
  if (thread_map.elements_per_point > 0 && !own.is_distributed())
    writes = writes & (thread_map.element == b_.Index(0));
  for (size_t a = 0; a < point.size(); ++a)
    if (std::ranges::find(form.axes, static_cast<int>(a)) == form.axes.end())
      writes = writes & (point[a] == b_.Index(0));
  return writes;
}

void WholeLoopKernel::StoreAt(const Output& output, const Coordinates& at, const Element& value) {
  const Shape& shape = ShapeOf(output.carry);
  Scalar index = Linearized(b_, at, shape.dims());
  Element stored = ToStorage(b_, shape.type(), value);
  if (!IsComplex(shape.type())) return b_.Store(output.array, index, stored[0]);
  b_.Store(output.array, index * b_.Index(2), stored[0]);
  b_.Store(output.array, index * b_.Index(2) + b_.Index(1), stored[1]);
}

void WholeLoopKernel::OnIteration(WholeLoopFrame& body) {
  WholeLoopContext& context = *context_;
  for (const Output& output : outputs_) {
    const CarryForm& form = region_.independence.carries[output.carry];
    if (form.kind != CarryKind::kStacked) continue;
    for (const Instr* update : UpdatesOf(region_.loop, output.carry)) {
      PointElements own(context, update->operand(1)->shape(), form);
      if (own.count() > kMaxStored) return context.Fail("an iteration stacks too many elements");
      std::vector<std::pair<Coordinates, Element>> made;
      for (int64_t e = 0; e < own.count(); ++e) {
        Coordinates at = own.At(context, e);
        made.emplace_back(body.UpdateDestination(*update, at), body.At(*update->operand(1), at));
      }
      b_.If(StorePredicate(form, own), [&] {
        for (const auto& [at, value] : made) StoreAt(output, at, value);
      });
    }
  }
}

CarriedValues WholeLoopKernel::MakeCarriedValues(const Coordinates& point, Scalar stores_uniform,
                                                 std::shared_ptr<ElementSource> begin) {
  context_->point = point;
  context_->register_elements = 0;
  stores_uniform_ = stores_uniform;
  return CarriedValues(*context_, region_.loop, region_.independence.carries, region_.trip_count,
                       std::move(begin));
}

std::shared_ptr<ElementSource> WholeLoopKernel::CachedAt(Scalar slot) {
  return SourceOf([this, slot](const Coordinates& at, size_t i) {
    const Instr& init = *region_.loop.init(i);
    if (i >= cached_.size() || cached_[i].empty()) return context_->memory_emitter.At(init, at);
    PointElements own(*context_, init.shape(), region_.independence.carries[i]);
    size_t e = 0;
    auto is_here = [&](const Coordinates& other) {
      return std::ranges::equal(at, other, {}, &Scalar::id, &Scalar::id);
    };
    while (e < cached_[i].size() && !is_here(own.At(*context_, static_cast<int64_t>(e)))) ++e;
    if (e == cached_[i].size()) {
      context_->Fail("an element is needed that is not cached");
      return context_->memory_emitter.At(init, at);
    }
    Element value{b_.Read(cached_[i][e][0], slot), {}};
    if (init.shape().type() == ElementType::kPred) value[0] = value[0] != 0;
    if (IsComplex(init.shape().type())) value[1] = b_.Read(cached_[i][e][1], slot);
    return value;
  });
}

void WholeLoopKernel::WriteResults(CarriedValues& carried) {
  WholeLoopContext& context = *context_;
  carried.ReadRegisters(std::nullopt);
  for (const Output& output : outputs_) {
    const CarryForm& form = region_.independence.carries[output.carry];
    if (form.kind != CarryKind::kHeld) continue;
    PointElements own(context, ShapeOf(output.carry), form);
    b_.If(StorePredicate(form, own), [&] {
      for (int64_t e = 0; e < own.count(); ++e) {
        Coordinates at = own.At(context, e);
        StoreAt(output, at, carried.At(output.carry, at));
      }
    });
  }
}

void WholeLoopKernel::LoadMatrices() {
  if (context_->tiles == nullptr) return;
  const Computation& body = *region_.loop.body;
  FusedRegion invariants{.computation = &body, .instrs = {}, .inputs = {}, .roots = {}};
  for (const Instr* instr : body.PostOrder())
    if (instr->op() != Op::kParameter) invariants.instrs.push_back(instr);
  ElementEmitter emitter(b_, invariants);
  auto supply = [&](const Instr& value, const Instr& memory) {
    emitter.SetSource(value, SourceOf([&](const Coordinates& at, size_t) {
                        return context_->memory_emitter.At(memory, at);
                      }));
  };
  for (size_t i = 0; i < region_.loop.size(); ++i)
    supply(*region_.loop.in_body(i), *region_.loop.init(i));
  for (const Instr* instr : invariants.instrs)
    if (instr->op() == Op::kConstant && !IsImmediate(*instr)) supply(*instr, *instr);
  context_->tiles->LoadMatrices(emitter, context_->thread);
  if (!emitter.failure().empty()) context_->Fail(emitter.failure());
  context_->memory_emitter.ClearMemo();
}

void WholeLoopKernel::Run(const Coordinates& point, Scalar stores_uniform) {
  CarriedValues carried = MakeCarriedValues(point, stores_uniform, CachedAt({}));
  if (!context_->failure.empty()) return;
  LoadMatrices();
  EmitIterations(*context_, region_.loop, region_.trip_count, carried, this);
  if (context_->failure.empty()) WriteResults(carried);
}

BuildOutcome WholeLoopKernel::Finish(int64_t grid, bool writes_once) {
  if (context_->failure.empty()) context_->Fail(memory_emitter_->failure());
  if (!context_->failure.empty()) return {std::nullopt, context_->failure};
  BuiltKernel built;
  built.grid = grid;
  built.kernel = b_.Finish();
  for (const Instr* input : region_.inputs) built.arguments.push_back({.instr = input});
  std::vector<size_t> deferred;  // outputs written while other points still read
  for (const Output& output : outputs_) {
    const CarryForm& form = region_.independence.carries[output.carry];
    bool stacked = form.kind == CarryKind::kStacked, of_several = false;
    for (size_t a = 0; a < region_.independence.sizes.size(); ++a)
      if (std::ranges::find(form.axes, static_cast<int>(a)) == form.axes.end()) of_several = true;
    // Of the points that share these elements one stores them, at an unspecified time.
    if (stacked || of_several) deferred.push_back(built.arguments.size());
    if (stacked) {
      if (!IsFullyOverwritten(region_, output.carry))
        built.must_alias.emplace_back(built.arguments.size(), region_.loop.init(output.carry));
    }
    built.arguments.push_back(
        {.instr = region_.loop.instr, .result_index = output.carry, .is_output = true});
  }
  if (writes_once) FindMayAlias(built);
  std::erase_if(built.may_alias, [&](const std::pair<size_t, size_t>& pair) {
    return std::ranges::find(deferred, pair.second) != deferred.end();
  });
  for (const auto& [output, old] : built.must_alias)
    if (std::ranges::find(region_.inputs, old) != region_.inputs.end())
      return {std::nullopt, "it reads the array that it overwrites"};
  return {std::move(built), ""};
}

namespace {

BuildOutcome BuildOnCpu(const WholeLoopRegion& region, const Machine& machine,
                        const std::string& name) {
  KernelBuilder b(name);
  WholeLoopKernel kernel(b, region);
  int64_t count = region.independence.Points();
  // Vectors of points per iteration. Machines with short vectors are bound by latency whatever the
  // body. Measured: CartPole on Neoverse V1 takes 29 ms with two vectors, 24 ms with four.
  constexpr int64_t kMoreVectors = 4, kFewVectors = 2;
  bool for_all = count >= kMoreVectors * machine.Lanes(32) * machine.cores;
  bool more = region.loop.body->size() < kShortBody || (machine.HasShortVectors() && for_all);
  int64_t vectors = more ? kMoreVectors : kFewVectors;
  int64_t lanes = std::min(vectors * machine.Lanes(32), FloorPowerOfTwo(count));
  int64_t grid_size = (count + lanes - 1) / lanes;
  if (BuildOutcome blocks = BuildBlockedWholeLoop(region, machine, lanes, name); blocks.built)
    return blocks;
  // The last block overlaps the one before it.
  bool again = count % lanes != 0 && MayOverwriteStackedRows(region);
  b.For("g", LoopRole::kGrid, b.Index(grid_size), [&](Scalar g) {
    Scalar begin = LesserOf(g * b.Index(lanes), b.Index(count - lanes));
    Scalar stores_uniform = g == b.Index(0);
    auto run = [&](Scalar linear) {
      if (again) kernel.SetStorePredicate(linear >= g * b.Index(lanes));
      kernel.Run(Delinearized(b, linear, region.independence.sizes), stores_uniform);
    };
    if (lanes == 1) return run(begin);
    b.For("l", LoopRole::kVector, b.Index(lanes), [&](Scalar l) { run(begin + l); });
  });
  return kernel.Finish(grid_size, count % lanes == 0);
}

}  // namespace

BuildOutcome BuildWholeLoop(const WholeLoopRegion& region, const Machine& machine,
                            const std::string& name) {
  BuildOutcome outcome = machine.is_gpu() ? gpu::BuildWholeLoop(region, machine, name)
                                          : BuildOnCpu(region, machine, name);
  if (outcome.built && machine.is_gpu()) ConvertSelectsToBranches(outcome.built->kernel, machine);
  return outcome;
}

bool CanBuildWholeLoop(const Instr& loop, const Machine& machine) {
  WholeLoopRegion region = WholeLoopRegionOf(loop);
  return region.independence.why_not.empty() && BuildWholeLoop(region, machine, "fused_loop").built;
}

}  // namespace tokamak
