#include "cli/commands.h"

namespace tokamak {

int Reduce(const ReduceCommand&, Console& console) {
  return console.Report(MakeError(ErrorCode::kUnsupportedOp, "reduce: not written yet"));
}

}  // namespace tokamak
