#include "backend/cpu/target.h"

#include <algorithm>

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <llvm/ADT/StringMap.h>
#include <llvm/TargetParser/Host.h>

namespace tokamak::cpu {
namespace {

// Sapphire Rapids, an exp-like chain on one thread: 0.66 of the speed at 1 MiB, 1.2 at 4 to 16 MiB,
// 1.12 to 1.2 from 32 MiB to 256 MiB. Whoever reads a smaller one next would miss it in the caches.
constexpr int64_t kStreamBytes = int64_t{32} << 20;

bool Has(const Target& target, std::string_view feature) {
  return std::ranges::binary_search(target.features, "+" + std::string(feature));
}

bool IsX86(const Target& target) {
  return target.triple.starts_with("x86_64");
}

// The system keeps the tiles of a process when it asks for them, once.
bool MayUseTiles() {
#if defined(__linux__) && defined(__x86_64__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

}  // namespace

std::string Target::Text() const {
  std::string text = triple + " " + cpu;
  for (const std::string& feature : features) text += " " + feature;
  text += " stream " + std::to_string(stream_bytes);
  if (has_tiles) text += " tiles";
  return text;
}

std::string LackOf(const Target& target) {
  if (!IsX86(target)) return "";
  for (const char* needed : {"sse4.1", "fma"})
    if (!Has(target, needed)) return needed;
  return "";
}

Result<Target> HostTarget() {
  static const Target* host = [] {
    auto* target = new Target;
    target->triple = llvm::sys::getProcessTriple();
    target->cpu = llvm::sys::getHostCPUName().str();
    for (const auto& feature : llvm::sys::getHostCPUFeatures())
      target->features.push_back((feature.second ? "+" : "-") + feature.first().str());
    std::ranges::sort(target->features);
    if (IsX86(*target)) {
      target->vector_bytes = Has(*target, "avx512vl") ? 64 : Has(*target, "avx") ? 32 : 16;
      target->has_f16 = Has(*target, "f16c");
      target->stream_bytes = kStreamBytes;
      if (target->vector_bytes == 64) target->vector_registers = 32;
      target->dots_bf16 = target->vector_bytes == 64 && Has(*target, "avx512bf16");
      target->dots_s16 = target->vector_bytes == 64 && Has(*target, "avx512vnni");
      target->has_tiles = Has(*target, "amx-tile") && Has(*target, "amx-bf16") && MayUseTiles();
    } else {
      target->has_f16 = true;  // aarch64 always converts
      target->vector_registers = 32;
      target->dots_bf16 = Has(*target, "bf16");
    }
    return target;
  }();
  if (std::string lack = LackOf(*host); !lack.empty())
    return MakeError(ErrorCode::kProcessorLacks, "processor " + host->cpu + " has no " + lack);
  return *host;
}

}  // namespace tokamak::cpu
