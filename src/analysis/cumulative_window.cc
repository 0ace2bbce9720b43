#include "analysis/cumulative_window.h"

namespace tokamak {

std::optional<CumulativeWindow> CumulativeWindowOf(const Instr& instr) {
  const Window& window = instr.attrs<WindowAttrs>().window;
  const Dims& dims = instr.operand(0)->shape().dims();
  std::optional<CumulativeWindow> found;
  for (size_t d = 0; d < window.size(); ++d) {
    const WindowDim& dim = window[d];
    if (dim == WindowDim{}) continue;
    bool plain = dim.stride == 1 && dim.base_dilation == 1 && dim.window_dilation == 1;
    if (found || !plain || dim.reversed || dim.size < dims[d] || dim.size < 2) return std::nullopt;
    bool before = dim.pad_low == dim.size - 1 && dim.pad_high == 0;
    bool after = dim.pad_high == dim.size - 1 && dim.pad_low == 0;
    if (!before && !after) return std::nullopt;
    found = CumulativeWindow{static_cast<int64_t>(d), after};
  }
  return found;
}

}  // namespace tokamak
