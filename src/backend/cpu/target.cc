#include "backend/cpu/target.h"

#include <algorithm>
#include <thread>

#if defined(__linux__)
#include <sys/syscall.h>
#endif
#include <unistd.h>

#include <llvm/ADT/StringMap.h>
#include <llvm/TargetParser/Host.h>

namespace tokamak::cpu {
namespace {

// Bytes. Arrays larger than the L2 caches of all cores together use non-temporal stores: the next
// reader would not find them in the caches. Measured on Sapphire Rapids, two cores with 2 MiB each,
// x * 2: 1.5 times the speed at 4 MiB, 1.7 times at 16 MiB.
int64_t StreamBytes() {
  // Limits of the result, and the L2 cache per core if the system does not report it.
  constexpr int64_t kLeast = int64_t{4} << 20, kMost = int64_t{32} << 20;
  int64_t each = int64_t{2} << 20;
#ifdef _SC_LEVEL2_CACHE_SIZE
  if (long output = sysconf(_SC_LEVEL2_CACHE_SIZE); output > 0) each = output;
#endif
  int64_t processors = std::max(1u, std::thread::hardware_concurrency());
  return std::clamp(std::min(each, kMost) * processors, kLeast, kMost);
}

bool Has(const Target& target, std::string_view feature) {
  return std::ranges::binary_search(target.features, "+" + std::string(feature));
}

// Linux enables AMX tile data for a process on request.
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
  if (!target.IsX86()) return "";
  for (const char* needed : {"sse4.1", "fma"})
    if (!Has(target, needed)) return needed;
  return "";
}

Target DescribeTarget(std::string triple, std::string cpu, std::vector<std::string> features) {
  Target target;
  target.triple = std::move(triple);
  target.cpu = std::move(cpu);
  target.features = std::move(features);
  std::ranges::sort(target.features);
  if (target.IsX86()) {
    target.vector_bytes = Has(target, "avx512vl") ? 64 : Has(target, "avx") ? 32 : 16;
    target.has_f16 = Has(target, "f16c");
    target.stream_bytes = StreamBytes();
    if (target.vector_bytes == 64) target.vector_registers = 32;
    target.dots_bf16 = target.vector_bytes == 64 && Has(target, "avx512bf16");
    target.dots_s16 = target.vector_bytes == 64 && Has(target, "avx512vnni");
    target.has_tiles = Has(target, "amx-tile") && Has(target, "amx-bf16");
  } else {
    target.has_f16 = true;  // aarch64 always converts
    target.has_extremes = true;
    target.vector_registers = 32;
    target.dots_bf16 = Has(target, "bf16");
  }
  return target;
}

Result<Target> HostTarget() {
  static const Target* host = [] {
    std::string triple = llvm::sys::getProcessTriple();
    std::vector<std::string> features;
    // LLVM 19 turns x < y of f16 into y < x when it folds a spilled operand into the comparison,
    // and creates such comparisons from wider ones itself. Formulas of f16 are computed in f32
    // anyway.
    constexpr llvm::StringLiteral kLeftOut = "avx512fp16";
    for (const auto& feature : llvm::sys::getHostCPUFeatures())
      features.push_back((feature.second && feature.first() != kLeftOut ? "+" : "-") +
                         feature.first().str());
    // LLVM's name of a processor implies scalable vectors, which a virtual machine may lack:
    // features that the system does not report are disabled.
    if (!llvm::StringRef(triple).starts_with("x86_64"))
      for (const char* optional : {"sve", "sve2", "sme"})
        if (std::ranges::find(features, "+" + std::string(optional)) == features.end())
          features.push_back("-" + std::string(optional));
    auto* target =
        new Target(DescribeTarget(triple, llvm::sys::getHostCPUName().str(), std::move(features)));
    target->has_tiles = target->has_tiles && MayUseTiles();
    return target;
  }();
  if (std::string lack = LackOf(*host); !lack.empty())
    return MakeError(ErrorCode::kProcessorLacks, "processor " + host->cpu + " has no " + lack);
  return *host;
}

}  // namespace tokamak::cpu
