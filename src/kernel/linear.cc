#include "kernel/linear.h"

#include <algorithm>

namespace tokamak {
namespace {

constexpr size_t kMaxTerms = 24;

std::optional<int64_t> ConstantOf(const Kernel& kernel, ValueId id) {
  const ScalarNode& node = kernel.node(id);
  if (node.prim != Prim::kConst) return std::nullopt;
  return IntOfBits(node.type, node.bits);
}

Scalar MakeRaw(KernelBuilder& b, Prim prim, Scalar x, Scalar y) {
  ScalarNode node{.prim = prim, .type = ScalarType::kIndex};
  node.operands = {x.id(), y.id(), kNoValue};
  return b.Intern(node);
}

}  // namespace

std::optional<LinearIndex> Sum(const LinearIndex& x, const LinearIndex& y) {
  LinearIndex sum;
  if (__builtin_add_overflow(x.constant, y.constant, &sum.constant)) return std::nullopt;
  auto a = x.terms.begin(), b = y.terms.begin();
  while (a != x.terms.end() || b != y.terms.end()) {
    if (b == y.terms.end() || (a != x.terms.end() && a->first < b->first)) {
      sum.terms.push_back(*a++);
    } else if (a == x.terms.end() || b->first < a->first) {
      sum.terms.push_back(*b++);
    } else {
      int64_t factor = 0;
      if (__builtin_add_overflow(a->second, b->second, &factor)) return std::nullopt;
      if (factor != 0) sum.terms.emplace_back(a->first, factor);
      ++a, ++b;
    }
  }
  if (sum.terms.size() > kMaxTerms) return std::nullopt;
  return sum;
}

std::optional<LinearIndex> Times(const LinearIndex& x, int64_t factor) {
  if (factor == 0) return LinearIndex{};
  LinearIndex product = x;
  if (__builtin_mul_overflow(x.constant, factor, &product.constant)) return std::nullopt;
  for (auto& [value, of] : product.terms)
    if (__builtin_mul_overflow(of, factor, &of)) return std::nullopt;
  return product;
}

namespace {

// What is deeper is one value: sums as ValueOf makes them are not.
constexpr int kMaxDepth = 2 * static_cast<int>(kMaxTerms) + 4;

std::optional<LinearIndex> LinearWithin(const Kernel& kernel, ValueId id, int depth) {
  if (std::optional<int64_t> constant = ConstantOf(kernel, id)) return LinearIndex{*constant, {}};
  const ScalarNode& node = kernel.node(id);
  if ((node.prim == Prim::kAdd || node.prim == Prim::kSub) && depth > 0) {
    std::optional<LinearIndex> x = LinearWithin(kernel, node.operands[0], depth - 1);
    if (!x) return std::nullopt;
    std::optional<LinearIndex> y = LinearWithin(kernel, node.operands[1], depth - 1);
    if (y && node.prim == Prim::kSub) y = Times(*y, -1);
    return y ? Sum(*x, *y) : std::nullopt;
  }
  if (node.prim == Prim::kMul && depth > 0) {
    if (std::optional<int64_t> factor = ConstantOf(kernel, node.operands[1])) {
      std::optional<LinearIndex> x = LinearWithin(kernel, node.operands[0], depth - 1);
      return x ? Times(*x, *factor) : std::nullopt;
    }
  }
  return LinearIndex{0, {{id, 1}}};
}

}  // namespace

std::optional<LinearIndex> LinearOf(const Kernel& kernel, ValueId id) {
  return LinearWithin(kernel, id, kMaxDepth);
}

namespace {

// Whether `quotient` is x / a: as it stands, or of x = y / b as y / (b * a).
bool IsQuotient(const Kernel& kernel, const ScalarNode& quotient, ValueId x, int64_t a) {
  if (quotient.prim != Prim::kDiv) return false;
  std::optional<int64_t> by = ConstantOf(kernel, quotient.operands[1]);
  if (!by) return false;
  if (quotient.operands[0] == x) return *by == a;
  const ScalarNode& inner = kernel.node(x);
  if (inner.prim != Prim::kDiv || inner.operands[0] != quotient.operands[0]) return false;
  std::optional<int64_t> b = ConstantOf(kernel, inner.operands[1]);
  int64_t product = 0;
  return b && !__builtin_mul_overflow(*b, a, &product) && product == *by;
}

}  // namespace

std::optional<LinearIndex> Recombined(const Kernel& kernel, LinearIndex x) {
  auto match = [&]() -> std::optional<std::pair<size_t, size_t>> {
    for (size_t r = 0; r < x.terms.size(); ++r) {
      const ScalarNode& rest = kernel.node(x.terms[r].first);
      if (rest.prim != Prim::kRem) continue;
      std::optional<int64_t> by = ConstantOf(kernel, rest.operands[1]);
      int64_t whole = 0;
      if (!by || __builtin_mul_overflow(x.terms[r].second, *by, &whole)) continue;
      for (size_t d = 0; d < x.terms.size(); ++d)
        if (x.terms[d].second == whole &&
            IsQuotient(kernel, kernel.node(x.terms[d].first), rest.operands[0], *by))
          return std::pair(d, r);
    }
    return std::nullopt;
  };
  while (std::optional<std::pair<size_t, size_t>> pair = match()) {
    auto [d, r] = *pair;
    int64_t factor = x.terms[r].second;
    ValueId of = kernel.node(x.terms[r].first).operands[0];
    x.terms.erase(x.terms.begin() + static_cast<int64_t>(std::max(d, r)));
    x.terms.erase(x.terms.begin() + static_cast<int64_t>(std::min(d, r)));
    std::optional<LinearIndex> linear = LinearOf(kernel, of);
    if (linear) linear = Times(*linear, factor);
    std::optional<LinearIndex> sum = linear ? Sum(x, *linear) : std::nullopt;
    if (!sum) return std::nullopt;
    x = std::move(*sum);
  }
  return x;
}

Scalar ValueOf(KernelBuilder& b, const LinearIndex& x) {
  Scalar sum;
  for (auto [value, factor] : x.terms) {
    Scalar term(&b, value);
    if (factor != 1) term = MakeRaw(b, Prim::kMul, term, b.Index(factor));
    sum = sum.ok() ? MakeRaw(b, Prim::kAdd, sum, term) : term;
  }
  if (!sum.ok()) return b.Index(x.constant);
  if (x.constant != 0) sum = MakeRaw(b, Prim::kAdd, sum, b.Index(x.constant));
  return sum;
}

}  // namespace tokamak
