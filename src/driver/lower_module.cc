#include "driver/lower_module.h"

#include "driver/kernel_codes.h"
#include "fusion/contraction.h"
#include "fusion/expand_convolutions.h"
#include "fusion/expand_ops.h"
#include "fusion/expand_random.h"
#include "fusion/prepare_scans.h"
#include "fusion/scatter_places.h"
#include "fusion/sorts.h"
#include "fusion/split_reductions.h"
#include "fusion/split_scatters.h"
#include "runtime/matrix_product.h"

namespace tokamak {

Result<LoweredProgram> LowerModule(Module& module, const LowerOptions& options, DecisionLog& log) {
  ExpandOps(module, log);
  ExpandConvolutions(module, log);
  PrepareContractions(module, options.machine, log);
  ExpandRandom(module, log);
  PrepareScans(module, log, options.machine);
  SplitWindows(module, log);
  PrepareSorts(module, log, options.machine);
  SplitScatters(module, log, options.machine);
  PlaceScatters(module, log, options.machine);
  SplitReductions(module, log, options.machine);
  return Lower(module, options, log);
}

Result<LoweredProgram> LowerForHost(Module& module, LowerOptions options, DecisionLog& log) {
  options.machine = HostMachine();
  ExpandConvolutions(module, log);  // they are contractions, then
  options.machine.matrix_library = HasContractions(module, options.machine) && HasMatrixLibrary();
  return LowerModule(module, options, log);
}

}  // namespace tokamak
