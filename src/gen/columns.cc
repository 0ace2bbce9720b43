// The columns generator: reductions of any dimensions and contractions, with what is computed from
// their results. Lanes hold neighbouring results, each folded by one lane from first to last:
//
//   for some vectors of results (the grid)
//     for the elements that fold into them (serial)
//       for each vector, for each lane: fold
//     for each vector, for each lane: write
//
// So it also folds what has to be folded in order. Of a large array several vectors are taken at a
// time: its rows are far apart, and a few of its bytes cost as much as a stretch of them.

#include <algorithm>

#include "gen/dot_sides.h"
#include "gen/folds.h"
#include "gen/roots.h"

namespace tokamak {
namespace {

// Rows of a large input are read in stretches of at most so many vectors, when columns are long.
constexpr int64_t kColumnsLargeInput = 1 << 20, kColumnsLongColumn = 16, kColumnsMostVectors = 16;

// Operations for an element.
constexpr int64_t kLittle = 4, kSome = 16;

// Dimensions that are looped over, those that stand together as one.
struct Run {
  size_t begin = 0, end = 0;
};

std::vector<Run> RunsOf(const Dims& dimensions) {
  std::vector<Run> runs;
  for (int64_t dimension : dimensions) {
    auto d = static_cast<size_t>(dimension);
    if (!runs.empty() && runs.back().end == d) {
      ++runs.back().end;
    } else {
      runs.push_back({d, d + 1});
    }
  }
  return runs;
}

class ColumnsBuilder {
 public:
  ColumnsBuilder(const Region& region, const Machine& machine, size_t inner,
                 const std::string& name)
      : region_(region), machine_(machine), inner_(inner), b_(name), emitter_(b_, region) {}

  BuildOutcome Build() {
    Folds found;
    if (std::string why = FindFolds(region_, found); !why.empty()) return {std::nullopt, why};
    reducers_ = std::move(found.reducers);
    dots_ = std::move(found.dots);
    dims_ = std::move(found.dims);
    int64_t results = ProductOf(dims_, 0, dims_.size());
    for (const Instr* instr : region_.instrs)
      if (instr->shape().IsArray() && instr->shape().ElementCount() > results)
        flops_ += instr->info().flops_per_element;
    size_t rank = dims_.size();
    split_ = rank - std::min(inner_, rank);
    rows_ = ProductOf(dims_, 0, split_);
    row_ = ProductOf(dims_, split_, rank);
    lanes_ = std::min(2 * machine_.Lanes(32), PowerBelow(row_));
    vectors_ = VectorsAtATime();
    int64_t places = rows_ * StepsOfRow();
    beside_ = PlacesBeside(places);
    int64_t teams = (places + beside_ - 1) / beside_;
    b_.For("g", LoopRole::kGrid, b_.Index(teams), [&](Scalar g) {
      first_place_ = LesserOf(g * b_.Index(beside_), b_.Index(places - beside_));
      std::vector<Accumulators> sums;
      for (const Reducer& reducer : reducers_)
        sums.emplace_back(b_, emitter_, reducer, beside_ * width());
      if (!sums.empty()) Reduce(sums);
      for (const Instr* dot : dots_) Contract(*dot);
      Finish(sums);
    });
    return FinishLoop(b_, emitter_, region_, teams, false);
  }

 private:
  int64_t VectorsAtATime() const {
    if (reducers_.empty() || !dots_.empty()) return 1;
    const Reducer& like = reducers_[0];
    bool along = !like.kept.empty() && like.kept.back() + 1 == like.input().rank();
    int64_t count = ProductOf(dims_, 0, dims_.size());
    if (!along || like.input().ByteSize() < kColumnsLargeInput ||
        like.input().ElementCount() / count < kColumnsLongColumn)
      return 1;
    int64_t vectors = std::min(kColumnsMostVectors, row_ / lanes_);
    auto grid = [&] { return rows_ * ((row_ + vectors * lanes_ - 1) / (vectors * lanes_)); };
    while (vectors > 1 && grid() < 4 * machine_.cores) vectors /= 2;
    // As wide as they need to be: the last one would do again what the one before it did.
    int64_t steps = grid() / rows_ * lanes_;
    return (row_ + steps - 1) / steps;
  }

  // Results of one place: a stretch of a row.
  int64_t width() const { return vectors_ * lanes_; }
  int64_t StepsOfRow() const { return (row_ + width() - 1) / width(); }

  // Of short vectors, as many as are worked on side by side; of other rows where rows are short.
  // Of all vectors, where little is done for an element, as many as there are sums to be added to
  // while one addition takes its time.
  int64_t PlacesBeside(int64_t places) const {
    constexpr int64_t kTeamsOfCore = 8, kSums = 8, kWorthSharing = 1 << 17;
    if (vectors_ > 1) return 1;
    int64_t vectors = machine_.HasShortVectors() ? VectorsTogether(machine_) : 1;
    if (lanes_ >= machine_.Lanes(32) && flops_ <= kLittle && reducers_.size() + dots_.size() == 1)
      vectors = kSums;
    int64_t beside = std::min(vectors * machine_.Lanes(32) / lanes_, places);
    bool is_shared = places * lanes_ * Depth() >= kWorthSharing;
    int64_t teams = is_shared ? kTeamsOfCore * machine_.cores : 1;
    while (beside > 1 && places / beside < teams) beside /= 2;
    if (beside <= 1) return 1;
    // The last ones would do again what those before them did: as many as come out even, or one
    // more.
    auto evened = [&](int64_t most) {
      int64_t count = (places + most - 1) / most;
      return (places + count - 1) / count;
    };
    auto all = [&](int64_t some) { return (places + some - 1) / some * some; };
    int64_t even = evened(beside), more = evened(beside + 1);
    return all(more) < all(even) ? more : even;
  }

  // Elements that are folded into a result.
  int64_t Depth() const {
    if (!dots_.empty()) return DotSides(*dots_[0]).k;
    const Reducer& like = reducers_[0];
    return like.input().ElementCount() / std::max<int64_t>(ProductOf(dims_, 0, dims_.size()), 1);
  }

  // The results' coordinates of a lane.
  Coordinates ResultAt(Scalar lane) {
    auto split = static_cast<int64_t>(split_);
    Coordinates at = Delinearized(b_, row_at_, Dims(dims_.begin(), dims_.begin() + split));
    Coordinates rest = Delinearized(b_, begin_ + lane, Dims(dims_.begin() + split, dims_.end()));
    at.insert(at.end(), rest.begin(), rest.end());
    return at;
  }

  template <typename Body>
  void ForLanes(Body&& body) {
    auto vector = [&](Scalar begin) {
      if (lanes_ == 1) return body(begin);
      b_.For("l", LoopRole::kVector, b_.Index(lanes_), [&](Scalar l) { body(begin + l); });
    };
    auto place = [&](Scalar p) {
      Scalar here = first_place_ + p, steps = b_.Index(StepsOfRow()), sums = p * b_.Index(width());
      row_at_ = here / steps;
      begin_ = LesserOf(here % steps * b_.Index(width()), b_.Index(row_ - width())) - sums;
      if (vectors_ == 1) return vector(sums);
      b_.For("v", LoopRole::kSerial, b_.Index(vectors_),
             [&](Scalar v) { vector(sums + v * b_.Index(lanes_)); });
    };
    if (beside_ == 1) return place(b_.Index(0));
    b_.For("p", LoopRole::kUnrolled, b_.Index(beside_), place);
  }

  // Loops over some dimensions of an array; `body` takes their coordinates in order.
  template <typename Body>
  void ForRuns(const std::vector<Run>& runs, const Dims& dims, Coordinates at, Body&& body) {
    if (at.size() == 0 && runs.empty()) return body(at);
    size_t done = 0, next = 0;
    for (; next < runs.size() && done < at.size(); ++next)
      done += runs[next].end - runs[next].begin;
    if (next == runs.size()) return body(at);
    const Run& run = runs[next];
    b_.For("r", LoopRole::kSerial, b_.Index(ProductOf(dims, run.begin, run.end)), [&](Scalar r) {
      Coordinates all = at;
      Coordinates own = Delinearized(b_, r,
                                     Dims(dims.begin() + static_cast<int64_t>(run.begin),
                                          dims.begin() + static_cast<int64_t>(run.end)));
      all.insert(all.end(), own.begin(), own.end());
      ForRuns(runs, dims, all, body);
    });
  }

  void Reduce(std::vector<Accumulators>& sums) {
    const Reducer& like = reducers_[0];
    ForLanes([&](Scalar lane) {
      for (Accumulators& sum : sums) sum.Write(lane, sum.Begin());
    });
    if (vectors_ > 1 && RunsOf(like.reduced).size() == 1) return ReduceRows(sums);
    ForRuns(RunsOf(like.reduced), like.input().dims(), {},
            [&](const Coordinates& reduced) { FoldAll(sums, {reduced}); });
  }

  // Into each lane what is at these places, one after the other.
  void FoldAll(std::vector<Accumulators>& sums, const std::vector<Coordinates>& places) {
    ForLanes([&](Scalar lane) {
      for (const Coordinates& reduced : places) {
        Coordinates at = FoldedElement(reducers_[0], ResultAt(lane), reduced);
        for (Accumulators& sum : sums) sum.Fold(lane, at, {});
      }
    });
  }

  // Sums of many vectors are not in registers: each is read and written once for a few rows.
  void ReduceRows(std::vector<Accumulators>& sums) {
    const int64_t at_once = flops_ <= kLittle ? 8 : flops_ <= kSome ? 4 : 1;
    const Reducer& like = reducers_[0];
    Run run = RunsOf(like.reduced)[0];
    const Dims& dims = like.input().dims();
    Dims own(dims.begin() + static_cast<int64_t>(run.begin),
             dims.begin() + static_cast<int64_t>(run.end));
    int64_t rows = ProductOf(own, 0, own.size());
    auto fold = [&](int64_t first, int64_t times, int64_t count) {
      b_.For("r", LoopRole::kSerial, b_.Index(times), [&](Scalar r) {
        std::vector<Coordinates> places;
        for (int64_t i = 0; i < count; ++i)
          places.push_back(Delinearized(b_, r * b_.Index(count) + b_.Index(first + i), own));
        FoldAll(sums, places);
      });
    };
    int64_t whole = rows / at_once;
    if (whole > 0) fold(0, whole, at_once);
    if (rows % at_once != 0) fold(whole * at_once, rows % at_once, 1);
  }

  void Contract(const Instr& dot) {
    const DotAttrs& attrs = dot.attrs<DotAttrs>();
    const Dims& lhs = dot.operand(0)->shape().dims();
    ElementType type = WideType(dot.shape().type());
    Sum sum{&dot, {}};
    for (size_t part = 0; part < (IsComplex(type) ? 2u : 1u); ++part)
      sum.arrays[part] = b_.Local("sum", ComputeType(type), Space::kRegisters, beside_ * lanes_);
    ForLanes([&](Scalar lane) { Write(sum, lane, ConstantElement(b_, type, 0)); });
    std::vector<Run> runs;  // each by itself: the two sides may order them differently
    for (int64_t d : attrs.lhs_contracting)
      runs.push_back({static_cast<size_t>(d), static_cast<size_t>(d) + 1});
    ForRuns(runs, lhs, {}, [&](const Coordinates& contracted) {
      ForLanes([&](Scalar lane) {
        Element term = DotTerm(b_, emitter_, dot, ResultAt(lane), contracted, Read(sum, lane));
        if (emitter_.fault().empty()) Write(sum, lane, term);
      });
    });
    dot_sums_.push_back(sum);
  }

  struct Sum {
    const Instr* dot = nullptr;
    std::array<ArrayId, 2> arrays{};
  };

  Element Read(const Sum& sum, Scalar lane) {
    Element value{b_.Read(sum.arrays[0], lane), {}};
    if (IsComplex(sum.dot->shape().type())) value[1] = b_.Read(sum.arrays[1], lane);
    return value;
  }

  void Write(const Sum& sum, Scalar lane, Element value) {
    b_.Store(sum.arrays[0], lane, value[0]);
    if (IsComplex(sum.dot->shape().type())) b_.Store(sum.arrays[1], lane, value[1]);
  }

  void Finish(std::vector<Accumulators>& sums) {
    ForLanes([&](Scalar lane) {
      Coordinates at = ResultAt(lane);
      for (Accumulators& sum : sums) {
        std::vector<Element> results = sum.Finished(sum.Read(lane));
        for (size_t i = 0; i < results.size(); ++i)
          emitter_.Bind(*sum.reducer().instr, i, at, results[i]);
      }
      for (const Sum& sum : dot_sums_) {
        ElementType type = sum.dot->shape().type();
        emitter_.Bind(*sum.dot, 0, at, ConvertElement(b_, WideType(type), type, Read(sum, lane)));
      }
      Scalar linear = row_at_ * b_.Index(row_) + (begin_ + lane);
      for (const Instr* root : region_.roots) {
        std::vector<Shape> parts = PartsOf(root->shape());
        for (size_t i = 0; i < parts.size(); ++i) {
          Coordinates here =
              parts[i].dims() == dims_ ? at : Delinearized(b_, linear, parts[i].dims());
          emitter_.StoreLinear(*root, i, linear, emitter_.At(*root, here, i));
        }
      }
    });
  }

  const Region& region_;
  const Machine& machine_;
  size_t inner_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  std::vector<Reducer> reducers_;
  std::vector<const Instr*> dots_;
  std::vector<Sum> dot_sums_;
  Dims dims_;
  int64_t flops_ = 0;  // of an element that is folded
  size_t split_ = 0;
  int64_t rows_ = 1, row_ = 1, lanes_ = 1, vectors_ = 1, beside_ = 1;
  Scalar first_place_, row_at_, begin_;  // begin_: of a place, less the sums before its own
};

}  // namespace

// The last dimension alone is the row when it is long enough; else as many as make it so.
BuildOutcome BuildColumns(const Region& region, const Machine& machine, const std::string& name) {
  Dims dims;
  for (const Instr* instr : region.instrs)
    if (instr->op() == Op::kReduce || instr->op() == Op::kDot)
      dims = PartsOf(instr->shape())[0].dims();
  size_t inner = dims.empty() ? 0 : 1;
  while (inner < dims.size() &&
         ProductOf(dims, dims.size() - inner, dims.size()) < machine.Lanes(32))
    ++inner;
  return ColumnsBuilder(region, machine, inner, name).Build();
}

}  // namespace tokamak
