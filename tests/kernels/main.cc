// Runs text tests of kernels (docs/testing.md). kHelp lists the options.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "kernel/hash.h"
#include "kernel/parse.h"
#include "kernel/pressure.h"
#include "kernel/simulate.h"
#include "kernel/verify.h"
#include "kernels/arrays.h"
#include "kernels/formulas.h"
#include "kernels/ptx_errors.h"
#include "kernels/texts.h"
#include "runner/test_file.h"
#if TOK_HAVE_CUDA
#include "backend/cuda/cuda_text.h"
#include "backend/cuda/nvrtc.h"
#endif

namespace tokamak {
namespace {

constexpr uint64_t kSeeds = 6;  // random execution orders per kernel (chosen)

std::string NonBlank(const std::string& text) {
  std::string out, line;
  std::istringstream in(text);
  while (std::getline(in, line)) {
    if (line.find_first_not_of(' ') == std::string::npos) continue;
    out += line.substr(0, line.find_last_not_of(" \r") + 1) + "\n";
  }
  return out;
}

// One RUN line.
class KernelRun {
 public:
  KernelRun(const TestFile& file, const TestRun& run) : file_(file), run_(run) {}

  // Runs it and keeps the output and the errors.
  void Run() {
    Result<ParsedKernel> parsed = ParseKernel(file_.text, file_.path);
    if (!parsed.ok()) return Note(parsed.error());
    parsed_ = std::move(parsed).value();
    if (Status status = VerifyKernel(parsed_.kernel, &parsed_.locations); !status.ok())
      return Note(status.error());
    CheckRoundTrip();
    const std::string& command = run_.words[0];
    if (command == "print") {
      output = WriteKernel(parsed_.kernel);
    } else if (command == "hash") {
      output = fmt::format("{:016x}\n", HashOf(parsed_.kernel));
    } else if (command == "pressure") {
      Pressure pressure = PressureOf(parsed_.kernel);
      output = fmt::format("scalars {} vectors {} registers {}\n", pressure.scalars,
                           pressure.vectors, pressure.thread_registers);
    } else if (command == "simulate") {
      Simulate();
    } else if (command == "cuda") {
      Cuda();
    } else if (command != "verify") {
      failures.push_back("there is no command " + command);
    }
  }

  std::string output;
  std::vector<ExpectedError> errors;
  std::vector<std::string> failures;
  std::vector<std::string> rendered;

 private:
  void Note(const Error& error) {
    ExpectedError found{CodeText(error.code), ""};
    if (error.where.line > 0)
      found.location = fmt::format("{}:{}", error.where.line, error.where.column);
    errors.push_back(std::move(found));
    rendered.push_back(Render(error, file_.text));
  }

  // The printed kernel parses back to an equal kernel that prints the same.
  void CheckRoundTrip() {
    std::string text = WriteKernel(parsed_.kernel);
    Result<ParsedKernel> again = ParseKernel(text, "printed");
    if (!again.ok()) {
      failures.push_back("its print does not parse: " + Render(again.error(), text));
      return;
    }
    if (WriteKernel(again.value().kernel) != text) failures.push_back("its print prints otherwise");
    if (HashOf(again.value().kernel) != HashOf(parsed_.kernel))
      failures.push_back("its print has another hash");
  }

  bool Split(std::map<std::string, std::string>& given, std::vector<int64_t>& extents) {
    for (size_t i = 1; i < run_.words.size(); ++i) {
      size_t equals = run_.words[i].find('=');
      if (equals == std::string::npos) {
        failures.push_back("no name=values: " + run_.words[i]);
        return false;
      }
      given[run_.words[i].substr(0, equals)] = run_.words[i].substr(equals + 1);
    }
    for (const LaunchExtent& extent : parsed_.kernel.extents)
      extents.push_back(std::atoll(given[extent.name].c_str()));
    return true;
  }

  // Runs in order, then in random orders: the results must agree, or report a fault (a race may
  // show as another fault).
  void Simulate() {
    std::map<std::string, std::string> given;
    std::vector<int64_t> extents;
    if (!Split(given, extents)) return;
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      TestArrays arrays;
      if (Status status = arrays.Fill(parsed_.kernel, given); !status.ok())
        return Note(status.error());
      SimOptions options;
      options.locations = &parsed_.locations;
      options.max_steps = 1 << 24;
      if (seed > 0) options.seed = seed;
      std::vector<SimArgument> arguments = arrays.Arguments();
      Result<SimReport> report = SimulateKernel(parsed_.kernel, arguments, extents, options);
      if (seed == 0) {
        if (!report.ok()) Note(report.error());
        if (report.ok()) output = Outcome(arrays, report.value());
      } else if (report.ok() != errors.empty()) {
        failures.push_back(
            fmt::format("seed {}: {}", seed,
                        report.ok() ? Outcome(arrays, report.value()) : Render(report.error())));
      }
    }
  }

  std::string Outcome(const TestArrays& arrays, const SimReport& report) const {
    std::string text;
    const Kernel& kernel = parsed_.kernel;
    for (size_t i = 0; i < kernel.ArgumentCount(); ++i) {
      if (kernel.arrays[i].access != Access::kRead) text += arrays.Text(kernel, i) + "\n";
      if (report.unwritten[i] > 0)
        text += fmt::format("unwritten {}: {}\n", kernel.arrays[i].name, report.unwritten[i]);
    }
    return text;
  }

  void Cuda() {
#if TOK_HAVE_CUDA
    Result<cuda::CudaSource> text = cuda::CudaText(parsed_.kernel);
    if (!text.ok()) return Note(text.error());
    output = text.value().text;
#endif
  }

  const TestFile& file_;
  const TestRun& run_;
  ParsedKernel parsed_;
};

bool Holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// "y: 1 2 ..." matches any line with that prefix.
bool HoldsValues(const std::string& output, const std::string& expected) {
  if (expected.ends_with(" ..."))
    return Holds("\n" + output, "\n" + expected.substr(0, expected.size() - 3));
  return Holds("\n" + output, "\n" + expected + "\n");
}

std::vector<std::string> RunFile(const std::string& path, bool update) {
  std::vector<std::string> failures;
  Result<TestFile> file = ParseTestFile(path, FileText(path));
  if (!file.ok()) return {Render(file.error())};
  for (size_t i = 0; i < file.value().runs.size(); ++i) {
    const TestRun& run = file.value().runs[i];
#if !TOK_HAVE_CUDA
    if (run.words[0] == "cuda") continue;
#endif
    KernelRun ran(file.value(), run);
    ran.Run();
    std::vector<std::string> wrong = ran.failures;
    std::string after;
    if (run.after)
      for (const std::string& line : *run.after) after += line + "\n";
    if (update &&
        (ran.errors != run.errors || (run.after && NonBlank(after) != NonBlank(ran.output)))) {
      std::string text = ran.errors != run.errors && !run.errors.empty()
                             ? WithErrors(file.value(), run, ran.errors)
                             : WithAfter(file.value(), run, ran.output);
      std::ofstream(path, std::ios::binary) << text;
      return RunFile(path, false);
    }
    if (ran.errors != run.errors) {
      wrong.push_back("other errors than expected:");
      for (const std::string& text : ran.rendered) wrong.push_back(text);
    }
    if (run.after && NonBlank(after) != NonBlank(ran.output))
      wrong.push_back("AFTER is otherwise:\n" + ran.output);
    if (const std::string* text = FirstMissing(ran.output, run.out))
      wrong.push_back("no '" + *text + "', in order, in:\n" + ran.output);
    if (const std::string* text =
            FirstMissing(ran.rendered.empty() ? "" : ran.rendered[0], run.err))
      wrong.push_back("no '" + *text + "', in order, in the error");
    for (const std::string& text : run.values)
      if (!HoldsValues(ran.output, text)) wrong.push_back("no '" + text + "' in:\n" + ran.output);
    if (Holds(ran.output, "unwritten") && run.words[0] == "simulate" &&
        std::ranges::none_of(run.out, [](const std::string& t) { return Holds(t, "unwritten"); }))
      wrong.push_back("elements are left unwritten:\n" + ran.output);
    if (run.same_as) {
      std::string other = std::filesystem::path(path).parent_path() / *run.same_as;
      Result<ParsedKernel> parsed = ParseKernel(FileText(other), other);
      if (!parsed.ok() || fmt::format("{:016x}\n", HashOf(parsed.value().kernel)) != ran.output)
        wrong.push_back("another hash than " + *run.same_as);
    }
    for (const std::string& text : wrong)
      failures.push_back(fmt::format("RUN {}: {}", fmt::join(run.words, " "), text));
  }
  return failures;
}

#if TOK_HAVE_CUDA
struct Compiled {
  int kernels = 0, rejected = 0, same = 0, without = 0, spilling = 0, most_registers = 0;
  std::set<uint64_t> hashes;
  std::vector<std::string> failures;
};

void CompileSource(const cuda::Nvrtc& nvrtc, const cuda::CudaSource& source, Compiled& all) {
  ++all.kernels;
  std::string ptx;
  Result<cuda::CudaCode> code = nvrtc.Compile(source, cuda::kHopper, &ptx);
  if (!code.ok()) {
    all.failures.push_back(Render(code.error()) + source.text);
    return;
  }
  if (std::vector<std::string> ptx_errors = PtxErrors(ptx); !ptx_errors.empty())
    all.failures.push_back(
        fmt::format("{}: {}\n{}", source.name, fmt::join(ptx_errors, "\n"), source.text));
  all.most_registers = std::max(all.most_registers, code.value().registers);
  if (code.value().spilled_bytes > 0) {
    ++all.spilling;
    fmt::print("{}: {} registers, {} bytes spilled\n", source.name, code.value().registers,
               code.value().spilled_bytes);
  }
}

void CompileKernel(const cuda::Nvrtc& nvrtc, const std::string& text, Compiled& all) {
  Result<ParsedKernel> parsed = ParseKernel(text, "kernel");
  if (!parsed.ok() || !VerifyKernel(parsed.value().kernel).ok()) {
    ++all.rejected;  // tests of the reader and the verifier
    return;
  }
  if (!all.hashes.insert(HashOf(parsed.value().kernel)).second) {
    ++all.same;
    return;
  }
  Result<cuda::CudaSource> source = cuda::CudaText(parsed.value().kernel);
  if (!source.ok()) {
    ++all.without;
    return;
  }
  CompileSource(nvrtc, source.value(), all);
}

// The horizontally fused launches of a text: the launches below a line `horizontal of 2`, each
// `launch NAME of BLOCKS: ...`. If kernels share a name, launches refer to them in order.
void CompileHorizontal(const cuda::Nvrtc& nvrtc, const std::string& text, Compiled& all) {
  std::map<std::string, std::vector<Kernel>> kernels;
  for (const std::string& kernel : KernelsOf(text))
    if (Result<ParsedKernel> parsed = ParseKernel(kernel, "kernel"); parsed.ok())
      kernels[parsed.value().kernel.name].push_back(std::move(parsed.value().kernel));
  std::map<std::string, size_t> launched;
  std::vector<cuda::HorizontalKernel> parts;
  size_t left = 0;
  std::istringstream in(text);
  for (std::string line, word, name, of; std::getline(in, line);) {
    std::istringstream words(line);
    size_t count = 0;
    if (!(words >> word)) continue;
    if (word == "horizontal" && words >> of >> count) left = count;
    if (word != "launch" || !(words >> name >> of >> count)) continue;
    const std::vector<Kernel>& own = kernels[name];
    size_t number = launched[name]++;
    if (left == 0 || number >= own.size()) continue;
    parts.push_back({&own[number], static_cast<int64_t>(count)});
    if (--left > 0) continue;
    Result<cuda::HorizontalSource> source = cuda::HorizontalText("horizontal_" + name, parts);
    if (source.ok()) {
      CompileSource(nvrtc, source.value().source, all);
    } else {
      all.failures.push_back(Render(source.error()));
    }
    parts.clear();
  }
}

int CompileAll(const std::vector<std::string>& files) {
  Result<const cuda::Nvrtc*> nvrtc = cuda::Nvrtc::Open();
  if (!nvrtc.ok()) {
    fmt::print("skipped: {}\n", nvrtc.error().message);
    return 77;
  }
  Compiled all;
  for (const std::string& file : files) {
    std::string text = FileText(file);
    for (const std::string& kernel : KernelsOf(text)) CompileKernel(*nvrtc.value(), kernel, all);
    CompileHorizontal(*nvrtc.value(), text, all);
  }
  if (files.empty())
    for (const Kernel& kernel : FormulaKernels())
      CompileKernel(*nvrtc.value(), WriteKernel(kernel), all);
  for (const std::string& text : all.failures) fmt::print("FAILED {}\n", text);
  fmt::print(
      "{} kernels, {} rejected, {} equal to others, {} without CUDA C++, {} spill, {} registers at "
      "most\n",
      all.kernels, all.rejected, all.same, all.without, all.spilling, all.most_registers);
  fmt::print("tally: {} passed, {} failed, 0 skipped\n",
             all.kernels - static_cast<int>(all.failures.size()), all.failures.size());
  return all.failures.empty() && all.kernels > 0 ? 0 : 1;
}
#else
int CompileAll(const std::vector<std::string>&) {
  fmt::print("skipped: the CUDA backend is not built\n");
  return 77;
}
#endif

constexpr char kHelp[] = R"(usage: tok_kernel_tests [--update | --nvrtc] FOLDER|FILE...

Runs every text test of kernels below the given folders. The last line is a tally.

  --update            rewrite AFTER and ERROR where they differ
  --nvrtc             only compile every kernel of the files for sm_90; without files, the formulas
)";

int Main(int argc, char** argv) {
  bool update = false, nvrtc = false;
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--help") {
      fmt::print("{}", kHelp);
      return 0;
    } else if (std::string(argv[i]) == "--update") {
      update = true;
    } else if (std::string(argv[i]) == "--nvrtc") {
      nvrtc = true;
    } else if (std::filesystem::is_directory(argv[i])) {
      for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i]))
        if (entry.path().extension() == ".kernel") files.push_back(entry.path());
    } else {
      files.push_back(argv[i]);
    }
  }
  std::ranges::sort(files);
  if (nvrtc) return CompileAll(files);
  int failed = 0;
  for (const std::string& file : files) {
    std::vector<std::string> failures = RunFile(file, update);
    if (!failures.empty()) ++failed;
    for (const std::string& text : failures) fmt::print("FAILED {}\n  {}\n", file, text);
  }
  fmt::print("tally: {} passed, {} failed, 0 skipped\n", static_cast<int>(files.size()) - failed,
             failed);
  return failed > 0 || files.empty() ? 1 : 0;
}

}  // namespace
}  // namespace tokamak

int main(int argc, char** argv) {
  return tokamak::Main(argc, argv);
}
