#include "backend/cuda/launch_source.h"

#include <algorithm>

#include <fmt/format.h>

#include "kernel/form.h"
#include "support/digest.h"

namespace tokamak::cuda {
namespace {

// Bytes of kernel parameters of every device and driver (CUDA programming guide), and pointers that
// fit.
constexpr size_t kMostParameterBytes = 4096, kMostParameters = 500;

// Bytes of a launch's name. Loaded code is looked up by its name alone: 128 bits of a digest of
// everything that the code depends on.
constexpr size_t kNameBytes = 16;

}  // namespace

std::string LaunchName(const LaunchForm& form) {
  Digester digester;
  auto add = [&](int64_t number) {
    digester.Add({reinterpret_cast<const char*>(&number), sizeof number});
  };
  for (const HorizontalKernel& entry : form.entries) {
    std::string bytes = FormOf(*entry.kernel);
    add(static_cast<int64_t>(bytes.size()));
    digester.Add(bytes);
    if (form.entries.size() > 1 || form.loop) add(entry.blocks);
  }
  if (form.loop) {
    for (const auto* phases : {&form.loop->condition, &form.loop->body, &form.loop->closing}) {
      add(static_cast<int64_t>(phases->size()));
      for (const LoopShape::Phase& phase : *phases) {
        add(static_cast<int64_t>(phase.entries));
        add(phase.bytes);
        add(phase.needs_barrier ? 1 : 0);
      }
    }
    add(form.loop->alternates_buffers ? 1 : 0);
  }
  std::string digits = HexOf(digester.Finish().substr(0, kNameBytes));
  return (form.loop ? "loop_" : "kernel_") + digits;
}

Result<LaunchSource> SourceOf(const LaunchForm& form, const std::string& name) {
  LaunchSource made;
  for (const HorizontalKernel& entry : form.entries) {
    if (!entry.kernel->extents.empty())
      return MakeError(ErrorCode::kCudaText,
                       fmt::format("launch {}: extents that are not known", form.label));
    made.grid += entry.blocks;
    made.arguments += entry.kernel->ArgumentCount();
  }
  if (form.loop) {
    made.arguments = PointersOf(*form.loop, form.entries).all;
    if (made.arguments > kMostParameters)
      return MakeError(ErrorCode::kCudaText,
                       fmt::format("loop {}: {} arrays, {} at most", form.label, made.arguments,
                                   kMostParameters));
    made.is_loop = true;
    made.has_condition = form.loop->has_condition();
    made.grid = 1;
    for (const HorizontalKernel& entry : form.entries)
      made.grid = std::max(made.grid, entry.blocks);
    size_t next = 0;
    int64_t blocks = 0;
    for (const auto* phases : {&form.loop->condition, &form.loop->body}) {
      blocks = 0;
      for (const LoopShape::Phase& phase : *phases) {
        if (phase.needs_barrier) blocks = 0;
        for (size_t i = 0; i < phase.entries; ++i) blocks += form.entries[next++].blocks;
        made.side_by_side = std::max(made.side_by_side, blocks);
      }
    }
    if (made.grid > INT32_MAX / 2)
      return MakeError(ErrorCode::kCudaText,
                       fmt::format("loop {}: a grid of {} blocks", form.label, made.grid));
    TOK_TRY(made.source, CudaLoopText(name, form.entries, *form.loop));
    return made;
  }
  if (made.grid > INT32_MAX)
    return MakeError(ErrorCode::kCudaText,
                     fmt::format("launch {}: a grid of {} blocks", form.label, made.grid));
  if (form.entries.size() == 1 && made.arguments <= kMostParameters) {
    Kernel kernel = *form.entries[0].kernel;
    kernel.name = name;
    kernel.notes.clear();
    TOK_TRY(made.source, CudaText(kernel));
    if (made.arguments * sizeof(void*) + made.source.maps.size() * sizeof(TensorMap) +
            alignof(TensorMap) >
        kMostParameterBytes)
      return MakeError(ErrorCode::kCudaText,
                       fmt::format("launch {}: {} arrays and {} tensor maps", form.label,
                                   made.arguments, made.source.maps.size()));
    made.grid *= made.source.cluster;
    return made;
  }
  TOK_TRY(HorizontalSource fused_launch, HorizontalText(name, form.entries));
  made.source = std::move(fused_launch.source);
  made.pointers = fused_launch.table == PointerTable::kMemory ? LaunchSource::Pointers::kMemory
                                                              : LaunchSource::Pointers::kParameter;
  return made;
}

}  // namespace tokamak::cuda
