#include "gen/gpu/chain_elements.h"

#include <algorithm>
#include <limits>

#include "gen/dot_operand.h"
#include "gen/gpu/chain_sources.h"
#include "gen/gpu/gpu.h"
#include "gen/gpu/split_operand.h"

namespace tokamak::gpu {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
// Of a fragment of accumulators (PTX ISA; AccumulatorPosition): adjacent columns of a thread,
// accumulators of a thread.
constexpr int64_t kPair = 2, kOfFragment = kPair * kHalfFragments;

}  // namespace

Scalar HidesDeadColumns(KernelBuilder& b, ElementEmitter& emitter, const LiveColumns& live) {
  if (live.masked == nullptr) return b.ConstantBits(ScalarType::kPred, 1);
  emitter.ClearMemo();
  Scalar masked = emitter.At(*live.masked, {})[0];
  emitter.ClearMemo();
  return masked == masked.Like(-kInfinite);
}

ChainElements::ChainElements(KernelBuilder& b, ElementEmitter& emitter, const FusedRegion& region,
                             const ChainRegion& found, const ChainTiling& tiling)
    : b_(b),
      emitter_(emitter),
      region_(region),
      found_(found),
      chain_(found.chain),
      running_(found.running),
      t_(tiling),
      masks_(b, emitter, region, found, tiling.columns * kWarpgroupRows / kWarpgroupThreads),
      vectors_(b, emitter, found, tiling),
      packed_(b, emitter, found, tiling),
      scales_(b, tiling) {}

void ChainElements::Declare() {
  auto local = [&](const std::string& name, size_t i, ScalarType type, int64_t columns) {
    return b_.Local(i == 0 ? name : name + std::to_string(i), type, Space::kRegisters,
                    columns * kWarpgroupRows / kWarpgroupThreads);
  };
  for (size_t i = 0; i < std::max(t_.firsts.size(), t_.seconds.size()); ++i)
    scores_.push_back(local("scores", i, ScalarType::kF32, t_.columns));
  for (size_t i = 0; i < t_.seconds.size(); ++i) {
    std::vector<ArrayId>& parts = weights_.emplace_back();
    for (int64_t part = 0; part < t_.seconds[i].parts; ++part)
      parts.push_back(local(part == 0 ? "weights" : "weights_rest", i, t_.type, t_.columns));
    products_.push_back(local("product", i, ScalarType::kF32, t_.seconds[i].width));
  }
  masks_.Declare();
  auto declare = [&](const std::vector<const Instr*>& reductions, std::vector<Accumulators>& to) {
    for (const Instr* reduce : reductions) {
      reducers_.push_back(ReducerOf(*reduce));
      if (!reducers_.back().can_reassociate) emitter_.Fail("a reduction in order");
      to.emplace_back(b_, emitter_, reducers_.back(), kHalfFragments);
    }
  };
  declare(running_.plain, plain_);
  declare(running_.scaled, scaled_);
  if (IsExponential()) {
    shift_ = b_.Local("shift", ScalarType::kF32, Space::kRegisters, kHalfFragments);
    scale_ = b_.Local("scale", ScalarType::kF32, Space::kRegisters, kHalfFragments);
    for (const Instr* instr : {running_.x, running_.shift, running_.exponential})
      if (ComputeType(instr->shape().type()) != ScalarType::kF32)
        emitter_.Fail("an exponential of wide numbers");
  }
  vectors_.Declare(kHalfFragments);
  packed_.Declare();
  scales_.Declare(kHalfFragments);
  SetChainSources(b_, emitter_, region_, found_, used_shift_, vectors_.reciprocals());
}

// ---- coordinates

void ChainElements::SetBatch(Scalar batch) {
  scores_at_.assign(static_cast<size_t>(chain_.scores().shape().rank()), b_.Index(0));
  SetIndices(chain_.batch, batch);
}

void ChainElements::SetOuterColumns(Scalar index) {
  SetIndices(chain_.outer_columns, index);
}

void ChainElements::SetIndices(const Dims& dims, Scalar linear) {
  Coordinates at = Delinearized(b_, linear, SizesAlong(chain_.scores().shape().dims(), dims));
  for (size_t i = 0; i < at.size(); ++i) scores_at_[static_cast<size_t>(dims[i])] = at[i];
}

Scalar ChainElements::BatchOf(const ChainSide& side, const TensorOperand::Dimension& dimension) {
  Coordinates at = Along(side.batch, scores_at_);
  Dims sizes;
  for (size_t i = 0; i < at.size(); ++i) {
    int64_t dim = side.batch[i], times = side.repeats[i];
    sizes.push_back(dim < 0 ? 1 : chain_.scores().shape().dim(static_cast<size_t>(dim)) / times);
    if (times > 1) at[i] = at[i] / b_.Index(times);
  }
  return dimension.is_all ? Linearized(b_, at, sizes) : at[dimension.batch];
}

Coordinates ChainElements::Along(const Dims& along, const Coordinates& from) {
  Coordinates at;
  for (int64_t dim : along) at.push_back(dim < 0 ? b_.Index(0) : from[static_cast<size_t>(dim)]);
  return at;
}

// The coordinates of a product: those of the weights, which run along the scores, and its column.
Coordinates ChainElements::ProductAt(size_t second, Scalar column) {
  const DotChain::Second& of = chain_.seconds[second];
  DotDimensions dims(*of.dot);
  bool is_lhs = of.weights_operand == 0;
  const Dims& batch = is_lhs ? dims.attrs.lhs_batch : dims.attrs.rhs_batch;
  const Dims& free = is_lhs ? dims.lhs_free : dims.rhs_free;
  const Dims& other = is_lhs ? dims.rhs_free : dims.lhs_free;
  const Dims& sizes = is_lhs ? dims.rhs_dims : dims.lhs_dims;
  Coordinates weights_at = ScoresAt(of.weights()), at, rows;
  for (int64_t d : batch) at.push_back(weights_at[static_cast<size_t>(d)]);
  for (int64_t d : free) rows.push_back(weights_at[static_cast<size_t>(d)]);
  Coordinates columns = Delinearized(b_, column, SizesAlong(sizes, other));
  for (const Coordinates* part : {is_lhs ? &rows : &columns, is_lhs ? &columns : &rows})
    at.insert(at.end(), part->begin(), part->end());
  for (size_t d = 0; d < at.size(); ++d)
    if (of.dot->shape().dim(d) == 1) at[d] = b_.Index(0);
  return at;
}

// Columns beyond the scores are clamped: inputs are read there.
void ChainElements::SetColumn(Scalar column) {
  if (!chain_.column) return;
  if (HasPadding()) column = LesserOf(column, b_.Index(chain_.column_count() - 1));
  scores_at_[static_cast<size_t>(*chain_.column)] = column;
}

void ChainElements::MemoizePreds(Scalar half, const Place& place) {
  MemoizePreds(half, place, packed_.ReadColumn(place.fragment, place.pair));
}

void ChainElements::MemoizePreds(Scalar half, const Place& place,
                                 const std::vector<Scalar>& column_words) {
  masks_.Memoize(IndexOf(half, place), scores_at_);
  packed_.Memoize(half, place.fragment, place.pair, column_words, scores_at_);
}

template <typename Body>
void ChainElements::ForHalves(Body&& body) {
  b_.For("h", LoopRole::kUnrolled, b_.Index(kHalfFragments), [&](Scalar half) {
    emitter_.ClearMemo();
    SetHalf(half);
    body(half);
    emitter_.ClearMemo();
  });
}

void ChainElements::SetHalf(Scalar half) {
  row_ = first_row_ + half * b_.Index(kHalfRows);
  row_inside_ = b_.ConstantBits(ScalarType::kPred, 1);
  Scalar at = row_;
  if (chain_.row_count() % t_.rows != 0) {
    row_inside_ = row_ < b_.Index(chain_.row_count());
    at = LesserOf(row_, b_.Index(chain_.row_count() - 1));
  }
  if (chain_.row) scores_at_[static_cast<size_t>(*chain_.row)] = at;
}

template <typename Body>
void ChainElements::ForPlaces(int64_t columns, Body&& body) {
  b_.For("f", LoopRole::kUnrolled, b_.Index(columns / kFragment), [&](Scalar fragment) {
    b_.For("u", LoopRole::kUnrolled, b_.Index(kPair), [&](Scalar pair) {
      body(Place{fragment, pair});
      emitter_.ClearMemo();
    });
  });
}

Scalar ChainElements::IndexOf(Scalar half, const Place& place) {
  return place.fragment * b_.Index(kOfFragment) + half * b_.Index(kPair) + place.pair;
}

Scalar ChainElements::ColumnOf(const Place& place) {
  return place.fragment * b_.Index(kFragment) + lane_ % b_.Index(kQuad) * b_.Index(kPair) +
         place.pair;
}

// ---- tiles

void ChainElements::Begin(Scalar consumer, Scalar row) {
  tile_row_ = row;
  lane_ = consumer % b_.Index(kWarpSize);
  Scalar warp_in_tile = consumer / b_.Index(kWarpSize) * b_.Index(MatrixMultiply::kFragmentRows);
  warp_row_ = row + warp_in_tile;
  first_row_ = warp_row_ + lane_ / b_.Index(kQuad);
  first_in_tile_ = warp_in_tile + lane_ / b_.Index(kQuad);
  for (size_t i = 0; i < products_.size(); ++i) {
    int64_t sums = t_.seconds[i].width * kWarpgroupRows / kWarpgroupThreads;
    b_.For("s", LoopRole::kUnrolled, b_.Index(sums),
           [&](Scalar s) { b_.Store(products_[i], s, b_.Constant(ScalarType::kF32, 0)); });
  }
  b_.For("h", LoopRole::kUnrolled, b_.Index(kHalfFragments), [&](Scalar half) {
    for (std::vector<Accumulators>* all : {&plain_, &scaled_})
      for (Accumulators& sums : *all) sums.Write(half, sums.StartValue());
    if (IsExponential()) b_.Store(shift_, half, b_.Constant(ScalarType::kF32, -kInfinite));
    scales_.Begin(half);
    emitter_.ClearMemo();
  });
  ForHalves([&](Scalar half) { vectors_.StoreRow(half, scores_at_); });
}

void ChainElements::StoreColumnValues(Scalar thread, Scalar j, Scalar number) {
  vectors_.StoreColumns(thread, number, [&](Scalar index) {
    SetColumn(j * b_.Index(t_.columns) + index);
    return scores_at_;
  });
}

void ChainElements::Prepare(Scalar j) {
  if (masks_.empty() || !emitter_.failure().empty()) return;
  constexpr int64_t kFragments = ChainMasks::kAtOnce / kOfFragment;
  int64_t per_word = masks_.word_bits() / ChainMasks::kAtOnce;
  int64_t words = t_.columns / kFragment / kFragments / per_word;
  b_.For("w", LoopRole::kUnrolled, b_.Index(words), [&](Scalar word) {
    masks_.Clear(word);
    b_.For("m", LoopRole::kSerial, b_.Index(per_word), [&](Scalar m) {
      Scalar first = (word * b_.Index(per_word) + m) * b_.Index(kFragments);
      Scalar column = j * b_.Index(t_.columns) + first * b_.Index(kFragment);
      masks_.Begin();
      b_.If(IsAnyLive(column, kFragments * kFragment), [&] {
        ForHalves([&](Scalar half) {
          ForPlaces(kFragments * kFragment, [&](const Place& place) {
            SetColumn(column + ColumnOf(place));
            masks_.Set(IndexOf(half, place), scores_at_);
          });
        });
      });
      masks_.Keep(word);
    });
  });
}

Scalar ChainElements::IsAnyLive(Scalar column, int64_t count) {
  Scalar is_live = b_.ConstantBits(ScalarType::kPred, 1);
  const auto& [first, last, select, live_operand, masked] = found_.live;
  int64_t last_row = MatrixMultiply::kFragmentRows - 1;
  if (first) is_live = is_live & (warp_row_ + b_.Index(*first) <= column + b_.Index(count - 1));
  if (last) is_live = is_live & (column <= warp_row_ + b_.Index(last_row + *last));
  if (found_.live.masked == nullptr) return is_live;
  Scalar hides = HidesDeadColumns(b_, emitter_, found_.live);
  return is_live | (hides == b_.ConstantBits(ScalarType::kPred, 0));
}

void ChainElements::Weigh(Scalar j, Scalar number) {
  if (!emitter_.failure().empty()) return;
  packed_.Begin(number, tile_row_, j * b_.Index(t_.columns), first_in_tile_,
                lane_ % b_.Index(kQuad) * b_.Index(kPair));
  if (IsExponential()) {
    MakeExponentialWeights(j);
  } else {
    MakePlainWeights(j, number);
  }
  packed_.Release(lane_, number);
}

void ChainElements::MakeExponentialWeights(Scalar j) {
  if (found_.live.select != nullptr) {
    b_.If(
        IsLive(j), [&] { ReadElements(j, false); }, [&] { ReadElements(j, true); },
        /*uniform=*/false);
  } else {
    ReadElements(j, true);
  }
  ForHalves([&](Scalar half) {
    for (Accumulators& sums : plain_) BindReduction(sums, half);
    Rescale(half);
    MakeWeights(half, j);
  });
}

Scalar ChainElements::IsLive(Scalar j) {
  Scalar is_live = b_.ConstantBits(ScalarType::kPred, 1), column = j * b_.Index(t_.columns);
  const auto& [first, last, select, live_operand, masked] = found_.live;
  if (first) is_live = is_live & (tile_row_ + b_.Index(t_.rows - 1 + *first) <= column);
  if (last) is_live = is_live & (column + b_.Index(t_.columns - 1) <= tile_row_ + b_.Index(*last));
  return is_live;
}

void ChainElements::BindScores(Scalar index) {
  for (size_t first = 0; first < chain_.firsts.size(); ++first) BindScore(first, index);
}

void ChainElements::BindScore(size_t first, Scalar index) {
  const Instr& scores = *chain_.firsts[first].dot;
  Element score{b_.Read(scores_[first], index), {}};
  emitter_.Bind(scores, 0, Along(chain_.firsts[first].along, scores_at_),
                ConvertElement(b_, ElementType::kF32, scores.shape().type(), score));
}

// Accumulates the reductions of elements. Replaces scores by the elements whose exponentials are
// needed.
void ChainElements::ReadElements(Scalar j, bool is_masked) {
  ForHalves([&](Scalar half) {
    ForPlaces(t_.columns, [&](const Place& place) { ReadElement(half, place, j, is_masked); });
  });
}

void ChainElements::ReadElement(Scalar half, const Place& place, Scalar j, bool is_masked) {
  Scalar column = j * b_.Index(t_.columns) + ColumnOf(place), index = IndexOf(half, place);
  SetColumn(column);
  MemoizePreds(half, place);
  BindScores(index);
  if (!is_masked) {
    const Instr& select = *found_.live.select;
    Coordinates at = ScoresAt(select);
    emitter_.Memoize(select, at, emitter_.At(*select.operand(found_.live.live_operand), at));
  }
  Scalar inside;
  if (HasPadding()) inside = column < b_.Index(chain_.column_count());
  for (Accumulators& sums : plain_)
    sums.Accumulate(half, ScoresAt(*sums.reducer().instr->operand(0)), inside);
  if (!emitter_.failure().empty()) return;
  Scalar x = emitter_.At(*running_.x, ScoresAt(*running_.x))[0];
  // The exponential of padding is zero.
  if (inside.ok()) x = Choose(inside, x, b_.Constant(ScalarType::kF32, -kInfinite));
  b_.Store(scores_[0], index, x);
}

void ChainElements::BindReduction(Accumulators& sums, Scalar half) {
  if (!emitter_.failure().empty()) return;
  std::vector<Element> value = sums.Read(half);
  for (int64_t lane = 1; lane < kQuad; lane *= 2) {
    std::vector<Element> other = value;
    for (Element& element : other) element[0] = b_.Shuffle(element[0], b_.Index(lane));
    value = sums.CombinePair(value, other);
  }
  const Instr& reduce = *sums.reducer().instr;
  emitter_.Bind(reduce, 0, ScoresAt(reduce), sums.FinalResult(value)[0]);
}

// Brings the sums so far to the shift of all columns so far. Before the first column that counts,
// the shift is -infinity, the sums are zero and stay so. An infinite shift is not subtracted: the
// exponentials are 0, infinite or NaN as they should be.
void ChainElements::Rescale(Scalar half) {
  const Instr& shift = *running_.shift;
  Scalar now = emitter_.At(shift, ScoresAt(shift))[0];
  if (!emitter_.failure().empty()) return;
  Scalar before = b_.Read(shift_, half), zero = b_.Constant(ScalarType::kF32, 0);
  Scalar used = Choose(AbsOf(now) == now.Like(kInfinite), zero, now);
  Scalar scale = ShortExp(Choose(before == now, zero, before - used));
  // Infinity times zero would be NaN.
  scale = LesserOf(scale.Like(std::numeric_limits<float>::max()), scale);
  b_.Store(shift_, half, now);
  b_.Store(scale_, half, scale);
  for (Accumulators& sums : scaled_) sums.Write(half, {{sums.Read(half)[0][0] * scale, {}}});
  used_shift_ = used;
}

const Instr& ChainElements::PreciseWeights(size_t second) const {
  const Instr& weights = chain_.seconds[second].weights();
  bool is_converted = weights.op() == Op::kConvert &&
                      weights.operand(0)->shape().type() == ElementType::kF32 &&
                      std::ranges::count(region_.instrs, &weights) > 0;
  return is_converted ? *weights.operand(0) : weights;
}

void ChainElements::MakeWeights(Scalar half, Scalar j) {
  ForPlaces(t_.columns, [&](const Place& place) {
    Scalar column = j * b_.Index(t_.columns) + ColumnOf(place), index = IndexOf(half, place);
    SetColumn(column);
    MemoizePreds(half, place);
    bool is_score = running_.x == &chain_.scores();
    for (size_t first = is_score ? 0 : 1; first < chain_.firsts.size(); ++first)
      BindScore(first, index);
    if (!is_score)
      emitter_.Memoize(*running_.x, ScoresAt(*running_.x), {b_.Read(scores_[0], index), {}});
    for (Accumulators& sums : scaled_)
      sums.Accumulate(half, ScoresAt(*sums.reducer().instr->operand(0)), {});
    if (chain_.seconds.empty()) return;
    const Instr& weights = PreciseWeights(0);
    Scalar weight = emitter_.At(weights, ScoresAt(weights))[0];
    if (!emitter_.failure().empty()) return;
    b_.Store(scores_[0], index, weight);
    scales_.Add(0, half, weight);
  });
}

// Both rows of a column together: they share values of the column.
void ChainElements::MakePlainWeights(Scalar j, Scalar number) {
  vectors_.WaitColumns(number);
  ForPlaces(t_.columns, [&](const Place& place) {
    Scalar in_tile = ColumnOf(place), column = j * b_.Index(t_.columns) + in_tile;
    SetColumn(column);
    std::vector<Scalar> values = vectors_.ReadColumn(number, in_tile);
    std::vector<Scalar> words = packed_.ReadColumn(place.fragment, place.pair);
    b_.For("h", LoopRole::kUnrolled, b_.Index(kHalfFragments), [&](Scalar half) {
      emitter_.ClearMemo();
      SetHalf(half);
      vectors_.Memoize(half, values, scores_at_);
      MemoizePreds(half, place, words);
      MakePlainWeight(half, place, column);
      emitter_.ClearMemo();
    });
  });
  vectors_.ReleaseColumns(lane_, number);
}

void ChainElements::MakePlainWeight(Scalar half, const Place& place, Scalar column) {
  Scalar index = IndexOf(half, place), inside;
  BindScores(index);
  if (HasPadding()) inside = column < b_.Index(chain_.column_count());
  for (Accumulators& sums : plain_)
    sums.Accumulate(half, ScoresAt(*sums.reducer().instr->operand(0)), inside);
  std::vector<Scalar> all;
  for (size_t second = 0; second < chain_.seconds.size(); ++second) {
    const Instr& weights = PreciseWeights(second);
    Scalar weight = emitter_.At(weights, ScoresAt(weights))[0];
    if (!emitter_.failure().empty()) return;
    all.push_back(inside.ok() ? Choose(inside, weight, weight.Like(0)) : weight);
  }
  // No earlier: all of them follow from the scores.
  for (size_t second = 0; second < all.size(); ++second) {
    b_.Store(scores_[second], index, all[second]);
    scales_.Add(second, half, all[second]);
  }
}

void ChainElements::Pack() {
  if (!emitter_.failure().empty()) return;
  ForHalves([&](Scalar half) {
    for (size_t second = 0; second < products_.size(); ++second) {
      Scalar factor;
      if (IsExponential()) factor = b_.Read(scale_, half);
      if (scales_.Has(second)) {
        Scalar ratio = scales_.Update(second, half);
        factor = factor.ok() ? factor * ratio : ratio;
      }
      if (factor.ok()) MultiplyProduct(second, half, factor);
      PackWeights(second, half);
    }
  });
}

void ChainElements::MultiplyProduct(size_t second, Scalar half, Scalar factor) {
  ForPlaces(t_.seconds[second].width, [&](const Place& place) {
    Scalar index = IndexOf(half, place);
    b_.Store(products_[second], index, b_.Read(products_[second], index) * factor);
  });
}

void ChainElements::PackWeights(size_t second, Scalar half) {
  const Instr& weights = chain_.seconds[second].weights();
  ElementType type = weights.shape().type();
  const std::vector<ArrayId>& parts = weights_[second];
  ForPlaces(t_.columns, [&](const Place& place) {
    Scalar index = IndexOf(half, place);
    Element weight{b_.Read(scores_[second], index), {}};
    if (parts.size() > 1) {
      if (scales_.Has(second)) weight[0] = weight[0] * scales_.Scale(second, half);
      SplitFactor split = SplitTo(t_.type, weight[0]);
      b_.Store(parts[0], index, split.hi);
      b_.Store(parts[1], index, split.lo);
      return;
    }
    if (&PreciseWeights(second) != &weights)
      weight = ConvertElement(b_, ElementType::kF32, type, weight);
    ElementType factor = DotElementType(t_.type);  // f32 weights may be rounded to it
    if (type != factor) weight = ConvertElement(b_, type, factor, weight);
    b_.Store(parts[0], index, ConvertToFactorType(b_, factor, t_.type, weight));
  });
}

// ---- results

void ChainElements::Finish() {
  if (!emitter_.failure().empty()) return;
  ForHalves([&](Scalar half) {
    for (std::vector<Accumulators>* all : {&plain_, &scaled_})
      for (Accumulators& sums : *all) BindReduction(sums, half);
    Scalar factor = RowFactor();
    StoreRows();
    for (size_t second = 0; second < products_.size(); ++second) {
      Scalar all = factor;
      if (scales_.Has(second)) {
        Scalar inverse = scales_.Inverse(second, half);
        all = all.ok() ? all * inverse : inverse;
      }
      StoreProduct(second, half, all);
    }
  });
}

// The factor of the product of a row; no value if there are no row factors.
Scalar ChainElements::RowFactor() {
  Scalar all;
  for (const RunningChain::RowFactor& factor : running_.factors) {
    Scalar value = emitter_.At(*factor.row, ScoresAt(*factor.row))[0];
    if (!emitter_.failure().empty()) return {};
    if (factor.op->op() == Op::kDivide) value = 1 / value;
    all = all.ok() ? all * value : value;
  }
  return all;
}

void ChainElements::StoreRows() {
  b_.If(row_inside_ & (lane_ % b_.Index(kQuad) == b_.Index(0)), [&] {
    for (const Instr* root : region_.roots)
      if (found_.along->Of(*root) != nullptr)
        emitter_.Store(*root, 0, ScoresAt(*root), emitter_.At(*root, ScoresAt(*root)));
    emitter_.ClearMemo();
  });
}

void ChainElements::StoreProduct(size_t second, Scalar half, Scalar factor) {
  const DotChain::Second& of = chain_.seconds[second];
  DotDimensions dims(*of.dot);
  int64_t columns = of.weights_operand == 0 ? dims.n : dims.m, width = t_.seconds[second].width;
  int64_t lanes = columns % kPair == 0 ? kPair : 1;
  b_.If(row_inside_, [&] {
    b_.For("f", LoopRole::kUnrolled, b_.Index(width / kFragment), [&](Scalar fragment) {
      b_.For("u", LoopRole::kUnrolled, b_.Index(kPair / lanes), [&](Scalar u) {
        Scalar first = ColumnOf({fragment, u});
        auto store = [&] {
          ForLanes(b_, lanes, [&](Scalar lane) {
            emitter_.ClearMemo();
            Scalar sum = b_.Read(products_[second], IndexOf(half, {fragment, u}) + lane);
            StoreAt(second, first + lane, factor.ok() ? sum * factor : sum);
          });
        };
        if (columns == width) return store();
        b_.If(first < b_.Index(columns), store);
      });
    });
  });
}

// Stores the roots that depend on an element of a product.
void ChainElements::StoreAt(size_t second, Scalar column, Scalar value) {
  const Instr& product = *chain_.seconds[second].dot;
  const DimsAlong& products = found_.along_products[second];
  Coordinates product_at = ProductAt(second, column);
  emitter_.Bind(product, 0, product_at,
                ConvertElement(b_, ElementType::kF32, product.shape().type(), {value, {}}));
  for (const Instr* root : region_.roots) {
    if (found_.along->Of(*root) != nullptr || found_.ProductsOf(*root) != &products) continue;
    // A reshape of other dimensions has the order of its operand.
    const Dims* along = products.Of(*root);
    const Instr& from = along == nullptr ? *root->operand(0) : *root;
    Coordinates at = Along(*products.Of(from), product_at);
    emitter_.StoreLinear(*root, 0, Linearized(b_, at, from.shape().dims()), emitter_.At(from, at));
  }
}

}  // namespace tokamak::gpu
