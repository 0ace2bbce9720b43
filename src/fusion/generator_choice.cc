#include "fusion/generator_choice.h"

#include <algorithm>

#include "fusion/instr_predicates.h"
#include "gen/contract.h"
#include "gen/element.h"
#include "gen/gpu/column_sums.h"
#include "gen/gpu/gpu.h"
#include "gen/reducer.h"
#include "kernel/gpu_limits.h"

namespace tokamak {
namespace {

// Elements that are reduced into one result (a row): from this length on, a row reduction is
// vectorized along the row. Hand-tuned.
constexpr int64_t kMinRowLength = 8;
// CPU only: a reduction over strided elements is vectorized along the reduced dimension too if a
// result combines at least kMinStridedRowLength elements and their stride is at most
// kMaxStrideInRow. That is the largest stride between lanes that CPUs still load as vectors.
// Hand-tuned.
constexpr int64_t kMinStridedRowLength = 64, kMaxStrideInRow = 4;

// The stride, in a reduction's operand, between the elements that one result combines. As many
// results are adjacent: the lanes of a column reduction.
int64_t StrideInRow(const Reducer& reducer) {
  int64_t stride = 1;
  for (int64_t d = reducer.input().rank(); d-- > 0;) {
    if (std::binary_search(reducer.reduced_dims.begin(), reducer.reduced_dims.end(), d)) break;
    stride *= reducer.input().dim(static_cast<size_t>(d));
  }
  return stride;
}

// Whether a region sums columns of rows that it also reduces or writes.
bool SumsColumnsOfRows(const FusedRegion& region) {
  auto of_elements = [&](int64_t count) {
    bool reduces = std::any_of(region.instrs.begin(), region.instrs.end(), [&](const Instr* instr) {
      return IsRowReduction(*instr) && ResultElementCount(*instr->operand(0)) == count;
    });
    return reduces || std::any_of(region.roots.begin(), region.roots.end(), [&](const Instr* root) {
             return ResultElementCount(*root) == count;
           });
  };
  return std::any_of(region.roots.begin(), region.roots.end(), [&](const Instr* root) {
    return root->op() == Op::kReduce && gpu::IsColumnSum(ReducerOf(*root)) &&
           of_elements(ResultElementCount(*root->operand(0)));
  });
}

// Whether the rows whose columns a region sums are too long for a row kernel, which has the sums of
// a row's elements in registers. A column kernel stores the elements that it reduces, too.
bool SumsColumnsOfLongRows(const FusedRegion& region, const Machine& machine) {
  auto reduces_row = [](const Instr* instr) { return IsRowReduction(*instr); };
  return std::ranges::none_of(region.instrs, reduces_row) &&
         std::ranges::any_of(region.roots, [&](const Instr* root) {
           if (root->op() != Op::kReduce) return false;
           Reducer reducer = ReducerOf(*root);
           if (!gpu::IsColumnSum(reducer)) return false;
           const Dims& dims = reducer.input().dims();
           int64_t row =
               ProductOf(dims, static_cast<size_t>(reducer.reduced_dims.back()) + 1, dims.size());
           int64_t lanes =
               gpu::VectorWidthFor(region, machine, row, reducer.input().ElementCount());
           return row > kMaxThreadsPerBlock * gpu::kRowsWarpSteps * lanes;
         });
}

}  // namespace

GeneratorKind GeneratorOfReduceDotOrScan(const Instr& instr, const Machine& machine) {
  if (instr.op() == Op::kScan) return GeneratorKind::kScan;
  if (instr.op() == Op::kDot && CanUseContract(instr, machine)) return GeneratorKind::kContract;
  if (instr.op() != Op::kReduce) return GeneratorKind::kColumns;
  Reducer reducer = ReducerOf(instr);
  int64_t results = ResultElementCount(instr), row = reducer.input().ElementCount() / results;
  if (!IsRowReduction(instr)) {
    bool strided = !machine.is_gpu() && reducer.can_reassociate && row >= kMinStridedRowLength &&
                   StrideInRow(reducer) <= kMaxStrideInRow;
    return strided ? GeneratorKind::kRows : GeneratorKind::kColumns;
  }
  if (!reducer.can_reassociate && results > 1) return GeneratorKind::kColumns;
  return row >= kMinRowLength || results == 1 ? GeneratorKind::kRows : GeneratorKind::kColumns;
}

GeneratorChoice InitialChoice(const Instr& last, const Machine& machine) {
  GeneratorChoice choice{.domain_size = ComputedElementCount(last)};
  if (last.op() == Op::kScatter) choice.kind = GeneratorKind::kScatter;
  if (last.op() == Op::kSort) choice.kind = GeneratorKind::kSort;
  if (!IsReduceDotOrScan(last)) return choice;
  choice.kind = GeneratorOfReduceDotOrScan(last, machine);
  if (last.op() == Op::kReduce) choice.domain_size = ResultElementCount(*last.operand(0));
  return choice;
}

void ExtendChoice(GeneratorChoice& choice, const Instr& added, const Machine& machine) {
  if (!IsReduceDotOrScan(added)) return;
  // Rows of a contraction's results are reduced in the contraction's kernel.
  if (choice.kind == GeneratorKind::kRows &&
      GeneratorOfReduceDotOrScan(added, machine) == GeneratorKind::kContract)
    choice.kind = GeneratorKind::kContract;
  if (choice.kind == GeneratorKind::kLoop) {
    choice.kind = GeneratorOfReduceDotOrScan(added, machine);
    // Only the row generator can write the elements of the rows that it reduces.
    if (added.op() == Op::kReduce && choice.domain_size == ResultElementCount(*added.operand(0)) &&
        IsRowReduction(added))
      choice.kind = GeneratorKind::kRows;
  }
  choice.domain_size =
      std::max(choice.domain_size, added.op() == Op::kReduce ? ResultElementCount(*added.operand(0))
                                                             : ResultElementCount(added));
}

GeneratorChoice ChooseGenerator(const FusedRegion& region, const Machine& machine) {
  const std::vector<const Instr*>& instrs = region.instrs;
  GeneratorChoice choice = InitialChoice(*instrs.back(), machine);
  for (size_t i = instrs.size() - 1; i-- > 0;) ExtendChoice(choice, *instrs[i], machine);
  if (machine.is_gpu() && SumsColumnsOfRows(region) && !SumsColumnsOfLongRows(region, machine))
    choice.kind = GeneratorKind::kRows;
  return choice;
}

}  // namespace tokamak
