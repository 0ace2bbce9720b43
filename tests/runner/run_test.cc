#include "runner/run_test.h"

#include <algorithm>
#include <sstream>
#include <time.h>

#include "cli/commands.h"
#include "cli/console.h"
#include "ir/compare.h"
#include "text/load.h"

namespace tokamak {
namespace {

double ThreadSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::string FolderOf(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

// The lines without trailing blanks; blank lines are dropped.
std::vector<std::string> SolidLines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    size_t end = text.find('\n');
    std::string line(text.substr(0, end));
    line.resize(line.find_last_not_of(" \t\r") + 1);
    if (!line.empty()) lines.push_back(std::move(line));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

// The printed errors of a command, in the notation of a test.
std::vector<ExpectedError> ErrorsIn(std::string_view printed) {
  std::vector<ExpectedError> errors;
  for (const std::string& line : SolidLines(printed)) {
    if (line.starts_with("error[")) {
      errors.push_back({line.substr(6, line.find(']') - 6), ""});
    } else if (line.starts_with("error: ")) {
      errors.push_back({line, ""});
    } else if (line.starts_with("  --> ") && !errors.empty() && errors.back().location.empty()) {
      size_t byte = line.rfind(": byte ");
      size_t column = line.rfind(':');
      size_t row = column == std::string::npos ? column : line.rfind(':', column - 1);
      if (byte != std::string::npos) {
        errors.back().location = line.substr(byte + 2);
      } else if (row != std::string::npos) {
        errors.back().location = line.substr(row + 1);
      }
    }
  }
  return errors;
}

int ExitFor(const std::vector<ExpectedError>& errors) {
  int exit = 0;
  for (const ExpectedError& error : errors)
    for (const ErrorInfo& row : AllErrors())
      if (CodeText(row.code) == error.code) exit = std::max(exit, Code(row.exit));
  return exit;
}

std::string Join(const std::vector<ExpectedError>& errors) {
  std::string text;
  for (const ExpectedError& error : errors) text += (text.empty() ? "" : ", ") + ToString(error);
  return text.empty() ? "none" : text;
}

// The number of kernels in the summary line of `kernels` and `explain`: "2 launches, 1 library
// calls, 0 host steps, 0 copies, ...". -1 if there is no such line.
int64_t KernelsIn(const std::string& output) {
  int64_t sum = -1;
  for (const std::string& line : SolidLines(output)) {
    if (line.find(" host steps, ") == std::string::npos) continue;
    std::istringstream words(line);
    int64_t number = 0;
    std::string what;
    sum = 0;
    while (words >> number >> what) {
      if (what == "bytes") break;
      sum += number;
      bool ended = what.ends_with(',') || what.ends_with(';');
      while (!ended && words >> what) ended = what.ends_with(',') || what.ends_with(';');
    }
  }
  return sum;
}

// Prints the plan where errors are printed.
constexpr std::string_view kPlanOption = "--explain-fusion-decisions";

class Tester {
 public:
  Tester(const TestFile& file, std::string input, const RunnerOptions& options, TestResult& result)
      : file_(file), input_(std::move(input)), options_(options), result_(result) {}

  void Test(const TestRun& stated) {
    if (!options_.backend.empty() && !IsForAnyBackend(stated)) return;
    TestRun run = stated;
    // A plan is that of one machine.
    if (!options_.backend.empty() && std::erase(run.words, kPlanOption) > 0) run.err.clear();
    StringConsole console;
    int exit = Execute(run, input_, console);
    CheckErrors(run, exit, console);
    CheckOutput(run, console);
    CheckDecisions("accepted", run.accepted, console.err);
    CheckDecisions("rejected", run.rejected, console.err);
    if (run.same_as) CheckSame(run, console.out);
    if (!ChecksPlan(run)) return;
    CheckCost(run, console.err);
    if (!run.smaller.empty()) CheckSmaller(run);
  }

 private:
  void Fail(const std::string& what) { result_.failures.push_back(what); }

  // Runs that compare values: those for any backend, and those of the interpreter, which the
  // backends are compared with.
  static bool IsForAnyBackend(const TestRun& run) {
    if (run.words[0] != "run") return false;
    bool shows_plan = std::ranges::count(run.words, kPlanOption) > 0;
    if (shows_plan && std::ranges::count(run.words, "--expect") == 0) return false;
    return std::none_of(run.words.begin(), run.words.end(), [](const std::string& word) {
      return word == "--oracle" || word == "--explain" || word == "--json";
    });
  }

  void SetBackend(std::vector<std::string>& words) const {
    auto named = std::find(words.begin(), words.end(), "--backend");
    if (named != words.end() && named + 1 != words.end()) {
      if (named[1] == "interp") return;
      words.erase(named, named + 2);
    }
    std::erase(words, "--strict");  // ops without a kernel there run on the host
    std::erase(words, "--hoist");
    // A schedule fits one kind of machine.
    std::erase_if(words, [](const std::string& word) { return word.starts_with("--schedule="); });
    // Constants become arguments, so that there is something to run.
    words.insert(words.end(), {"--hoist", "--backend", options_.backend});
  }

  // Whether the run shows the plan of one program for one target, and expects no error.
  static bool ChecksPlan(const TestRun& run) {
    if (run.words[0] != "kernels" && run.words[0] != "explain") return false;
    if (!run.errors.empty() || run.exit.value_or(0) != 0) return false;
    return std::ranges::none_of(run.words, [](const std::string& word) {
      return word == "--diff" || word == "--xla-dump" || word == "host,h200";
    });
  }

  int Execute(const TestRun& run, const std::string& input, Console& console) {
    std::vector<std::string> words;
    bool named = false;
    for (std::string word : run.words) {
      for (auto [key, value] : {std::pair{"%s", input}, std::pair{"%d", FolderOf(file_.path)},
                                std::pair{"%t", options_.temporary}}) {
        for (size_t at = word.find(key); at != std::string::npos;
             at = word.find(key, at + value.size())) {
          named = named || key == std::string_view("%s");
          word.replace(at, 2, value);
        }
      }
      words.push_back(std::move(word));
    }
    if (words[0] == "read") return Read(console);
    if (!options_.backend.empty()) SetBackend(words);
    if (!named && words[0] != "ops" && words[0] != "tokamak") words.push_back(input);
    // Whatever passes a test runs, the program must verify and give the same bits afterwards.
    if (words[0] == "opt")
      words.insert(words.end(), {"--decisions", "--verify-each", "--check-values"});
    if (ChecksPlan(run)) {
      words.push_back("--cost");
      if (!run.unchecked_values && run.smaller.empty()) words.push_back("--check-values");
    }
    if (words[0] == "tokamak") words.erase(words.begin());
    return RunCommandLine(words, console);
  }

  // `RUN: read`: only parses.
  int Read(Console& console) const {
    Result<LoadedFile> file = LoadFile(input_, Verification::kNo);
    if (!file.ok()) return console.Report(file.error());
    int exit = 0;
    for (const auto& program : file.value().programs)
      if (!program.ok())
        exit = std::max(exit, console.Report(program.error(), file.value().source()));
    return exit;
  }

  void CheckErrors(const TestRun& run, int exit, const StringConsole& console) {
    std::vector<ExpectedError> got = ErrorsIn(console.err);
    if (got != run.errors && options_.update && !run.errors.empty() && !got.empty()) {
      Rewrite(WithErrors(file_, run, got));
      return;
    }
    if (got != run.errors)
      Fail("expected errors " + Join(run.errors) + "; got " + Join(got) + ":\n" + console.err);
    int expected = run.exit.value_or(ExitFor(run.errors));
    if (exit != expected)
      Fail("expected exit code " + std::to_string(expected) + ", got " + std::to_string(exit) +
           "\n" + console.err);
    CheckTexts("errors", run.err, console.err);
  }

  void CheckTexts(const std::string& what, const std::vector<std::string>& expected,
                  const std::string& printed) {
    const std::string* missing = FirstMissing(printed, expected);
    if (missing == nullptr) return;
    bool misplaced = printed.find(*missing) != std::string::npos;
    Fail(what + " lack" + (what.ends_with('s') ? " '" : "s '") + *missing + "'" +
         (misplaced ? " behind the text of the line before" : "") + ":\n" + printed);
  }

  // The costs that `--cost` printed, summed over the programs of a file; none if a program is
  // interpreted as a whole.
  struct PrintedCost {
    double us = 0;
    std::optional<double> unfused_us;
  };
  static std::optional<PrintedCost> CostIn(const std::string& printed) {
    constexpr std::string_view kStart = "predicted: ";
    std::optional<PrintedCost> sum;
    for (const std::string& line : SolidLines(printed)) {
      if (!line.starts_with(kStart)) continue;
      if (!sum) sum = PrintedCost{0, 0};
      sum->us += std::stod(line.substr(kStart.size()));
      size_t unfused = line.find("; ");
      if (unfused == std::string::npos) sum->unfused_us.reset();
      if (sum->unfused_us) *sum->unfused_us += std::stod(line.substr(unfused + 2));
    }
    return sum;
  }

  void CheckCost(const TestRun& run, const std::string& printed) {
    std::optional<PrintedCost> cost = CostIn(printed);
    if (!cost) {
      if (run.cost_limit_us || !run.cheaper_than.empty()) Fail("no cost is predicted:\n" + printed);
      return;
    }
    constexpr double kRounding = 1e-6;  // relative: sums of the same costs in another order
    std::string text = "the plan's predicted cost is " + std::to_string(cost->us) + " us";
    bool is_costlier = cost->unfused_us && cost->us > *cost->unfused_us * (1 + kRounding);
    if (is_costlier && !run.unchecked_cost)
      Fail(text + ", that of the unfused program " + std::to_string(*cost->unfused_us));
    if (!is_costlier && run.unchecked_cost)
      Fail(text + ", not above that of the unfused program: UNCHECKED: cost is not needed");
    // The rates of a CPU are those of the machine that runs the test.
    bool has_machine_file = std::ranges::any_of(
        run.words, [](const std::string& word) { return word == "cuda" || word == "h200"; });
    if (run.cost_limit_us && !has_machine_file) Fail("COST needs --target cuda or h200");
    if (run.cost_limit_us && cost->us > *run.cost_limit_us)
      Fail(text + ", the limit " + std::to_string(*run.cost_limit_us));
    for (const std::vector<std::string>& options : run.cheaper_than) {
      std::string shown;
      for (const std::string& word : options) shown += (shown.empty() ? "" : " ") + word;
      TestRun other;
      other.words = run.words;
      other.words.insert(other.words.end(), options.begin(), options.end());
      other.unchecked_values = "compared by cost";
      StringConsole console;
      int exit = Execute(other, input_, console);
      std::optional<PrintedCost> others = CostIn(console.err);
      if (exit != 0 || !others)
        Fail("no cost is predicted with " + shown + ":\n" + console.err);
      else if (cost->us >= others->us * (1 - kRounding))
        Fail(text + ", not below that with " + shown + ": " + std::to_string(others->us));
    }
  }

  // Checks the values of the plan of a smaller program.
  void CheckSmaller(const TestRun& run) {
    std::string name = file_.path;
    std::replace(name.begin(), name.end(), '/', '_');
    std::string path = options_.temporary + "/smaller_" + name;
    std::string text = WithNumbers(file_.text, run.smaller);
    Status written = text == file_.text ? MakeError(ErrorCode::kUsage, "SMALLER changes nothing")
                                        : WriteFileBytes(path, text);
    if (!written.ok()) return Fail(written.error().message);
    TestRun smaller;
    smaller.words = run.words;
    StringConsole console;
    if (Execute(smaller, path, console) != 0) Fail("the smaller program:\n" + console.err);
  }

  void CheckOutput(const TestRun& run, const StringConsole& console) {
    CheckTexts("output", run.out, console.out);
    if (!run.values.empty()) {
      std::vector<std::string> got;
      for (const std::string& line : SolidLines(console.out))
        if (line.starts_with("out_")) got.push_back(line);
      if (got != run.values) Fail("expected other VALUES; got:\n" + console.out);
    }
    if (run.checks) {
      std::string line = "checks: " + std::to_string(*run.checks) + " passed";
      if (console.out.find(line) == std::string::npos)
        Fail("expected '" + line + "'; got:\n" + console.out);
    }
    if (run.kernels && KernelsIn(console.out) != *run.kernels)
      Fail("expected " + std::to_string(*run.kernels) + " kernels; got " +
           std::to_string(KernelsIn(console.out)) + ":\n" + console.out);
    if (run.after) CheckAfter(run, console.out);
  }

  void CheckAfter(const TestRun& run, const std::string& output) {
    std::string expected;
    for (const std::string& line : *run.after) expected += line + "\n";
    if (SolidLines(expected) == SolidLines(output)) return;
    if (!options_.update) {
      Fail("expected AFTER\n" + expected + "got\n" + output +
           "(tools/update_tests.py writes what is there now)");
      return;
    }
    Rewrite(WithAfter(file_, run, output));
  }

  void Rewrite(const std::string& text) {
    Status written = WriteFileBytes(file_.path, text);
    if (!written.ok()) Fail(written.error().message);
    result_.updated = true;
  }

  // "accepted  a -> b by rule  (because)" as a test writes it: "a -> b by rule".
  void CheckDecisions(std::string_view verdict, const std::vector<std::string>& expected,
                      std::string_view printed) {
    if (expected.empty()) return;
    std::vector<std::string> got;
    for (const std::string& line : SolidLines(printed)) {
      if (!line.starts_with(verdict) || line.size() < 10 || line[verdict.size()] != ' ') continue;
      got.push_back(line.substr(10, line.find("  ", 10) - 10));
    }
    std::string all;
    for (const std::string& line : got) all += "  " + line + "\n";
    bool none = expected.size() == 1 && expected[0] == "none";
    if (none && !got.empty()) Fail("nothing was to be " + std::string(verdict) + "; got\n" + all);
    if (none) return;
    for (const std::string& line : expected)
      if (std::find(got.begin(), got.end(), line) == got.end())
        Fail("not " + std::string(verdict) + ": " + line + "; got\n" + all);
  }

  // For opt, compares its results for both programs; otherwise the programs themselves.
  void CheckSame(const TestRun& run, const std::string& output) {
    const std::string other = FolderOf(file_.path) + "/" + *run.same_as;
    if (run.words[0] != "opt") {
      Result<LoadedFile> a = LoadFile(input_, Verification::kNo);
      Result<LoadedFile> b = LoadFile(other, Verification::kNo);
      if (!a.ok() || !b.ok()) return Fail("SAME-AS: a file is not there");
      return ComparePrograms(a.value(), b.value(), other);
    }
    StringConsole console;
    Execute(run, other, console);
    LoadedFile a = LoadBytes(Bytes::FromString(output), input_, Verification::kNo);
    LoadedFile b = LoadBytes(Bytes::FromString(console.out), other, Verification::kNo);
    ComparePrograms(a, b, other);
  }

  void ComparePrograms(const LoadedFile& a, const LoadedFile& b, const std::string& other) {
    const auto &left = a.programs, &right = b.programs;
    if (left.size() != right.size()) return Fail("SAME-AS: another number of programs");
    for (size_t i = 0; i < left.size(); ++i) {
      if (!left[i].ok() || !right[i].ok()) return Fail("SAME-AS: a program does not read");
      std::string difference = FirstDifference(*left[i].value(), *right[i].value());
      if (!difference.empty()) return Fail("SAME-AS " + other + ": " + difference);
    }
  }

  const TestFile& file_;
  std::string input_;
  const RunnerOptions& options_;
  TestResult& result_;
};

// The file that the commands see: for a .bytes file, the decoded bytes.
Result<std::string> InputFor(const TestFile& file, const RunnerOptions& options) {
  if (!file.path.ends_with(".bytes")) return file.path;
  TOK_TRY(std::string bytes, DecodeBytesFile(file.text, file.path));
  std::string name = file.path;
  std::replace(name.begin(), name.end(), '/', '_');
  std::string input = options.temporary + "/" + name + ".decoded";
  TOK_RETURN_IF_ERROR(WriteFileBytes(input, bytes));
  return input;
}

Status RunAll(const std::string& path, const RunnerOptions& options, TestResult& result) {
  TOK_TRY(Bytes bytes, ReadFileBytes(path));
  TOK_TRY(TestFile file, ParseTestFile(path, std::string(bytes.text())));
  TOK_TRY(std::string input, InputFor(file, options));
  Tester tester(file, std::move(input), options, result);
  for (const TestRun& run : file.runs) {
    tester.Test(run);
    if (result.updated) break;  // positions of later AFTERs have moved; the next run updates those
  }
  return Ok();
}

}  // namespace

TestResult RunTestFile(const std::string& path, const RunnerOptions& options) {
  TestResult result;
  double begin = ThreadSeconds();
  Status status = RunAll(path, options, result);
  if (!status.ok()) result.failures.push_back(Render(status.error()));
  result.cpu_seconds = ThreadSeconds() - begin;
  if (result.cpu_seconds > options.cpu_limit_seconds)
    result.failures.push_back("took " + std::to_string(result.cpu_seconds) + " s of CPU, over " +
                              std::to_string(options.cpu_limit_seconds));
  return result;
}

}  // namespace tokamak
