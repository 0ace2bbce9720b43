#include "kernel/linear.h"

#include <algorithm>

namespace tokamak {
namespace {

// Terms of a sum. Chosen: bounds the cost of index simplification.
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

std::optional<LinearIndex> Sum(LinearIndex x, LinearIndex y) {
  if (__builtin_add_overflow(x.constant, y.constant, &x.constant)) return std::nullopt;
  // Fast path: usually one operand is a constant, or all its values are newer. Then append.
  bool later = x.terms.empty() || y.terms.empty() || x.terms.back().first < y.terms.front().first;
  if (x.terms.empty() || (!later && y.terms.back().first < x.terms.front().first)) {
    x.terms.swap(y.terms);
    later = true;
  }
  if (later) {
    x.terms.insert(x.terms.end(), y.terms.begin(), y.terms.end());
    return x.terms.size() > kMaxTerms ? std::nullopt : std::optional(std::move(x));
  }
  std::vector<std::pair<ValueId, int64_t>> sum;
  sum.reserve(x.terms.size() + y.terms.size());
  auto a = x.terms.begin(), b = y.terms.begin();
  while (a != x.terms.end() || b != y.terms.end()) {
    if (b == y.terms.end() || (a != x.terms.end() && a->first < b->first)) {
      sum.push_back(*a++);
    } else if (a == x.terms.end() || b->first < a->first) {
      sum.push_back(*b++);
    } else {
      int64_t factor = 0;
      if (__builtin_add_overflow(a->second, b->second, &factor)) return std::nullopt;
      if (factor != 0) sum.emplace_back(a->first, factor);
      ++a, ++b;
    }
  }
  if (sum.size() > kMaxTerms) return std::nullopt;
  x.terms = std::move(sum);
  return x;
}

std::optional<LinearIndex> Times(LinearIndex x, int64_t factor) {
  if (factor == 0) return LinearIndex{};
  if (__builtin_mul_overflow(x.constant, factor, &x.constant)) return std::nullopt;
  for (auto& [value, of] : x.terms)
    if (__builtin_mul_overflow(of, factor, &of)) return std::nullopt;
  return x;
}

namespace {

// Nesting depth up to which a sum is expanded; a deeper one counts as one opaque value. Sums that
// ValueOf emits stay below it.
constexpr int kMaxDepth = 2 * static_cast<int>(kMaxTerms) + 4;

std::optional<LinearIndex> LinearWithin(const Kernel& kernel, ValueId id, int depth) {
  if (std::optional<int64_t> constant = ConstantOf(kernel, id)) return LinearIndex{*constant, {}};
  const ScalarNode& node = kernel.node(id);
  if ((node.prim == Prim::kAdd || node.prim == Prim::kSub) && depth > 0) {
    std::optional<LinearIndex> x = LinearWithin(kernel, node.operands[0], depth - 1);
    if (!x) return std::nullopt;
    std::optional<LinearIndex> y = LinearWithin(kernel, node.operands[1], depth - 1);
    if (y && node.prim == Prim::kSub) y = Times(std::move(*y), -1);
    return y ? Sum(std::move(*x), std::move(*y)) : std::nullopt;
  }
  if (node.prim == Prim::kMul && depth > 0) {
    if (std::optional<int64_t> factor = ConstantOf(kernel, node.operands[1])) {
      std::optional<LinearIndex> x = LinearWithin(kernel, node.operands[0], depth - 1);
      return x ? Times(std::move(*x), *factor) : std::nullopt;
    }
  }
  LinearIndex alone;
  alone.terms.reserve(4);  // most sums have at most 4 terms
  alone.terms.emplace_back(id, 1);
  return alone;
}

}  // namespace

std::optional<LinearIndex> LinearOf(const Kernel& kernel, ValueId id) {
  return LinearWithin(kernel, id, kMaxDepth);
}

namespace {

// Whether `quotient` is x / a, written directly, or as y / (b * a) with x = y / b.
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
    if (linear) linear = Times(std::move(*linear), factor);
    std::optional<LinearIndex> sum = linear ? Sum(std::move(x), std::move(*linear)) : std::nullopt;
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
