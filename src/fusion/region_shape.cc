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

// Results that may lie side by side in what is folded along its elements: as many as lanes may be
// apart and still be read as vectors.
constexpr int64_t kFewApart = 4;

// Results that lie side by side in a fold's input: lanes of columns.
int64_t ResultsInARow(const Reducer& reducer) {
  int64_t side_by_side = 1;
  for (int64_t d = reducer.input().rank(); d-- > 0;) {
    if (std::binary_search(reducer.reduced.begin(), reducer.reduced.end(), d)) break;
    side_by_side *= reducer.input().dim(static_cast<size_t>(d));
  }
  return side_by_side;
}

// Whether a region also folds or writes the rows whose columns it sums up.
bool SumsColumnsOfRows(const Region& region) {
  auto of_elements = [&](int64_t count) {
    bool folds = std::any_of(region.instrs.begin(), region.instrs.end(), [&](const Instr* instr) {
      return IsRowReduction(*instr) && CountOf(*instr->operand(0)) == count;
    });
    return folds || std::any_of(region.roots.begin(), region.roots.end(),
                                [&](const Instr* root) { return CountOf(*root) == count; });
  };
  return std::any_of(region.roots.begin(), region.roots.end(), [&](const Instr* root) {
    return root->op() == Op::kReduce && gpu::FoldsColumns(ReducerOf(*root)) &&
           of_elements(CountOf(*root->operand(0)));
  });
}

}  // namespace

bool IsFold(const Instr& instr) {
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

RegionKind KindOfFold(const Instr& instr, const Machine& machine) {
  if (instr.op() == Op::kScan) return RegionKind::kScan;
  if (instr.op() == Op::kDot && IsForContract(instr, machine)) return RegionKind::kContract;
  if (instr.op() != Op::kReduce) return RegionKind::kColumns;
  Reducer reducer = ReducerOf(instr);
  int64_t results = CountOf(instr), row = reducer.input().ElementCount() / results;
  if (!IsRowReduction(instr)) {
    bool apart = !machine.is_gpu() && reducer.any_order && row >= kLongRow &&
                 ResultsInARow(reducer) <= kFewApart;
    return apart ? RegionKind::kRows : RegionKind::kColumns;
  }
  if (!reducer.any_order && results > 1) return RegionKind::kColumns;
  return row >= 8 || results == 1 ? RegionKind::kRows : RegionKind::kColumns;
}

RegionShape BeginShape(const Instr& instr, const Machine& machine) {
  RegionShape shape{.domain = ElementsOf(instr)};
  if (instr.op() == Op::kScatter) shape.kind = RegionKind::kScatter;
  if (instr.op() == Op::kSort) shape.kind = RegionKind::kSort;
  if (!IsFold(instr)) return shape;
  shape.kind = KindOfFold(instr, machine);
  if (instr.op() == Op::kReduce) shape.domain = CountOf(*instr.operand(0));
  return shape;
}

void GrowShape(RegionShape& shape, const Instr& instr, const Machine& machine) {
  if (!IsFold(instr)) return;
  // Rows of a contraction's results are folded where they are made.
  if (shape.kind == RegionKind::kRows && KindOfFold(instr, machine) == RegionKind::kContract)
    shape.kind = RegionKind::kContract;
  if (shape.kind == RegionKind::kLoop) {
    shape.kind = KindOfFold(instr, machine);
    // Elements of whole rows are only written by rows.
    if (instr.op() == Op::kReduce && shape.domain == CountOf(*instr.operand(0)) &&
        IsRowReduction(instr))
      shape.kind = RegionKind::kRows;
  }
  shape.domain = std::max(shape.domain,
                          instr.op() == Op::kReduce ? CountOf(*instr.operand(0)) : CountOf(instr));
}

std::optional<std::string> WhyNoDot(const Instr& dot) {
  if (!IsPlainArray(dot.shape()) || dot.shape().ElementCount() == 0) return "dot: of no elements";
  for (const Instr* operand : dot.operands()) {
    if (!IsPlainArray(operand->shape()) || operand->shape().ElementCount() == 0)
      return "dot: of no elements";
    if (IsComplex(operand->shape().type()) != IsComplex(dot.shape().type()))
      return "dot: of mixed types";
  }
  return std::nullopt;
}

RegionShape ShapeOf(const Region& region, const Machine& machine) {
  const std::vector<const Instr*>& instrs = region.instrs;
  RegionShape shape = BeginShape(*instrs.back(), machine);
  for (size_t i = instrs.size() - 1; i-- > 0;) GrowShape(shape, *instrs[i], machine);
  if (machine.is_gpu() && SumsColumnsOfRows(region)) shape.kind = RegionKind::kRows;
  return shape;
}

Region OrderedRegion(const std::vector<const Instr*>& instrs,
                     const std::vector<const Instr*>& roots, const InstrMap<size_t>& places) {
  Region done;
  done.computation = instrs[0]->parent();
  done.instrs = instrs;
  // A part of what is made elsewhere is an array to be read.
  std::erase_if(done.instrs, [&](const Instr* instr) {
    return instr->op() == Op::kGetTupleElement &&
           std::find(instrs.begin(), instrs.end(), instr->operand(0)) == instrs.end();
  });
  auto before = [&](const Instr* x, const Instr* y) { return places[x] < places[y]; };
  std::sort(done.instrs.begin(), done.instrs.end(), before);
  done.roots = roots;
  std::sort(done.roots.begin(), done.roots.end(), before);
  done.inputs = InputsOf(done.instrs);
  // An update leaves alone what it does not overwrite.
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

std::string WhyNotSize(const Region& region) {
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
  return flops > kMaxFlops ? over("the region computes too much", flops, kMaxFlops) : "";
}

std::string NameOfKernel(const Region& region) {
  std::string name;
  for (char c : LabelOf(*region.roots[0])) name += isalnum(c) != 0 ? c : '_';
  return name;
}

}  // namespace tokamak
