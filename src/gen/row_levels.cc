#include "gen/row_levels.h"

#include <algorithm>
#include <unordered_map>

namespace tokamak {

std::string AnalyzeRowLevels(const FusedRegion& region, RowLevels& found, bool allow_strided) {
  // The number of reduction levels up to and including an instruction.
  std::unordered_map<const Instr*, size_t> level;
  for (const Instr* instr : region.instrs) {
    size_t own = 0;
    for (const Instr* operand : instr->operands())
      if (auto it = level.find(operand); it != level.end()) own = std::max(own, it->second);
    if (instr->op() == Op::kReduce) {
      Reducer reducer = ReducerOf(*instr);
      if (found.levels.size() <= own) found.levels.resize(own + 1);
      const Dims& dims = reducer.input().dims();
      for (size_t i = 0; i < reducer.kept_dims.size() && !allow_strided; ++i)
        if (reducer.kept_dims[i] != static_cast<int64_t>(i))
          return "reduce: not of the last dimensions";
      int64_t rows = 1, row = 1;
      for (int64_t d : reducer.kept_dims) rows *= dims[static_cast<size_t>(d)];
      for (int64_t d : reducer.reduced_dims) row *= dims[static_cast<size_t>(d)];
      if (found.row_count != 0 && (rows != found.row_count || row != found.row_length))
        return "its rows have different lengths";
      found.row_count = rows;
      found.row_length = row;
      found.levels[own].push_back(std::move(reducer));
      ++own;
    }
    level[instr] = own;
  }
  return found.row_count == 0 ? "it has no reduction" : "";
}

Coordinates RowElementCoordinates(KernelBuilder& b, const Reducer& reducer, Scalar row,
                                  Scalar element) {
  const Dims& dims = reducer.input().dims();
  Coordinates at(dims.size());
  auto index = [&](const Dims& dimensions, Scalar linear) {
    Dims own;
    for (int64_t d : dimensions) own.push_back(dims[static_cast<size_t>(d)]);
    Coordinates coordinates = Delinearized(b, linear, own);
    for (size_t i = 0; i < own.size(); ++i) at[static_cast<size_t>(dimensions[i])] = coordinates[i];
  };
  index(reducer.kept_dims, row);
  index(reducer.reduced_dims, element);
  return at;
}

}  // namespace tokamak
