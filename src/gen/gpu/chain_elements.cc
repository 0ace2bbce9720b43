#include "gen/gpu/chain_elements.h"

#include <limits>
#include <memory>

#include "gen/dot_operand.h"
#include "gen/gpu/gpu.h"

namespace tokamak::gpu {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
// Of a fragment of accumulators (PTX ISA; AccumulatorPosition): columns, adjacent columns of a
// thread, rows of a thread, rows between them, accumulators of a thread, threads of a row.
constexpr int64_t kFragment = MatrixMultiply::kFragmentColumns, kPair = 2, kHalfFragments = 2,
                  kHalfRows = MatrixMultiply::kFragmentRows / kHalfFragments,
                  kOfFragment = kPair * kHalfFragments, kQuad = 4;

// Elements of a reshape that inserts or removes dimensions of size 1: the same coordinates. With
// index arithmetic they would be other values, unless it is simplified completely.
class UnitReshapeSource : public ElementSource {
 public:
  UnitReshapeSource(KernelBuilder& b, ElementEmitter& emitter, const Instr& reshape)
      : b_(b), emitter_(emitter), reshape_(reshape) {}

  Element At(const Coordinates& at, size_t) override {
    const Instr& from = *reshape_.operand(0);
    Coordinates rest, operand_at;
    for (size_t d = 0; d < at.size(); ++d)
      if (reshape_.shape().dim(d) != 1) rest.push_back(at[d]);
    size_t next = 0;
    for (int64_t size : from.shape().dims())
      operand_at.push_back(size == 1 ? b_.Index(0) : rest[next++]);
    return emitter_.At(from, operand_at);
  }

 private:
  KernelBuilder& b_;
  ElementEmitter& emitter_;
  const Instr& reshape_;
};

bool OnlyInsertsUnits(const Instr& reshape) {
  auto without = [](const Dims& dims) {
    Dims rest;
    for (int64_t size : dims)
      if (size != 1) rest.push_back(size);
    return rest;
  };
  return without(reshape.shape().dims()) == without(reshape.operand(0)->shape().dims());
}

// The element of another value at the same coordinates.
class SameElementSource : public ElementSource {
 public:
  SameElementSource(ElementEmitter& emitter, const Instr& from) : emitter_(emitter), from_(from) {}
  Element At(const Coordinates& at, size_t) override { return emitter_.At(from_, at); }

 private:
  ElementEmitter& emitter_;
  const Instr& from_;
};

// exp(x) to a few ulp near 0. The relative error grows with -x, to 5e-6 where the result vanishes:
// weights are rounded to 16 bits.
Scalar ShortExp(Scalar x) {
  constexpr double kLog2E = 0x1.715476p+0;  // value of log2(e) (definition), rounded to f32
  return x.builder().Make(Prim::kExp2, {x * kLog2E});
}

// exp(x - shift), with the shift in use, as far as the types of the program allow it.
class ExponentialSource : public ElementSource {
 public:
  ExponentialSource(KernelBuilder& b, ElementEmitter& emitter, const RunningChain& running,
                    const Scalar& shift)
      : b_(b), emitter_(emitter), running_(running), shift_(shift) {}
  Element At(const Coordinates& at, size_t) override {
    Element power{ShortExp(emitter_.At(*running_.x, at)[0] - shift_), {}};
    return ConvertElement(b_, ElementType::kF32, running_.exponential->shape().type(), power);
  }

 private:
  KernelBuilder& b_;
  ElementEmitter& emitter_;
  const RunningChain& running_;
  const Scalar& shift_;
};

}  // namespace

ChainElements::ChainElements(KernelBuilder& b, ElementEmitter& emitter, const FusedRegion& region,
                             const ChainRegion& found, const ChainTiling& tiling)
    : b_(b),
      emitter_(emitter),
      region_(region),
      found_(found),
      chain_(found.chain),
      running_(found.running),
      t_(tiling),
      product_dims_(*found.chain.product) {}

void ChainElements::Declare() {
  int64_t sums = t_.columns * kWarpgroupRows / kWarpgroupThreads;
  scores_ = b_.Local("scores", ScalarType::kF32, Space::kRegisters, sums);
  weights_ = b_.Local("weights", t_.type, Space::kRegisters, sums);
  product_ = b_.Local("product", ScalarType::kF32, Space::kRegisters,
                      t_.width * kWarpgroupRows / kWarpgroupThreads);
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
  SetSources();
}

// Row factors are applied to the product (RunningChain).
void ChainElements::SetSources() {
  auto same = [&](const Instr& instr, const Instr& from) {
    emitter_.SetSource(instr, std::make_shared<SameElementSource>(emitter_, from));
  };
  for (const Instr* instr : region_.instrs) {
    if (instr->op() == Op::kReshape && OnlyInsertsUnits(*instr))
      emitter_.SetSource(*instr, std::make_shared<UnitReshapeSource>(b_, emitter_, *instr));
    for (const DimsAlong* along : {&*found_.along, &*found_.along_product})
      if (along->IsUnpadded(*instr)) same(*instr, *instr->operand(0)->operand(0));
  }
  for (const RunningChain::RowFactor& factor : running_.factors)
    same(*factor.op, *factor.op->operand(factor.element));
  if (IsExponential())
    emitter_.SetSource(*running_.exponential,
                       std::make_shared<ExponentialSource>(b_, emitter_, running_, used_shift_));
}

// ---- coordinates

void ChainElements::SetBatch(Scalar batch) {
  const Dims& dims = chain_.scores->shape().dims();
  Coordinates at = Delinearized(b_, batch, SizesAlong(dims, chain_.batch));
  scores_at_.assign(dims.size(), b_.Index(0));
  for (size_t i = 0; i < at.size(); ++i) scores_at_[static_cast<size_t>(chain_.batch[i])] = at[i];
}

Scalar ChainElements::BatchOf(const ChainSide& side, const TensorOperand::Dimension& dimension) {
  Coordinates at = Along(side.batch, scores_at_);
  if (!dimension.is_all) return at[dimension.batch];
  Dims sizes;
  for (int64_t dim : side.batch)
    sizes.push_back(dim < 0 ? 1 : chain_.scores->shape().dim(static_cast<size_t>(dim)));
  return Linearized(b_, at, sizes);
}

Coordinates ChainElements::Along(const Dims& along, const Coordinates& from) {
  Coordinates at;
  for (int64_t dim : along) at.push_back(dim < 0 ? b_.Index(0) : from[static_cast<size_t>(dim)]);
  return at;
}

// The coordinates of the product: those of the weights, which run along the scores, and its column.
Coordinates ChainElements::ProductAt(Scalar column) {
  bool is_lhs = chain_.weights_operand == 0;
  const Dims& batch = is_lhs ? product_dims_.attrs.lhs_batch : product_dims_.attrs.rhs_batch;
  const Dims& free = is_lhs ? product_dims_.lhs_free : product_dims_.rhs_free;
  const Dims& other = is_lhs ? product_dims_.rhs_free : product_dims_.lhs_free;
  const Dims& sizes = is_lhs ? product_dims_.rhs_dims : product_dims_.lhs_dims;
  Coordinates weights_at = ScoresAt(chain_.weights()), at, rows;
  for (int64_t d : batch) at.push_back(weights_at[static_cast<size_t>(d)]);
  for (int64_t d : free) rows.push_back(weights_at[static_cast<size_t>(d)]);
  Coordinates columns = Delinearized(b_, column, SizesAlong(sizes, other));
  for (const Coordinates* part : {is_lhs ? &rows : &columns, is_lhs ? &columns : &rows})
    at.insert(at.end(), part->begin(), part->end());
  for (size_t d = 0; d < at.size(); ++d)
    if (chain_.product->shape().dim(d) == 1) at[d] = b_.Index(0);
  return at;
}

// Columns beyond the scores are clamped: inputs are read there.
void ChainElements::SetColumn(Scalar column) {
  if (!chain_.column) return;
  if (HasPadding()) column = LesserOf(column, b_.Index(chain_.column_count() - 1));
  scores_at_[static_cast<size_t>(*chain_.column)] = column;
}

template <typename Body>
void ChainElements::ForHalves(Body&& body) {
  b_.For("h", LoopRole::kUnrolled, b_.Index(kHalfFragments), [&](Scalar half) {
    emitter_.ClearMemo();
    row_ = first_row_ + half * b_.Index(kHalfRows);
    row_inside_ = b_.ConstantBits(ScalarType::kPred, 1);
    Scalar at = row_;
    if (chain_.row_count() % t_.rows != 0) {
      row_inside_ = row_ < b_.Index(chain_.row_count());
      at = LesserOf(row_, b_.Index(chain_.row_count() - 1));
    }
    if (chain_.row) scores_at_[static_cast<size_t>(*chain_.row)] = at;
    body(half);
    emitter_.ClearMemo();
  });
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
  first_row_ = row + consumer / b_.Index(kWarpSize) * b_.Index(MatrixMultiply::kFragmentRows) +
               lane_ / b_.Index(kQuad);
  b_.For("s", LoopRole::kUnrolled, b_.Index(t_.width * kWarpgroupRows / kWarpgroupThreads),
         [&](Scalar s) { b_.Store(product_, s, b_.Constant(ScalarType::kF32, 0)); });
  b_.For("h", LoopRole::kUnrolled, b_.Index(kHalfFragments), [&](Scalar half) {
    for (std::vector<Accumulators>* all : {&plain_, &scaled_})
      for (Accumulators& sums : *all) sums.Write(half, sums.StartValue());
    if (IsExponential()) b_.Store(shift_, half, b_.Constant(ScalarType::kF32, -kInfinite));
    emitter_.ClearMemo();
  });
}

void ChainElements::Weigh(Scalar j) {
  if (!emitter_.failure().empty()) return;
  if (IsExponential() || !plain_.empty()) {
    if (found_.live.select != nullptr && IsExponential()) {
      b_.If(
          IsLive(j), [&] { ReadElements(j, false); }, [&] { ReadElements(j, true); },
          /*uniform=*/false);
    } else {
      ReadElements(j, true);
    }
  }
  ForHalves([&](Scalar half) {
    for (Accumulators& sums : plain_) BindReduction(sums, half);
    if (IsExponential()) Rescale(half);
    MakeWeights(half, j);
  });
}

Scalar ChainElements::IsLive(Scalar j) {
  Scalar is_live = b_.ConstantBits(ScalarType::kPred, 1), column = j * b_.Index(t_.columns);
  const auto& [first, last, select, live_operand] = found_.live;
  if (first) is_live = is_live & (tile_row_ + b_.Index(t_.rows - 1 + *first) <= column);
  if (last) is_live = is_live & (column + b_.Index(t_.columns - 1) <= tile_row_ + b_.Index(*last));
  return is_live;
}

void ChainElements::BindScore(Scalar index) {
  const Instr& scores = *chain_.scores;
  Element score{b_.Read(scores_, index), {}};
  emitter_.Bind(scores, 0, scores_at_,
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
  BindScore(index);
  if (!is_masked) {
    const Instr& select = *found_.live.select;
    Coordinates at = ScoresAt(select);
    emitter_.Memoize(select, at, emitter_.At(*select.operand(found_.live.live_operand), at));
  }
  Scalar inside;
  if (HasPadding()) inside = column < b_.Index(chain_.column_count());
  for (Accumulators& sums : plain_)
    sums.Accumulate(half, ScoresAt(*sums.reducer().instr->operand(0)), inside);
  if (!IsExponential() || !emitter_.failure().empty()) return;
  Scalar x = emitter_.At(*running_.x, ScoresAt(*running_.x))[0];
  // The exponential of padding is zero.
  if (inside.ok()) x = Choose(inside, x, b_.Constant(ScalarType::kF32, -kInfinite));
  b_.Store(scores_, index, x);
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

const Instr& ChainElements::PreciseWeights() const {
  const Instr& weights = chain_.weights();
  bool is_converted = weights.op() == Op::kConvert &&
                      weights.operand(0)->shape().type() == ElementType::kF32 &&
                      std::ranges::count(region_.instrs, &weights) > 0;
  return is_converted ? *weights.operand(0) : weights;
}

void ChainElements::MakeWeights(Scalar half, Scalar j) {
  const Instr& weights = PreciseWeights();
  ForPlaces(t_.columns, [&](const Place& place) {
    Scalar column = j * b_.Index(t_.columns) + ColumnOf(place), index = IndexOf(half, place);
    SetColumn(column);
    if (IsExponential() && running_.x != chain_.scores)
      emitter_.Memoize(*running_.x, ScoresAt(*running_.x), {b_.Read(scores_, index), {}});
    else
      BindScore(index);
    for (Accumulators& sums : scaled_)
      sums.Accumulate(half, ScoresAt(*sums.reducer().instr->operand(0)), {});
    Scalar weight = emitter_.At(weights, ScoresAt(weights))[0];
    if (!emitter_.failure().empty()) return;
    if (!IsExponential() && HasPadding())
      weight = Choose(column < b_.Index(chain_.column_count()), weight, weight.Like(0));
    b_.Store(scores_, index, weight);
  });
}

void ChainElements::Pack() {
  if (!emitter_.failure().empty()) return;
  ElementType type = chain_.weights().shape().type();
  ForHalves([&](Scalar half) {
    if (IsExponential()) {
      Scalar scale = b_.Read(scale_, half);
      ForPlaces(t_.width, [&](const Place& place) {
        Scalar index = IndexOf(half, place);
        b_.Store(product_, index, b_.Read(product_, index) * scale);
      });
    }
    ForPlaces(t_.columns, [&](const Place& place) {
      Scalar index = IndexOf(half, place);
      Element weight{b_.Read(scores_, index), {}};
      if (&PreciseWeights() != &chain_.weights())
        weight = ConvertElement(b_, ElementType::kF32, type, weight);
      b_.Store(weights_, index, ConvertToFactorType(b_, type, t_.type, weight));
    });
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
    StoreProduct(half, factor);
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

void ChainElements::StoreProduct(Scalar half, Scalar factor) {
  int64_t columns = chain_.weights_operand == 0 ? product_dims_.n : product_dims_.m;
  int64_t lanes = columns % kPair == 0 ? kPair : 1;
  b_.If(row_inside_, [&] {
    b_.For("f", LoopRole::kUnrolled, b_.Index(t_.width / kFragment), [&](Scalar fragment) {
      b_.For("u", LoopRole::kUnrolled, b_.Index(kPair / lanes), [&](Scalar u) {
        Scalar first = ColumnOf({fragment, u});
        auto store = [&] {
          ForLanes(b_, lanes, [&](Scalar lane) {
            emitter_.ClearMemo();
            Scalar sum = b_.Read(product_, IndexOf(half, {fragment, u}) + lane);
            StoreAt(first + lane, factor.ok() ? sum * factor : sum);
          });
        };
        if (columns == t_.width) return store();
        b_.If(first < b_.Index(columns), store);
      });
    });
  });
}

// Stores the roots that depend on an element of the product.
void ChainElements::StoreAt(Scalar column, Scalar value) {
  const Instr& product = *chain_.product;
  Coordinates product_at = ProductAt(column);
  emitter_.Bind(product, 0, product_at,
                ConvertElement(b_, ElementType::kF32, product.shape().type(), {value, {}}));
  for (const Instr* root : region_.roots) {
    if (found_.along->Of(*root) != nullptr) continue;
    // A reshape of other dimensions has the order of its operand.
    const Dims* along = found_.along_product->Of(*root);
    const Instr& from = along == nullptr ? *root->operand(0) : *root;
    along = found_.along_product->Of(from);
    if (along == nullptr) return emitter_.Fail("a root that does not depend on the product");
    Coordinates at = Along(*along, product_at);
    emitter_.StoreLinear(*root, 0, Linearized(b_, at, from.shape().dims()), emitter_.At(from, at));
  }
}

}  // namespace tokamak::gpu
