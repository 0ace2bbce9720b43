// The rows of a GPU: reductions over the last dimensions, with what is computed from them. A row
// has a group of threads: a part of a warp, a warp, or a block; short rows share a block.
//
//   for each level of reductions:  softmax: max; then the sum of exp(x - max)
//     each thread folds its vectors of the row
//     the threads of a warp join their sums by shuffles, warps by team memory: all have the result
//   the first thread of a row writes what has one element a row
//   each thread writes its elements
//
// What a thread has read or computed of its elements stays in its registers for the passes that
// follow, when it has few of them; of long rows, a part of it in team memory. What is too much for
// both is read again. Every thread comes to every shuffle and
// barrier: rows beyond the last are the last one again.
//
// Sums along columns of the same rows (column_sums.h) are made on the way: a block goes through the
// rows of one part, each thread adds up its columns, and those of all rows at a time are joined
// through team memory in a fixed tree. So a region of columns may have no reduction of rows at all.

#include <algorithm>
#include <limits>

#include "gen/gpu/column_sums.h"
#include "gen/gpu/gpu.h"
#include "gen/gpu/kept.h"
#include "gen/row_levels.h"
#include "gen/shifted_sum.h"

namespace tokamak::gpu {
namespace {

constexpr int64_t kBlock = 256, kRowsMostThreads = 1024;
// Vectors of a thread: a warp takes a row of up to kRowsWarpSteps times its threads; a block has as
// many threads as leave each one kBlockSteps.
constexpr int64_t kRowsWarpSteps = 8, kBlockSteps = 4;
// Registers of a thread for what it keeps; of blocks of kRowsMostThreads there are half as many.
constexpr int64_t kKeptWords = 64;
// Registers of a thread for what it keeps and sums of columns, if more threads a row can make them
// so few.
constexpr int64_t kColumnWords = 96;
// Registers for the sums of a thread, of all its lanes; of more than kFewWords, half of
// kRowsMostThreads share a row.
constexpr int64_t kSumWords = 48, kFewWords = 24;
// Of long rows, whose elements are kept in registers and in team memory: how many threads share a
// row, so that two teams fit on a multiprocessor and one reads while the other computes; else one
// team.
struct LongRow {
  int64_t threads, words, team_bytes;
};
constexpr LongRow kLongRows[] = {{512, 16, 112 << 10}, {kRowsMostThreads, 32, 224 << 10}};
// Loads in flight of a thread whose vectors are not all in registers.
constexpr int64_t kRowsUnroll = 4;
// Where maximum and shifted sum are found at once: vectors that a thread has in registers, and
// threads of a row; several teams fit on a multiprocessor.
constexpr int64_t kSome = 8, kShiftedThreads = 512;

class RowsBuilder {
 public:
  RowsBuilder(const Region& region, const Machine& machine, const std::string& name, bool keep)
      : region_(region),
        machine_(machine),
        b_(name, Dialect::kGpu),
        emitter_(b_, region),
        kept_(b_, emitter_),
        columns_(b_, emitter_),
        keep_(keep) {}

  BuildOutcome Build() {
    if (std::string why = Find(); !why.empty()) return {std::nullopt, why};
    if (std::string why = Schedule(); !why.empty()) return {std::nullopt, why};
    int64_t blocks = columns_.empty() ? CeilDiv(found_.rows, block_rows_) : columns_.parts();
    b_.For("block", LoopRole::kGrid, b_.Index(blocks), [&](Scalar g) {
      auto row = [&](Scalar r) {
        b_.For("t", LoopRole::kThread, b_.Index(threads_), [&](Scalar t) {
          block_row_ = r;
          thread_ = t;
          if (!columns_.empty()) return Part(g);
          row_at_ = LesserOf(g * b_.Index(block_rows_) + r, b_.Index(found_.rows - 1));
          Row();
        });
      };
      if (block_rows_ == 1) return row(b_.Index(0));
      b_.For("r", LoopRole::kThread, b_.Index(block_rows_), row);
    });
    return FinishTeams(b_, emitter_, region_, blocks);
  }

 private:
  static bool AnyOrder(const std::vector<Reducer>& level) {
    return std::all_of(level.begin(), level.end(),
                       [](const Reducer& reducer) { return reducer.any_order; });
  }

  // The rows: of the reductions along them, or of what columns are summed of.
  std::string Find() {
    if (std::string why = columns_.Find(region_, rows_region_); !why.empty()) return why;
    bool folds = std::any_of(rows_region_.instrs.begin(), rows_region_.instrs.end(),
                             [](const Instr* instr) { return instr->op() == Op::kReduce; });
    if (columns_.empty() || folds)
      if (std::string why = FindRowLevels(rows_region_, found_); !why.empty()) return why;
    if (!columns_.empty()) {
      int64_t rows = columns_.parts() * columns_.folded();
      if (folds && (found_.row != columns_.row() || found_.rows != rows))
        return "its columns are of other rows than it folds";
      found_.rows = rows;
      found_.row = columns_.row();
    }
    dims_ = found_.levels.empty() ? columns_.operand(0).shape().dims()
                                  : found_.levels[0][0].input().dims();
    split_ = dims_.size();
    for (int64_t row = 1; row < found_.row && split_ > 0;) row *= dims_[--split_];
    if (ProductOf(dims_, split_, dims_.size()) != found_.row)
      return "its columns lie across what they are summed of";
    return "";
  }

  // Whether all that comes of it is folded, and it reads elements that lie apart (a feature of each
  // sample): neighbouring threads then read nearer to each other if each takes one at a time.
  bool ReadsApart() const {
    auto folds = [](const Instr* root) { return root->op() == Op::kReduce; };
    return std::all_of(region_.roots.begin(), region_.roots.end(), folds) &&
           std::any_of(region_.instrs.begin(), region_.instrs.end(), [](const Instr* instr) {
             return instr->op() == Op::kSlice && instr->shape().dims().back() == 1 &&
                    instr->operand(0)->shape().dims().back() > 1;
           });
  }

  // Registers of one lane for sums that are made at the same time.
  int64_t SumWords() const {
    int64_t most = 0;
    for (const std::vector<Reducer>& level : found_.levels) {
      int64_t words = 0;
      for (const Reducer& reducer : level)
        for (size_t i = 0; i < reducer.count; ++i)
          words += CeilDiv(InfoOf(WideType(reducer.type(i))).bits, 32);
      most = std::max(most, words);
    }
    return most;
  }

  std::string Schedule() {
    bool any_order = std::all_of(found_.levels.begin(), found_.levels.end(), AnyOrder);
    lanes_ = ReadsApart() ? 1 : LanesFor(region_, machine_, found_.row, found_.rows * found_.row);
    int64_t words = SumWords();
    while (lanes_ > 1 && words * lanes_ > kSumWords) lanes_ /= 2;
    vectors_ = found_.row / lanes_;
    if (vectors_ <= kWarp * kRowsWarpSteps) {
      threads_ = std::min(kWarp, PowerAbove(vectors_));
    } else {
      int64_t most = words * lanes_ > kFewWords ? kRowsMostThreads / 2 : kRowsMostThreads;
      threads_ = std::clamp(PowerAbove(CeilDiv(vectors_, kBlockSteps)), 2 * kWarp, most);
    }
    int64_t kept = keep_ && any_order ? kept_.Find(region_, found_, dims_, NeededLast()) : 0;
    while (!columns_.empty() && threads_ < std::min(kRowsMostThreads, vectors_) &&
           CeilDiv(vectors_, threads_) * lanes_ * (columns_.words() + kept) > kColumnWords)
      threads_ *= 2;
    int64_t most = std::max<int64_t>(1, kBlock / threads_);
    block_rows_ = std::min(most, PowerAbove(columns_.empty() ? found_.rows : columns_.folded()));
    while (columns_.empty() && block_rows_ > 1 && found_.rows < block_rows_ * machine_.cores)
      block_rows_ /= 2;
    bool is_long = kept > 0 && columns_.empty() && threads_ == kRowsMostThreads;
    if (is_long && KeepLong(kept)) return "";
    if (is_long && FindShifted()) return "";
    steps_ = CeilDiv(vectors_, threads_);
    unrolled_ = steps_ <= kRowsWarpSteps;
    if (!columns_.empty() && (!unrolled_ || !any_order))
      return "its rows are too long for sums of columns";
    int64_t room = threads_ == kRowsMostThreads ? kKeptWords / 2 : kKeptWords;
    if (kept > 0 && unrolled_ && kept * steps_ * lanes_ <= room) kept_.Keep(steps_ * lanes_);
    return "";
  }

  // Whether a long row, of `kept` words an element, fits into registers and team memory. Where that
  // takes a whole multiprocessor, there is a better way for sums of powers.
  bool KeepLong(int64_t kept) {
    for (const LongRow& way : kLongRows) {
      if (way.threads == kRowsMostThreads && LastRoots().empty() && FindShifted()) return true;
      int64_t steps = CeilDiv(vectors_, way.threads);
      int64_t in_registers = std::min(steps, way.words / (kept * lanes_));
      int64_t in_team = (steps - in_registers) * lanes_;
      if (in_team * way.threads * kept_.TeamBytes() > way.team_bytes) continue;
      threads_ = way.threads;
      steps_ = steps;
      register_steps_ = in_registers;
      kept_.Keep(in_registers * lanes_, in_team * threads_);
      return true;
    }
    return false;
  }

  // Whether the row is gone through once for its greatest element and the sum of exp(x - that).
  bool FindShifted() {
    const std::vector<std::vector<Reducer>>& levels = found_.levels;
    if (levels.size() != 2 || levels[0].size() != 1 || levels[1].size() != 1) return false;
    shifted_ = ShiftedSumOf(levels[1][0], levels[0][0]);
    if (!shifted_) return false;
    threads_ = kShiftedThreads;
    block_rows_ = 1;
    steps_ = CeilDiv(vectors_, threads_);
    return true;
  }

  // Values whose elements the last pass over a row needs.
  std::vector<const Instr*> NeededLast() const {
    std::vector<const Instr*> needed;
    for (const Instr* root : region_.roots)
      if (root->op() != Op::kReduce) needed.push_back(root);
    for (size_t i = 0; i < columns_.size(); ++i) needed.push_back(&columns_.operand(i));
    return needed;
  }

  void Row() {
    if (shifted_) {
      ReduceShifted();
    } else {
      for (size_t pass = 0; pass < found_.levels.size(); ++pass) ReduceLevel(pass);
    }
    StoreRows();
    ForLastPass();
  }

  // All rows of a part, some at a time.
  void Part(Scalar part) {
    columns_.Begin(steps_ * lanes_);
    int64_t folded = columns_.folded();
    b_.For("k", LoopRole::kSerial, b_.Index(CeilDiv(folded, block_rows_)), [&](Scalar k) {
      Scalar number = k * b_.Index(block_rows_) + block_row_;
      row_at_ = part * b_.Index(folded) + LesserOf(number, b_.Index(folded - 1));
      if (folded % block_rows_ != 0) is_row_ = number < b_.Index(folded);
      Row();
      // What warps have told each other of this row is read before the next one.
      if (threads_ > kWarp && !found_.levels.empty()) b_.Barrier(Scope::kBlock);
    });
    columns_.Finish(part, block_row_, block_rows_, [&](auto&& body) {
      ForElements(
          [&](Scalar element, const KeptElement& kept, Scalar) { body(element, kept.number); });
    });
  }

  // Runs body(element of the row, where its values are kept, lane) for all elements of a thread.
  template <typename Body>
  void ForElements(Body&& body) {
    auto vector = [&](Scalar step, bool in_team) {
      Scalar number = step * b_.Index(threads_) + thread_;
      auto lanes = [&] {
        // Where arrays of other shapes are read, it must be seen that the element is in its row.
        Scalar inside = columns_.empty() ? number : LesserOf(number, b_.Index(vectors_ - 1));
        ForLanes(b_, lanes_, [&](Scalar lane) {
          KeptElement kept{step * b_.Index(lanes_) + lane, {}};
          if (in_team)
            kept.in_team =
                (number - b_.Index(register_steps_ * threads_)) * b_.Index(lanes_) + lane;
          body(inside * b_.Index(lanes_) + lane, kept, lane);
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
      int64_t begin = next, rounds = (whole - begin) / count;
      if (rounds == 0) return;
      b_.For("k", LoopRole::kSerial, b_.Index(rounds), [&](Scalar k) {
        Scalar first = k * b_.Index(count) + b_.Index(begin);
        if (count == 1) return vector(first, register_steps_ > 0);
        b_.For("u", LoopRole::kUnrolled, b_.Index(count),
               [&](Scalar u) { vector(first + u, register_steps_ > 0); });
      });
      next += rounds * count;
    };
    if (!unrolled_) {
      at_once(kRowsUnroll);
      at_once(1);
    }
    for (; next * threads_ < vectors_; ++next)
      vector(b_.Index(next), register_steps_ > 0 && next >= register_steps_);
  }

  Coordinates InputAt(const Reducer& reducer, Scalar element) {
    return RowElement(b_, reducer, row_at_, element);
  }

  // In arrays of the dimensions that rows are made of.
  Coordinates OwnAt(Scalar element) {
    auto begin = dims_.begin(), middle = begin + static_cast<int64_t>(split_);
    Coordinates at = Delinearized(b_, row_at_, Dims(begin, middle));
    Coordinates rest = Delinearized(b_, element, Dims(middle, dims_.end()));
    at.insert(at.end(), rest.begin(), rest.end());
    return at;
  }

  void ReduceLevel(size_t pass) {
    const std::vector<Reducer>& level = found_.levels[pass];
    bool any_order = AnyOrder(level);
    std::vector<Accumulators> sums;
    for (const Reducer& reducer : level)
      sums.emplace_back(b_, emitter_, reducer, any_order ? lanes_ : 1);
    std::vector<std::vector<Element>> results;
    if (any_order) {
      ForLanes(b_, lanes_, [&](Scalar lane) {
        for (Accumulators& sum : sums) sum.Write(lane, sum.Begin());
      });
      ForElements([&](Scalar element, const KeptElement& kept, Scalar lane) {
        Coordinates at = InputAt(level[0], element);
        kept_.Bind(pass, at, kept);
        for (Accumulators& sum : sums) sum.Fold(lane, InputAt(sum.reducer(), element), {});
        kept_.Keep(pass, at, kept);
      });
      for (Accumulators& sum : sums) results.push_back(sum.Combined());
      Join(sums, results);
    } else {
      // In order: every thread does all of it.
      for (Accumulators& sum : sums) sum.Write(b_.Index(0), sum.Begin());
      b_.For("k", LoopRole::kSerial, b_.Index(found_.row), [&](Scalar k) {
        for (Accumulators& sum : sums) sum.Fold(b_.Index(0), InputAt(sum.reducer(), k), {});
      });
      for (Accumulators& sum : sums) results.push_back(sum.Read(b_.Index(0)));
    }
    if (!emitter_.fault().empty()) return;
    for (size_t s = 0; s < sums.size(); ++s) {
      std::vector<Element> finished = sums[s].Finished(results[s]);
      const Reducer& reducer = sums[s].reducer();
      for (size_t i = 0; i < finished.size(); ++i) {
        Dims dims = PartsOf(reducer.instr->shape())[i].dims();
        emitter_.Bind(*reducer.instr, i, Delinearized(b_, row_at_, dims), finished[i]);
      }
    }
  }

  Element Power(const Element& exponent) {
    ElementType type = shifted_->exponential->shape().type();
    std::array<Element, 1> operands = {exponent};
    const Instr& instr = *shifted_->exponential;
    auto power = ApplyOp(b_, {.op = Op::kExp,
                              .type = type,
                              .from = type,
                              .operands = operands,
                              .attrs = &instr.attrs()});
    if (!power) emitter_.Fail("its exponential has no formula");
    return power.value_or(exponent);
  }

  // Some vectors of a thread at a time: their greatest element with those before, then their
  // powers, and the sum that there was scaled to the new one.
  void ReduceShifted() {
    Accumulators greatest(b_, emitter_, found_.levels[0][0], lanes_);
    Accumulators sums(b_, emitter_, found_.levels[1][0], lanes_);
    ScalarType type = ComputeType(shifted_->x->shape().type());
    ArrayId some = b_.Local("some", type, Space::kRegisters, kSome * lanes_);
    ArrayId most = b_.Local("most", type, Space::kRegisters, 1);
    b_.Store(most, b_.Index(0), greatest.Begin()[0][0]);
    ForLanes(b_, lanes_, [&](Scalar lane) {
      greatest.Write(lane, greatest.Begin());
      sums.Write(lane, sums.Begin());
    });
    auto add = [&](Scalar first, int64_t count) {
      AddShifted(greatest, sums, some, most, first, count);
    };
    int64_t whole = vectors_ / threads_ / kSome;
    if (whole > 0)
      b_.For("k", LoopRole::kSerial, b_.Index(whole),
             [&](Scalar k) { add(k * b_.Index(kSome), kSome); });
    for (int64_t next = whole * kSome; next < steps_; next += kSome)
      add(b_.Index(next), std::min(kSome, steps_ - next));
    if (!emitter_.fault().empty()) return;
    Scalar own = b_.Read(most, b_.Index(0));
    JoinRow(greatest, {{own, {}}});
    Dims dims = shifted_->shift->shape().dims();
    Scalar shift = emitter_.At(*shifted_->shift, Delinearized(b_, row_at_, dims))[0];
    Element scale = Power({own - shift, {}});
    JoinRow(sums, {{sums.Combined()[0][0] * scale[0], {}}});
  }

  void AddShifted(Accumulators& greatest, Accumulators& sums, ArrayId some, ArrayId most,
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
    for_some([&](Scalar element, Scalar place, Scalar lane) {
      Coordinates at = InputAt(greatest.reducer(), element);
      greatest.Fold(lane, at, {});
      b_.Store(some, place, emitter_.At(*shifted_->x, at)[0]);
    });
    if (!emitter_.fault().empty()) return;
    Scalar before = b_.Read(most, b_.Index(0)), now = greatest.Combined()[0][0];
    b_.Store(most, b_.Index(0), now);
    Scalar zero = b_.Constant(now.type(), 0);
    // The difference of equal infinities is none.
    Scalar scale = Power({Choose(before == now, zero, before - now), {}})[0];
    Scalar infinity = b_.Constant(now.type(), std::numeric_limits<double>::infinity());
    // Powers of elements that no finite one is the greatest of are 0, infinite, or NaN as they are.
    Scalar shift =
        Choose((now < infinity) &
                   (b_.Constant(now.type(), -std::numeric_limits<double>::infinity()) < now),
               now, zero);
    ForLanes(b_, lanes_, [&](Scalar lane) {
      sums.Write(lane, {{sums.Read(lane)[0][0] * scale, {}}});
    });
    for_some([&](Scalar, Scalar place, Scalar lane) {
      Scalar power = Power({b_.Read(some, place) - shift, {}})[0];
      sums.Write(lane, {{sums.Read(lane)[0][0] + power, {}}});
    });
  }

  // A reduction's result for the row, of the threads' own values.
  void JoinRow(Accumulators& sum, std::vector<Element> own) {
    std::vector<Accumulators> sums = {sum};
    std::vector<std::vector<Element>> values = {std::move(own)};
    Join(sums, values);
    Element result = sum.Finished(values[0])[0];
    const Instr& instr = *sum.reducer().instr;
    emitter_.Bind(instr, 0, Delinearized(b_, row_at_, instr.shape().dims()), result);
  }

  // ---- sums of threads into one that all of them have

  void Join(std::vector<Accumulators>& sums, std::vector<std::vector<Element>>& values) {
    if (!emitter_.fault().empty()) return;
    for (size_t s = 0; s < sums.size(); ++s)
      values[s] = JoinLanes(sums[s], values[s], std::min(threads_, kWarp));
    if (threads_ <= kWarp) return;
    int64_t warps = threads_ / kWarp;
    std::vector<std::vector<std::array<ArrayId, 2>>> shared;
    Scalar warp = thread_ / b_.Index(kWarp), lane = thread_ % b_.Index(kWarp);
    b_.If(lane == b_.Index(0), [&] {
      for (const std::vector<Element>& value : values) {
        shared.emplace_back();
        for (const Element& element : value) {
          std::array<ArrayId, 2> arrays{};
          for (size_t part = 0; part < 2; ++part) {
            if (!element[part].ok()) continue;
            arrays[part] =
                b_.Local("warps", element[part].type(), Space::kTeam, block_rows_ * warps);
            b_.Store(arrays[part], block_row_ * b_.Index(warps) + warp, element[part]);
          }
          shared.back().push_back(arrays);
        }
      }
    });
    b_.Barrier(Scope::kBlock);
    Scalar from = block_row_ * b_.Index(warps) + lane % b_.Index(warps);
    for (size_t s = 0; s < sums.size(); ++s) {
      for (size_t i = 0; i < values[s].size(); ++i)
        for (size_t part = 0; part < 2; ++part)
          if (values[s][i][part].ok()) values[s][i][part] = b_.Read(shared[s][i][part], from);
      values[s] = JoinLanes(sums[s], values[s], warps);
    }
  }

  std::vector<Element> JoinLanes(Accumulators& sum, std::vector<Element> value, int64_t lanes) {
    for (int64_t apart = lanes / 2; apart > 0; apart /= 2) {
      std::vector<Element> other = value;
      for (Element& element : other)
        for (Scalar& part : element)
          if (part.ok()) part = b_.Shuffle(part, b_.Index(apart));
      value = sum.Joined(value, other);
    }
    return value;
  }

  // ---- roots

  void StoreRows() {
    auto has_row = [&](const Instr* root) {
      return PartsOf(root->shape())[0].ElementCount() == found_.rows;
    };
    const std::vector<const Instr*>& roots = rows_region_.roots;
    if (std::none_of(roots.begin(), roots.end(), has_row)) return;
    b_.If(thread_ == b_.Index(0), [&] {
      for (const Instr* root : roots) {
        std::vector<Shape> parts = PartsOf(root->shape());
        for (size_t i = 0; i < parts.size(); ++i) {
          if (parts[i].ElementCount() != found_.rows) continue;
          Element value = emitter_.At(*root, Delinearized(b_, row_at_, parts[i].dims()), i);
          emitter_.StoreLinear(*root, i, row_at_, value);
        }
      }
    });
  }

  // Those that are not one element a row.
  std::vector<const Instr*> LastRoots() const {
    std::vector<const Instr*> roots = rows_region_.roots;
    std::erase_if(roots, [&](const Instr* root) {
      return PartsOf(root->shape())[0].ElementCount() == found_.rows;
    });
    return roots;
  }

  // Writes elements, and adds them to the sums of their columns.
  void ForLastPass() {
    std::vector<const Instr*> roots = LastRoots();
    for (const Instr* root : roots)
      if (!root->shape().IsArray() || root->shape().ElementCount() != found_.rows * found_.row)
        return emitter_.Fail("a root has neither a row's elements nor one a row");
    if (roots.empty() && columns_.empty()) return;
    ForElements([&](Scalar element, const KeptElement& kept, Scalar) {
      Scalar linear = row_at_ * b_.Index(found_.row) + element;
      Coordinates own = OwnAt(element);
      kept_.Bind(found_.levels.size(), own, kept);
      std::vector<Element> values;
      for (const Instr* root : roots) {
        const Dims& dims = root->shape().dims();
        values.push_back(emitter_.At(*root, dims == dims_ ? own : Delinearized(b_, linear, dims)));
      }
      for (size_t i = 0; i < roots.size(); ++i)
        emitter_.StoreLinear(*roots[i], 0, linear, values[i]);
      columns_.Fold(kept.number, own, dims_, linear, is_row_);
    });
  }

  const Region& region_;
  const Machine& machine_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  KeptValues kept_;
  ColumnSums columns_;
  std::optional<ShiftedSum> shifted_;
  bool keep_, unrolled_ = false;
  Region rows_region_;  // without sums of columns
  RowLevels found_;
  Dims dims_;         // of arrays whose elements rows are made of
  size_t split_ = 0;  // of dims_: those before it count rows
  int64_t lanes_ = 1, vectors_ = 1, threads_ = 1, block_rows_ = 1, steps_ = 1;
  int64_t register_steps_ = 0;  // those before them are kept in registers, others in team memory
  Scalar row_at_, block_row_, thread_;
  Scalar is_row_;  // where rows beyond the last are not to be counted
};

}  // namespace

BuildOutcome BuildRows(const Region& region, const Machine& machine, const std::string& name) {
  BuildOutcome kept = RowsBuilder(region, machine, name, true).Build();
  if (kept.built) return kept;
  // A kept value may be needed at another place, too.
  return RowsBuilder(region, machine, name, false).Build();
}

}  // namespace tokamak::gpu
