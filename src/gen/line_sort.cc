#include "gen/line_sort.h"

#include <algorithm>
#include <bit>

#include "ir/compare.h"

namespace tokamak {

bool LineSort::ComparatorUses(size_t operand) const {
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

bool IsMergedLater(const Instr& sort) {
  auto is_half = [](const Instr* array) {
    return std::ranges::any_of(array->users(), [](const Instr* reshape) {
      return reshape->op() == Op::kReshape &&
             std::ranges::any_of(reshape->users(), [](const Instr* user) {
               return user->op() == Op::kSort && HasSortedHalves(*user);
             });
    });
  };
  if (!sort.shape().IsTuple()) return is_half(&sort);
  return std::ranges::any_of(sort.users(), is_half);
}

Coordinates CoordinatesInLine(KernelBuilder& b, const LineSort& sort, Scalar line,
                              Scalar position) {
  Dims rest = sort.dims;
  auto along = static_cast<int64_t>(sort.along);
  rest.erase(rest.begin() + along);
  Coordinates at = Delinearized(b, line, rest);
  at.insert(at.begin() + along, position);
  return at;
}

std::optional<Scalar> ComesBefore(KernelBuilder& b, const LineSort& sort,
                                  const std::vector<Element>& elements) {
  std::optional<std::vector<Element>> less =
      ApplyBody(b, *sort.instr->called(0), elements, /*wide=*/false);
  if (!less) return std::nullopt;
  return (*less)[0][0];
}

namespace {

// Whether x computes from the first element what y computes from the second.
bool AreSame(const Instr* x, const Instr* y) {
  if (x->op() != y->op() || !(x->shape() == y->shape()) || !x->called().empty()) return false;
  if (x->op() == Op::kParameter)
    return x->attrs<ParameterAttrs>().number == 0 && y->attrs<ParameterAttrs>().number == 1;
  if (!EqualAttrs(x->op(), x->attrs(), y->attrs()) || x->operand_count() != y->operand_count())
    return false;
  for (size_t i = 0; i < x->operand_count(); ++i)
    if (!AreSame(x->operand(i), y->operand(i))) return false;
  return true;
}

}  // namespace

std::optional<RadixKey> RadixKeyOf(const Instr& sort) {
  if (sort.op() != Op::kSort || sort.captures() > 1 || sort.operand_count() != 1 + sort.captures())
    return std::nullopt;
  ElementType type = sort.operand(0)->shape().type();
  const Instr* less = sort.called(0)->root();
  if ((type != ElementType::kU32 && type != ElementType::kU64) || less->op() != Op::kCompare ||
      less->attrs<CompareAttrs>().direction != CompareDirection::kLt)
    return std::nullopt;
  const Instr *x = less->operand(0), *mask = nullptr;
  if (x->op() != Op::kAnd || x->shape().type() != type) return std::nullopt;
  for (size_t i : {0u, 1u})
    if (x->operand(i)->op() == Op::kConstant) mask = x->operand(i);
  if (mask == nullptr || !AreSame(x, less->operand(1))) return std::nullopt;
  auto most = static_cast<uint64_t>(mask->attrs<ConstantAttrs>().literal.IntAt(0));
  if (most == 0) return std::nullopt;
  return RadixKey{x, static_cast<int>(std::bit_width(most))};
}

std::optional<Scalar> DigitOf(KernelBuilder& b, const Instr& sort, const RadixKey& key,
                              const Element& element) {
  std::vector<Element> both(2 + sort.captures(), element);
  std::optional<Element> digit = EvaluateInBody(b, *sort.called(0), *key.digit, both);
  if (!digit) return std::nullopt;
  return (*digit)[0];
}

std::optional<std::string> WhyNoComparatorCode(const Instr& sort) {
  if (sort.captures() > 0) return "sort: it captures values";
  for (const Instr* operand : sort.operands()) {
    const Shape& shape = operand->shape();
    if (!IsPlainArray(shape) || shape.ElementCount() == 0 || shape.rank() == 0)
      return "sort: it has no elements";
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
      return "sort: the parameter types of its comparator differ from its operands";
  }
  if (!ApplyBody(b, *sort.called(0), arguments, /*wide=*/false))
    return "sort: its computation has no scalar formula";
  return std::nullopt;
}

}  // namespace tokamak
