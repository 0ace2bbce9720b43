// The GPU rows generator: reductions over the minor dimensions and the elementwise code around
// them. A row is processed by a group of threads: part of a warp, a warp, or a block. Several short
// rows share a block.
//
//   for each level of reductions:  softmax: max; then the sum of exp(x - max)
//     each thread reduces its vectors of the row
//     threads combine by warp shuffles, warps through shared memory: all threads have the result
//   the first thread of a row stores roots with one element per row
//   each thread stores its elements
//
// Values that a thread loaded or computed stay in registers for the following passes if there are
// few; for long rows some of them are in shared memory. Values that fit in neither are reread. All
// threads reach every shuffle and barrier: row indices beyond the last are clamped to it.
//
// Column sums of the same rows (column_sums.h) are accumulated on the way: a block loops over the
// rows of one outer index, each thread sums its columns, and the sums of the concurrent rows are
// combined through shared memory with a fixed tree. So a region with column sums need not have a
// row reduction.

#include <algorithm>
#include <limits>

#include "gen/gpu/rows_schedule.h"

namespace tokamak::gpu {
namespace {

class RowsBuilder {
 public:
  // `requested`: null for the preferred schedule.
  RowsBuilder(const FusedRegion& region, const Schedule* requested, const Machine& machine,
              const std::string& name, bool cache)
      : region_(region),
        requested_(requested),
        b_(name, Dialect::kGpu),
        emitter_(b_, region),
        cached_(b_, emitter_),
        columns_(b_, emitter_),
        scheduler_(region, machine, cached_, columns_, cache) {}

  // As RowsScheduler.
  std::string Prepare() { return scheduler_.Prepare(requested_); }
  Schedule Chosen() const { return scheduler_.Chosen(); }

  BuildOutcome Build() {
    if (std::string why = Prepare(); !why.empty()) return {std::nullopt, why};
    if (t_.cached_registers + t_.cached_in_shared > 0)
      cached_.Allocate(t_.cached_registers, t_.cached_in_shared);
    int64_t blocks =
        columns_.empty() ? CeilDiv(t_.found.row_count, t_.block_rows) : columns_.outer();
    b_.For("block", LoopRole::kGrid, b_.Index(blocks), [&](Scalar g) {
      auto row = [&](Scalar r) {
        b_.For("t", LoopRole::kThread, b_.Index(t_.threads), [&](Scalar t) {
          block_row_ = r;
          thread_ = t;
          if (!columns_.empty()) return ReduceOuterIndex(g);
          row_at_ = LesserOf(g * b_.Index(t_.block_rows) + r, b_.Index(t_.found.row_count - 1));
          Row();
        });
      };
      if (t_.block_rows == 1) return row(b_.Index(0));
      b_.For("r", LoopRole::kThread, b_.Index(t_.block_rows), row);
    });
    BuildOutcome outcome = FinishBlockKernel(b_, emitter_, region_, blocks);
    if (outcome.built) outcome.built->schedule = Chosen();
    return outcome;
  }

 private:
  void Row() {
    if (t_.online) {
      ReduceOnline();
    } else {
      for (size_t pass = 0; pass < t_.found.levels.size(); ++pass) ReduceLevel(pass);
    }
    StoreRows();
    ForLastPass();
  }

  // All rows of one outer index, some at a time.
  void ReduceOuterIndex(Scalar outer_index) {
    columns_.Begin(t_.steps * t_.lanes);
    int64_t reduced_rows = columns_.reduced_rows();
    b_.For("k", LoopRole::kSerial, b_.Index(CeilDiv(reduced_rows, t_.block_rows)), [&](Scalar k) {
      Scalar number = k * b_.Index(t_.block_rows) + block_row_;
      row_at_ = outer_index * b_.Index(reduced_rows) + LesserOf(number, b_.Index(reduced_rows - 1));
      if (reduced_rows % t_.block_rows != 0) is_row_ = number < b_.Index(reduced_rows);
      Row();
      // Warps must have read the shared partial results of this row before the next row overwrites
      // them.
      if (t_.threads > kWarpSize && !t_.found.levels.empty()) b_.Barrier(BarrierScope::kBlock);
    });
    columns_.Finish(outer_index, block_row_, t_.block_rows, [&](auto&& body) {
      ForElements([&](Scalar element, const CachedElement& cached, Scalar) {
        body(element, cached.register_index);
      });
    });
  }

  // Calls body(element of the row, where its values are cached, lane) for all elements of a thread.
  template <typename Body>
  void ForElements(Body&& body) {
    auto vector = [&](Scalar step, bool in_shared) {
      Scalar number = step * b_.Index(t_.threads) + thread_;
      auto lanes = [&] {
        // Loads from arrays of other shapes need an index that is provably in the row.
        Scalar inside = columns_.empty() ? number : LesserOf(number, b_.Index(t_.vectors - 1));
        ForLanes(b_, t_.lanes, [&](Scalar lane) {
          CachedElement cached{step * b_.Index(t_.lanes) + lane, {}};
          if (in_shared)
            cached.shared_index =
                (number - b_.Index(t_.register_steps * t_.threads)) * b_.Index(t_.lanes) + lane;
          body(inside * b_.Index(t_.lanes) + lane, cached, lane);
        });
      };
      b_.If(number < b_.Index(t_.vectors), lanes);
    };
    int64_t whole = t_.vectors / t_.threads, next = 0;
    int64_t unrolled = t_.unrolled ? whole : std::min(whole, t_.register_steps);
    if (unrolled > 1) {
      b_.For("k", LoopRole::kUnrolled, b_.Index(unrolled), [&](Scalar k) { vector(k, false); });
      next = unrolled;
    }
    auto at_once = [&](int64_t count) {
      int64_t begin = next, iterations = (whole - begin) / count;
      if (iterations == 0) return;
      b_.For("k", LoopRole::kSerial, b_.Index(iterations), [&](Scalar k) {
        Scalar first = k * b_.Index(count) + b_.Index(begin);
        if (count == 1) return vector(first, t_.register_steps > 0);
        b_.For("u", LoopRole::kUnrolled, b_.Index(count),
               [&](Scalar u) { vector(first + u, t_.register_steps > 0); });
      });
      next += iterations * count;
    };
    if (!t_.unrolled) {
      at_once(t_.unroll);
      at_once(1);
    }
    for (; next * t_.threads < t_.vectors; ++next)
      vector(b_.Index(next), t_.register_steps > 0 && next >= t_.register_steps);
  }

  Coordinates InputAt(const Reducer& reducer, Scalar element) {
    return RowElementCoordinates(b_, reducer, row_at_, element);
  }

  // Coordinates in arrays with the dimensions of the rows.
  Coordinates OwnAt(Scalar element) {
    auto begin = t_.dims.begin(), middle = begin + static_cast<int64_t>(t_.split);
    Coordinates at = Delinearized(b_, row_at_, Dims(begin, middle));
    Coordinates rest = Delinearized(b_, element, Dims(middle, t_.dims.end()));
    at.insert(at.end(), rest.begin(), rest.end());
    return at;
  }

  void ReduceLevel(size_t pass) {
    const std::vector<Reducer>& level = t_.found.levels[pass];
    bool can_reassociate = CanReassociate(level);
    std::vector<Accumulators> sums;
    for (const Reducer& reducer : level)
      sums.emplace_back(b_, emitter_, reducer, can_reassociate ? t_.lanes : 1);
    std::vector<std::vector<Element>> results;
    if (can_reassociate) {
      ForLanes(b_, t_.lanes, [&](Scalar lane) {
        for (Accumulators& sum : sums) sum.Write(lane, sum.StartValue());
      });
      ForElements([&](Scalar element, const CachedElement& cached, Scalar lane) {
        Coordinates at = InputAt(level[0], element);
        cached_.LoadCached(pass, at, cached);
        for (Accumulators& sum : sums) sum.Accumulate(lane, InputAt(sum.reducer(), element), {});
        cached_.StoreCached(pass, at, cached);
      });
      for (Accumulators& sum : sums) results.push_back(sum.CombineLanes());
      Join(sums, results);
    } else {
      // Ordered reduction: every thread computes all of it.
      for (Accumulators& sum : sums) sum.Write(b_.Index(0), sum.StartValue());
      b_.For("k", LoopRole::kSerial, b_.Index(t_.found.row_length), [&](Scalar k) {
        for (Accumulators& sum : sums) sum.Accumulate(b_.Index(0), InputAt(sum.reducer(), k), {});
      });
      for (Accumulators& sum : sums) results.push_back(sum.Read(b_.Index(0)));
    }
    if (!emitter_.failure().empty()) return;
    for (size_t s = 0; s < sums.size(); ++s) {
      std::vector<Element> finished = sums[s].FinalResult(results[s]);
      const Reducer& reducer = sums[s].reducer();
      for (size_t i = 0; i < finished.size(); ++i) {
        Dims dims = ResultShapesOf(reducer.instr->shape())[i].dims();
        emitter_.Bind(*reducer.instr, i, Delinearized(b_, row_at_, dims), finished[i]);
      }
    }
  }

  Element Power(const Element& exponent) {
    ElementType type = t_.online->exponential->shape().type();
    std::array<Element, 1> operands = {exponent};
    const Instr& instr = *t_.online->exponential;
    auto power = ApplyOp(b_, {.op = Op::kExp,
                              .type = type,
                              .from = type,
                              .operands = operands,
                              .attrs = &instr.attrs()});
    if (!power) emitter_.Fail("its exponential has no scalar formula");
    return power.value_or(exponent);
  }

  // For some vectors of a thread at a time: update the maximum, rescale the sum to it, add the
  // exponentials.
  void ReduceOnline() {
    Accumulators greatest(b_, emitter_, t_.found.levels[0][0], t_.lanes);
    Accumulators sums(b_, emitter_, t_.found.levels[1][0], t_.lanes);
    ScalarType type = ComputeType(t_.online->x->shape().type());
    ArrayId some = b_.Local("some", type, Space::kRegisters, t_.unroll * t_.lanes);
    ArrayId most = b_.Local("most", type, Space::kRegisters, 1);
    b_.Store(most, b_.Index(0), greatest.StartValue()[0][0]);
    ForLanes(b_, t_.lanes, [&](Scalar lane) {
      greatest.Write(lane, greatest.StartValue());
      sums.Write(lane, sums.StartValue());
    });
    auto add = [&](Scalar first, int64_t count) {
      AddOnline(greatest, sums, some, most, first, count);
    };
    int64_t whole = t_.vectors / t_.threads / t_.unroll;
    if (whole > 0)
      b_.For("k", LoopRole::kSerial, b_.Index(whole),
             [&](Scalar k) { add(k * b_.Index(t_.unroll), t_.unroll); });
    for (int64_t next = whole * t_.unroll; next < t_.steps; next += t_.unroll)
      add(b_.Index(next), std::min(t_.unroll, t_.steps - next));
    if (!emitter_.failure().empty()) return;
    Scalar own = b_.Read(most, b_.Index(0));
    JoinRow(greatest, {{own, {}}});
    Dims dims = t_.online->shift->shape().dims();
    Scalar shift = emitter_.At(*t_.online->shift, Delinearized(b_, row_at_, dims))[0];
    Element scale = Power({own - shift, {}});
    JoinRow(sums, {{sums.CombineLanes()[0][0] * scale[0], {}}});
  }

  void AddOnline(Accumulators& greatest, Accumulators& sums, ArrayId some, ArrayId most,
                 Scalar first, int64_t count) {
    auto for_some = [&](auto&& body) {
      b_.For("u", LoopRole::kUnrolled, b_.Index(count), [&](Scalar u) {
        Scalar number = (first + u) * b_.Index(t_.threads) + thread_;
        b_.If(number < b_.Index(t_.vectors), [&] {
          ForLanes(b_, t_.lanes, [&](Scalar lane) {
            body(number * b_.Index(t_.lanes) + lane, u * b_.Index(t_.lanes) + lane, lane);
          });
        });
      });
    };
    for_some([&](Scalar element, Scalar index, Scalar lane) {
      Coordinates at = InputAt(greatest.reducer(), element);
      greatest.Accumulate(lane, at, {});
      b_.Store(some, index, emitter_.At(*t_.online->x, at)[0]);
    });
    if (!emitter_.failure().empty()) return;
    Scalar before = b_.Read(most, b_.Index(0)), now = greatest.CombineLanes()[0][0];
    b_.Store(most, b_.Index(0), now);
    Scalar zero = b_.Constant(now.type(), 0);
    // The difference of equal infinities would be NaN.
    Scalar scale = Power({Choose(before == now, zero, before - now), {}})[0];
    Scalar infinity = b_.Constant(now.type(), std::numeric_limits<double>::infinity());
    // If the maximum is not finite, do not shift: the exponentials are 0, infinite or NaN as they
    // should be.
    Scalar shift =
        Choose((now < infinity) &
                   (b_.Constant(now.type(), -std::numeric_limits<double>::infinity()) < now),
               now, zero);
    ForLanes(b_, t_.lanes, [&](Scalar lane) {
      sums.Write(lane, {{sums.Read(lane)[0][0] * scale, {}}});
    });
    for_some([&](Scalar, Scalar index, Scalar lane) {
      Scalar power = Power({b_.Read(some, index) - shift, {}})[0];
      sums.Write(lane, {{sums.Read(lane)[0][0] + power, {}}});
    });
  }

  // A reduction's result for the row, from the threads' partial values.
  void JoinRow(Accumulators& sum, std::vector<Element> own) {
    std::vector<Accumulators> sums = {sum};
    std::vector<std::vector<Element>> values = {std::move(own)};
    Join(sums, values);
    Element result = sum.FinalResult(values[0])[0];
    const Instr& instr = *sum.reducer().instr;
    emitter_.Bind(instr, 0, Delinearized(b_, row_at_, instr.shape().dims()), result);
  }

  // ---- reductions over threads; all threads get the result

  void Join(std::vector<Accumulators>& sums, std::vector<std::vector<Element>>& values) {
    if (!emitter_.failure().empty()) return;
    for (size_t s = 0; s < sums.size(); ++s)
      values[s] = JoinLanes(sums[s], values[s], std::min(t_.threads, kWarpSize));
    if (t_.threads <= kWarpSize) return;
    int64_t warps = t_.threads / kWarpSize;
    std::vector<std::vector<ElementArrays>> shared;
    Scalar warp = thread_ / b_.Index(kWarpSize), lane = thread_ % b_.Index(kWarpSize);
    b_.If(lane == b_.Index(0), [&] {
      for (const std::vector<Element>& value : values) {
        shared.emplace_back();
        for (const Element& element : value) {
          ElementArrays arrays{};
          for (size_t component = 0; component < 2; ++component) {
            if (!element[component].ok()) continue;
            arrays[component] =
                b_.Local("warps", element[component].type(), Space::kShared, t_.block_rows * warps);
            b_.Store(arrays[component], block_row_ * b_.Index(warps) + warp, element[component]);
          }
          shared.back().push_back(arrays);
        }
      }
    });
    b_.Barrier(BarrierScope::kBlock);
    Scalar from = block_row_ * b_.Index(warps) + lane % b_.Index(warps);
    for (size_t s = 0; s < sums.size(); ++s) {
      for (size_t i = 0; i < values[s].size(); ++i)
        for (size_t component = 0; component < 2; ++component)
          if (values[s][i][component].ok())
            values[s][i][component] = b_.Read(shared[s][i][component], from);
      values[s] = JoinLanes(sums[s], values[s], warps);
    }
  }

  std::vector<Element> JoinLanes(Accumulators& sum, std::vector<Element> value, int64_t lanes) {
    for (int64_t offset = lanes / 2; offset > 0; offset /= 2) {
      std::vector<Element> other = value;
      for (Element& element : other)
        for (Scalar& part : element)
          if (part.ok()) part = b_.Shuffle(part, b_.Index(offset));
      value = sum.CombinePair(value, other);
    }
    return value;
  }

  // ---- roots

  void StoreRows() {
    auto has_row = [&](const Instr* root) {
      return ResultShapesOf(root->shape())[0].ElementCount() == t_.found.row_count;
    };
    const std::vector<const Instr*>& roots = t_.region.roots;
    if (std::none_of(roots.begin(), roots.end(), has_row)) return;
    b_.If(thread_ == b_.Index(0), [&] {
      for (const Instr* root : roots) {
        std::vector<Shape> parts = ResultShapesOf(root->shape());
        for (size_t i = 0; i < parts.size(); ++i) {
          if (parts[i].ElementCount() != t_.found.row_count) continue;
          Element value = emitter_.At(*root, Delinearized(b_, row_at_, parts[i].dims()), i);
          emitter_.StoreLinear(*root, i, row_at_, value);
        }
      }
    });
  }

  // Stores elements, and adds them to their column sums.
  void ForLastPass() {
    std::vector<const Instr*> roots = t_.LastRoots();
    for (const Instr* root : roots)
      if (!root->shape().IsArray() ||
          root->shape().ElementCount() != t_.found.row_count * t_.found.row_length)
        return emitter_.Fail("a root has neither one element per row element nor one per row");
    if (roots.empty() && columns_.empty()) return;
    ForElements([&](Scalar element, const CachedElement& cached, Scalar) {
      Scalar linear = row_at_ * b_.Index(t_.found.row_length) + element;
      Coordinates own = OwnAt(element);
      cached_.LoadCached(t_.found.levels.size(), own, cached);
      std::vector<Element> values;
      for (const Instr* root : roots) {
        const Dims& dims = root->shape().dims();
        values.push_back(
            emitter_.At(*root, dims == t_.dims ? own : Delinearized(b_, linear, dims)));
      }
      for (size_t i = 0; i < roots.size(); ++i)
        emitter_.StoreLinear(*roots[i], 0, linear, values[i]);
      columns_.Accumulate(cached.register_index, own, t_.dims, linear, is_row_);
    });
  }

  const FusedRegion& region_;
  const Schedule* requested_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  CachedValues cached_;
  ColumnSums columns_;
  RowsScheduler scheduler_;
  const RowsTiling& t_ = scheduler_.tiling();
  Scalar row_at_, block_row_, thread_;
  Scalar is_row_;  // false for clamped row indices beyond the last
};

// The schedule that is preferred if values may be cached; nullopt if there is no kernel. It caches
// nothing for online softmax, which reads a row once.
std::optional<Schedule> CachedSchedule(const FusedRegion& region, const Machine& machine) {
  RowsBuilder builder(region, nullptr, machine, "probe", true);
  if (!builder.Prepare().empty()) return std::nullopt;
  return builder.Chosen();
}

}  // namespace

BuildOutcome BuildRows(const FusedRegion& region, const Schedule* schedule, const Machine& machine,
                       const std::string& name) {
  if (schedule == nullptr || schedule->staging != Staging::kMemory ||
      *schedule == CachedSchedule(region, machine)) {
    BuildOutcome cached = RowsBuilder(region, schedule, machine, name, true).Build();
    if (cached.built || schedule != nullptr) return cached;
  }
  // A cached value may also be needed at another index: retry without caching.
  return RowsBuilder(region, schedule, machine, name, false).Build();
}

std::vector<Schedule> RowsSchedules(const FusedRegion& region, const Machine& machine) {
  BuildOutcome preferred = gpu::BuildRows(region, nullptr, machine, "probe");
  if (!preferred.built) return {};
  const Schedule first = *preferred.built->schedule;
  std::vector<Schedule> all = {first};
  auto add = [&](auto&& change) {
    Schedule next = first;
    change(next);
    next.threads = next.tile_rows * (next.tile_depth / next.vector);
    bool caches = next.staging != Staging::kMemory;
    if (std::find(all.begin(), all.end(), next) == all.end() &&
        RowsBuilder(region, &next, machine, "probe", caches).Prepare().empty())
      all.push_back(next);
  };
  // A schedule with other threads keeps no values by default: how many fit differs.
  auto threads = [&](Schedule& s, int64_t depth) {
    s.tile_depth = std::max(depth, s.vector);
    s.staging = Staging::kMemory;
    s.unroll = 1;
  };
  add([&](Schedule& s) { s.tile_rows *= 2; });
  add([&](Schedule& s) { s.tile_rows = std::max<int64_t>(s.tile_rows / 2, 1); });
  add([&](Schedule& s) { threads(s, 2 * s.tile_depth); });
  add([&](Schedule& s) { threads(s, s.tile_depth / 2); });
  add([&](Schedule& s) {
    s.vector = std::max<int64_t>(s.vector / 2, 1);
    threads(s, s.tile_depth);
  });
  add([&](Schedule& s) { s.staging = Staging::kMemory; });
  add([&](Schedule& s) {
    s.staging = Staging::kMemory;
    // Vectors in flight. Chosen: half of the preferred kRowsUnroll, for fewer registers.
    constexpr int64_t kFewInFlight = 2;
    s.unroll = kFewInFlight;
  });
  for (Staging staging : {Staging::kRegisters, Staging::kShared})
    add([&](Schedule& s) { s.staging = staging; });
  return all;
}

}  // namespace tokamak::gpu
