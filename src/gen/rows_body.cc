#include "gen/rows_body.h"

#include <algorithm>

namespace tokamak {
namespace {

// Vectors of a row from which one more is negligible. Chosen: it is at most 1/8 of the work.
// Vectors in flight in shorter rows. Chosen: two chains overlap, and few elements are left for the
// rest.
constexpr int64_t kRowManySteps = 8, kFewInterleaved = 2;

// Input bytes above which rows stream from memory. Chosen: about the size of an L2 cache.
constexpr int64_t kMaxCachedInputBytes = 1 << 20;
// Bytes cached per row: half of what a kernel may use of the stack.
constexpr int64_t kMaxCachedBytes = 128 << 10;

// Elements of a reduction's result.
int64_t ResultsOf(const FusedRegion& region) {
  for (const Instr* instr : region.instrs)
    if (instr->op() == Op::kReduce) return ResultShapesOf(instr->shape())[0].ElementCount();
  return 0;
}

}  // namespace

std::string RowsBody::Analyze(bool caches) {
  RowLevels found;
  bool any = std::none_of(region_.roots.begin(), region_.roots.end(), [&](const Instr* root) {
    return ResultShapesOf(root->shape())[0].ElementCount() > ResultsOf(region_);
  });
  if (std::string why = AnalyzeRowLevels(region_, found, any); !why.empty()) return why;
  levels_ = std::move(found.levels);
  row_count_ = found.row_count;
  row_length_ = found.row_length;
  unroll_ = row_length_ >= kRowManySteps * machine_.Lanes(32) ? InterleaveFactor(machine_)
                                                              : kFewInterleaved;
  FindLoops(caches);
  return "";
}

void RowsBody::Emit(Scalar row, const RowLocation& source, const RowLocation& sink) {
  row_index_ = row;
  source_ = source;
  sink_ = sink;
  for (size_t i = 0; i < levels_.size(); ++i)
    BindResults(Accumulate(levels_[i], loops_[i], {row_index_})[0]);
  StoreRowResults();
  StoreElements();
}

bool RowsBody::CanReduceRowsTogether() const {
  return levels_.size() == 1 && cached_.empty() &&
         std::all_of(region_.roots.begin(), region_.roots.end(), [&](const Instr* root) {
           return ResultShapesOf(root->shape())[0].ElementCount() == row_count_;
         });
}

int64_t RowsBody::RowsPerIteration() const {
  // Maximum concurrent rows, and reductions per row up to which several pay off. Chosen: the sums
  // of all rows stay in registers. Tasks per core. Chosen: they even out cores of unequal speed.
  // Row length (elements) for inputs in memory. Chosen: 64 KiB, long enough to prefetch several
  // streams.
  constexpr int64_t kMaxRows = 4, kTasksPerCore = 4, kMaxReducers = 2, kLongStream = 16384;
  bool plain = CanReduceRowsTogether() && levels_[0].size() <= kMaxReducers &&
               row_length_ >= machine_.Lanes(32);
  // If the input is out of cache, only for long rows: short rows are contiguous and prefetched.
  bool is_out_of_cache = levels_[0][0].input().ByteSize() > kMaxCachedInputBytes;
  if (!plain || (is_out_of_cache && (row_length_ < kLongStream || !machine_.HasShortVectors())))
    return 1;
  int64_t rows = kMaxRows;
  int64_t tasks = row_count_ * row_length_ >= kMinParallelWork ? kTasksPerCore * machine_.cores : 1;
  while (rows > 1 && row_count_ / rows < tasks) rows /= 2;
  return rows;
}

void RowsBody::EmitRows(Scalar first, int64_t count) {
  std::vector<Scalar> rows;
  for (int64_t i = 0; i < count; ++i) rows.push_back(first + b_.Index(i));
  std::vector<std::vector<Accumulators>> sums = Accumulate(levels_[0], loops_[0], rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    row_index_ = rows[i];
    BindResults(sums[i]);
    StoreRowResults();
  }
}

// Finds the values that loops cache for each other.
void RowsBody::FindLoops(bool caches) {
  loops_.resize(levels_.size() + 1);
  for (size_t i = 0; i < levels_.size(); ++i)
    for (const Reducer& reducer : levels_[i])
      for (size_t n = 0; n < reducer.input_count; ++n)
        loops_[i].evaluated.push_back(reducer.instr->operand(n));
  for (const Instr* root : region_.roots)
    if (root->shape().IsArray() && root->shape().ElementCount() == row_count_ * row_length_)
      loops_.back().evaluated.push_back(root);
  if (!caches) return;
  FindCachedValues(region_, levels_[0][0].input().dims(), row_length_, kMaxCachedBytes, loops_);
  for (const RowLoop& loop : loops_)
    for (const Instr* instr : loop.cached_here)
      cached_[instr] =
          b_.Local("cached", ComputeType(instr->shape().type()), Space::kRegisters, row_length_);
}

// Called at the start and the end of the code for one element.
void RowsBody::LoadCached(const RowLoop& loop, Scalar element) {
  // Values of another element were read in a kernel block that is closed.
  if (!loop.read_from_cache.empty()) emitter_.ClearMemo();
  if (source_.instr != nullptr) {
    Element there{b_.Read(source_.array, source_.begin + element), {}};
    Coordinates at = InputAt(levels_[0][0], element);
    const Shape& shape = source_.instr->shape();
    if (shape.dims() != dims()) at = Delinearized(b_, Linearized(b_, at, dims()), shape.dims());
    emitter_.Memoize(*source_.instr, at,
                     ConvertElement(b_, source_.stored_type, shape.type(), there));
  }
  for (const Instr* instr : loop.read_from_cache)
    emitter_.Memoize(*instr, InputAt(levels_[0][0], element),
                     {b_.Read(cached_.at(instr), element), {}});
}
void RowsBody::Cache(const RowLoop& loop, Scalar element) {
  for (const Instr* instr : loop.cached_here) {
    Element value = emitter_.At(*instr, InputAt(levels_[0][0], element));
    if (emitter_.failure().empty()) b_.Store(cached_.at(instr), element, value[0]);
  }
}

Coordinates RowsBody::InputAt(const Reducer& reducer, Scalar element) {
  return RowElementCoordinates(b_, reducer, row_index_, element);
}

std::vector<std::vector<Accumulators>> RowsBody::Accumulate(const std::vector<Reducer>& level,
                                                            const RowLoop& loop,
                                                            const std::vector<Scalar>& rows) {
  bool can_reassociate = std::all_of(
      level.begin(), level.end(), [](const Reducer& reducer) { return reducer.can_reassociate; });
  int64_t lanes = can_reassociate ? std::min(LanesPerIteration(), FloorPowerOfTwo(row_length_)) : 1;
  std::vector<std::vector<Accumulators>> sums(rows.size());
  for (std::vector<Accumulators>& of_row : sums)
    for (const Reducer& reducer : level) of_row.emplace_back(b_, emitter_, reducer, lanes);
  ForLanes(lanes, [&](Scalar lane) {
    for (std::vector<Accumulators>& of_row : sums)
      for (Accumulators& sum : of_row) sum.Write(lane, sum.StartValue());
  });
  int64_t steps = row_length_ / lanes, rest = row_length_ % lanes;
  auto accumulate = [&](Scalar lane, Scalar element, Scalar valid) {
    for (size_t i = 0; i < rows.size(); ++i) {
      row_index_ = rows[i];
      LoadCached(loop, element);
      for (Accumulators& sum : sums[i])
        sum.Accumulate(lane, InputAt(sum.reducer(), element), valid);
      Cache(loop, element);
    }
  };
  b_.For("k", LoopRole::kSerial, b_.Index(steps), [&](Scalar k) {
    ForLanes(lanes, [&](Scalar lane) { accumulate(lane, k * b_.Index(lanes) + lane, {}); });
  });
  if (rest > 0) {
    // The last vector overlaps; only its new elements count.
    ForLanes(lanes, [&](Scalar lane) {
      accumulate(lane, b_.Index(row_length_ - lanes) + lane, b_.Index(lanes - rest) <= lane);
    });
  }
  return sums;
}

void RowsBody::BindResults(std::vector<Accumulators>& sums) {
  for (Accumulators& sum : sums) {
    std::vector<Element> results = sum.FinalResult(sum.CombineLanes());
    const Reducer& reducer = sum.reducer();
    for (size_t i = 0; i < results.size(); ++i) {
      Dims dims = ResultShapesOf(reducer.instr->shape())[i].dims();
      emitter_.Bind(*reducer.instr, i, Delinearized(b_, row_index_, dims), results[i]);
    }
  }
}

void RowsBody::StoreRowResults() {
  for (const Instr* root : region_.roots) {
    std::vector<Shape> parts = ResultShapesOf(root->shape());
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].ElementCount() != row_count_) continue;
      Element value = emitter_.At(*root, Delinearized(b_, row_index_, parts[i].dims()), i);
      emitter_.StoreLinear(*root, i, row_index_, value);
    }
  }
}

void RowsBody::StoreElements() {
  std::vector<const Instr*> roots;
  for (const Instr* root : region_.roots) {
    if (ResultShapesOf(root->shape())[0].ElementCount() == row_count_) continue;
    if (!root->shape().IsArray() || root->shape().ElementCount() != row_count_ * row_length_)
      return emitter_.Fail("a root has neither one element per row element nor one per row");
    roots.push_back(root);
  }
  if (roots.empty()) return;
  int64_t lanes = machine_.HasShortVectors() ? LanesPerIteration() : machine_.Lanes(32);
  lanes = std::min(lanes, FloorPowerOfTwo(row_length_));
  while (lanes > machine_.Lanes(32) && row_length_ % lanes != 0 &&
         row_length_ < kRowManySteps * lanes)
    lanes /= 2;
  int64_t steps = (row_length_ + lanes - 1) / lanes;
  const Reducer& like = levels_[0][0];
  b_.For("k", LoopRole::kSerial, b_.Index(steps), [&](Scalar k) {
    ForLanes(lanes, [&](Scalar lane) {
      Scalar begin = LesserOf(k * b_.Index(lanes), b_.Index(row_length_ - lanes));
      Scalar element = begin + lane, linear = row_index_ * b_.Index(row_length_) + element;
      LoadCached(loops_.back(), element);
      for (const Instr* root : roots) {
        const Dims& dims = root->shape().dims();
        Coordinates at =
            dims == like.input().dims() ? InputAt(like, element) : Delinearized(b_, linear, dims);
        Element value = emitter_.At(*root, at);
        if (root == sink_.instr) PutInSink(element, value);
        if (root != sink_.instr || sink_.is_written) emitter_.StoreLinear(*root, 0, linear, value);
      }
    });
  });
}

void RowsBody::PutInSink(Scalar element, Element value) {
  if (!emitter_.failure().empty()) return;
  value = ConvertElement(b_, sink_.instr->shape().type(), sink_.stored_type, value);
  b_.Store(sink_.array, sink_.begin + element, ToStorage(b_, sink_.stored_type, value)[0]);
}

}  // namespace tokamak
