#include "analysis/dimension_flow.h"

#include <algorithm>

namespace tokamak {
namespace {

bool HaveOneName(const Extent& x, const Extent& y) {
  return x.array != nullptr && x.array == y.array && x.part == y.part && x.dim == y.dim;
}

// An index without shift and condition. Those of dynamic sizes have no offset.
bool IsUnshifted(const IndexMap& map, const IndexExpr& expr) {
  return expr.offset == 0 && !expr.start.Moves() && (!expr.last || map.AlwaysHolds(expr));
}

// Whether the terms are the digits of one index, the major one first, that covers `size` elements
// of the operand without a rest: the first term then selects a block of them.
bool FirstTermIsMajor(const IndexMap& map, const IndexExpr& expr, int64_t size) {
  if (expr.modulus != 0) return false;
  int64_t count = 1;
  std::span<const IndexTerm> terms = map.TermsOf(expr);
  for (size_t i = terms.size(); i-- > 0;) {
    if (terms[i].coefficient != count) return false;
    if (__builtin_mul_overflow(count, map.variables[terms[i].variable].size, &count)) return false;
  }
  return count > 0 && count / expr.divisor == size && count % expr.divisor == 0;
}

struct ReadFactor {
  size_t variable = 0;
  bool is_major = false;
};

// The variable whose blocks are blocks of dimension `dim` of the operand.
std::optional<ReadFactor> ReadFactorOf(const IndexMap& map, size_t dim, int64_t size) {
  const IndexExpr& expr = map.dims[dim];
  std::span<const IndexTerm> terms = map.TermsOf(expr);
  if (terms.empty() || !IsUnshifted(map, expr)) return std::nullopt;
  size_t first = terms[0].variable;
  bool is_one = terms.size() == 1 && terms[0].coefficient == 1 && expr.divisor == 1 &&
                expr.modulus == 0 && map.variables[first].size == size;
  if (is_one) return ReadFactor{first, false};
  bool is_major = size != kDynamic && FirstTermIsMajor(map, expr, size);
  return is_major ? std::optional(ReadFactor{first, true}) : std::nullopt;
}

// A condition on a variable couples its indices with those of other devices, unless it holds for
// all.
bool IsGuarded(const IndexMap& map, size_t variable) {
  return std::any_of(map.guards.begin(), map.guards.end(), [&](const IndexExpr& guard) {
    std::span<const IndexTerm> terms = map.TermsOf(guard);
    return !map.AlwaysHolds(guard) &&
           std::any_of(terms.begin(), terms.end(),
                       [&](const IndexTerm& term) { return term.variable == variable; });
  });
}

}  // namespace

std::vector<DimFactor> DimensionFlow(const Instr& instr, size_t result) {
  std::vector<DimFactor> factors;
  auto factor_of = [&](const IndexMap& map, size_t variable) -> DimFactor& {
    const Extent& extent = map.variables[variable];
    for (DimFactor& factor : factors)
      if (HaveOneName(factor.extent, extent)) return factor;
    std::optional<size_t> dim;
    if (variable < map.result_rank) dim = variable;
    return factors.emplace_back(DimFactor{extent, dim, {}});
  };
  for (size_t i = 0; i < instr.operand_count(); ++i) {
    std::optional<IndexMap> map = IndexMapOf(instr, i, result);
    if (!map) continue;
    // All dimensions of the result come first, also those that this operand does not have.
    for (size_t d = 0; d < map->result_rank; ++d) factor_of(*map, d);
    const Dims& sizes = instr.operand(i)->shape().dims();
    for (size_t d = 0; d < map->dims.size(); ++d) {
      std::optional<ReadFactor> read = ReadFactorOf(*map, d, sizes[d]);
      if (!read || IsGuarded(*map, read->variable) ||
          map->variables[read->variable].array == nullptr)
        continue;
      factor_of(*map, read->variable).operand_dims.push_back({i, d, read->is_major});
    }
  }
  return factors;
}

}  // namespace tokamak
