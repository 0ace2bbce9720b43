#pragma once

// One function and one file per command. What a command takes is a struct;
// cli.cc fills it from the command line. Each gives an exit code (ExitCode in
// support/error.h) and writes nothing but to its console and the files named.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "driver/compare_arrays.h"
#include "driver/compile_options.h"
#include "driver/executable.h"
#include "fusion/pins.h"

namespace tokamak {

// What decides which instructions are one kernel.
struct FusionWords {
  std::string mode = "search";          // none, rules, greedy, search
  std::string effort = "default";       // fast, default, max
  std::vector<std::string> lift, skip;  // of rules: rules and passes that are left out
  PinWords pins;
  std::string plan;  // a file that `explain --write-plan` wrote: its kernels, and no search
};

struct RunCommand {
  std::vector<std::string> files;
  bool batch = false;   // the files are lists of programs
  std::string backend;  // "": the best one built in
  std::string inputs, expect, outputs;
  int64_t repeat = 1;
  std::optional<uint64_t> seed;
  // No rewrite that changes a value (the interpreter has none), no host step in place of a kernel;
  // --expect judges by one run.
  bool strict = false;
  std::string precision = "default";  // of products that leave it to the compiler
  FusionWords fusion;
  int64_t spoil_kernel = -1;      // for tests: this kernel writes a wrong number
  bool oracle = false;            // reals stay double to the end
  bool flush_subnormals = false;  // as XLA CPU does
  Tolerance tolerance;
  bool json = false;
  bool spoil = false;    // change what every check expects (driver/spoil.h)
  bool hoist = false;    // constants of the entry become arguments: for tests
  bool explain = false;  // also what explain tells
};
int Run(const RunCommand& command, Console& console);
// The options of a compilation that the words ask for. TK6107.
Status SetFusion(CompileOptions& options, const FusionWords& words);

struct BenchCommand {
  std::string file, backend, effort = "default";
  std::vector<std::string> modes;  // empty: all
  double seconds = 2;
  int64_t rounds = 15;
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
  bool samples = false;  // for tests: the programs that the coverage is told from
  std::string tests;     // a folder whose programs say what is tested
};
int Ops(const OpsCommand& command, Console& console);

struct ReduceCommand {
  std::string file, output;
  std::string command;  // a shell command with {} for the file; it fails while the fault is there
  std::string fails_with;  // an exit code of `run`, or "mismatch"
  std::string inputs, expect;
  uint64_t seed = 1;
  int64_t seconds = 300;
  double timeout = 60;  // seconds of one attempt
};
int Reduce(const ReduceCommand& command, Console& console);

struct OptCommand {
  std::string file, output = "-";
  std::string target;              // host, h200; "": passes for targets do not run
  int64_t vector_bits = 0;         // of it; 0: its own
  std::string passes, stop_after;  // "": default, and those of the target
  std::vector<std::string> skip, dump_after;
  bool strict = false, fast_math = false;
  bool time_passes = false, verify_each = false, decisions = false, list = false, json = false;
  bool check_values = false, check_each = false;
  std::string fusion;             // "": no fusion; "rules": the paper's passes after the others
  std::vector<std::string> lift;  // rules of the paper's passes that are left out
  double seconds = 1;             // of one run of the program as it was, for --check-values
  std::string inputs;
  bool explain = false;  // also what explain tells
};
int Opt(const OptCommand& command, Console& console);

struct BisectCommand {
  std::string file, by = "values", inputs;
  std::string target, passes;  // as of opt
  std::vector<std::string> skip;
  bool strict = false, json = false;
  double seconds = 60;
};
int Bisect(const BisectCommand& command, Console& console);

struct KernelsCommand {
  std::string file, passes = "default";
  bool text = true, decisions = false, strict = false, unfused = false;
  int64_t vector_bits = 0;       // of the machine; 0: this one's
  int64_t memory_limit = 0;      // of temporary arrays, in bytes; 0: none
  std::string library = "auto";  // whether it has OpenBLAS: on, off; auto: as this one
  std::string target = "cpu";    // or cuda
  bool cuda = false;             // as CUDA C++
  FusionWords fusion;
  std::string packs;   // kernels that run as one launch: none, auto, all; "": by target
  bool hoist = false;  // constants of the entry become arguments: for tests
};
int Kernels(const KernelsCommand& command, Console& console);

struct ExplainCommand {
  FusionWords fusion;
  std::string target = "host";  // or h200
  bool as_given = false;        // FILE is what another compiler made of a program
  std::string file, packs;
  bool json = false, decisions = false, strict = false;
  bool rewrites = true;           // among decisions
  bool unfused = false;           // one kernel for each instruction
  bool compare = true;            // with that
  std::string write_plan;         // a file for the plan
  std::string kernel;             // print this one alone, as kernel form and as code
  bool lints = false;             // nothing but these: `tokamak lint`
  bool dot = false;               // for Graphviz
  std::vector<std::string> diff;  // two modes of fusion for FILE, or two programs
  bool measure = false;           // run each kernel, on drawn arguments
  double seconds = 0.03;          // for each
  std::string device;             // for tests: on which GPU; "": the machine's
};
int Explain(const ExplainCommand& command, Console& console);
// Its --as-given, and `explain RULE`, which gives nothing when FILE names no rule.
int ExplainGiven(const ExplainCommand& command, Console& console);
std::optional<int> ExplainRule(const ExplainCommand& command, Console& console);
// --explain_fusion_decisions of other commands: what explain reports, decisions among it, on
// standard error. Of a program that runs; of the programs of a file, which does not.
void ExplainBeside(const Executable& executable, Console& console);
int ExplainFileBeside(const std::string& file, const FusionWords& fusion, Console& console);

struct CalibrateCommand {
  std::string output;   // "": the cache folder
  std::string machine;  // a machine file to begin with
  std::string fit;      // kernels that were measured, as bench/model_error.py writes them
  bool quiet = false;
};
int Calibrate(const CalibrateCommand& command, Console& console);

// Parses the words of a command line (without the program's name) and runs
// the command. What escapes as an exception is caught: memory gives 4, all
// else 70.
int RunCommandLine(const std::vector<std::string>& words, Console& console);

}  // namespace tokamak
