#include "backend/cuda/launch_source.h"

#include <algorithm>

#include <fmt/format.h>

#include "kernel/form.h"
#include "support/digest.h"

namespace tokamak::cuda {
namespace {

// Parameters of a launch take 4 KiB at most, on every device and with every driver.
constexpr size_t kMostParameters = 500;

// Loaded code is found again by its name alone: 128 bits of a digest of all that the code depends
// on.
constexpr size_t kNameBytes = 16;

}  // namespace

std::string LaunchName(const LaunchForm& form) {
  Digester digester;
  auto add = [&](int64_t number) {
    digester.Add({reinterpret_cast<const char*>(&number), sizeof number});
  };
  for (const CudaPackPart& part : form.parts) {
    std::string bytes = FormOf(*part.kernel);
    add(static_cast<int64_t>(bytes.size()));
    digester.Add(bytes);
    if (form.parts.size() > 1 || form.loop) add(part.teams);
  }
  if (form.loop) {
    for (const auto* phases : {&form.loop->condition, &form.loop->body, &form.loop->closing}) {
      add(static_cast<int64_t>(phases->size()));
      for (const LoopShape::Phase& phase : *phases) {
        add(static_cast<int64_t>(phase.parts));
        add(phase.bytes);
        add(phase.meets ? 1 : 0);
      }
    }
    add(form.loop->in_turn ? 1 : 0);
  }
  std::string digits = HexOf(digester.Finish().substr(0, kNameBytes));
  return (form.loop ? "loop_" : "kernel_") + digits;
}

Result<LaunchSource> SourceOf(const LaunchForm& form, const std::string& name) {
  LaunchSource made;
  for (const CudaPackPart& part : form.parts) {
    if (!part.kernel->extents.empty())
      return MakeError(ErrorCode::kCudaText,
                       fmt::format("launch {}: extents that are not known", form.label));
    made.grid += part.teams;
    made.arguments += part.kernel->ArgumentCount();
  }
  if (form.loop) {
    made.arguments = PointersOf(*form.loop, form.parts).all;
    if (made.arguments > kMostParameters)
      return MakeError(ErrorCode::kCudaText,
                       fmt::format("loop {}: {} arrays, {} at most", form.label, made.arguments,
                                   kMostParameters));
    made.is_loop = true;
    made.has_condition = form.loop->has_condition();
    made.grid = 1;
    for (const CudaPackPart& part : form.parts) made.grid = std::max(made.grid, part.teams);
    size_t next = 0;
    int64_t teams = 0;
    for (const auto* phases : {&form.loop->condition, &form.loop->body}) {
      teams = 0;
      for (const LoopShape::Phase& phase : *phases) {
        if (phase.meets) teams = 0;
        for (size_t i = 0; i < phase.parts; ++i) teams += form.parts[next++].teams;
        made.side_by_side = std::max(made.side_by_side, teams);
      }
    }
    if (made.grid > INT32_MAX / 2)
      return MakeError(ErrorCode::kCudaText,
                       fmt::format("loop {}: a grid of {} teams", form.label, made.grid));
    TOK_TRY(made.source, CudaLoopText(name, form.parts, *form.loop));
    return made;
  }
  if (made.grid > INT32_MAX)
    return MakeError(ErrorCode::kCudaText,
                     fmt::format("launch {}: a grid of {} teams", form.label, made.grid));
  if (form.parts.size() == 1 && made.arguments <= kMostParameters) {
    Kernel kernel = *form.parts[0].kernel;
    kernel.name = name;
    kernel.notes.clear();
    TOK_TRY(made.source, CudaText(kernel));
    made.grid *= made.source.cluster;
    return made;
  }
  TOK_TRY(CudaPackSource pack, CudaPackText(name, form.parts));
  made.source = std::move(pack.source);
  made.pointers = pack.table == PointerTable::kMemory ? LaunchSource::Pointers::kMemory
                                                      : LaunchSource::Pointers::kParameter;
  return made;
}

}  // namespace tokamak::cuda
