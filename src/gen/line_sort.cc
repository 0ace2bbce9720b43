#include "gen/line_sort.h"

namespace tokamak {

bool LineSort::IsCompared(size_t operand) const {
  const Computation& body = *instr->called(0);
  return !body.parameter(2 * operand)->users().empty() ||
         !body.parameter(2 * operand + 1)->users().empty() || body.root()->op() == Op::kParameter;
}

LineSort LineSortOf(const Instr& sort) {
  LineSort lines;
  lines.instr = &sort;
  lines.dims = sort.operand(0)->shape().dims();
  int64_t along = sort.attrs<SortAttrs>().dimension;
  if (along < 0) along += static_cast<int64_t>(lines.dims.size());
  lines.along = static_cast<size_t>(along);
  lines.length = lines.dims[lines.along];
  lines.lines = sort.operand(0)->shape().ElementCount() / lines.length;
  return lines;
}

bool HasSortedHalves(const Instr& sort) {
  LineSort lines = LineSortOf(sort);
  if (lines.along == 0 || lines.length % 2 != 0) return false;
  Dims halves = lines.dims;
  halves[lines.along - 1] *= 2;
  halves[lines.along] /= 2;
  const Instr* all = nullptr;
  for (size_t k = 0; k < sort.operand_count(); ++k) {
    const Instr* made = sort.operand(k);
    if (made->op() != Op::kReshape || made->operand(0)->shape().dims() != halves) return false;
    made = made->operand(0);
    if (made->op() == Op::kGetTupleElement) {
      if (made->attrs<TupleIndexAttrs>().index != static_cast<int64_t>(k)) return false;
      made = made->operand(0);
    }
    if (made->op() != Op::kSort || (all != nullptr && made != all)) return false;
    all = made;
  }
  return all != nullptr && all->operand_count() == sort.operand_count() &&
         LineSortOf(*all).along == lines.along && all->called(0) == sort.called(0);
}

Coordinates PlaceInLine(KernelBuilder& b, const LineSort& sort, Scalar line, Scalar place) {
  Dims rest = sort.dims;
  auto along = static_cast<int64_t>(sort.along);
  rest.erase(rest.begin() + along);
  Coordinates at = Delinearized(b, line, rest);
  at.insert(at.begin() + along, place);
  return at;
}

std::optional<Scalar> ComesBefore(KernelBuilder& b, const LineSort& sort,
                                  const std::vector<Element>& elements) {
  std::optional<std::vector<Element>> less =
      ApplyBody(b, *sort.instr->called(0), elements, /*wide=*/false);
  if (!less) return std::nullopt;
  return (*less)[0][0];
}

std::optional<std::string> WhyNoComparison(const Instr& sort) {
  if (sort.captures() > 0) return "sort: with captured values";
  for (const Instr* operand : sort.operands()) {
    const Shape& shape = operand->shape();
    if (!IsPlainArray(shape) || shape.ElementCount() == 0 || shape.rank() == 0)
      return "sort: of no elements";
  }
  KernelBuilder b("probe");
  std::vector<Element> arguments;
  for (const Instr* operand : sort.operands())
    for (int side = 0; side < 2; ++side)
      arguments.push_back(ConstantElement(b, operand->shape().type(), 1));
  for (size_t i = 0; i < sort.called(0)->parameters().size(); ++i) {
    const Shape& shape = sort.called(0)->parameter(i)->shape();
    if (!shape.IsArray() || i / 2 >= sort.operand_count() ||
        shape.type() != sort.operand(i / 2)->shape().type())
      return "sort: its computation takes other types";
  }
  if (!ApplyBody(b, *sort.called(0), arguments, /*wide=*/false))
    return "sort: its computation has no formula";
  return std::nullopt;
}

}  // namespace tokamak
