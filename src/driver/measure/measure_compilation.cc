#include "driver/measure/measure_compilation.h"

#include "driver/measure/measure_device.h"
#include "driver/measure/measure_steps.h"

namespace tokamak {

Result<StepTimes> MeasureCompilation(const Compilation& made, double seconds) {
  MeasureOptions measure{.seconds = seconds};
  if (made.target.device != nullptr)
    return MeasureSteps(*made.module, made.program, static_cast<cuda::Gpu&>(*made.target.device),
                        measure);
  if (made.target.is_gpu())
    return MakeError(ErrorCode::kNoDevice,
                     "measure: '" + made.target.name + "' is not a GPU of this machine");
  return MeasureSteps(*made.module, made.program, measure);
}

}  // namespace tokamak
