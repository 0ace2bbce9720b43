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

#include "gen/gpu/cached_values.h"
#include "gen/gpu/column_sums.h"
#include "gen/gpu/gpu.h"
#include "gen/online_sum_exp.h"
#include "gen/row_levels.h"

namespace tokamak::gpu {
namespace {

// Threads of a block of short rows (chosen), and the maximum of a block (CUDA limit).
constexpr int64_t kBlock = 256, kRowsMostThreads = 1024;
// Vectors per thread: a warp processes rows of up to kRowsWarpSteps vectors per thread; a block has
// as many threads as leave kBlockSteps for each. Chosen.
constexpr int64_t kRowsWarpSteps = 8, kBlockSteps = 4;
// Registers per thread for cached values; half of them in blocks of kRowsMostThreads. Chosen: 1024
// threads have 64 registers each (CUDA limit).
constexpr int64_t kCachedRegisters = 64;
// Registers per thread for cached values and column sums, if more threads per row can reduce them
// to that. Chosen.
constexpr int64_t kColumnRegisters = 96;
// Registers per thread for the accumulators of all lanes; above kFewRegisters only kRowsMostThreads
// / 2 threads share a row. Chosen.
constexpr int64_t kAccumulatorRegisters = 48, kFewRegisters = 24;
// Long rows cached in registers and shared memory. First choice: two blocks fit on an SM, so one
// loads while the other computes; otherwise one block with all shared memory of an SM. Bytes are
// below the limit of 227 KiB per block on sm_90 (CUDA programming guide).
struct LongRow {
  int64_t threads, thread_registers, shared_bytes;
};
constexpr LongRow kLongRowConfigs[] = {{512, 16, 112 << 10}, {kRowsMostThreads, 32, 224 << 10}};
// Loads in flight per thread if its vectors are not all in registers. Chosen.
constexpr int64_t kRowsUnroll = 4;
// Online softmax: vectors that a thread has in registers, and threads per row. Chosen: several
// blocks fit on an SM.
constexpr int64_t kOnlineVectors = 8, kOnlineThreads = 512;

class RowsBuilder {
 public:
  RowsBuilder(const FusedRegion& region, const Machine& machine, const std::string& name,
              bool cache)
      : region_(region),
        machine_(machine),
        b_(name, Dialect::kGpu),
        emitter_(b_, region),
        cached_(b_, emitter_),
        columns_(b_, emitter_),
        caches_(cache) {}

  BuildOutcome Build() {
    if (std::string why = Find(); !why.empty()) return {std::nullopt, why};
    if (std::string why = Schedule(); !why.empty()) return {std::nullopt, why};
    int64_t blocks = columns_.empty() ? CeilDiv(found_.row_count, block_rows_) : columns_.outer();
    b_.For("block", LoopRole::kGrid, b_.Index(blocks), [&](Scalar g) {
      auto row = [&](Scalar r) {
        b_.For("t", LoopRole::kThread, b_.Index(threads_), [&](Scalar t) {
          block_row_ = r;
          thread_ = t;
          if (!columns_.empty()) return ReduceOuterIndex(g);
          row_at_ = LesserOf(g * b_.Index(block_rows_) + r, b_.Index(found_.row_count - 1));
          Row();
        });
      };
      if (block_rows_ == 1) return row(b_.Index(0));
      b_.For("r", LoopRole::kThread, b_.Index(block_rows_), row);
    });
    return FinishBlockKernel(b_, emitter_, region_, blocks);
  }

 private:
  static bool AnyOrder(const std::vector<Reducer>& level) {
    return std::all_of(level.begin(), level.end(),
                       [](const Reducer& reducer) { return reducer.can_reassociate; });
  }

  // Finds the rows: those of the row reductions, or those of the column sums' operands.
  std::string Find() {
    if (std::string why = columns_.Find(region_, rows_region_); !why.empty()) return why;
    bool reduces = std::any_of(rows_region_.instrs.begin(), rows_region_.instrs.end(),
                               [](const Instr* instr) { return instr->op() == Op::kReduce; });
    if (columns_.empty() || reduces)
      if (std::string why = AnalyzeRowLevels(rows_region_, found_); !why.empty()) return why;
    if (!columns_.empty()) {
      int64_t rows = columns_.outer() * columns_.reduced_rows();
      if (reduces && (found_.row_length != columns_.row_length() || found_.row_count != rows))
        return "its column sums are over other rows than its reductions";
      found_.row_count = rows;
      found_.row_length = columns_.row_length();
    }
    dims_ = found_.levels.empty() ? columns_.operand(0).shape().dims()
                                  : found_.levels[0][0].input().dims();
    split_ = dims_.size();
    for (int64_t row = 1; row < found_.row_length && split_ > 0;) row *= dims_[--split_];
    if (ProductOf(dims_, split_, dims_.size()) != found_.row_length)
      return "its column sums reduce a transposed array";
    return "";
  }

  // Whether all roots are reductions and the region reads strided elements (one feature of each
  // sample): threads then access memory closer together if each takes one element at a time.
  bool ReadsStrided() const {
    auto reduces = [](const Instr* root) { return root->op() == Op::kReduce; };
    return std::all_of(region_.roots.begin(), region_.roots.end(), reduces) &&
           std::any_of(region_.instrs.begin(), region_.instrs.end(), [](const Instr* instr) {
             return instr->op() == Op::kSlice && instr->shape().dims().back() == 1 &&
                    instr->operand(0)->shape().dims().back() > 1;
           });
  }

  // Registers per lane for accumulators that are live at the same time.
  int64_t AccumulatorRegisters() const {
    int64_t most = 0;
    for (const std::vector<Reducer>& level : found_.levels) {
      int64_t thread_registers = 0;
      for (const Reducer& reducer : level)
        for (size_t i = 0; i < reducer.input_count; ++i)
          thread_registers += CeilDiv(InfoOf(AccumulatorElementType(reducer.type(i))).bits, 32);
      most = std::max(most, thread_registers);
    }
    return most;
  }

  std::string Schedule() {
    bool can_reassociate = std::all_of(found_.levels.begin(), found_.levels.end(), AnyOrder);
    lanes_ = ReadsStrided() ? 1
                            : VectorWidthFor(region_, machine_, found_.row_length,
                                             found_.row_count * found_.row_length);
    int64_t thread_registers = AccumulatorRegisters();
    while (lanes_ > 1 && thread_registers * lanes_ > kAccumulatorRegisters) lanes_ /= 2;
    vectors_ = found_.row_length / lanes_;
    if (vectors_ <= kWarpSize * kRowsWarpSteps) {
      threads_ = std::min(kWarpSize, CeilPowerOfTwo(vectors_));
    } else {
      int64_t most =
          thread_registers * lanes_ > kFewRegisters ? kRowsMostThreads / 2 : kRowsMostThreads;
      threads_ = std::clamp(CeilPowerOfTwo(CeilDiv(vectors_, kBlockSteps)), 2 * kWarpSize, most);
    }
    int64_t cached =
        caches_ && can_reassociate ? cached_.Find(region_, found_, dims_, NeededLast()) : 0;
    while (!columns_.empty() && threads_ < std::min(kRowsMostThreads, vectors_) &&
           CeilDiv(vectors_, threads_) * lanes_ * (columns_.thread_registers() + cached) >
               kColumnRegisters)
      threads_ *= 2;
    int64_t most = std::max<int64_t>(1, kBlock / threads_);
    block_rows_ = std::min(
        most, CeilPowerOfTwo(columns_.empty() ? found_.row_count : columns_.reduced_rows()));
    while (columns_.empty() && block_rows_ > 1 && found_.row_count < block_rows_ * machine_.cores)
      block_rows_ /= 2;
    bool is_long = cached > 0 && columns_.empty() && threads_ == kRowsMostThreads;
    if (is_long && CacheLongRows(cached)) return "";
    if (is_long && FindOnlineLogsumexp()) return "";
    steps_ = CeilDiv(vectors_, threads_);
    unrolled_ = steps_ <= kRowsWarpSteps;
    if (!columns_.empty() && (!unrolled_ || !can_reassociate))
      return "its rows are too long for column sums";
    int64_t room = threads_ == kRowsMostThreads ? kCachedRegisters / 2 : kCachedRegisters;
    if (cached > 0 && unrolled_ && cached * steps_ * lanes_ <= room)
      cached_.Allocate(steps_ * lanes_);
    return "";
  }

  // Whether a long row, with `cached` registers per element, fits in registers and shared memory.
  // If it would need a whole SM, online softmax is preferred where it applies.
  bool CacheLongRows(int64_t cached) {
    for (const LongRow& config : kLongRowConfigs) {
      if (config.threads == kRowsMostThreads && LastRoots().empty() && FindOnlineLogsumexp())
        return true;
      int64_t steps = CeilDiv(vectors_, config.threads);
      int64_t in_registers = std::min(steps, config.thread_registers / (cached * lanes_));
      int64_t in_shared = (steps - in_registers) * lanes_;
      if (in_shared * config.threads * cached_.SharedBytes() > config.shared_bytes) continue;
      threads_ = config.threads;
      steps_ = steps;
      register_steps_ = in_registers;
      cached_.Allocate(in_registers * lanes_, in_shared * threads_);
      return true;
    }
    return false;
  }

  // Whether one pass can compute both the row's maximum and the sum of exp(x - maximum).
  bool FindOnlineLogsumexp() {
    const std::vector<std::vector<Reducer>>& levels = found_.levels;
    if (levels.size() != 2 || levels[0].size() != 1 || levels[1].size() != 1) return false;
    online_ = OnlineSumExpOf(levels[1][0], levels[0][0]);
    if (!online_) return false;
    threads_ = kOnlineThreads;
    block_rows_ = 1;
    steps_ = CeilDiv(vectors_, threads_);
    return true;
  }

  // Values whose elements the last pass over a row uses.
  std::vector<const Instr*> NeededLast() const {
    std::vector<const Instr*> needed;
    for (const Instr* root : region_.roots)
      if (root->op() != Op::kReduce) needed.push_back(root);
    for (size_t i = 0; i < columns_.size(); ++i) needed.push_back(&columns_.operand(i));
    return needed;
  }

  void Row() {
    if (online_) {
      ReduceOnline();
    } else {
      for (size_t pass = 0; pass < found_.levels.size(); ++pass) ReduceLevel(pass);
    }
    StoreRows();
    ForLastPass();
  }

  // All rows of one outer index, some at a time.
  void ReduceOuterIndex(Scalar outer_index) {
    columns_.Begin(steps_ * lanes_);
    int64_t reduced_rows = columns_.reduced_rows();
    b_.For("k", LoopRole::kSerial, b_.Index(CeilDiv(reduced_rows, block_rows_)), [&](Scalar k) {
      Scalar number = k * b_.Index(block_rows_) + block_row_;
      row_at_ = outer_index * b_.Index(reduced_rows) + LesserOf(number, b_.Index(reduced_rows - 1));
      if (reduced_rows % block_rows_ != 0) is_row_ = number < b_.Index(reduced_rows);
      Row();
      // Warps must have read the shared partial results of this row before the next row overwrites
      // them.
      if (threads_ > kWarpSize && !found_.levels.empty()) b_.Barrier(BarrierScope::kBlock);
    });
    columns_.Finish(outer_index, block_row_, block_rows_, [&](auto&& body) {
      ForElements([&](Scalar element, const CachedElement& cached, Scalar) {
        body(element, cached.register_index);
      });
    });
  }

  // Calls body(element of the row, where its values are cached, lane) for all elements of a thread.
  template <typename Body>
  void ForElements(Body&& body) {
    auto vector = [&](Scalar step, bool in_shared) {
      Scalar number = step * b_.Index(threads_) + thread_;
      auto lanes = [&] {
        // Loads from arrays of other shapes need an index that is provably in the row.
        Scalar inside = columns_.empty() ? number : LesserOf(number, b_.Index(vectors_ - 1));
        ForLanes(b_, lanes_, [&](Scalar lane) {
          CachedElement cached{step * b_.Index(lanes_) + lane, {}};
          if (in_shared)
            cached.shared_index =
                (number - b_.Index(register_steps_ * threads_)) * b_.Index(lanes_) + lane;
          body(inside * b_.Index(lanes_) + lane, cached, lane);
        });
      };
      b_.If(number < b_.Index(vectors_), lanes);
    };
    int64_t whole = vectors_ / threads_, next = 0;
    int64_t unrolled = unrolled_ ? whole : std::min(whole, register_steps_);
    if (unrolled > 1) {
      b_.For("k", LoopRole::kUnrolled, b_.Index(unrolled), [&](Scalar k) { vector(k, false); });
      next = unrolled;
    }
    auto at_once = [&](int64_t count) {
      int64_t begin = next, iterations = (whole - begin) / count;
      if (iterations == 0) return;
      b_.For("k", LoopRole::kSerial, b_.Index(iterations), [&](Scalar k) {
        Scalar first = k * b_.Index(count) + b_.Index(begin);
        if (count == 1) return vector(first, register_steps_ > 0);
        b_.For("u", LoopRole::kUnrolled, b_.Index(count),
               [&](Scalar u) { vector(first + u, register_steps_ > 0); });
      });
      next += iterations * count;
    };
    if (!unrolled_) {
      at_once(kRowsUnroll);
      at_once(1);
    }
    for (; next * threads_ < vectors_; ++next)
      vector(b_.Index(next), register_steps_ > 0 && next >= register_steps_);
  }

  Coordinates InputAt(const Reducer& reducer, Scalar element) {
    return RowElementCoordinates(b_, reducer, row_at_, element);
  }

  // Coordinates in arrays with the dimensions of the rows.
  Coordinates OwnAt(Scalar element) {
    auto begin = dims_.begin(), middle = begin + static_cast<int64_t>(split_);
    Coordinates at = Delinearized(b_, row_at_, Dims(begin, middle));
    Coordinates rest = Delinearized(b_, element, Dims(middle, dims_.end()));
    at.insert(at.end(), rest.begin(), rest.end());
    return at;
  }

  void ReduceLevel(size_t pass) {
    const std::vector<Reducer>& level = found_.levels[pass];
    bool can_reassociate = AnyOrder(level);
    std::vector<Accumulators> sums;
    for (const Reducer& reducer : level)
      sums.emplace_back(b_, emitter_, reducer, can_reassociate ? lanes_ : 1);
    std::vector<std::vector<Element>> results;
    if (can_reassociate) {
      ForLanes(b_, lanes_, [&](Scalar lane) {
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
      b_.For("k", LoopRole::kSerial, b_.Index(found_.row_length), [&](Scalar k) {
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
    ElementType type = online_->exponential->shape().type();
    std::array<Element, 1> operands = {exponent};
    const Instr& instr = *online_->exponential;
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
    Accumulators greatest(b_, emitter_, found_.levels[0][0], lanes_);
    Accumulators sums(b_, emitter_, found_.levels[1][0], lanes_);
    ScalarType type = ComputeType(online_->x->shape().type());
    ArrayId some = b_.Local("some", type, Space::kRegisters, kOnlineVectors * lanes_);
    ArrayId most = b_.Local("most", type, Space::kRegisters, 1);
    b_.Store(most, b_.Index(0), greatest.StartValue()[0][0]);
    ForLanes(b_, lanes_, [&](Scalar lane) {
      greatest.Write(lane, greatest.StartValue());
      sums.Write(lane, sums.StartValue());
    });
    auto add = [&](Scalar first, int64_t count) {
      AddOnline(greatest, sums, some, most, first, count);
    };
    int64_t whole = vectors_ / threads_ / kOnlineVectors;
    if (whole > 0)
      b_.For("k", LoopRole::kSerial, b_.Index(whole),
             [&](Scalar k) { add(k * b_.Index(kOnlineVectors), kOnlineVectors); });
    for (int64_t next = whole * kOnlineVectors; next < steps_; next += kOnlineVectors)
      add(b_.Index(next), std::min(kOnlineVectors, steps_ - next));
    if (!emitter_.failure().empty()) return;
    Scalar own = b_.Read(most, b_.Index(0));
    JoinRow(greatest, {{own, {}}});
    Dims dims = online_->shift->shape().dims();
    Scalar shift = emitter_.At(*online_->shift, Delinearized(b_, row_at_, dims))[0];
    Element scale = Power({own - shift, {}});
    JoinRow(sums, {{sums.CombineLanes()[0][0] * scale[0], {}}});
  }

  void AddOnline(Accumulators& greatest, Accumulators& sums, ArrayId some, ArrayId most,
                 Scalar first, int64_t count) {
    auto for_some = [&](auto&& body) {
      b_.For("u", LoopRole::kUnrolled, b_.Index(count), [&](Scalar u) {
        Scalar number = (first + u) * b_.Index(threads_) + thread_;
        b_.If(number < b_.Index(vectors_), [&] {
          ForLanes(b_, lanes_, [&](Scalar lane) {
            body(number * b_.Index(lanes_) + lane, u * b_.Index(lanes_) + lane, lane);
          });
        });
      });
    };
    for_some([&](Scalar element, Scalar index, Scalar lane) {
      Coordinates at = InputAt(greatest.reducer(), element);
      greatest.Accumulate(lane, at, {});
      b_.Store(some, index, emitter_.At(*online_->x, at)[0]);
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
    ForLanes(b_, lanes_, [&](Scalar lane) {
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
      values[s] = JoinLanes(sums[s], values[s], std::min(threads_, kWarpSize));
    if (threads_ <= kWarpSize) return;
    int64_t warps = threads_ / kWarpSize;
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
                b_.Local("warps", element[component].type(), Space::kShared, block_rows_ * warps);
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
      return ResultShapesOf(root->shape())[0].ElementCount() == found_.row_count;
    };
    const std::vector<const Instr*>& roots = rows_region_.roots;
    if (std::none_of(roots.begin(), roots.end(), has_row)) return;
    b_.If(thread_ == b_.Index(0), [&] {
      for (const Instr* root : roots) {
        std::vector<Shape> parts = ResultShapesOf(root->shape());
        for (size_t i = 0; i < parts.size(); ++i) {
          if (parts[i].ElementCount() != found_.row_count) continue;
          Element value = emitter_.At(*root, Delinearized(b_, row_at_, parts[i].dims()), i);
          emitter_.StoreLinear(*root, i, row_at_, value);
        }
      }
    });
  }

  // Roots with more than one element per row.
  std::vector<const Instr*> LastRoots() const {
    std::vector<const Instr*> roots = rows_region_.roots;
    std::erase_if(roots, [&](const Instr* root) {
      return ResultShapesOf(root->shape())[0].ElementCount() == found_.row_count;
    });
    return roots;
  }

  // Stores elements, and adds them to their column sums.
  void ForLastPass() {
    std::vector<const Instr*> roots = LastRoots();
    for (const Instr* root : roots)
      if (!root->shape().IsArray() ||
          root->shape().ElementCount() != found_.row_count * found_.row_length)
        return emitter_.Fail("a root has neither one element per row element nor one per row");
    if (roots.empty() && columns_.empty()) return;
    ForElements([&](Scalar element, const CachedElement& cached, Scalar) {
      Scalar linear = row_at_ * b_.Index(found_.row_length) + element;
      Coordinates own = OwnAt(element);
      cached_.LoadCached(found_.levels.size(), own, cached);
      std::vector<Element> values;
      for (const Instr* root : roots) {
        const Dims& dims = root->shape().dims();
        values.push_back(emitter_.At(*root, dims == dims_ ? own : Delinearized(b_, linear, dims)));
      }
      for (size_t i = 0; i < roots.size(); ++i)
        emitter_.StoreLinear(*roots[i], 0, linear, values[i]);
      columns_.Accumulate(cached.register_index, own, dims_, linear, is_row_);
    });
  }

  const FusedRegion& region_;
  const Machine& machine_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  CachedValues cached_;
  ColumnSums columns_;
  std::optional<OnlineSumExp> online_;
  bool caches_, unrolled_ = false;
  FusedRegion rows_region_;  // without column sums
  RowLevels found_;
  Dims dims_;         // of the arrays that rows consist of
  size_t split_ = 0;  // dims_ before it enumerate rows
  int64_t lanes_ = 1, vectors_ = 1, threads_ = 1, block_rows_ = 1, steps_ = 1;
  // Steps before it are cached in registers, the others in shared memory.
  int64_t register_steps_ = 0;
  Scalar row_at_, block_row_, thread_;
  Scalar is_row_;  // false for clamped row indices beyond the last
};

}  // namespace

BuildOutcome BuildRows(const FusedRegion& region, const Machine& machine, const std::string& name) {
  BuildOutcome cached = RowsBuilder(region, machine, name, true).Build();
  if (cached.built) return cached;
  // A cached value may also be needed at another index: retry without caching.
  return RowsBuilder(region, machine, name, false).Build();
}

}  // namespace tokamak::gpu
