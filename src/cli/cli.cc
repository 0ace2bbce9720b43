#include <algorithm>
#include <new>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/help.h"
#include "cli/lint_script.h"
#include "cli/usage.h"
#include "driver/plugins/registry.h"
#include "driver/rules/plugin_rewrites.h"
#include "support/near_names.h"
#include "support/version.h"

// The only file that defines the command-line syntax (and includes CLI11, which takes seconds to
// compile). The texts around the options are in help.cc.

namespace tokamak {
namespace {

// Checks a word against a list of names, and of others that the message does not list. The
// option's help already lists them, so the validator adds no description.
CLI::Validator OneOf(std::vector<std::string_view> names,
                     std::vector<std::string_view> unlisted = {}) {
  auto parser_message = [names = std::move(names),
                         unlisted = std::move(unlisted)](const std::string& word) {
    bool known = std::find(names.begin(), names.end(), word) != names.end() ||
                 std::find(unlisted.begin(), unlisted.end(), word) != unlisted.end();
    return known ? std::string() : NoneOf(word, names);
  };
  return CLI::Validator(parser_message, "");
}

// Names the values of options in the help, and wraps long lines.
void FormatHelp(CLI::App& app) {
  app.get_formatter()->label("SUBCOMMAND", "COMMAND");
  app.get_formatter()->label("Subcommands", "Commands");
  app.get_formatter()->label("Positionals", "Arguments");
  app.get_formatter()->label("REQUIRED", "");
  for (CLI::App* command : app.get_subcommands({})) {
    for (CLI::Option* option : command->get_options()) {
      option->description(Wrapped(option->get_description()));
      if (option->get_type_name() == "TEXT")
        option->type_name(std::string(ValueName(option->get_single_name())));
    }
  }
}

template <typename T>
CLI::Validator InRange(T low, T high) {
  return CLI::Range(low, high).description("");
}

void AddRulesOption(CLI::App& command, std::vector<std::string>& rules) {
  command
      .add_option("--user-rules", rules,
                  "A file of rewrite rules to apply: functions @pattern and @replacement "
                  "(docs/extending.md)")
      ->allow_extra_args(false);
}

void AddFusion(CLI::App& command, FusionWords& fusion) {
  command.add_option("--fusion", fusion.mode,
                     "Fusion planner: none, rules (XLA's, 2023), greedy or search (the default)");
  command.add_option("--effort", fusion.effort,
                     "Planning effort: fast (the greedy plan), default (about a second for a "
                     "large program) or max");
  command
      .add_option("--lift", fusion.lift,
                  "Rules of --fusion=rules to disable, such as concat-multi-user")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--skip", fusion.skip, "Passes to skip (`tokamak opt --list` shows all)")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      .add_option("--never-fuse", fusion.constraints.never_fuse,
                  "Instructions (names, or train.py:12) to keep in separate kernels")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      .add_option("--fuse", fusion.constraints.fuse,
                  "Instructions to fuse into one kernel if possible: --fuse=a,b")
      ->allow_extra_args(false);
  command
      .add_option("--require-fused", fusion.constraints.require_fused,
                  "As --fuse, but an error with the reason if impossible")
      ->allow_extra_args(false);
  command
      .add_option("--schedule", fusion.schedules,
                  "For developers: the schedule of a kernel, --schedule='y=contract tile=...', or "
                  "cheapest (by modeled cost), or preferred (by the generators)")
      ->allow_extra_args(false);
  command.add_option("--plan", fusion.plan,
                     "Build the kernels of this plan (`explain --write-plan`) without a search");
  AddRulesOption(command, fusion.rules);
}

// Plugins of the command that runs; the policies in them concern every compilation of the process.
struct PluginWords {
  std::vector<std::string> files;
  PluginMode mode;
};

void AddPlugins(CLI::App& command, PluginWords& plugins) {
  command
      .add_option("--plugin", plugins.files,
                  "Compiler plugins to load: shared libraries (docs/plugins.md)")
      ->allow_extra_args(false);
  command.add_flag("--strict-plugins", plugins.mode.strict,
                   "A plugin that fails is an error. Otherwise the program is compiled without it");
  command.add_flag("--check-plugins", plugins.mode.check,
                   "Compare values before and after each pass of a plugin");
}

Status LoadPlugins(const PluginWords& plugins) {
  SetPluginMode(plugins.mode);
  UsePluginRewrites();
  for (const std::string& file : plugins.files) TOK_RETURN_IF_ERROR(LoadPlugin(file));
  return LoadPluginsOfEnvironment();
}

void AddExplainFlag(CLI::App& command, bool& flag) {
  command.add_flag("--explain_fusion_decisions,--explain-fusion-decisions", flag,
                   "Also print the kernels and decisions of `tokamak explain --decisions`, on "
                   "standard error");
}

void AddRun(CLI::App& app, RunCommand& run) {
  CLI::App* command = app.add_subcommand("run", kRunHelp.summary);
  command->footer(kRunHelp.text);
  command->add_option("FILE", run.files, "Programs: .mlir, .mlirbc or .hlo; - is standard input")
      ->required();
  command->add_option(
      "--backend", run.backend,
      "cpu, cuda (an NVIDIA GPU) or interp (the reference interpreter); default: cpu if built in");
  command->add_flag("--batch", run.batch,
                    "FILE is a JSON list of programs with separate arrays: {\"file\": F, "
                    "\"inputs\": F.npz, \"outputs\": F.npz}");
  command->add_option("--inputs", run.inputs,
                      "Inputs in_0, in_1 ...: np.savez(FILE, in_0=x, in_1=y)");
  command->add_option("--expect", run.expect, "Expected results out_0, out_1 ... to compare with");
  command->add_option("--outputs", run.outputs, "Write the results to this .npz file");
  command->add_option("--repeat", run.repeat, "Run N times, print times, and compare the bits")
      ->check(InRange(int64_t{1}, int64_t{1} << 40));
  AddFusion(*command, run.fusion);
  AddExplainFlag(*command, run.explain);
  command->add_option("--seed", run.seed,
                      "Random inputs of this seed: floats in [-1, 1), integers in [0, 4)");
  command->add_flag(
      "--strict", run.strict,
      "No rewrite that may change a bit of a result, no instruction without a kernel (unless the "
      "backend is interp), no second run for --expect");
  command
      ->add_option("--precision", run.precision,
                   "Precision of dots and convolutions that do not specify it: default (TF32 on "
                   "a GPU) or highest")
      ->check(OneOf({"default", "highest"}));
  command->add_flag("--oracle", run.oracle,
                    "Compute floats in double and round at the end instead of after every op");
  command->add_flag("--flush-subnormals", run.flush_subnormals,
                    "Flush subnormal numbers to 0 after every op, as XLA CPU does");
  command->add_option("--rtol", run.tolerance.rtol, "Relative tolerance of --expect");
  command->add_option("--atol", run.tolerance.atol, "Absolute tolerance of --expect");
  command->add_option("--ulp", run.tolerance.ulp,
                      "Tolerance of --expect in units in the last place");
  command->add_flag("--json", run.json, "One line of JSON per file");
  // Hidden: only for testing the tests.
  command->add_flag("--corrupt", run.corrupt, "Change the expected value of every check")
      ->group("");
  command->add_flag("--hoist", run.hoist, "Constants of the entry become arguments")->group("");
  command->add_option("--corrupt-kernel", run.corrupt_kernel, "This kernel writes a wrong number")
      ->group("");
}

void AddCheck(CLI::App& app, CheckCommand& check) {
  CLI::App* command = app.add_subcommand("check", kCheckHelp.summary);
  command->footer(kCheckHelp.text);
  command->add_option("FILE", check.files, "Programs; - is standard input")->required();
  command->add_flag("--json", check.json, "One line of JSON per file");
  command->add_flag("--hash", check.hash,
                    "Print the structural hash: equal programs, equal hashes");
  command->add_flag("--histogram", check.histogram, "Print how often each op occurs");
  command->add_flag("--round-trip", check.round_trip,
                    "Also print it in both formats and parse that again");
}

void AddConvert(CLI::App& app, ConvertCommand& convert) {
  CLI::App* command = app.add_subcommand("convert", kConvertHelp.summary);
  command->footer(kConvertHelp.text);
  command->add_option("FILE", convert.file, "A program; - is standard input")->required();
  command->add_option("--to", convert.to, "hlo or mlir")->required()->check(OneOf({"hlo", "mlir"}));
  command->add_option("-o,--output", convert.output,
                      "The file to write (default: standard output)");
}

void AddOps(CLI::App& app, OpsCommand& ops) {
  CLI::App* command = app.add_subcommand("ops", kOpsHelp.summary);
  command->footer(kOpsHelp.text);
  command->add_flag("--json", ops.json, "Print the table as JSON");
  command->add_flag("--markdown", ops.markdown, "Print the table as in docs/ops.md");
  command
      ->add_flag("--samples", ops.samples,
                 "The programs from which the cpu and cuda columns are derived")
      ->group("");
  command->add_option("--tests", ops.tests,
                      "Count the programs of this folder that contain the op");
}

void AddReduce(CLI::App& app, ReduceCommand& reduce) {
  CLI::App* command = app.add_subcommand("reduce", kReduceHelp.summary);
  command->footer(kReduceHelp.text);
  command->add_option("FILE", reduce.file, "A program that fails")->required();
  command->add_option("--command", reduce.command, "A shell command with {} for the file");
  command->add_option("--fails-with", reduce.fails_with, "An exit code of `run`, or mismatch");
  command->add_option("--inputs", reduce.inputs, "Inputs of `run` (default: random)");
  command->add_option("--expect", reduce.expect, "Expected results of `run`");
  command->add_option("--seed", reduce.seed, "Seed of the random inputs of `run`");
  command->add_option("--seconds", reduce.seconds, "Stop after this many seconds");
  command
      ->add_option("--timeout", reduce.timeout,
                   "Kill an attempt after this many seconds; it counts as not failing")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_option("-o,--output", reduce.output, "Output file (default: FILE.reduced.hlo)");
}

void AddPassTarget(CLI::App& command, std::string& target) {
  command
      .add_option("--target", target,
                  "Also run the passes for a target: host (this machine) or h200")
      ->check(OneOf({"host", "h200"}));
}

void AddOpt(CLI::App& app, OptCommand& opt) {
  CLI::App* command = app.add_subcommand("opt", kOptHelp.summary);
  command->footer(kOptHelp.text);
  command->add_option("FILE", opt.file, "A program; - is standard input");
  AddPassTarget(*command, opt.target);
  command->add_option("--vector-bits", opt.vector_bits,
                      "Vector width of the target in bits (default: its own)");
  command->add_option("--passes", opt.passes,
                      "The pipeline (default: default, followed by cpu or gpu with --target)");
  command->add_option("--skip", opt.skip, "Skip these passes")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--stop-after", opt.stop_after, "Stop after the first run of this pass");
  command->add_option("--dump-after", opt.dump_after, "Also print the program after these passes")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--fusion", opt.fusion,
                      "rules: also run XLA's four fusion passes (other planners are not passes)");
  command->add_option("--lift", opt.lift, "Rules of --fusion=rules to disable")
      ->delimiter(',')
      ->allow_extra_args(false);
  AddRulesOption(*command, opt.rules);
  command->add_flag("--strict", opt.strict, "No rewrite that may change a bit of a result");
  command->add_flag("--time-passes", opt.time_passes,
                    "Print a table of passes with their times instead");
  command->add_flag("--verify-each", opt.verify_each, "Verify the program after each pass");
  command->add_flag("--decisions", opt.decisions, "Print every change, on standard error");
  command->add_flag("--check-values", opt.check_values,
                    "Run the program before and after, and compare the bits");
  command->add_flag("--check-each", opt.check_each,
                    "As --check-values for each pass separately, as a table");
  command->add_option("--seconds", opt.seconds,
                      "Programs that run longer than this are not compared");
  command->add_option("--inputs", opt.inputs, "Also compare on these inputs: a .npz file");
  AddExplainFlag(*command, opt.explain);
  command->add_flag("--list", opt.list, "Show all passes with their targets, and the pipelines");
  command->add_flag("--json", opt.json,
                    "Print passes, decisions and comparisons as a line of JSON");
  command->add_option("-o,--output", opt.output, "The file to write (default: standard output)");
}

void AddBisect(CLI::App& app, BisectCommand& bisect) {
  CLI::App* command = app.add_subcommand("bisect", kBisectHelp.summary);
  command->footer(kBisectHelp.text);
  command->add_option("FILE", bisect.file, "A program; - is standard input")->required();
  command->add_option("--by", bisect.by, "Compare values (the default) or time")
      ->check(OneOf({"values", "time"}));
  AddPassTarget(*command, bisect.target);
  command->add_option("--passes", bisect.passes,
                      "The pipeline (default: default, followed by cpu or gpu with --target)");
  command->add_option("--skip", bisect.skip, "Skip these passes")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--inputs", bisect.inputs, "Also run on these inputs: a .npz file");
  command->add_option("--seconds", bisect.seconds,
                      "Give up on a program that runs longer than this many seconds");
  command->add_flag("--strict", bisect.strict, "No rewrite that may change a bit of a result");
  command->add_flag("--json", bisect.json, "One line of JSON per program");
}

void AddHorizontalOption(CLI::App& command, std::string& horizontal) {
  command
      .add_option("--horizontal", horizontal,
                  "Horizontal fusion: none (the default for CPUs), auto (if profitable; the "
                  "default for GPUs) or all (wherever it is legal)")
      ->check(OneOf({"none", "auto", "all"}));
}

void AddPlanChecks(CLI::App& command, PlanChecks& checks) {
  command.add_flag("--check-values", checks.values,
                   "Also run the kernels in the simulator, and compare them with the interpreter");
  command.add_flag("--cost", checks.cost,
                   "Also print the predicted cost, fused and unfused, on standard error");
}

void AddKernels(CLI::App& app, KernelsCommand& kernels) {
  CLI::App* command = app.add_subcommand("kernels", kKernelsHelp.summary);
  command->footer(kKernelsHelp.text);
  command->add_option("FILE", kernels.file, "A program; - is standard input")->required();
  command->add_option("--passes", kernels.passes, "The pass pipeline before lowering");
  command->add_option("--target", kernels.target, "cpu or cuda (an H200)")
      ->check(OneOf({"cpu", "cuda"}));
  command->add_flag("--cuda", kernels.cuda, "Print kernels as CUDA C++ (with --target cuda)");
  command->add_flag("--hoist", kernels.hoist, "Constants of the entry become arguments")->group("");
  command
      ->add_option("--corrupt-kernel", kernels.corrupt_kernel,
                   "This kernel writes a wrong number (with --check-values, on the CPU)")
      ->group("");
  command
      ->add_option("--vector-bits", kernels.vector_bits,
                   "Vector width in bits: 64, 128, 256 ... 4096 (default: that of this machine)")
      ->check(OneOf({"64", "128", "256", "512", "1024", "2048", "4096"}));
  command
      ->add_option("--memory-limit", kernels.memory_limit,
                   "Largest size of all temporary arrays together, in bytes (default: unlimited)")
      ->check(InRange(int64_t{1}, int64_t{1} << 62));
  command
      ->add_option("--library", kernels.library,
                   "Use OpenBLAS: on, off, or auto (the default: if this machine has it)")
      ->check(OneOf({"auto", "on", "off"}));
  AddFusion(*command, kernels.fusion);
  command->add_flag("--unfused", kernels.unfused, "One kernel for each instruction");
  AddHorizontalOption(*command, kernels.horizontal);
  command->add_flag("--text,!--no-text", kernels.text, "Print the kernels, not only the steps");
  command->add_flag("--decisions", kernels.decisions, "Print every decision, on standard error");
  AddPlanChecks(*command, kernels.checks);
  command->add_flag(
      "--strict", kernels.strict,
      "No rewrite that may change a bit of a result, no instruction without a kernel");
}

void AddBench(CLI::App& app, BenchCommand& bench) {
  CLI::App* command = app.add_subcommand("bench", kBenchHelp.summary);
  command->footer(kBenchHelp.text);
  command->add_option("FILE", bench.file, "A program; - is standard input")->required();
  command->add_option("--backend", bench.backend,
                      "cpu or cuda (an NVIDIA GPU); default: cpu if built in");
  command
      ->add_option("--fusion", bench.modes,
                   "Modes to compare, separated by commas (none,rules,greedy,search)")
      ->delimiter(',')
      ->check(OneOf({"none", "rules", "greedy", "search"}));
  command->add_option("--effort", bench.effort, "Planning effort: fast, default or max");
  command
      ->add_option("--seconds", bench.seconds,
                   "Total measurement time in seconds (at least 3 repetitions)")
      ->check(InRange(0.0, 1e6));
  command->add_option("--repetitions", bench.repetitions, "Maximum number of repetitions")
      ->check(InRange(int64_t{3}, int64_t{1} << 20));
  command->add_option("--seed", bench.seed, "Seed of the random inputs");
  command->add_flag("--counters", bench.counters,
                    "Also print the resources of each kernel on an H200, in the first and the "
                    "last mode");
  command->add_flag("--json", bench.json, "One line of JSON per program");
}

void AddCalibrate(CLI::App& app, CalibrateCommand& calibrate) {
  CLI::App* command = app.add_subcommand("calibrate", kCalibrateHelp.summary);
  command->footer(kCalibrateHelp.text);
  command->add_option("-o", calibrate.output,
                      "The machine file to write (default: in the cache folder)");
  command->add_flag("--quiet", calibrate.quiet, "No progress on standard error");
  command->add_option("--fit", calibrate.fit, "Fit rates to kernels of this JSON file instead")
      ->group("");
  command->add_option("--machine", calibrate.machine, "The machine file to fit")->group("");
}

void AddExplain(CLI::App& app, ExplainCommand& explain) {
  CLI::App* command = app.add_subcommand("explain", kExplainHelp.summary);
  command->footer(kExplainHelp.text);
  command->add_option("FILE", explain.file,
                      "A program (- is standard input), or the name of a rule, pass or error code");
  command->add_flag("--json", explain.json, "One line of JSON per program, with decisions");
  AddFusion(*command, explain.fusion);
  command
      ->add_option("--target", explain.target,
                   "host (the default), h200, or both as host,h200: which is faster, including "
                   "transfers, and the break-even size")
      ->check(OneOf({"host", "h200"}, {"host,h200", "h200,host"}));
  command->add_flag("--xla-dump,--as-given", explain.xla_dump,
                    "FILE is XLA's after_optimizations text: print its kernels and fusion "
                    "boundaries, with what fusing would save; with --html, beside Tokamak's plan");
  command->add_flag("--decisions", explain.decisions, "Also print every decision");
  command->add_flag("--contractions", explain.contractions,
                    "Also print the kernels and library calls that could compute each dot, "
                    "convolution and attention, with their times (measured with --measure)");
  command->add_flag("--unfused", explain.unfused, "One kernel for each instruction");
  command->add_option(
      "--kernel", explain.kernel,
      "Print this kernel (its name, or its number from 1 in execution order) as kernel IR and "
      "as LLVM IR or CUDA C++");
  command->add_option("--write-plan", explain.write_plan,
                      "Write the plan to this file, as JSON: `run --plan` rebuilds it");
  command->add_flag("--dot", explain.dot,
                    "Print a graph for Graphviz: kernels are clusters, edges are labelled with "
                    "bytes");
  command->add_option(
      "--html", explain.html,
      "Write the report to this file, as a page for browsers that needs no other "
      "file: graph, timeline, memory, kernels, code, source lines, decisions, "
      "compile time. With --diff, both plans; with --xla-dump, XLA's plan and Tokamak's");
  command->add_option("--trace", explain.trace,
                      "Also write the timeline to this file, for ui.perfetto.dev: steps and "
                      "temporary memory, predicted and with --measure measured; passes");
  command
      ->add_option(
          "--diff", explain.diff,
          "Compare two plans: two of none, rules, greedy and search for FILE, or two programs")
      ->type_size(2)
      ->allow_extra_args(false);
  command->add_flag("--code,!--no-code", explain.code,
                    "Put generated and machine code of the slowest kernels into the page of --html "
                    "(the default; compiles them)");
  command->add_flag("--compare,!--no-compare", explain.compare,
                    "Also plan the program without fusion, for the heading (the default)");
  command->add_flag("--measure", explain.measure,
                    "Run every kernel individually on random arguments and print its time");
  command->add_option("--seconds", explain.seconds,
                      "Measurement time per kernel in seconds (default: 0.03)");
  command->add_option("--device", explain.device, "Measure GPU kernels on this device")->group("");
  AddPlanChecks(*command, explain.checks);
  AddHorizontalOption(*command, explain.horizontal);
  command->add_flag("--strict", explain.strict,
                    "No rewrite that may change a bit of a result; exit 3 if there is a host step");
}

void AddLint(CLI::App& app, LintCommand& lint) {
  CLI::App* command = app.add_subcommand("lint", kLintHelp.summary);
  command->footer(kLintHelp.text);
  command->add_option("FILE", lint.file, "A program; - is standard input")->required();
  command->add_flag("--json", lint.json, "One line of JSON per program");
  command->add_flag("--sarif", lint.sarif, "One SARIF 2.1.0 log of all programs, for code review")
      ->excludes("--json");
  command->add_option("--rules", lint.rules, "Look for these rules only, separated by commas");
  command->add_option("--ignore", lint.ignore, "Do not look for these rules");
  command->add_option("--fail-on", lint.fail_on,
                      "Exit with 1 if the warnings of a program reach this cost: microseconds per "
                      "call (20us) or a part of it (10%)");
  command->add_flag("--strict", lint.strict, "Exit with 1 if there is any warning");
  command->add_flag("--suppressions,!--no-suppressions", lint.suppressions,
                    "Honour `# tokamak: ignore[RULE]` in Python sources (the default)");
  command->add_option("--target", lint.target, "host (the default) or h200")
      ->check(OneOf({"host", "h200"}));
  AddFusion(*command, lint.fusion);
}

struct Commands {
  RunCommand run;
  CheckCommand check;
  ConvertCommand convert;
  OpsCommand ops;
  ReduceCommand reduce;
  OptCommand opt;
  BisectCommand bisect;
  KernelsCommand kernels;
  ExplainCommand explain;
  LintCommand lint;
  CalibrateCommand calibrate;
  BenchCommand bench;
};

int Dispatch(const CLI::App& app, const Commands& commands, Console& console) {
  if (app.got_subcommand("run")) return Run(commands.run, console);
  if (app.got_subcommand("check")) return Check(commands.check, console);
  if (app.got_subcommand("convert")) return Convert(commands.convert, console);
  if (app.got_subcommand("ops")) return Ops(commands.ops, console);
  if (app.got_subcommand("opt")) return Opt(commands.opt, console);
  if (app.got_subcommand("kernels")) return Kernels(commands.kernels, console);
  if (app.got_subcommand("explain")) return Explain(commands.explain, console);
  if (app.got_subcommand("lint")) return LintFile(commands.lint, console);
  if (app.got_subcommand("bench")) return Bench(commands.bench, console);
  if (app.got_subcommand("calibrate")) return Calibrate(commands.calibrate, console);
  if (app.got_subcommand("bisect")) return Bisect(commands.bisect, console);
  return Reduce(commands.reduce, console);
}

// The parser's message in plainer words: it names the option first.
std::string MessageOf(const CLI::ParseError& error) {
  const std::string text = error.what();
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) {
    // "Could not convert: --seed = abc"
    size_t begin = text.find("--"), equals = text.find(" = ");
    if (begin < equals && equals != std::string::npos)
      return text.substr(begin, equals - begin) + ": '" + ShownWord(text.substr(equals + 3)) +
             "' is not a number";
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    // "--seed: 1 required UINT missing"
    size_t colon = text.find(": ");
    if (colon != std::string::npos && text.ends_with(" missing"))
      return text.substr(0, colon) +
             (text[colon + 2] == '1' ? ": its value is missing" : ": it takes two values");
  }
  return text;
}

BadUsage UsageErrorOf(const CLI::App& app, const std::vector<std::string>& words,
                      const CLI::ParseError& error) {
  BadUsage bad_usage;
  bad_usage.words = words;
  bad_usage.parser_message = MessageOf(error);
  for (const CLI::App* command : app.get_subcommands({}))
    bad_usage.commands.push_back(command->get_name());
  bad_usage.unexpected = app.remaining(/*recurse=*/true);
  const auto chosen = app.get_subcommands();
  if (chosen.empty()) return bad_usage;
  bad_usage.command = chosen[0]->get_name();
  for (const CLI::Option* option : chosen[0]->get_options())
    for (const std::string& name : option->get_lnames()) bad_usage.options.push_back("--" + name);
  return bad_usage;
}

int ParseAndRun(const std::vector<std::string>& words, Console& console) {
  CLI::App app(
      "A fusing tensor compiler: runs StableHLO and HLO programs and explains how it compiles "
      "them.",
      "tokamak");
  app.footer(kTopHelp);
  app.set_version_flag("--version", "tokamak " + std::string(kVersion));
  app.require_subcommand(1);
  Commands commands;
  // In the order of the help: first what users need, then what developers of the compiler need.
  AddRun(app, commands.run);
  AddExplain(app, commands.explain);
  AddLint(app, commands.lint);
  AddBench(app, commands.bench);
  AddCheck(app, commands.check);
  AddConvert(app, commands.convert);
  AddOps(app, commands.ops);
  AddCalibrate(app, commands.calibrate);
  AddKernels(app, commands.kernels);
  AddOpt(app, commands.opt);
  AddBisect(app, commands.bisect);
  AddReduce(app, commands.reduce);
  PluginWords plugins;
  for (const char* command : {"run", "explain", "lint", "bench", "kernels", "opt"})
    AddPlugins(*app.get_subcommand(command), plugins);
  FormatHelp(app);
  try {
    std::vector<std::string> reversed(words.rbegin(), words.rend());  // CLI11's order
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    const auto chosen = app.get_subcommands();
    console.Out(chosen.empty() ? app.help() : chosen[0]->help("tokamak"));
    return 0;
  } catch (const CLI::CallForVersion& version) {
    console.Out(std::string(version.what()) + "\n");
    return 0;
  } catch (const CLI::ParseError& error) {
    return console.Report(UsageError(UsageErrorOf(app, words, error)));
  }
  if (Status loaded = LoadPlugins(plugins); !loaded.ok()) return console.Report(loaded.error());
  return Dispatch(app, commands, console);
}

}  // namespace

int RunCommandLine(const std::vector<std::string>& words, Console& console) {
  try {
    if (std::optional<int> code = LintScript(words, console)) return *code;
    return ParseAndRun(words, console);
  } catch (const std::bad_alloc&) {
    return console.Report(MakeError(ErrorCode::kOutOfMemory, "out of memory"));
  } catch (const std::length_error& error) {
    return console.Report(
        MakeError(ErrorCode::kOutOfMemory, std::string("out of memory: ") + error.what()));
  } catch (const std::exception& error) {
    console.Err(std::string("error: a bug in tokamak: ") + error.what() + "\n");
    return Code(ExitCode::kOurBug);
  }
}

}  // namespace tokamak
