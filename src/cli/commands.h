#pragma once

// One function and one file per command. The options of a command are a struct that cli.cc fills
// from the command line. Each command returns an exit code (ExitCode in support/error.h) and writes
// only to its console and to the files named.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "driver/compile/compile_options.h"
#include "driver/run/compare_arrays.h"
#include "driver/run/executable.h"
#include "fusion/constraints.h"

namespace tokamak {

// The fusion options of the command line, as text.
struct FusionWords {
  std::string mode = "search";          // none, rules, greedy, search
  std::string effort = "default";       // fast, default, max
  std::vector<std::string> lift, skip;  // rules mode: rules to disable, passes to skip
  ConstraintOptions constraints;
  std::vector<std::string> schedules;  // "cheapest", or KERNEL=SCHEDULE (fusion/schedule_choice.h)
  std::string plan;                // a file written by `explain --write-plan`; replaces the search
  std::vector<std::string> rules;  // files of rewrite rules
};

// Checks of the plan that a command shows.
struct PlanChecks {
  bool values = false;  // compare its results with the interpreter's, in the simulator
  bool cost = false;    // print its predicted cost, and that without fusion, on standard error
};

struct RunCommand {
  std::vector<std::string> files;
  bool batch = false;   // the files are lists of programs
  std::string backend;  // empty: the best one built in
  std::string inputs, expect, outputs;
  int64_t repeat = 1;
  std::optional<uint64_t> seed;
  // No rewrite that changes a value (the interpreter has none), no host step instead of a kernel;
  // --expect compares with one run only.
  bool strict = false;
  std::string precision = "default";  // of dots and convolutions without an explicit precision
  FusionWords fusion;
  int64_t corrupt_kernel = -1;    // for tests: this kernel writes one wrong value
  bool oracle = false;            // reals stay double to the end
  bool flush_subnormals = false;  // as XLA CPU does
  Tolerance tolerance;
  bool json = false;
  bool corrupt =
      false;           // change the expected value of every check (driver/testing/corrupt_values.h)
  bool hoist = false;  // for tests: constants of the entry become arguments
  bool explain = false;  // also print the compile report
};
int Run(const RunCommand& command, Console& console);
// Sets the compile options that the words name. Returns TK6107, or the error of a rule.
Status SetFusion(CompileOptions& options, const FusionWords& words);
// Adds the rules of files. Later errors of these rules are printed on standard error.
Status AddRules(CompileOptions& options, const std::vector<std::string>& files);

struct BenchCommand {
  std::string file, backend, effort = "default";
  std::vector<std::string> modes;  // empty: all
  double seconds = 2;
  int64_t repetitions = 15;
  uint64_t seed = 1;
  bool counters = false, json = false;
};
int Bench(const BenchCommand& command, Console& console);

struct CheckCommand {
  std::vector<std::string> files;
  bool json = false, hash = false, histogram = false, round_trip = false;
};
int Check(const CheckCommand& command, Console& console);

struct ConvertCommand {
  std::string file, to, output = "-";
};
int Convert(const ConvertCommand& command, Console& console);

struct OpsCommand {
  bool json = false, markdown = false;
  bool samples = false;  // for tests: the programs from which the coverage is derived
  std::string tests;     // a folder of programs; counts the tests of each op
};
int Ops(const OpsCommand& command, Console& console);

struct ReduceCommand {
  std::string file, output;
  std::string command;  // a shell command with {} for the file; it fails while the bug is present
  std::string fails_with;  // an exit code of `run`, or "mismatch"
  std::string inputs, expect;
  uint64_t seed = 1;
  int64_t seconds = 300;
  double timeout = 60;  // seconds per attempt
};
int Reduce(const ReduceCommand& command, Console& console);

struct OptCommand {
  std::string file, output = "-";
  std::string target;              // host, h200; empty: target passes do not run
  int64_t vector_bits = 0;         // overrides the target's vector width; 0: no override
  std::string passes, stop_after;  // empty: default, and those of the target
  std::vector<std::string> skip, dump_after;
  bool strict = false;
  bool time_passes = false, verify_each = false, decisions = false, list = false, json = false;
  bool check_values = false, check_each = false;
  std::string fusion;             // empty: no fusion; "rules": XLA's fusion passes after the others
  std::vector<std::string> lift;  // disabled rules of XLA's fusion passes
  std::vector<std::string> rules;  // files of rewrite rules
  double seconds = 1;              // --check-values: time limit of a run of the original program
  std::string inputs;
  bool explain = false;  // also print the compile report
};
int Opt(const OptCommand& command, Console& console);

struct BisectCommand {
  std::string file, by = "values", inputs;
  std::string target, passes;  // as for opt
  std::vector<std::string> skip;
  bool strict = false, json = false;
  double seconds = 60;
};
int Bisect(const BisectCommand& command, Console& console);

struct KernelsCommand {
  std::string file, passes = "default";
  bool text = true, decisions = false, strict = false, unfused = false;
  int64_t vector_bits = 0;       // overrides the machine's vector width; 0: no override
  int64_t memory_limit = 0;      // bytes of temporary arrays; 0: none
  std::string library = "auto";  // whether OpenBLAS is available: on, off; auto: as on this machine
  std::string target = "cpu";    // or cuda
  bool cuda = false;             // print CUDA C++
  FusionWords fusion;
  std::string horizontal;       // horizontal fusion: none, auto, all; empty: by target
  bool hoist = false;           // for tests: constants of the entry become arguments
  int64_t corrupt_kernel = -1;  // for tests: with --check-values, this kernel is wrong (CPU)
  PlanChecks checks;
};
int Kernels(const KernelsCommand& command, Console& console);

struct ExplainCommand {
  FusionWords fusion;
  std::string target = "host";  // or h200
  bool xla_dump = false;        // FILE is the output of another compiler (XLA)
  std::string file, horizontal;
  bool json = false, decisions = false, strict = false;
  bool rewrites = true;           // include them in the decisions
  bool unfused = false;           // one kernel per instruction
  bool compare = true;            // with the unfused program
  std::string write_plan;         // file to write the plan to
  std::string kernel;             // print only this kernel, as kernel IR and as code
  bool dot = false;               // for Graphviz
  std::string html;               // file to write the report to, as a page; empty: none
  bool code = true;               // the page has the generated code of kernels
  std::string trace;              // file to write the timeline to, for Perfetto; empty: none
  bool contractions = false;      // also the ways to compute each contraction
  std::vector<std::string> diff;  // two fusion modes for FILE, or two programs
  bool measure = false;           // run each kernel on random arguments
  double seconds = 0.03;          // time budget per kernel
  std::string device;             // for tests: the GPU to use; empty: the machine's
  PlanChecks checks;
};
int Explain(const ExplainCommand& command, Console& console);
// `explain --xla-dump`; `explain TK2304` and `explain RULE`, which return nullopt if FILE is not
// the name of an error or a rule.
int ExplainXlaDump(const ExplainCommand& command, Console& console);
std::optional<int> ExplainError(const ExplainCommand& command, Console& console);
std::optional<int> ExplainRule(const ExplainCommand& command, Console& console);
// --explain_fusion_decisions of other commands: prints the compile report with decisions on
// standard error; for a program that runs, or for the programs of a file without running them.
void ExplainBeside(const Executable& executable, Console& console);
int ExplainFileBeside(const std::string& file, const FusionWords& fusion, Console& console);

struct LintCommand {
  FusionWords fusion;
  std::string file, target = "host", device;  // as for explain
  bool json = false;
  bool sarif = false;  // one SARIF 2.1.0 log for all programs of the file
  std::vector<std::string> rules, ignore;
  std::string fail_on;  // "20us" or "10%" of a call; empty: none
  bool strict = false;  // any warning fails
  bool suppressions = true;
};
// Exit code 1 if warnings reach what --fail-on or --strict name.
int LintFile(const LintCommand& command, Console& console);

struct CalibrateCommand {
  std::string output;   // empty: the cache folder
  std::string machine;  // initial machine file
  std::string fit;      // measured kernels, as written by bench/model_error.py
  bool quiet = false;
};
int Calibrate(const CalibrateCommand& command, Console& console);

// Parses a command line (without the program's name) and runs the command. Exceptions are caught:
// std::bad_alloc returns 4, any other 70.
int RunCommandLine(const std::vector<std::string>& words, Console& console);

}  // namespace tokamak
