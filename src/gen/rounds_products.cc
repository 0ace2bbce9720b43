// Products of a vector that a place holds and a matrix that all have, as the layers of a small
// network: elements of the vector are computed once and kept, then some sums at a time are made of
// them. Threads that run a place together share out elements and sums, and keep both in team
// memory.

#include <algorithm>

#include "gen/rounds.h"

namespace tokamak {
namespace {

// Products of a dot that are written out, one by one.
constexpr int64_t kMostWritten = 64;
// Elements of vectors and sums that a place keeps of one product.
constexpr int64_t kProductMostKept = 512;

bool HasUnknownLoop(const Computation& computation) {
  for (Instr* caller : computation.Callers()) {
    if (caller->op() == Op::kWhile) {
      std::optional<WhileLoop> loop = LoopOf(caller);
      if (!loop || !TripCount(*loop)) return true;
    }
    if (caller->op() == Op::kWhile || caller->op() == Op::kConditional || caller->op() == Op::kCall)
      for (const Computation* called : caller->called())
        if (HasUnknownLoop(*called)) return true;
  }
  return false;
}

// An array that a place keeps.
class Kept {
 public:
  Kept(RoundsContext& context, const std::string& name, ScalarType type, int64_t count)
      : context_(context) {
    const RoundsGroup& group = context.group;
    bool alone = group.threads == 1;
    array_ = context.b.Local(name, type, alone ? Space::kRegisters : Space::kTeam,
                             alone ? count : count * group.places);
  }
  Scalar Read(Scalar i) const { return context_.b.Read(array_, Index(i)); }
  void Store(Scalar i, Scalar value) const { context_.b.Store(array_, Index(i), value); }

 private:
  // Elements of the places side by side: threads of different places read from different banks.
  Scalar Index(Scalar i) const {
    const RoundsGroup& group = context_.group;
    return group.threads == 1 ? i : i * context_.b.Index(group.places) + group.slot;
  }

  RoundsContext& context_;
  ArrayId array_{};
};

// body(i) for each i < count, by all threads of the place.
template <typename Body>
void ForShared(RoundsContext& context, const std::string& name, int64_t count, Body&& body) {
  KernelBuilder& b = context.b;
  int64_t threads = context.group.threads, turns = (count + threads - 1) / threads;
  auto turn = [&](Scalar at) {
    if (threads == 1) return body(at);
    Scalar i = at * b.Index(threads) + context.group.member;
    b.If(i < b.Index(count), [&] { body(i); });
  };
  if (turns == 1) {
    turn(b.Index(0));
  } else {
    b.For(name, LoopRole::kSerial, b.Index(turns), turn);
  }
  if (threads > 1) b.Barrier(Scope::kWarp);
  context.Forget();
}

// body(lane) for neighbouring sums.
template <typename Body>
void ForSums(KernelBuilder& b, int64_t count, Body&& body) {
  if (count == 1) return body(b.Index(0));
  // Places are the lanes of a CPU.
  LoopRole role = b.dialect() == Dialect::kGpu ? LoopRole::kVector : LoopRole::kUnrolled;
  b.For("l", role, b.Index(count), body);
}

}  // namespace

Coordinates PlaceOf(const Instr& dot, size_t operand, const Coordinates& at,
                    const Coordinates& tap) {
  const DotAttrs& attrs = dot.attrs<DotAttrs>();
  const Dims& batch = operand == 0 ? attrs.lhs_batch : attrs.rhs_batch;
  const Dims& folded = operand == 0 ? attrs.lhs_contracting : attrs.rhs_contracting;
  Coordinates place(dot.operand(operand)->shape().dims().size());
  for (size_t i = 0; i < batch.size(); ++i) place[static_cast<size_t>(batch[i])] = at[i];
  for (size_t i = 0; i < folded.size(); ++i) place[static_cast<size_t>(folded[i])] = tap[i];
  size_t next = batch.size();
  if (operand == 1) next = at.size() - (place.size() - batch.size() - folded.size());
  for (Scalar& c : place)
    if (!c.ok()) c = at[next++];
  return place;
}

std::optional<RoundsProduct> ProductOf(const IndependentLoop& form, const Instr& dot) {
  std::optional<RoundsProduct> product = LargeProductOf(form, dot);
  if (!product || product->taps * product->sums <= kMostWritten ||
      product->taps + product->sums > kProductMostKept)
    return std::nullopt;
  return product;
}

std::optional<RoundsProduct> LargeProductOf(const IndependentLoop& form, const Instr& dot) {
  auto axes = form.dots.find(&dot);
  if (axes == form.dots.end() || IsComplex(dot.shape().type())) return std::nullopt;
  const DotAttrs& attrs = dot.attrs<DotAttrs>();
  RoundsProduct product{.dot = &dot, .axes = &axes->second, .taps = 1, .sums = 1};
  const Dims& lhs = dot.operand(0)->shape().dims();
  for (int64_t d : attrs.lhs_contracting) product.taps *= lhs[static_cast<size_t>(d)];
  // Results that a place has along the free dimensions of each operand.
  size_t batch = attrs.lhs_batch.size(), last = lhs.size() - attrs.lhs_contracting.size();
  int64_t own[3] = {1, 1, 1};
  for (size_t d = 0; d < axes->second.size(); ++d)
    if (axes->second[d] < 0) own[d < batch ? 2 : d < last ? 0 : 1] *= dot.shape().dim(d);
  if (own[2] != 1 || (own[0] != 1 && own[1] != 1)) return std::nullopt;
  product.vector = own[0] == 1 ? 0 : 1;
  product.sums = own[1 - product.vector];
  return product;
}

std::vector<RoundsProduct> ProductsToShare(const RoundsRegion& region) {
  std::vector<RoundsProduct> products;
  if (!region.rounds || HasUnknownLoop(*region.loop.body)) return products;
  for (const auto& [dot, axes] : region.form.dots)
    if (std::optional<RoundsProduct> product = ProductOf(region.form, *dot))
      products.push_back(*product);
  return products;
}

Dims RoundsProduct::SumDims() const {
  Dims dims;
  for (size_t d = 0; d < axes->size(); ++d)
    if ((*axes)[d] < 0) dims.push_back(dot->shape().dim(d));
  return dims;
}

Dims RoundsProduct::TapDims() const {
  Dims dims;
  for (int64_t d : dot->attrs<DotAttrs>().lhs_contracting)
    dims.push_back(dot->operand(0)->shape().dim(static_cast<size_t>(d)));
  return dims;
}

Scalar RoundsFrame::FactorOf(const RoundsProduct& product, size_t operand, Scalar tap, Scalar sum) {
  KernelBuilder& b = context_.b;
  const Instr& dot = *product.dot;
  const std::vector<int>& axes = *product.axes;
  Coordinates at(axes.size()), inner = Delinearized(b, sum, product.SumDims());
  for (size_t d = 0, next = 0; d < axes.size(); ++d)
    at[d] = axes[d] < 0 ? inner[next++] : context_.place[static_cast<size_t>(axes[d])];
  const Instr& factor = *dot.operand(operand);
  Element value = At(factor, PlaceOf(dot, operand, at, Delinearized(b, tap, product.TapDims())));
  return ConvertElement(b, factor.shape().type(), WideType(dot.shape().type()), value)[0];
}

void RoundsFrame::AddProduct(const RoundsProduct& product) {
  KernelBuilder& b = context_.b;
  const Instr& dot = *product.dot;
  const std::vector<int>& axes = *product.axes;
  ElementType type = dot.shape().type(), wide = WideType(type);
  ScalarType sum_type = ComputeType(wide);
  Dims own = product.SumDims();
  std::string number = std::to_string(b.kernel().arrays.size());
  Kept vector(context_, "vector" + number, sum_type, product.taps);
  Kept sums(context_, "sums" + number, sum_type, product.sums);
  ForShared(context_, "i", product.taps,
            [&](Scalar i) { vector.Store(i, FactorOf(product, product.vector, i, b.Index(0))); });
  int64_t together = 8;
  while (product.sums % together != 0) together /= 2;
  ArrayId sum = b.Local("sum" + number, sum_type, Space::kRegisters, together);
  // Neighbouring sums of so many products.
  auto add = [&](Scalar first, int64_t count, auto&& tap_of) {
    ForSums(b, together, [&](Scalar l) { b.Store(sum, l, b.Constant(sum_type, 0)); });
    b.For("i", LoopRole::kSerial, b.Index(count), [&](Scalar i) {
      Scalar tap = tap_of(i), x = vector.Read(tap);
      ForSums(b, together, [&](Scalar l) {
        Scalar y = FactorOf(product, 1 - product.vector, tap, first + l), so_far = b.Read(sum, l);
        b.Store(sum, l, IsFloat(sum_type) ? Fma(x, y, so_far) : so_far + x * y);
      });
    });
  };
  int64_t threads = context_.group.threads;
  if (threads > 1 && product.sums == together && product.taps % threads == 0) {
    // Too few sums for all threads: each makes a part of all of them.
    add(b.Index(0), product.taps / threads,
        [&](Scalar i) { return i * b.Index(threads) + context_.group.member; });
    for (int64_t l = 0; l < together; ++l) {
      Scalar all = b.Read(sum, b.Index(l));
      for (int64_t mask = 1; mask < threads; mask *= 2) all = all + b.Shuffle(all, b.Index(mask));
      // One thread stores it: NaNs of several may differ.
      b.If(context_.group.member == b.Index(0), [&] { sums.Store(b.Index(l), all); });
    }
    b.Barrier(Scope::kWarp);
    context_.Forget();
  } else {
    ForShared(context_, "j", product.sums / together, [&](Scalar j) {
      Scalar first = j * b.Index(together);
      add(first, product.taps, [](Scalar i) { return i; });
      ForSums(b, together, [&](Scalar l) { sums.Store(first + l, b.Read(sum, l)); });
    });
  }
  emitter_.Give(dot,
                GiverOf([this, &dot, &axes, own, sums, type, wide](const Coordinates& at, size_t) {
                  Coordinates inner;
                  for (size_t d = 0; d < axes.size(); ++d) {
                    if (axes[d] < 0)
                      inner.push_back(at[d]);
                    else if (at[d].id() != context_.place[static_cast<size_t>(axes[d])].id())
                      context_.Fail("an element is needed at another place than its own");
                  }
                  Scalar value = sums.Read(Linearized(context_.b, inner, own));
                  return ConvertElement(context_.b, wide, type, {value, {}});
                }));
}

}  // namespace tokamak
