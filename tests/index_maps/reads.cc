#include "index_maps/reads.h"

#include <algorithm>

#include "support/check.h"

namespace tokamak {
namespace {

// The tap at which the window of these variables has its greatest element, the first of equal ones;
// nullopt if the window has no element.
std::optional<int64_t> SelectedTap(const EvaluatedInstr& of, const RunTimeStart& start,
                                   const Dims& variables) {
  IndexMap map = *IndexMapOf(*of.instr, start.operand);
  map.guards.clear();  // which element of the result asks does not matter
  std::optional<int64_t> best, tap;
  Dims at(variables.begin(), variables.begin() + static_cast<int64_t>(map.result_rank));
  for (const Dims& assignment : AssignmentsAt(map, at)) {
    if (!std::equal(variables.begin(), variables.end(), assignment.begin())) continue;
    std::optional<int64_t> read = ReadAt(of, start.operand, map, assignment);
    auto data = of.operands[start.operand].Data<uint64_t>();
    if (!read || (best && data[static_cast<size_t>(*best)] >= data[static_cast<size_t>(*read)]))
      continue;
    best = read;
    tap = assignment[static_cast<size_t>(start.component)];
  }
  return tap;
}

// The start index that an expression reads; nullopt if its window is skipped.
std::optional<int64_t> StartAt(const EvaluatedInstr& of, const RunTimeStart& start,
                               const Dims& variables) {
  if (start.kind == RunTimeStart::Kind::kSelected) return SelectedTap(of, start, variables);
  IndexMap map = *IndexMapOf(*of.instr, start.operand);
  Dims extended = variables;
  extended.resize(map.variables.size());
  if (map.component) extended[*map.component] = start.component;
  std::optional<int64_t> element = ReadAt(of, start.operand, map, extended);
  TOK_CHECK(element.has_value(), "a start index is read in any case");
  int64_t value = of.operands[start.operand].IntAt(*element);
  if (start.kind == RunTimeStart::Kind::kFromEnd && value < 0) value += start.last + 1;
  if (start.kind != RunTimeStart::Kind::kSkipped)
    return std::clamp<int64_t>(value, 0, std::max<int64_t>(start.last, 0));
  if (value < 0 || value > start.last) return std::nullopt;
  return value;
}

// The value of an expression; nullopt if its condition does not hold.
std::optional<int64_t> ValueAt(const EvaluatedInstr& of, const IndexMap& map, const IndexExpr& expr,
                               const Dims& variables) {
  int64_t position = expr.offset;
  for (const IndexTerm& term : map.TermsOf(expr))
    position += term.coefficient * variables[term.variable];
  if (expr.start.kind != RunTimeStart::Kind::kNone) {
    std::optional<int64_t> start = StartAt(of, expr.start, variables);
    if (!start) return std::nullopt;
    position += expr.start.is_subtracted ? -*start : *start;
  }
  if (expr.last && (position < 0 || position > *expr.last || position % expr.divisor != 0))
    return std::nullopt;
  TOK_CHECK(position >= 0, "a position that is not checked is negative");
  int64_t index = position / expr.divisor;
  return expr.modulus == 0 ? index : index % expr.modulus;
}

}  // namespace

bool NextOf(Dims& index, const Dims& dims) {
  for (size_t d = dims.size(); d-- > 0;) {
    if (++index[d] < dims[d]) return true;
    index[d] = 0;
  }
  return false;
}

int64_t LinearOf(const Dims& index, const Dims& dims) {
  int64_t linear = 0;
  for (size_t d = 0; d < dims.size(); ++d) linear = linear * dims[d] + index[d];
  return linear;
}

std::vector<Dims> AssignmentsAt(const IndexMap& map, const Dims& at) {
  std::vector<Dims> assignments;
  Dims sizes = map.IteratedSizes(), iterated;
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return assignments;
  iterated.assign(sizes.size(), 0);
  do {
    assignments.push_back(at);
    assignments.back().insert(assignments.back().end(), iterated.begin(), iterated.end());
  } while (NextOf(iterated, sizes));
  return assignments;
}

std::optional<int64_t> ReadAt(const EvaluatedInstr& of, size_t operand, const IndexMap& map,
                              const Dims& variables) {
  bool holds = true;
  for (const IndexExpr& guard : map.guards)
    holds = holds && ValueAt(of, map, guard, variables).has_value();
  if (!map.guards.empty() && holds == map.outside) return std::nullopt;
  const Dims& dims = of.operands[operand].dims();
  TOK_CHECK(map.dims.size() == dims.size(), "a map has one expression per dimension");
  Dims index;
  for (size_t d = 0; d < dims.size(); ++d) {
    std::optional<int64_t> value = ValueAt(of, map, map.dims[d], variables);
    if (!value) return std::nullopt;
    TOK_CHECK(*value < dims[d], "a map reads past the end of a dimension");
    index.push_back(*value);
  }
  return LinearOf(index, dims);
}

}  // namespace tokamak
