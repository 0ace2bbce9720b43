// random_programs: see --help, and docs/testing.md.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "ir/compare.h"
#include "random/campaign.h"
#include "random/elements.h"
#include "support/hash.h"
#include "text/load.h"
#include "text/npz.h"
#include "text/write.h"

namespace tokamak::fuzz {
namespace {

void PrintPrograms(const Options& options) {
  for (uint64_t seed = options.first; seed < options.end; ++seed) {
    std::printf("// seed %lu\n%s\n", static_cast<unsigned long>(seed),
                WriteHloText(*DrawProgram(seed, options.size)).c_str());
  }
}

Status WritePrograms(const Options& options) {
  std::filesystem::create_directories(options.write);
  for (uint64_t seed = options.first; seed < options.end; ++seed) {
    std::unique_ptr<Module> module = DrawProgram(seed, options.size);
    std::string base = options.write + "/" + std::to_string(seed);
    TOK_RETURN_IF_ERROR(WriteFileBytes(base + ".hlo", WriteHloText(*module)));
    for (bool ordinary : {true, false}) {
      std::vector<std::pair<std::string, Literal>> arrays;
      for (const Value& input : DrawInputs(seed, *module->entry(), ordinary))
        if (input.shape().IsArray())
          arrays.emplace_back("in_" + std::to_string(arrays.size()),
                              ToCarrier(LiteralFromValue(input)));
      TOK_RETURN_IF_ERROR(
          WriteFileBytes(base + (ordinary ? "-ordinary.npz" : "-special.npz"), WriteNpz(arrays)));
    }
  }
  return Ok();
}

void PrintHash(const Options& options) {
  Hasher hasher;
  for (uint64_t seed = options.first; seed < options.end; ++seed)
    hasher.Add(StructuralHash(*DrawProgram(seed, options.size)));
  std::printf("%016lx\n", static_cast<unsigned long>(hasher.digest()));
}

// The given files, and the files below the given folders.
std::vector<std::string> FilesOf(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& location_path : paths) {
    if (!std::filesystem::is_directory(location_path)) {
      files.push_back(location_path);
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(location_path))
      if (entry.path().extension() == ".hlo") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

int Replay(const Options& options) {
  int passed = 0, failed = 0;
  for (const std::string& path : FilesOf(options.files)) {
    Result<std::string> difference = ReplayFile(path);
    std::string what = difference.ok() ? difference.value() : difference.error().message;
    ++(what.empty() ? passed : failed);
    if (!what.empty()) std::printf("%s: %s\n", path.c_str(), what.c_str());
  }
  std::printf("tally: %d passed, %d failed, 0 skipped\n", passed, failed);
  return failed > 0 ? 1 : 0;
}

void PrintCounts(const char* title, const std::map<std::string, int64_t>& counts) {
  std::vector<std::pair<int64_t, std::string>> sorted;
  for (const auto& [name, count] : counts) sorted.emplace_back(-count, name);
  std::sort(sorted.begin(), sorted.end());
  std::printf("%s\n", title);
  for (const auto& [count, name] : sorted)
    std::printf("  %8ld %s\n", static_cast<long>(-count), name.c_str());
}

void KeepFailures(const Options& options, const Tally& tally) {
  std::filesystem::create_directories(options.keep);
  for (const Failure& failure : tally.failures) {
    Result<std::string> path = KeepFailure(options, failure);
    if (path.ok()) {
      std::printf("  kept %s\n", path.value().c_str());
    } else {
      std::printf("  %s\n", path.error().message.c_str());
    }
  }
}

int Run(const Options& options) {
  std::vector<std::unique_ptr<Transformation>> transformations;
  for (const std::string& name : options.through)
    transformations.push_back(TransformationNamed(name));
  auto start = std::chrono::steady_clock::now();
  Tally tally = RunCampaign(options, transformations);
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (const Failure& failure : tally.failures)
    std::printf("seed %lu through %s: %s\n", static_cast<unsigned long>(failure.seed),
                failure.through.c_str(), failure.what.c_str());
  if (options.statistics) {
    PrintCounts("ops:", tally.ops);
    PrintCounts("rejected:", tally.rejections);
    for (const auto& transformation : transformations)
      if (std::string summary = transformation->Summary(); !summary.empty())
        std::printf("%s: %s\n", transformation->name().c_str(), summary.c_str());
  }
  if (!options.keep.empty()) KeepFailures(options, tally);
  std::printf(
      "%ld programs of %.1f instructions in %.1f s: %.0f a second\n",
      static_cast<long>(tally.programs),
      static_cast<double>(tally.instrs) / static_cast<double>(std::max<int64_t>(tally.programs, 1)),
      seconds, static_cast<double>(tally.programs) / std::max(seconds, 1e-9));
  std::printf(
      "%ld compared, %ld differ; of %ld no bits are promised, %ld the interpreter rejects\n",
      static_cast<long>(tally.held + tally.failed), static_cast<long>(tally.failed),
      static_cast<long>(tally.unpromised), static_cast<long>(tally.rejected));
  // Programs without promised values are not test cases: the line above reports the coverage.
  std::printf("tally: %ld passed, %ld failed, 0 skipped\n", static_cast<long>(tally.held),
              static_cast<long>(tally.failed));
  return tally.failed > 0 ? 1 : 0;
}

int Main(int argc, char** argv) {
  Result<Options> parsed = ParseOptions(argc, argv);
  if (!parsed.ok()) {
    std::fprintf(stderr, "error: %s\n", parsed.error().message.c_str());
    return 2;
  }
  const Options& options = parsed.value();
  if (options.help) {
    std::fputs(HelpText().c_str(), stdout);
  } else if (options.hash) {
    PrintHash(options);
  } else if (options.print) {
    PrintPrograms(options);
  } else if (!options.write.empty()) {
    Status written = WritePrograms(options);
    if (written.ok()) return 0;
    std::fprintf(stderr, "error: %s\n", written.error().message.c_str());
    return 1;
  } else {
    return options.files.empty() ? Run(options) : Replay(options);
  }
  return 0;
}

}  // namespace
}  // namespace tokamak::fuzz

int main(int argc, char** argv) {
  return tokamak::fuzz::Main(argc, argv);
}
