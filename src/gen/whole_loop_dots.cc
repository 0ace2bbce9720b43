// Dots of a vector that belongs to a point with a matrix shared by all points, as in the layers of
// a small network. The elements of the vector are computed once and cached; then several sums at a
// time are accumulated. If a group of threads runs a point, it distributes elements and sums and
// caches both in shared memory.

#include <algorithm>

#include "gen/whole_loop.h"

namespace tokamak {
namespace {

// Products of a dot that are unrolled. Chosen: bounds the code.
constexpr int64_t kMaxWritten = 64;
// Elements of vector and sums that a point caches per dot. Chosen: bounds local and shared memory.
constexpr int64_t kDotMaxCached = 512;

// Whether a value is the same in all iterations and for all points, and cheap to load.
bool IsInvariant(const WhileLoop& loop, const LoopIndependence& form, const Instr& value) {
  if (value.op() == Op::kConstant) return true;
  if (value.op() == Op::kParameter) {
    for (size_t i = 0; i < loop.size(); ++i)
      if (loop.in_body(i) == &value) return form.carries[i].kind == CarryKind::kInvariant;
    return false;
  }
  bool moves = value.op() == Op::kTranspose || value.op() == Op::kReshape ||
               value.op() == Op::kSlice || value.op() == Op::kConvert;
  return moves && IsInvariant(loop, form, *value.operand(0));
}

// A local array of a point.
class CachedArray {
 public:
  CachedArray(WholeLoopContext& context, const std::string& name, ScalarType type, int64_t count)
      : context_(context) {
    const WholeLoopGroup& group = context.group;
    bool predicate = group.threads == 1;
    array_ = context.b.Local(name, type, predicate ? Space::kRegisters : Space::kShared,
                             predicate ? count : count * group.points);
  }
  Scalar Read(Scalar i) const { return context_.b.Read(array_, Index(i)); }
  void Store(Scalar i, Scalar value) const { context_.b.Store(array_, Index(i), value); }

 private:
  // Element-major, so that threads of different points access different banks.
  Scalar Index(Scalar i) const {
    const WholeLoopGroup& group = context_.group;
    return group.threads == 1 ? i : i * context_.b.Index(group.points) + group.point_in_block;
  }

  WholeLoopContext& context_;
  ArrayId array_{};
};

// Calls body(i) for each i < count, distributed over the threads of the point.
template <typename Body>
void ForDistributed(WholeLoopContext& context, const std::string& name, int64_t count,
                    Body&& body) {
  KernelBuilder& b = context.b;
  int64_t threads = context.group.threads, steps = (count + threads - 1) / threads;
  auto step = [&](Scalar at) {
    if (threads == 1) return body(at);
    Scalar i = at * b.Index(threads) + context.group.member;
    b.If(i < b.Index(count), [&] { body(i); });
  };
  if (steps == 1) {
    step(b.Index(0));
  } else {
    b.For(name, LoopRole::kSerial, b.Index(steps), step);
  }
  if (threads > 1) b.Barrier(BarrierScope::kWarp);
  context.ClearMemo();
}

// Calls body(lane) for adjacent sums.
template <typename Body>
void ForSums(KernelBuilder& b, int64_t count, Body&& body) {
  if (count == 1) return body(b.Index(0));
  // On CPUs the vector lanes are points, so this loop is unrolled.
  LoopRole role = b.dialect() == Dialect::kGpu ? LoopRole::kVector : LoopRole::kUnrolled;
  b.For("l", role, b.Index(count), body);
}

}  // namespace

std::optional<WholeLoopMatVec> LoopedMatVecOf(const LoopIndependence& independence,
                                              const Instr& dot) {
  std::optional<WholeLoopMatVec> product = MatVecOf(independence, dot);
  if (!product || product->terms * product->results <= kMaxWritten ||
      product->terms + product->results > kDotMaxCached)
    return std::nullopt;
  return product;
}

std::optional<WholeLoopMatVec> MatVecOf(const LoopIndependence& independence, const Instr& dot) {
  auto axes = independence.dots.find(&dot);
  if (axes == independence.dots.end() || IsComplex(dot.shape().type())) return std::nullopt;
  const DotAttrs& attrs = dot.attrs<DotAttrs>();
  WholeLoopMatVec product{
      .dot = &dot, .axes = &axes->second, .terms = ReadsPerElement(dot), .results = 1};
  const Dims& lhs = dot.operand(0)->shape().dims();
  // Results per point along the free dimensions of lhs and rhs, and along the batch dimensions.
  size_t batch = attrs.lhs_batch.size(), last = lhs.size() - attrs.lhs_contracting.size();
  int64_t own[] = {1, 1}, own_batch = 1;
  for (size_t d = 0; d < axes->second.size(); ++d)
    if (axes->second[d] < 0) (d < batch ? own_batch : own[d < last ? 0 : 1]) *= dot.shape().dim(d);
  if (own_batch != 1 || (own[0] != 1 && own[1] != 1)) return std::nullopt;
  product.vector = own[0] == 1 ? 0 : 1;
  product.results = own[1 - product.vector];
  return product;
}

bool IsUnrolledDot(const LoopIndependence& independence, const Instr& dot) {
  std::optional<WholeLoopMatVec> product = MatVecOf(independence, dot);
  return product ? product->terms * product->results <= kMaxWritten
                 : ReadsPerElement(dot) <= kMaxWritten;
}

std::string WhyNotInvariantMatrix(const WholeLoopRegion& region, const WholeLoopMatVec& product) {
  const DotAttrs& attrs = product.dot->attrs<DotAttrs>();
  // The dimensions of the result that are free dimensions of the matrix.
  size_t lhs_end = product.dot->operand(0)->shape().dims().size() - attrs.lhs_contracting.size();
  size_t from = product.vector == 0 ? lhs_end : 0;
  size_t to = product.vector == 0 ? product.axes->size() : lhs_end;
  for (size_t d = from; d < to; ++d)
    if ((*product.axes)[d] >= 0) return "the matrix of a dot differs between points";
  if (!IsInvariant(region.loop, region.independence, *product.dot->operand(1 - product.vector)))
    return "the matrix of a dot is not loop-invariant";
  return "";
}

bool HasUnknownLoop(const Computation& computation) {
  for (Instr* caller : computation.Callers()) {
    if (caller->op() == Op::kWhile) {
      std::optional<WhileLoop> loop = LoopOf(caller);
      if (!loop || !TripCount(*loop)) return true;
    }
    if (RunsComputations(caller->op()))
      for (const Computation* called : caller->called())
        if (HasUnknownLoop(*called)) return true;
  }
  return false;
}

std::vector<WholeLoopMatVec> DotsToDistribute(const WholeLoopRegion& region) {
  std::vector<WholeLoopMatVec> products;
  if (!region.trip_count || HasUnknownLoop(*region.loop.body)) return products;
  for (const auto& [dot, axes] : region.independence.dots)
    if (std::optional<WholeLoopMatVec> product = LoopedMatVecOf(region.independence, *dot))
      products.push_back(*product);
  return products;
}

Dims WholeLoopMatVec::ResultDims() const {
  Dims dims;
  for (size_t d = 0; d < axes->size(); ++d)
    if ((*axes)[d] < 0) dims.push_back(dot->shape().dim(d));
  return dims;
}

Coordinates WholeLoopMatVec::CoordinatesOf(KernelBuilder& b, size_t operand,
                                           const Coordinates& point, Scalar term,
                                           Scalar sum) const {
  Coordinates at(axes->size()), inner = Delinearized(b, sum, ResultDims());
  for (size_t d = 0, next = 0; d < axes->size(); ++d)
    at[d] = (*axes)[d] < 0 ? inner[next++] : point[static_cast<size_t>((*axes)[d])];
  IndexMap map = *IndexMapOf(*dot, operand);
  return ReadCoordinates(map, at, Delinearized(b, term, map.IteratedSizes()));
}

Scalar WholeLoopFrame::FactorOf(const WholeLoopMatVec& product, size_t operand, Scalar term,
                                Scalar sum) {
  const Instr& factor = *product.dot->operand(operand);
  Element value = At(factor, product.CoordinatesOf(context_.b, operand, context_.point, term, sum));
  return ConvertElement(context_.b, factor.shape().type(),
                        AccumulatorElementType(product.dot->shape().type()), value)[0];
}

void WholeLoopFrame::EmitMatVec(const WholeLoopMatVec& product) {
  KernelBuilder& b = context_.b;
  const Instr& dot = *product.dot;
  const std::vector<int>& axes = *product.axes;
  ElementType type = dot.shape().type(), wide = AccumulatorElementType(type);
  ScalarType sum_type = ComputeType(wide);
  Dims own = product.ResultDims();
  std::string number = std::to_string(b.kernel().arrays.size());
  CachedArray vector(context_, "vector" + number, sum_type, product.terms);
  CachedArray sums(context_, "sums" + number, sum_type, product.results);
  ForDistributed(context_, "i", product.terms, [&](Scalar i) {
    vector.Store(i, FactorOf(product, product.vector, i, b.Index(0)));
  });
  // Adjacent sums in registers. Chosen: two vectors of 128 bits, whose chains cover the latency.
  constexpr int64_t kSumsAtOnce = 8;
  int64_t together = kSumsAtOnce;
  while (product.results % together != 0) together /= 2;
  ArrayId sum = b.Local("sum" + number, sum_type, Space::kRegisters, together);
  // Accumulates `count` products into each of several adjacent sums.
  auto add = [&](Scalar first, int64_t count, auto&& term_of) {
    ForSums(b, together, [&](Scalar l) { b.Store(sum, l, b.Constant(sum_type, 0)); });
    b.For("i", LoopRole::kSerial, b.Index(count), [&](Scalar i) {
      Scalar term = term_of(i), x = vector.Read(term);
      ForSums(b, together, [&](Scalar l) {
        Scalar y = FactorOf(product, 1 - product.vector, term, first + l), so_far = b.Read(sum, l);
        if (IsFloat(sum_type)) return b.Store(sum, l, Fma(x, y, so_far));
        std::optional<Element> next = AddProduct(b, wide, {so_far, {}}, {x, {}}, {y, {}});
        if (!next) return context_.Fail("it contains a dot without a scalar formula");
        b.Store(sum, l, (*next)[0]);
      });
    });
  };
  int64_t threads = context_.group.threads;
  if (threads > 1 && product.results == together && product.terms % threads == 0) {
    // Fewer sums than threads: each thread computes partial sums of all of them.
    add(b.Index(0), product.terms / threads,
        [&](Scalar i) { return i * b.Index(threads) + context_.group.member; });
    for (int64_t l = 0; l < together; ++l) {
      Scalar all = b.Read(sum, b.Index(l));
      for (int64_t mask = 1; mask < threads; mask *= 2) {
        Element sums_of_two[2] = {{all, {}}, {b.Shuffle(all, b.Index(mask)), {}}};
        all = (*ApplyOp(b, {Op::kAdd, wide, wide, sums_of_two, nullptr}))[0];
      }
      // A single thread stores: NaN payloads may differ between threads.
      b.If(context_.group.member == b.Index(0), [&] { sums.Store(b.Index(l), all); });
    }
    b.Barrier(BarrierScope::kWarp);
    context_.ClearMemo();
  } else {
    ForDistributed(context_, "j", product.results / together, [&](Scalar j) {
      Scalar first = j * b.Index(together);
      add(first, product.terms, [](Scalar i) { return i; });
      ForSums(b, together, [&](Scalar l) { sums.Store(first + l, b.Read(sum, l)); });
    });
  }
  emitter_.SetSource(dot,
                     SourceOf([this, &axes, own, sums, type, wide](const Coordinates& at, size_t) {
                       Coordinates inner = context_.InPoint(axes, at);
                       Scalar value = sums.Read(Linearized(context_.b, inner, own));
                       return ConvertElement(context_.b, wide, type, {value, {}});
                     }));
}

}  // namespace tokamak
