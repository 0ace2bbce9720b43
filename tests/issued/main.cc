// tok_issued_steps [--target host|h200] FILE...: compares the steps that explain lists with those
// that the executable issues. Every program is compiled once as explain does, and once for a device
// that executes nothing and records what is issued; kernels, library calls, host steps and copies
// must match in name, count and hash. Data-dependent control flow is run with each branch and with
// one iteration of each loop.

#include <cstdio>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "driver/compile/device_loops.h"
#include "driver/report/compile_report.h"
#include "driver/report/digest.h"
#include "driver/run/make_executable.h"
#include "gen/generator.h"
#include "ir/clone.h"
#include "issued/recording_gpu.h"
#include "text/load.h"

namespace tokamak {
namespace {

constexpr int kRuns = 4;  // graphs are created after the second run
// steps per run; longer loops are skipped (chosen: keeps the test short)
constexpr int64_t kMostIssued = 2'000'000;
constexpr size_t kMostBranches = 8;  // branches tried per conditional (chosen)

// The key of a host step.
std::string HostKey(const Compilation& made, const RunStep& step) {
  const Instr* instr = step.kind == StepKind::kCall ? made.program.call_instrs[step.target]
                                                    : made.program.host_instrs[step.target];
  return (step.kind == StepKind::kCall ? "call " : "host ") + LabelOf(*instr);
}

class Recorder final : public StepRecorder {
 public:
  Recorder(const Compilation& made, size_t branch, Issued& issued)
      : made_(made), branch_(branch), issued_(issued) {}

  void Issue(const RunStep& step) override {
    switch (step.kind) {
      case StepKind::kLaunch:
        Count({&step, 1});
        break;
      case StepKind::kHorizontal:
        Count(step.blocks[0]);
        break;
      case StepKind::kLibrary:
        ++issued_[ProductKey(ProductDigest(made_.program.products[step.target]))];
        break;
      case StepKind::kCopy:
        ++issued_[CopyKey(step.bytes)];
        break;
      default:
        ++issued_[HostKey(made_, step)];
    }
  }

  bool GoesOn(const RunStep& loop) override {
    uint64_t trips = TripCountOf(loop, made_.program).value_or(1);
    uint64_t& done = done_.try_emplace(&loop, loop.runs_first ? 1 : 0).first->second;
    if (done++ < trips) return true;
    done_.erase(&loop);
    return false;
  }

  size_t BlockOf(const RunStep& conditional) override {
    return std::min(branch_, conditional.blocks.size() - 1);
  }

 private:
  void Count(std::span<const RunStep> launches) {
    std::string names;
    std::vector<uint64_t> digests;
    for (const RunStep& launch : launches) {
      const Kernel& kernel = made_.program.kernels[launch.target];
      names += (names.empty() ? "" : "+") + kernel.name;
      digests.push_back(LaunchDigest(kernel, launch.grid));
    }
    ++issued_[KernelKey(names, DigestOf(digests))];
  }

  const Compilation& made_;
  size_t branch_;
  Issued& issued_;
  std::unordered_map<const RunStep*, uint64_t> done_;
};

// The steps that explain lists, with their count if it is known.
struct Listed {
  std::map<std::string, std::optional<int64_t>> steps;
  int64_t count = 0;
};

std::string KeyOf(const StepReport& step, const Compilation& made) {
  if (step.generator == "copy") return CopyKey(step.reads);
  if (step.library == "device") return kDeviceCallKey;
  if (step.generator == "host" || step.library == "tokamak") return HostKey(made, *step.step);
  if (step.generator == "library") return ProductKey(step.code);
  std::string names;
  for (size_t kernel : step.kernels)
    names += (names.empty() ? "" : "+") + made.program.kernels[kernel].name;
  return KernelKey(names, step.code);
}

Listed ListedBy(const CompileReport& report) {
  Listed listed;
  for (const StepReport& step : report.steps) {
    auto [at, is_new] = listed.steps.try_emplace(KeyOf(step, *report.compilation), 0);
    if (at->second && step.calls) {
      *at->second += *step.calls;
      listed.count += *step.calls;
    } else {
      at->second.reset();
    }
  }
  return listed;
}

size_t BranchesOf(const std::vector<RunStep>& steps) {
  size_t most = 1;
  for (const RunStep& step : steps) {
    if (step.kind == StepKind::kConditional) most = std::max(most, step.blocks.size());
    for (const std::vector<RunStep>& block : step.blocks) most = std::max(most, BranchesOf(block));
  }
  return std::min(most, kMostBranches);
}

Result<Issued> RecordedRun(const Executable& executable, RecordingGpu* gpu, size_t branch) {
  const Compilation& made = executable.compilation();
  Issued own;
  Issued& issued = gpu == nullptr ? own : gpu->issued();
  issued.clear();
  Recorder recorder(made, branch, issued);
  // Unmapped addresses; a result has the address of the parameter that it aliases.
  auto* memory = reinterpret_cast<std::byte*>(uintptr_t{1} << 44);
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  auto next = [&](int64_t bytes) {
    std::byte* at = memory;
    memory += (bytes + 511) / 256 * 256;
    return at;
  };
  for (const ParameterInfo& parameter : executable.parameters())
    inputs.push_back(next(parameter.bytes));
  for (const ArrayInfo& result : executable.results()) outputs.push_back(next(result.bytes));
  for (size_t i = 0; i < inputs.size(); ++i)
    if (int64_t alias = executable.parameters()[i].alias_result; alias >= 0)
      outputs[static_cast<size_t>(alias)] = const_cast<void*>(inputs[i]);
  RunControl control{.recorder = &recorder};
  TOK_RETURN_IF_ERROR(gpu == nullptr ? executable.Run(inputs, outputs, control)
                                     : executable.Issue(inputs, outputs, control));
  return issued;
}

// "" if they agree.
std::string Difference(const Listed& listed, const std::vector<Issued>& runs) {
  std::string text;
  std::set<std::string> seen;
  for (const Issued& issued : runs) {
    for (const auto& [key, count] : issued) {
      seen.insert(key);
      auto found = listed.steps.find(key);
      if (found == listed.steps.end()) {
        text += fmt::format("  issued {} times, not listed: {}\n", count, key);
      } else if (found->second && *found->second != count) {
        text += fmt::format("  issued {} times, listed {}: {}\n", count, *found->second, key);
      }
    }
    for (const auto& [key, count] : listed.steps)
      if (count && *count > 0 && !issued.contains(key))
        text += fmt::format("  listed {} times, not issued: {}\n", *count, key);
    if (!text.empty()) return text;
  }
  for (const auto& [key, count] : listed.steps)
    if (!count && !seen.contains(key)) text += "  listed, never issued: " + key + "\n";
  return text;
}

// "" if every generated kernel satisfies the kernel invariants.
std::string GeneratorBug(const Compilation& made) {
  for (const Decision& decision : made.log.all())
    if (decision.because.starts_with(kGeneratorBug)) return "  " + ToString(decision) + "\n";
  return "";
}

struct Tally {
  int64_t same = 0, different = 0, interpreted = 0, long_ones = 0;
};

Result<std::string> Compare(const Module& module, const std::string& on, Tally& tally) {
  TOK_TRY(Target target, TargetNamed(on));
  CompileOptions options;
  options.check_memory = false;
  TOK_TRY(std::shared_ptr<const Compilation> made, Compile(CloneModule(module), target, options));
  if (std::string bug = GeneratorBug(*made); !bug.empty()) {
    ++tally.different;
    return bug;
  }
  TOK_TRY(CompileReport report, ReportOf(std::move(made)));
  if (!report.why_interpreted().empty()) {
    ++tally.interpreted;
    return std::string();
  }
  Listed listed = ListedBy(report);
  if (listed.count > kMostIssued) {
    ++tally.long_ones;
    return std::string();
  }
  RecordingGpu gpu;
  if (target.is_gpu()) {
    target.device = &gpu;
    target.libraries = LibraryUse::kPresent;
  } else {
    target.kernel_backend = KernelBackend::kSimulator;
  }
  TOK_TRY(std::shared_ptr<const Compilation> again, Compile(CloneModule(module), target, options));
  TOK_TRY(std::shared_ptr<const Executable> executable, MakeExecutable(std::move(again)));
  std::vector<Issued> runs;
  size_t branches = BranchesOf(report.program().steps);
  for (size_t i = 0; i < std::max<size_t>(branches, kRuns); ++i) {
    TOK_TRY(Issued issued,
            RecordedRun(*executable, target.is_gpu() ? &gpu : nullptr, i % branches));
    runs.push_back(std::move(issued));
  }
  std::string difference = Difference(listed, runs);
  ++(difference.empty() ? tally.same : tally.different);
  return difference;
}

int Main(const std::vector<std::string>& words) {
  std::vector<std::string> targets = {"host", "h200"}, files;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--target" && i + 1 < words.size())
      targets = {words[++i]};
    else
      files.push_back(words[i]);
  }
  Tally tally;
  int64_t errors = 0;
  for (const std::string& path : files) {
    Result<LoadedFile> file = LoadFile(path, Verification::kYes);
    if (!file.ok()) continue;  // files with errors belong to other tests
    for (auto& program : file.value().programs) {
      if (!program.ok() || program.value()->entry() == nullptr) continue;
      for (const std::string& target : targets) {
        Result<std::string> found = Compare(*program.value(), target, tally);
        if (!found.ok()) {
          ++errors;
          fmt::print("{} on {}: {}\n", path, target, found.error().message);
        } else if (!found.value().empty()) {
          fmt::print("{} on {}: what explain lists is not what is issued\n{}", path, target,
                     found.value());
        }
      }
    }
  }
  fmt::print("{} programs the same, {} different, {} do not compile, {} interpreted, {} too long\n",
             tally.same, tally.different, errors, tally.interpreted, tally.long_ones);
  return tally.different == 0 && tally.same > 0 ? 0 : 1;
}

}  // namespace
}  // namespace tokamak

int main(int argc, char** argv) {
  return tokamak::Main({argv + 1, argv + argc});
}
