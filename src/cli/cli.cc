#include <algorithm>
#include <new>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/usage.h"
#include "support/version.h"

// The only file that defines the command-line syntax (and includes CLI11, which takes seconds to
// compile).

namespace tokamak {
namespace {

constexpr char kRunHelp[] = "Runs @main (or the only public function) of each program in FILE.";
constexpr char kRunExamples[] =
    R"(Inputs are the arrays in_0, in_1 ... of --inputs; results are out_0, out_1 ...;
tuples are flattened depth first. bf16, f8 and sub-byte types travel as unsigned
arrays of their bits. Checks inside the program (check.expect_eq ...) are honoured
and counted: "checks: 3 passed".

Examples:
  tokamak run add.mlir                                   a program without inputs
  tokamak run model.hlo --seed 1                         random inputs of seed 1
  tokamak run model.hlo --inputs io.npz --expect io.npz  compare with out_0 ... of io.npz
  tokamak run model.mlirbc --inputs in.npz --outputs out.npz

Default tolerance of --expect: integers and preds exact; floats 1e-4 + 1e-4*|expected|
(bf16, f16: 2e-2; f8: 1e-1); NaN equals NaN. An element also agrees if a second run
of the program is close, with floats rounded only at the end or with subnormal numbers
flushed to 0 (as on XLA CPU); a note reports it. --strict compares with the first run only.
Exit codes: 0 success, 1 a mismatch or a failed check, 2 bad input or usage,
3 unsupported, 4 no memory, disk or device, 70 internal error. Several programs: the highest.
)";
constexpr char kCheckHelp[] = "Parses and verifies every program of each FILE.";
constexpr char kCheckExamples[] =
    R"(FILE is StableHLO text (.mlir), MLIR bytecode (.mlirbc) or HLO text (.hlo); the
format is detected from the bytes. Errors have a location and a reason.

Examples:
  tokamak check model.mlir
  tokamak check *.hlo --json             one line of JSON per file
  tokamak check model.hlo --histogram    how often each op occurs
  tokamak check model.hlo --round-trip   also prints it in both formats and parses that again
)";
constexpr char kConvertHelp[] = "Prints every program of FILE in another format.";
constexpr char kConvertExamples[] = R"(Examples:
  tokamak convert model.mlirbc --to mlir
  tokamak convert model.mlir --to hlo -o model.hlo

Features that the other format lacks are printed in Tokamak's own syntax, which it can parse.
)";
constexpr char kOpsHelp[] = "Shows every op and its support on each backend.";
constexpr char kOpsExamples[] = R"(Examples:
  tokamak ops
  tokamak ops --json
  tokamak ops --markdown --tests tests/run > docs/ops.md
)";
constexpr char kReduceHelp[] =
    "Makes the program of FILE smaller while it still fails, and writes the smallest.";
constexpr char kReduceExamples[] =
    R"(Failing is defined by --command (a shell command in which {} is the file; its exit code
must stay the same as for FILE) or by --fails-with (the exit code of `tokamak run`, or
"mismatch" for 1). An attempt that takes longer than --timeout is killed with its child
processes and counts as not failing. To reduce a program that hangs, use
--command 'timeout 10 ./program {}', which exits with 124.

Examples:
  tokamak reduce big.hlo --fails-with mismatch --inputs io.npz --expect io.npz
  tokamak reduce big.mlir --fails-with 70 -o small.hlo
  tokamak reduce big.hlo --command 'tokamak opt {} --target h200 --check-values'
  tokamak reduce big.hlo --command './crashes.sh {}' --seconds 60
)";

constexpr char kKernelsHelp[] = "Prints the kernels and steps that FILE becomes on a CPU or a GPU.";
constexpr char kKernelsExamples[] = R"(Examples:
  tokamak kernels model.hlo                              kernel IR, then the steps
  tokamak kernels model.hlo --target cuda --cuda         as CUDA C++ for an H200
  tokamak kernels model.hlo --no-text --fusion=greedy    only the steps
)";
constexpr char kExplainHelp[] =
    "Explains how FILE is compiled: its kernels, their costs, and ops without a kernel.";
constexpr char kExplainExamples[] =
    R"(The heading has the totals of the program fused and with one kernel per instruction. It is
followed by a row per step in execution order; the steps of a training step are grouped by forward,
backward and update, which are derived from JAX's names. Below each row are its instructions and
their source lines. Times are predicted, or measured with --measure.

A host step is an instruction without a kernel: it is interpreted, and the line below has the
reason. `tokamak kernels FILE` prints the kernels themselves.

Examples:
  tokamak explain model.mlir
  tokamak explain model.hlo --json         kernels and decisions, machine-readable
  tokamak explain model.hlo --strict       exit 3 if there is a host step
  tokamak explain model.hlo --fusion=rules --decisions   with XLA's fusion rules (2023)
  tokamak explain model.hlo --kernel add_3       the kernel itself, and its LLVM IR
  tokamak explain model.hlo --target h200 --kernel 2   the second step as CUDA C++
  tokamak explain model.hlo --dot | dot -Tsvg > model.svg
  tokamak explain model.hlo --diff rules search  which kernels only one of the plans has
  tokamak explain --diff before.hlo after.hlo    the same for two programs
  tokamak explain model.hlo --target host,h200   which is faster, and the break-even size
  tokamak explain model.hlo --never-fuse=train.py:12 --require-fused=a,b   fusion constraints
  tokamak explain xla.concat-multi-user    what a rule means
  tokamak explain --xla-dump module_0001.jit_f.after_optimizations.txt   what XLA decided
)";
constexpr char kBenchHelp[] =
    "Measures FILE under each fusion mode, and the resources of its kernels.";
constexpr char kBenchExamples[] =
    R"(The program is compiled and called once in each mode; then calls of the modes alternate.
Below the table is the number of calls after which the last mode amortizes its compilation.

--counters compiles the kernels for an H200 with NVRTC, which needs no GPU: registers and spills
per thread, threads per block, blocks, shared memory, and occupancy. Hardware counters
(instructions, stalls, DRAM bytes) are not included: `ncu tokamak run FILE --backend cuda --seed 1`
shows them where ncu has permission to read them.

Examples:
  tokamak bench model.hlo
  tokamak bench model.mlir --fusion none,search --seconds 10 --json
  tokamak bench model.mlir --backend cuda --counters
)";
constexpr char kLintHelp[] = "Names the source lines of FILE that cost more time than necessary.";
constexpr char kLintExamples[] =
    R"(Each lint has its rule, the microseconds per call that it affects, the lines of the user's
program, and what to write instead:
  lint.concat-multi-user   a concatenation is stored because several users read it
  lint.unrolled-loop       an unrolled Python loop: many copies of its body
  lint.dispatch-bound      the call overhead exceeds the computation

Examples:
  tokamak lint model.mlir
  tokamak lint model.mlir --json
)";
constexpr char kCalibrateHelp[] = "Measures the rates of this machine for the cost model.";
constexpr char kCalibrateExamples[] =
    R"(Bandwidth by size, operations, launches and threads are measured with generated kernels, in
less than half a minute, and saved in the cache folder for this machine. Run it on an idle
machine. `tokamak explain` reports the machine file that it uses.

Examples:
  tokamak calibrate
  tokamak calibrate -o my_machine.json
)";
constexpr char kOptHelp[] = "Runs passes over every program of FILE and prints the result as HLO.";
constexpr char kOptExamples[] =
    R"(A pipeline is a list of passes; a group in parentheses with a star is repeated until
an iteration changes nothing: --passes='inline,dce,(simplify,cse)*'. "default" is what a
compilation runs first, "cpu" and "gpu" what it runs for a target after that. `tokamak opt --list`
shows all passes and these pipelines.

Examples:
  tokamak opt model.hlo                              the default pipeline
  tokamak opt model.mlir --passes=inline,dce         some passes
  tokamak opt model.hlo --target h200                also the passes for a GPU
  tokamak opt model.hlo --skip=cse --time-passes     a table: instructions, changes, ms
  tokamak opt model.hlo --decisions                  what each rule did, on standard error
  tokamak opt model.hlo --stop-after=inline          only up to there
  tokamak opt model.hlo --dump-after=cse             prints it after each run of cse as well
  tokamak opt model.hlo --check-values               runs it before and after and compares the bits
  tokamak opt model.hlo --check-each --json          the same for each pass separately
  tokamak opt model.hlo --fusion=rules --decisions   XLA's fusion passes (2023, arXiv 2301.13062)
  tokamak opt model.hlo --fusion=rules --lift=concat-multi-user
)";
constexpr char kBisectHelp[] = "Names the pass that changes the values or the speed of FILE.";
constexpr char kBisectExamples[] =
    R"(Runs the pipeline and, after each pass, the program: on random inputs, on inputs with
many NaN, infinities, zeros and extremes, and on those of --inputs.

Examples:
  tokamak bisect model.hlo --by values       the first pass after which a bit differs (exit 1)
  tokamak bisect model.hlo --target h200     also those that rewrite for a GPU; once one may have
                                             rounded, values are compared within rounding
  tokamak bisect model.hlo --by time         how long the program runs after each pass
)";

// Checks a word against a list of names. The option's help already lists them, so the validator
// adds no description.
CLI::Validator OneOf(std::vector<std::string> names) {
  auto parser_message = [names = std::move(names)](const std::string& word) {
    bool known = std::find(names.begin(), names.end(), word) != names.end();
    return known ? std::string() : NoneOf(word, names);
  };
  return CLI::Validator(parser_message, "");
}

template <typename T>
CLI::Validator InRange(T low, T high) {
  return CLI::Range(low, high).description("");
}

void AddFusion(CLI::App& command, FusionWords& fusion) {
  command.add_option("--fusion", fusion.mode, "Fusion planner: none, rules, greedy or search");
  command.add_option("--effort", fusion.effort,
                     "Planning effort: fast (tier 0 only), default (about a second for a "
                     "large program) or max");
  command.add_option("--lift", fusion.lift, "Rules of --fusion=rules to disable")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--skip", fusion.skip, "Passes to skip, of --fusion=rules or before")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      .add_option("--never-fuse", fusion.pins.never_fuse,
                  "Instructions (names, or train.py:12) to keep in separate kernels")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      .add_option("--fuse", fusion.pins.fuse,
                  "Instructions to fuse into one kernel if possible: --fuse=a,b")
      ->allow_extra_args(false);
  command
      .add_option("--require-fused", fusion.pins.require_fused,
                  "The same, but an error with the reason if impossible")
      ->allow_extra_args(false);
  command.add_option("--plan", fusion.plan,
                     "Build the kernels of this plan (`explain --write-plan`) without a search");
}

void AddExplainFlag(CLI::App& command, bool& flag) {
  command.add_flag("--explain_fusion_decisions,--explain-fusion-decisions", flag,
                   "Also print the kernels and decisions of `tokamak explain --decisions`, on "
                   "standard error");
}

void AddRun(CLI::App& app, RunCommand& run) {
  CLI::App* command = app.add_subcommand("run", kRunHelp);
  command->footer(kRunExamples);
  command->add_option("FILE", run.files, "Programs: .mlir, .mlirbc or .hlo; - is standard input")
      ->required();
  command->add_option("--backend", run.backend,
                      "interp, cpu or cuda (default: the best one built in)");
  command->add_flag("--batch", run.batch,
                    "FILE is a JSON list of programs with separate arrays: {\"file\": F, "
                    "\"inputs\": F.npz, \"outputs\": F.npz}");
  command->add_option("--inputs", run.inputs, "A .npz file with in_0, in_1 ...");
  command->add_option("--expect", run.expect, "A .npz file with out_0, out_1 ... to compare with");
  command->add_option("--outputs", run.outputs, "Write the results to this .npz file");
  command->add_option("--repeat", run.repeat, "Run N times, print times, and compare the bits")
      ->check(InRange(int64_t{1}, int64_t{1} << 40));
  AddFusion(*command, run.fusion);
  AddExplainFlag(*command, run.explain);
  command->add_option("--seed", run.seed,
                      "Random inputs of this seed: floats in [-1, 1), integers in [0, 4)");
  command->add_flag(
      "--strict", run.strict,
      "No rewrite that may change a value, no instruction without a kernel (unless the "
      "backend is interp), no second run for --expect");
  command
      ->add_option("--precision", run.precision,
                   "Of dots and convolutions that do not specify it: default (on a GPU 10 "
                   "bits of an f32's mantissa) or highest")
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
  CLI::App* command = app.add_subcommand("check", kCheckHelp);
  command->footer(kCheckExamples);
  command->add_option("FILE", check.files, "Programs; - is standard input")->required();
  command->add_flag("--json", check.json, "One line of JSON per file");
  command->add_flag("--hash", check.hash,
                    "Print the structural hash: equal programs, equal hashes");
  command->add_flag("--histogram", check.histogram, "Print how often each op occurs");
  command->add_flag("--round-trip", check.round_trip,
                    "Print it in both formats and parse that again");
}

void AddConvert(CLI::App& app, ConvertCommand& convert) {
  CLI::App* command = app.add_subcommand("convert", kConvertHelp);
  command->footer(kConvertExamples);
  command->add_option("FILE", convert.file, "A program; - is standard input")->required();
  command->add_option("--to", convert.to, "hlo or mlir")->required();
  command->add_option("-o,--output", convert.output,
                      "The file to write (default: standard output)");
}

void AddOps(CLI::App& app, OpsCommand& ops) {
  CLI::App* command = app.add_subcommand("ops", kOpsHelp);
  command->footer(kOpsExamples);
  command->add_flag("--json", ops.json, "As JSON");
  command->add_flag("--markdown", ops.markdown, "As in docs/ops.md");
  command
      ->add_flag("--samples", ops.samples,
                 "The programs from which the cpu and cuda columns are derived")
      ->group("");
  command->add_option("--tests", ops.tests,
                      "Count the programs of this folder that contain the op");
}

void AddReduce(CLI::App& app, ReduceCommand& reduce) {
  CLI::App* command = app.add_subcommand("reduce", kReduceHelp);
  command->footer(kReduceExamples);
  command->add_option("FILE", reduce.file, "A program that fails")->required();
  command->add_option("--command", reduce.command, "A shell command with {} for the file");
  command->add_option("--fails-with", reduce.fails_with, "An exit code of `run`, or mismatch");
  command->add_option("--inputs", reduce.inputs, "Inputs of `run` (default: random)");
  command->add_option("--expect", reduce.expect, "Expected results of `run`");
  command->add_option("--seed", reduce.seed, "Seed of the random inputs of `run`");
  command->add_option("--seconds", reduce.seconds, "Stop after this long");
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
                  "host or h200: also the passes that rewrite for this machine or an H200")
      ->check(OneOf({"host", "h200"}));
}

void AddOpt(CLI::App& app, OptCommand& opt) {
  CLI::App* command = app.add_subcommand("opt", kOptHelp);
  command->footer(kOptExamples);
  command->add_option("FILE", opt.file, "A program; - is standard input");
  AddPassTarget(*command, opt.target);
  command->add_option("--vector-bits", opt.vector_bits,
                      "Vector width of the target (overrides its own)");
  command->add_option("--passes", opt.passes, "The pipeline (default: default, cpu or gpu)");
  command->add_option("--skip", opt.skip, "Skip these passes")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--stop-after", opt.stop_after, "Stop after the first run of this pass");
  command->add_option("--dump-after", opt.dump_after, "Also print the program after these passes")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--fusion", opt.fusion,
                      "rules: also XLA's four fusion passes; none, greedy, search: nothing");
  command->add_option("--lift", opt.lift, "Rules of those passes to disable")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_flag("--strict", opt.strict, "No rewrite that may change a bit of a result");
  command->add_flag("--fast-math", opt.fast_math, "Also rules that hold only for real numbers");
  command->add_flag("--time-passes", opt.time_passes, "Print a table of passes instead");
  command->add_flag("--verify-each", opt.verify_each, "Verify the program after each pass");
  command->add_flag("--decisions", opt.decisions, "Print every change, on standard error");
  command->add_flag("--check-values", opt.check_values,
                    "Run the program before and after, and compare the bits");
  command->add_flag("--check-each", opt.check_each,
                    "The same for each pass separately, as a table");
  command->add_option("--seconds", opt.seconds, "Programs that run longer are not compared");
  command->add_option("--inputs", opt.inputs, "Also compare on these inputs: a .npz file");
  AddExplainFlag(*command, opt.explain);
  command->add_flag("--list", opt.list, "Show all passes with their targets, and the pipelines");
  command->add_flag("--json", opt.json, "Passes, decisions and comparisons as a line of JSON");
  command->add_option("-o,--output", opt.output, "Output file; - is standard output");
}

void AddBisect(CLI::App& app, BisectCommand& bisect) {
  CLI::App* command = app.add_subcommand("bisect", kBisectHelp);
  command->footer(kBisectExamples);
  command->add_option("FILE", bisect.file, "A program; - is standard input")->required();
  command->add_option("--by", bisect.by, "values or time")->check(OneOf({"values", "time"}));
  AddPassTarget(*command, bisect.target);
  command->add_option("--passes", bisect.passes, "The pipeline (default: default, cpu or gpu)");
  command->add_option("--skip", bisect.skip, "Skip these passes")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--inputs", bisect.inputs, "Also run on these inputs: a .npz file");
  command->add_option("--seconds", bisect.seconds, "Give up on a program that runs longer");
  command->add_flag("--strict", bisect.strict, "No rewrite that may change a bit of a result");
  command->add_flag("--json", bisect.json, "One line of JSON per program");
}

void AddHorizontalOption(CLI::App& command, std::string& horizontal) {
  command
      .add_option("--horizontal", horizontal,
                  "Horizontal fusion: none (the default for CPUs), auto (if profitable; for "
                  "GPUs), all")
      ->check(OneOf({"none", "auto", "all"}));
}

void AddKernels(CLI::App& app, KernelsCommand& kernels) {
  CLI::App* command = app.add_subcommand("kernels", kKernelsHelp);
  command->footer(kKernelsExamples);
  command->add_option("FILE", kernels.file, "A program; - is standard input")->required();
  command->add_option("--passes", kernels.passes, "The pass pipeline before lowering");
  command->add_option("--target", kernels.target, "cpu or cuda (an H200)")
      ->check(OneOf({"cpu", "cuda"}));
  command->add_flag("--cuda", kernels.cuda, "As CUDA C++, for --target cuda");
  command->add_flag("--hoist", kernels.hoist, "Constants of the entry become arguments")->group("");
  command
      ->add_option("--vector-bits", kernels.vector_bits,
                   "Vector width: 64, 128, 256 ... 4096 (default: of this machine)")
      ->check(OneOf({"64", "128", "256", "512", "1024", "2048", "4096"}));
  command
      ->add_option("--memory-limit", kernels.memory_limit,
                   "Bytes of temporary arrays at any time (default: unlimited)")
      ->check(InRange(int64_t{1}, int64_t{1} << 62));
  command
      ->add_option("--library", kernels.library,
                   "Use OpenBLAS: on, off, or auto (the default): as on this machine")
      ->check(OneOf({"auto", "on", "off"}));
  AddFusion(*command, kernels.fusion);
  command->add_flag("--unfused", kernels.unfused, "One kernel for each instruction");
  AddHorizontalOption(*command, kernels.horizontal);
  command->add_flag("--text,!--no-text", kernels.text, "Print the kernels, not only the steps");
  command->add_flag("--decisions", kernels.decisions, "Print every decision, on standard error");
  command->add_flag(
      "--strict", kernels.strict,
      "No rewrite that may change a bit of a result, no instruction without a kernel");
}

void AddBench(CLI::App& app, BenchCommand& bench) {
  CLI::App* command = app.add_subcommand("bench", kBenchHelp);
  command->footer(kBenchExamples);
  command->add_option("FILE", bench.file, "A program; - is standard input")->required();
  command->add_option("--backend", bench.backend, "cpu or cuda (default: the best one built in)");
  command
      ->add_option("--fusion", bench.modes,
                   "Modes to compare, separated by commas (none,rules,greedy,search)")
      ->delimiter(',')
      ->check(OneOf({"none", "rules", "greedy", "search"}));
  command->add_option("--effort", bench.effort, "Planning effort: fast, default or max");
  command->add_option("--seconds", bench.seconds, "Total measurement time (at least 3 repetitions)")
      ->check(InRange(0.0, 1e6));
  command->add_option("--repetitions", bench.repetitions, "Maximum number of repetitions")
      ->check(InRange(int64_t{3}, int64_t{1} << 20));
  command->add_option("--seed", bench.seed, "Seed of the random inputs");
  command->add_flag("--counters", bench.counters,
                    "Also the resources of each kernel on an H200, in the first and the last mode");
  command->add_flag("--json", bench.json, "One line of JSON per program");
}

void AddCalibrate(CLI::App& app, CalibrateCommand& calibrate) {
  CLI::App* command = app.add_subcommand("calibrate", kCalibrateHelp);
  command->footer(kCalibrateExamples);
  command->add_option("-o", calibrate.output, "The machine file to write (default: the cache's)");
  command->add_flag("--quiet", calibrate.quiet, "No progress on standard error");
  command->add_option("--fit", calibrate.fit, "Fit rates to kernels of this JSON file instead")
      ->group("");
  command->add_option("--machine", calibrate.machine, "The machine file to fit")->group("");
}

void AddExplain(CLI::App& app, ExplainCommand& explain) {
  CLI::App* command = app.add_subcommand("explain", kExplainHelp);
  command->footer(kExplainExamples);
  command->add_option("FILE", explain.file, "A program, - is standard input; or a rule's name");
  command->add_flag("--json", explain.json, "One line of JSON per program, with decisions");
  AddFusion(*command, explain.fusion);
  command
      ->add_option("--target", explain.target,
                   "host (the default), h200, or host,h200: which is faster, including "
                   "transfers, and the break-even size")
      ->check(OneOf({"host", "h200", "host,h200", "h200,host"}));
  command->add_flag("--xla-dump", explain.xla_dump,
                    "FILE is XLA's after_optimizations text: its kernels and fusion boundaries");
  command->add_flag("--decisions", explain.decisions, "Also print every decision");
  command->add_flag("--unfused", explain.unfused, "One kernel for each instruction");
  command->add_option(
      "--kernel", explain.kernel,
      "Print this kernel (its name, or its number from 1 in execution order) as kernel IR and "
      "as LLVM IR or CUDA C++");
  command->add_option("--write-plan", explain.write_plan,
                      "Write the plan to this file, as JSON: `run --plan` rebuilds it");
  command->add_flag("--dot", explain.dot,
                    "A graph for Graphviz: kernels are clusters, edges are labelled with bytes");
  command
      ->add_option(
          "--diff", explain.diff,
          "What two plans have in common: two of none, rules, greedy and search for FILE, or "
          "two programs")
      ->type_size(2)
      ->allow_extra_args(false);
  command->add_flag("--compare,!--no-compare", explain.compare,
                    "Also plan it without fusion, for the heading (the default)");
  command->add_flag("--measure", explain.measure,
                    "Run every kernel individually on random arguments and print its time");
  command->add_option("--seconds", explain.seconds, "Measurement time per kernel (default: 0.03)");
  command->add_option("--device", explain.device, "Measure GPU kernels on this device")->group("");
  AddHorizontalOption(*command, explain.horizontal);
  command->add_flag("--strict", explain.strict,
                    "No rewrite that may change a bit of a result; exit 3 on a host step");
}

void AddLint(CLI::App& app, ExplainCommand& lint) {
  CLI::App* command = app.add_subcommand("lint", kLintHelp);
  command->footer(kLintExamples);
  command->add_option("FILE", lint.file, "A program; - is standard input")->required();
  command->add_flag("--json", lint.json, "One line of JSON per program");
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
  ExplainCommand lint;
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
  if (app.got_subcommand("lint")) {
    ExplainCommand lint = commands.lint;
    lint.lints = true;
    return Explain(lint, console);
  }
  if (app.got_subcommand("bench")) return Bench(commands.bench, console);
  if (app.got_subcommand("calibrate")) return Calibrate(commands.calibrate, console);
  if (app.got_subcommand("bisect")) return Bisect(commands.bisect, console);
  return Reduce(commands.reduce, console);
}

BadUsage UsageErrorOf(const CLI::App& app, const std::vector<std::string>& words,
                      const CLI::ParseError& error) {
  BadUsage bad_usage;
  bad_usage.words = words;
  bad_usage.parser_message = error.what();
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
      "A fusing tensor compiler: reads, checks, runs and converts StableHLO and HLO programs.",
      "tokamak");
  app.footer("`tokamak COMMAND --help` shows details and examples.");
  app.set_version_flag("--version", "tokamak " + std::string(kVersion));
  app.require_subcommand(1);
  Commands commands;
  AddRun(app, commands.run);
  AddCheck(app, commands.check);
  AddConvert(app, commands.convert);
  AddOps(app, commands.ops);
  AddReduce(app, commands.reduce);
  AddOpt(app, commands.opt);
  AddBisect(app, commands.bisect);
  AddKernels(app, commands.kernels);
  AddExplain(app, commands.explain);
  AddLint(app, commands.lint);
  AddCalibrate(app, commands.calibrate);
  AddBench(app, commands.bench);
  try {
    std::vector<std::string> reversed(words.rbegin(), words.rend());  // CLI11's order
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    const auto chosen = app.get_subcommands();
    console.Out(chosen.empty() ? app.help() : chosen[0]->help());
    return 0;
  } catch (const CLI::CallForVersion& version) {
    console.Out(std::string(version.what()) + "\n");
    return 0;
  } catch (const CLI::ParseError& error) {
    return console.Report(UsageError(UsageErrorOf(app, words, error)));
  }
  return Dispatch(app, commands, console);
}

}  // namespace

int RunCommandLine(const std::vector<std::string>& words, Console& console) {
  try {
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
