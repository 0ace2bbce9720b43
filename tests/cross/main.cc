// tok_cross_codegen --list: the supported processors and their vector widths in bits.
// tok_cross_codegen --for PROCESSOR EFFORT FILE...: compiles all kernels in these texts, which
// `tokamak kernels` prints, to object files with effort 0 (full) to 2 (cpu::CodegenEffort). Nothing
// is run. Each kernel's name is printed before its code is generated: after a crash, the last name
// printed is the culprit.

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/TargetParser/AArch64TargetParser.h>
#include <llvm/TargetParser/X86TargetParser.h>

#include "backend/cpu/codegen.h"
#include "backend/cpu/target.h"
#include "kernel/hash.h"
#include "kernel/parse.h"
#include "kernel/verify.h"
#include "kernels/texts.h"

// LLVM declares these for the targets it was built with; this program links two of them.
extern "C" {
void LLVMInitializeAArch64TargetInfo();
void LLVMInitializeAArch64Target();
void LLVMInitializeAArch64TargetMC();
void LLVMInitializeAArch64AsmPrinter();
void LLVMInitializeX86TargetInfo();
void LLVMInitializeX86Target();
void LLVMInitializeX86TargetMC();
void LLVMInitializeX86AsmPrinter();
}

namespace tokamak {
namespace {

struct Processor {
  std::string_view name;  // as passed to --for
  bool is_arm;
  std::string_view cpu;      // LLVM's name
  std::string_view without;  // a feature that HostTarget disables, or that a machine may lack
};

constexpr Processor kProcessors[] = {
    {"neoverse-v1", true, "neoverse-v1", ""},
    {"neoverse-v1-nosve", true, "neoverse-v1", "sve"},
    {"neoverse-n1", true, "neoverse-n1", ""},
    {"aarch64", true, "generic", ""},
    {"sapphirerapids", false, "sapphirerapids", "avx512fp16"},
    {"skylake-avx512", false, "skylake-avx512", ""},
    {"haswell", false, "haswell", ""},
};

std::vector<std::string> FeaturesOf(const Processor& processor) {
  std::vector<std::string> features;
  auto add = [&](llvm::StringRef feature) {
    llvm::StringRef name = feature.ltrim('+');
    bool is_without = name == llvm::StringRef(processor.without.data(), processor.without.size());
    features.push_back((is_without ? "-" : "+") + name.str());
  };
  llvm::StringRef cpu(processor.cpu.data(), processor.cpu.size());
  if (!processor.is_arm) {
    llvm::SmallVector<llvm::StringRef, 64> all;
    llvm::X86::getFeaturesForCPU(cpu, all, /*NeedPlus=*/true);
    for (llvm::StringRef feature : all) add(feature);
  } else if (std::optional<llvm::AArch64::CpuInfo> info = llvm::AArch64::parseCpu(cpu)) {
    std::vector<llvm::StringRef> all;
    llvm::AArch64::getExtensionFeatures(info->getImpliedExtensions(), all);
    for (llvm::StringRef feature : all) add(feature);
  }
  return features;
}

cpu::Target TargetOf(const Processor& processor) {
  const char* triple = processor.is_arm ? "aarch64-unknown-linux-gnu" : "x86_64-unknown-linux-gnu";
  return cpu::DescribeTarget(triple, std::string(processor.cpu), FeaturesOf(processor));
}

int List() {
  for (const Processor& processor : kProcessors)
    fmt::print("{} {}\n", processor.name, TargetOf(processor).vector_bytes * 8);
  return 0;
}

void InitializeTargets() {
  LLVMInitializeAArch64TargetInfo();
  LLVMInitializeAArch64Target();
  LLVMInitializeAArch64TargetMC();
  LLVMInitializeAArch64AsmPrinter();
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
}

int CompileAll(const cpu::Target& target, const cpu::CodegenOptions& options,
               const std::vector<std::string>& files) {
  InitializeTargets();
  std::set<uint64_t> known;
  int made = 0, failed = 0;
  for (const std::string& file : files) {
    for (const std::string& text : KernelsOf(FileText(file))) {
      Result<ParsedKernel> parsed = ParseKernel(text, file);
      if (!parsed.ok() || !VerifyKernel(parsed.value().kernel).ok()) {
        fmt::print("FAILED {}: a kernel does not parse\n", file);
        ++failed;
        continue;
      }
      const Kernel* kernel = &parsed.value().kernel;
      if (!known.insert(HashOf(*kernel)).second) continue;
      fmt::print("{}: {}\n", file, kernel->name);
      std::fflush(stdout);
      Result<std::string> object = cpu::MakeObject({&kernel, 1}, target, options);
      ++made;
      if (object.ok()) continue;
      fmt::print("FAILED {}: {}: {}\n", file, kernel->name, object.error().message);
      ++failed;
    }
  }
  fmt::print("{} kernels, {} failed\n", made, failed);
  return failed > 0 || made == 0 ? 1 : 0;
}

int Main(const std::vector<std::string>& words) {
  if (words == std::vector<std::string>{"--list"}) return List();
  if (words.size() >= 4 && words[0] == "--for" && words[2].size() == 1) {
    const auto* found = std::ranges::find(kProcessors, words[1], &Processor::name);
    cpu::CodegenOptions options{.effort = static_cast<cpu::CodegenEffort>(words[2][0] - '0')};
    if (found != std::end(kProcessors) && !NameOf(options.effort).empty())
      return CompileAll(TargetOf(*found), options, {words.begin() + 3, words.end()});
  }
  fmt::print(stderr, "usage: tok_cross_codegen --list | --for PROCESSOR EFFORT FILE...\n");
  return 2;
}

}  // namespace
}  // namespace tokamak

int main(int argc, char** argv) {
  return tokamak::Main({argv + 1, argv + argc});
}
