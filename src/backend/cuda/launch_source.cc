#include "backend/cuda/launch_source.h"

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
    if (form.parts.size() > 1) hasher.Add(part.teams);
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
  if (made.grid > INT32_MAX)
    return MakeError(ErrorCode::kCudaText,
                     fmt::format("launch {}: a grid of {} teams", form.label, made.grid));
  if (form.parts.size() == 1 && made.arguments <= kMostParameters) {
    Kernel kernel = *form.parts[0].kernel;
    kernel.name = name;
    kernel.notes.clear();
    TOK_TRY(made.source, CudaText(kernel));
    return made;
  }
  TOK_TRY(CudaPackSource pack, CudaPackText(name, form.parts));
  made.source = std::move(pack.source);
  made.pointers = pack.table == PointerTable::kMemory ? LaunchSource::Pointers::kMemory
                                                      : LaunchSource::Pointers::kParameter;
  return made;
}

}  // namespace tokamak::cuda
