#include "backend/cpu/target.h"

#include <algorithm>

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

}  // namespace

std::string Target::Text() const {
  std::string text = triple + " " + cpu;
  for (const std::string& feature : features) text += " " + feature;
  text += " stream " + std::to_string(stream_bytes);
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
    } else {
      target->has_f16 = true;  // aarch64 always converts
    }
    return target;
  }();
  if (std::string lack = LackOf(*host); !lack.empty())
    return MakeError(ErrorCode::kProcessorLacks, "processor " + host->cpu + " has no " + lack);
  return *host;
}

}  // namespace tokamak::cpu
