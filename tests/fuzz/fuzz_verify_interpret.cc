// Property: the interpreter runs or rejects every module that the verifier accepts, and never
// crashes. Programs with large arrays or windows are skipped: they are slow, not wrong.
#include <algorithm>

#include "fuzz/fuzz.h"
#include "interp/arguments.h"
#include "interp/interp.h"
#include "ir/infer.h"
#include "text/read.h"

namespace tokamak {
namespace {

constexpr int64_t kMaxFuzzElements = 1024;  // per array (chosen: keeps an input fast)
constexpr int64_t kMaxFuzzSteps = 2000;     // instructions per run (chosen: keeps an input fast)

bool IsSmall(const Shape& shape) {
  for (const Shape& element : shape.elements())
    if (!IsSmall(element)) return false;
  if (!shape.IsArray()) return true;
  int64_t product = 1;
  for (int64_t dim : shape.dims()) {
    if (dim == kDynamic) continue;
    if (dim > kMaxFuzzElements) return false;
    product *= dim > 0 ? dim : 1;
    if (product > kMaxFuzzElements) return false;
  }
  return true;
}

bool IsSmall(const Window& window) {
  int64_t product = 1;
  for (const auto& dim : window) {
    for (int64_t number :
         {dim.size, dim.stride, dim.pad_low, dim.pad_high, dim.window_dilation, dim.base_dilation})
      if (number > kMaxFuzzElements || number < -kMaxFuzzElements) return false;
    product *= dim.size > 0 ? dim.size : 1;
    if (product > kMaxFuzzElements) return false;
  }
  return true;
}

bool IsSmall(const Instr& instr) {
  if (!IsSmall(instr.shape())) return false;
  if (instr.op() == Op::kReduceWindow || instr.op() == Op::kSelectAndScatter)
    return IsSmall(instr.attrs<WindowAttrs>().window);
  if (instr.op() == Op::kConvolution || instr.op() == Op::kDynamicConv)
    return IsSmall(instr.attrs<ConvolutionAttrs>().window);
  return true;
}

bool IsSmall(const Module& module) {
  if (module.num_replicas * module.num_partitions > 16) return false;
  for (const auto& computation : module.computations())
    for (const Instr* instr : computation->Instrs())
      if (!IsSmall(*instr)) return false;
  return true;
}

// The extreme integers for arithmetic, rotated per argument: the minimum by -1, division by 0, a
// shift by the width.
Value WithExtremes(const Value& drawn, size_t argument) {
  if (!drawn.shape().IsArray() || !IsInteger(drawn.type())) return drawn;
  return DispatchStorage(drawn.type(), [&]<typename T>() -> Value {
    if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {
      const int bits = InfoOf(drawn.type()).bits;
      const uint64_t all = UINT64_MAX >> (64 - bits), half = all >> 1;
      const auto width = std::min<uint64_t>(static_cast<uint64_t>(bits), half);
      // The minimum of a signed type is ~half, its -1 is ~0.
      const uint64_t of_signed[] = {~half, ~uint64_t{0}, 0, width, 1, half};
      const uint64_t of_unsigned[] = {all, 0, 1, width, half, half + 1};
      std::vector<T> elements(static_cast<size_t>(drawn.ElementCount()));
      for (size_t i = 0; i < elements.size(); ++i)
        elements[i] =
            static_cast<T>((std::is_signed_v<T> ? of_signed : of_unsigned)[(i + argument) % 6]);
      return Value::Array(drawn.shape(), std::move(elements));
    } else {
      return drawn;
    }
  });
}

void RunOne(const Module& module) {
  if (module.entry() == nullptr || !IsSmall(module) || !VerifyModule(module).ok()) return;
  auto arguments = DrawArguments(1, *module.entry());
  if (!arguments.ok()) return;
  RunOptions options;
  options.max_steps = kMaxFuzzSteps;
  (void)Interpret(module, arguments.value(), options);
  std::vector<Value> extremes;
  for (const Value& drawn : arguments.value())
    extremes.push_back(WithExtremes(drawn, extremes.size()));
  (void)Interpret(module, extremes, options);
}

}  // namespace
}  // namespace tokamak

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto modules = tokamak::ReadModules(tokamak::Bytes::Copy(data, size), "input");
  for (const auto& module : modules)
    if (module.ok()) tokamak::RunOne(*module.value());
  return 0;
}
