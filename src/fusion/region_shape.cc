#include "fusion/region_shape.h"

#include <algorithm>

#include <fmt/format.h>

#include "explain/decision.h"
#include "fusion/values.h"
#include "gen/contract.h"
#include "gen/element.h"
#include "gen/gpu/column_sums.h"
#include "gen/reducer.h"

namespace tokamak {
namespace {

// Adjacent results at most of a reduction that is vectorized along the reduced dimension: the
// largest stride between lanes that CPUs still load as vectors.
constexpr int64_t kMaxStridedResults = 4;

// The number of adjacent results in a reduction's input: the lanes of a column reduction.
int64_t ResultsInARow(const Reducer& reducer) {
  int64_t side_by_side = 1;
  for (int64_t d = reducer.input().rank(); d-- > 0;) {
    if (std::binary_search(reducer.reduced.begin(), reducer.reduced.end(), d)) break;
    side_by_side *= reducer.input().dim(static_cast<size_t>(d));
  }
  return side_by_side;
}

// Whether a region sums columns of rows that it also reduces or writes.
bool SumsColumnsOfRows(const FusedRegion& region) {
  auto of_elements = [&](int64_t count) {
    bool reduces = std::any_of(region.instrs.begin(), region.instrs.end(), [&](const Instr* instr) {
      return IsRowReduction(*instr) && CountOf(*instr->operand(0)) == count;
    });
    return reduces || std::any_of(region.roots.begin(), region.roots.end(),
                                  [&](const Instr* root) { return CountOf(*root) == count; });
  };
  return std::any_of(region.roots.begin(), region.roots.end(), [&](const Instr* root) {
    return root->op() == Op::kReduce && gpu::ReducesColumns(ReducerOf(*root)) &&
           of_elements(CountOf(*root->operand(0)));
  });
}

}  // namespace

bool IsReduction(const Instr& instr) {
  return instr.op() == Op::kReduce || instr.op() == Op::kDot || instr.op() == Op::kScan;
}

int64_t CountOf(const Instr& instr) {
  const Shape& shape = instr.shape();
  return (shape.IsTuple() ? shape.elements()[0] : shape).ElementCount();
}

int64_t ElementsOf(const Instr& instr) {
  if (instr.op() == Op::kDynamicUpdateSlice) return CountOf(*instr.operand(1));
  if (instr.op() == Op::kScatter) return CountOf(*instr.operand(2));
  return CountOf(instr);
}

bool IsRowReduction(const Instr& instr) {
  if (instr.op() != Op::kReduce) return false;
  const Dims& reduced = instr.attrs<DimensionsAttrs>().dimensions;
  int64_t first = instr.operand(0)->shape().rank() - static_cast<int64_t>(reduced.size());
  return std::all_of(reduced.begin(), reduced.end(), [&](int64_t d) { return d >= first; });
}

GeneratorKind KindOfReduction(const Instr& instr, const Machine& machine) {
  if (instr.op() == Op::kScan) return GeneratorKind::kScan;
  if (instr.op() == Op::kDot && IsForContract(instr, machine)) return GeneratorKind::kContract;
  if (instr.op() != Op::kReduce) return GeneratorKind::kColumns;
  Reducer reducer = ReducerOf(instr);
  int64_t results = CountOf(instr), row = reducer.input().ElementCount() / results;
  if (!IsRowReduction(instr)) {
    bool strided = !machine.is_gpu() && reducer.any_order && row >= kLongRow &&
                   ResultsInARow(reducer) <= kMaxStridedResults;
    return strided ? GeneratorKind::kRows : GeneratorKind::kColumns;
  }
  if (!reducer.any_order && results > 1) return GeneratorKind::kColumns;
  return row >= 8 || results == 1 ? GeneratorKind::kRows : GeneratorKind::kColumns;
}

FusedRegionShape BeginShape(const Instr& instr, const Machine& machine) {
  FusedRegionShape shape{.domain = ElementsOf(instr)};
  if (instr.op() == Op::kScatter) shape.kind = GeneratorKind::kScatter;
  if (instr.op() == Op::kSort) shape.kind = GeneratorKind::kSort;
  if (!IsReduction(instr)) return shape;
  shape.kind = KindOfReduction(instr, machine);
  if (instr.op() == Op::kReduce) shape.domain = CountOf(*instr.operand(0));
  return shape;
}

void GrowShape(FusedRegionShape& shape, const Instr& instr, const Machine& machine) {
  if (!IsReduction(instr)) return;
  // Rows of a contraction's results are reduced in the contraction's kernel.
  if (shape.kind == GeneratorKind::kRows &&
      KindOfReduction(instr, machine) == GeneratorKind::kContract)
    shape.kind = GeneratorKind::kContract;
  if (shape.kind == GeneratorKind::kLoop) {
    shape.kind = KindOfReduction(instr, machine);
    // Only the row generator can write the elements of the rows that it reduces.
    if (instr.op() == Op::kReduce && shape.domain == CountOf(*instr.operand(0)) &&
        IsRowReduction(instr))
      shape.kind = GeneratorKind::kRows;
  }
  shape.domain = std::max(shape.domain,
                          instr.op() == Op::kReduce ? CountOf(*instr.operand(0)) : CountOf(instr));
}

std::optional<std::string> WhyNoDot(const Instr& dot) {
  if (!IsPlainArray(dot.shape()) || dot.shape().ElementCount() == 0)
    return "dot: an operand or the result is empty or not an array";
  for (const Instr* operand : dot.operands()) {
    if (!IsPlainArray(operand->shape()) || operand->shape().ElementCount() == 0)
      return "dot: an operand or the result is empty or not an array";
    if (IsComplex(operand->shape().type()) != IsComplex(dot.shape().type()))
      return "dot: mixes real and complex types";
  }
  return std::nullopt;
}

FusedRegionShape ShapeOf(const FusedRegion& region, const Machine& machine) {
  const std::vector<const Instr*>& instrs = region.instrs;
  FusedRegionShape shape = BeginShape(*instrs.back(), machine);
  for (size_t i = instrs.size() - 1; i-- > 0;) GrowShape(shape, *instrs[i], machine);
  if (machine.is_gpu() && SumsColumnsOfRows(region)) shape.kind = GeneratorKind::kRows;
  return shape;
}

FusedRegion OrderedRegion(const std::vector<const Instr*>& instrs,
                          const std::vector<const Instr*>& roots,
                          const InstrMap<size_t>& positions) {
  FusedRegion done;
  done.computation = instrs[0]->parent();
  done.instrs = instrs;
  // A get-tuple-element of a tuple from outside the region is an input.
  std::erase_if(done.instrs, [&](const Instr* instr) {
    return instr->op() == Op::kGetTupleElement &&
           std::find(instrs.begin(), instrs.end(), instr->operand(0)) == instrs.end();
  });
  auto before = [&](const Instr* x, const Instr* y) { return positions[x] < positions[y]; };
  std::sort(done.instrs.begin(), done.instrs.end(), before);
  done.roots = roots;
  std::sort(done.roots.begin(), done.roots.end(), before);
  done.inputs = InputsOf(done.instrs);
  // An update does not read the array that it updates: that is not an input.
  if (!std::any_of(done.instrs.begin(), done.instrs.end(),
                   [](const Instr* instr) { return IsUpdate(*instr); }))
    return done;
  std::erase_if(done.inputs, [&](const Instr* input) {
    for (const Instr* instr : done.instrs)
      for (size_t i = 0; i < instr->operand_count(); ++i)
        if (instr->operand(i) == input && !(IsUpdate(*instr) && i == 0)) return false;
    return true;
  });
  return done;
}

std::string WhyNotSize(const FusedRegion& region) {
  auto over = [](const char* what, int64_t is, int64_t most) {
    return fmt::format("{}: {}, {} at most", what, is, most);
  };
  if (region.instrs.size() > kMaxInstrs)
    return over("the region has too many instructions", static_cast<int64_t>(region.instrs.size()),
                static_cast<int64_t>(kMaxInstrs));
  if (region.inputs.size() > kMaxInputs)
    return over("the region reads too many arrays", static_cast<int64_t>(region.inputs.size()),
                static_cast<int64_t>(kMaxInputs));
  int64_t flops = 0;
  for (const Instr* instr : region.instrs) flops += instr->info().flops_per_element;
  return flops > kMaxFlops
             ? over("the region has too many operations per element", flops, kMaxFlops)
             : "";
}

std::string NameOfKernel(const FusedRegion& region) {
  std::string name;
  for (char c : LabelOf(*region.roots[0])) name += isalnum(c) != 0 ? c : '_';
  return name;
}

}  // namespace tokamak
