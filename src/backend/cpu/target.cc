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

// What is larger than the second caches of all processors together goes past them: whoever reads it
// next would not find it there. Two processors of 2 MiB each, Sapphire Rapids, x * 2: 1.5 times the
// speed at 4 MiB, 1.7 at 16 MiB.
int64_t StreamBytes() {
  constexpr int64_t kLeast = int64_t{4} << 20, kMost = int64_t{32} << 20;
  int64_t each = int64_t{2} << 20;
#ifdef _SC_LEVEL2_CACHE_SIZE
  if (long told = sysconf(_SC_LEVEL2_CACHE_SIZE); told > 0) each = told;
#endif
  int64_t processors = std::max(1u, std::thread::hardware_concurrency());
  return std::clamp(std::min(each, kMost) * processors, kLeast, kMost);
}

bool Has(const Target& target, std::string_view feature) {
  return std::ranges::binary_search(target.features, "+" + std::string(feature));
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
    // and makes such comparisons of wider ones by itself. Formulas of f16 are computed in f32
    // anyway.
    constexpr llvm::StringLiteral kLeftOut = "avx512fp16";
    for (const auto& feature : llvm::sys::getHostCPUFeatures())
      features.push_back((feature.second && feature.first() != kLeftOut ? "+" : "-") +
                         feature.first().str());
    // The name of a processor stands for vectors of any length, which a virtual machine may not
    // have: what the system does not name is not there.
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
