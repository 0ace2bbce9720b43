#include "gen/row_levels.h"

#include <algorithm>
#include <unordered_map>

namespace tokamak {

std::string FindRowLevels(const Region& region, RowLevels& found) {
  std::unordered_map<const Instr*, size_t> level;  // of reductions below and at it
  for (const Instr* instr : region.instrs) {
    size_t own = 0;
    for (const Instr* operand : instr->operands())
      if (auto it = level.find(operand); it != level.end()) own = std::max(own, it->second);
    if (instr->op() == Op::kReduce) {
      Reducer reducer = ReducerOf(*instr);
      if (found.levels.size() <= own) found.levels.resize(own + 1);
      const Dims& dims = reducer.input().dims();
      size_t split = reducer.kept.size();
      for (size_t i = 0; i < split; ++i)
        if (reducer.kept[i] != static_cast<int64_t>(i)) return "reduce: not of the last dimensions";
      int64_t rows = ProductOf(dims, 0, split), row = ProductOf(dims, split, dims.size());
      if (found.rows != 0 && (rows != found.rows || row != found.row))
        return "its rows have different lengths";
      found.rows = rows;
      found.row = row;
      found.levels[own].push_back(std::move(reducer));
      ++own;
    }
    level[instr] = own;
  }
  return found.rows == 0 ? "it has no reduction" : "";
}

Coordinates RowElement(KernelBuilder& b, const Reducer& reducer, Scalar row, Scalar element) {
  const Dims& dims = reducer.input().dims();
  auto split = static_cast<int64_t>(reducer.kept.size());
  Coordinates at = Delinearized(b, row, Dims(dims.begin(), dims.begin() + split));
  Coordinates rest = Delinearized(b, element, Dims(dims.begin() + split, dims.end()));
  at.insert(at.end(), rest.begin(), rest.end());
  return at;
}

}  // namespace tokamak
