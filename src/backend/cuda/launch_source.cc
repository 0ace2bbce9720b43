#include "backend/cuda/launch_source.h"

#include <algorithm>

#include <fmt/format.h>

#include "kernel/hash.h"
#include "support/hash.h"

namespace tokamak::cuda {
namespace {

// Parameters of a launch take 4 KiB at most, on every device and with every driver.
constexpr size_t kMostParameters = 500;

}  // namespace

std::string LaunchName(const LaunchForm& form) {
  Hasher hasher;
  for (const CudaPackPart& part : form.parts) {
    hasher.Add(HashOf(*part.kernel));
    if (form.parts.size() > 1 || form.loop) hasher.Add(part.teams);
  }
  if (form.loop) {
    for (const auto* phases : {&form.loop->condition, &form.loop->body, &form.loop->closing}) {
      hasher.Add(phases->size());
      for (const LoopShape::Phase& phase : *phases) {
        hasher.Add(phase.parts);
        hasher.Add(phase.bytes);
        hasher.Add(phase.meets);
      }
    }
    hasher.Add(form.loop->in_turn);
    return fmt::format("loop_{:016x}", hasher.digest());
  }
  return fmt::format("kernel_{:016x}", hasher.digest());
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
