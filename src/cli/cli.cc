#include <algorithm>
#include <new>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/usage.h"
#include "support/version.h"

// The only file that knows the command line's words (and CLI11, which costs
// seconds to compile).

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
  tokamak run model.hlo --seed 1                         inputs drawn from seed 1
  tokamak run model.hlo --inputs io.npz --expect io.npz  compare with out_0 ... of io.npz
  tokamak run model.mlirbc --inputs in.npz --outputs out.npz

Default tolerance of --expect: integers and preds exact; floats 1e-4 + 1e-4*|expected|
(bf16, f16: 2e-2; f8: 1e-1); NaN equals NaN. An element also agrees when the program run
again with reals rounded at the end only, or with subnormal numbers taken as 0 (as XLA
CPU has them), comes close; a note says so. --strict judges by the first run alone.
Exit codes: 0 fine, 1 a mismatch or a refused check, 2 bad input or usage,
3 unsupported, 4 the machine, 70 a bug of ours. Several programs: the highest.
)";
constexpr char kCheckHelp[] = "Reads and verifies every program of each FILE.";
constexpr char kCheckExamples[] =
    R"(FILE is StableHLO text (.mlir), MLIR bytecode (.mlirbc) or HLO text (.hlo); which
one is seen from its bytes. A refusal says where and why.

Examples:
  tokamak check model.mlir
  tokamak check *.hlo --json             one line of JSON a file
  tokamak check model.hlo --histogram    how often each op stands in it
  tokamak check model.hlo --round-trip   also prints it in both forms and reads that back
)";
constexpr char kConvertHelp[] = "Prints every program of FILE in another form.";
constexpr char kConvertExamples[] = R"(Examples:
  tokamak convert model.mlirbc --to mlir
  tokamak convert model.mlir --to hlo -o model.hlo

What the other form lacks is printed in our own spelling, which we read back.
)";
constexpr char kOpsHelp[] = "Shows every op and who can do what with it.";
constexpr char kOpsExamples[] = R"(Examples:
  tokamak ops
  tokamak ops --json
  tokamak ops --markdown --tests tests/run > docs/ops.md
)";
constexpr char kReduceHelp[] =
    "Makes the program of FILE smaller while it still fails, and writes the smallest.";
constexpr char kReduceExamples[] =
    R"(What failing means is given by --command (a shell command in which {} is the file;
its exit code must stay what it is for FILE) or by --fails-with (the exit code of
`tokamak run`, or "mismatch" for 1). An attempt that takes longer than --timeout is killed, with
all that it started, and counts as not failing; to reduce a program that hangs, let the command
tell: --command 'timeout 10 ./program {}', which exits with 124.

Examples:
  tokamak reduce big.hlo --fails-with mismatch --inputs io.npz --expect io.npz
  tokamak reduce big.mlir --fails-with 70 -o small.hlo
  tokamak reduce big.hlo --command 'tokamak opt {} --target h200 --check-values'
  tokamak reduce big.hlo --command './crashes.sh {}' --seconds 60
)";

constexpr char kKernelsHelp[] = "Prints the kernels and steps that FILE becomes on a CPU or a GPU.";
constexpr char kKernelsExamples[] = R"(Examples:
  tokamak kernels model.hlo                              kernel form, then the steps
  tokamak kernels model.hlo --target cuda --cuda         as CUDA C++ for an H200
  tokamak kernels model.hlo --no-text --fusion=greedy    the steps alone
)";
constexpr char kExplainHelp[] =
    "Tells what FILE becomes on the CPU: its kernels, what each does, and what has none.";
constexpr char kExplainExamples[] =
    R"(The heading holds what the program takes fused and with a kernel for each instruction. Then
comes a row for each step, in the order in which they run; of a training step grouped by forward,
backward and update, as JAX's names tell. Below each row stand its instructions and the lines that
they come from. Times are predicted, and measured with --measure.

A host step is an instruction that no kernel does: the interpreter does it, and the line
below says why. `tokamak kernels FILE` prints the kernels themselves.

Examples:
  tokamak explain model.mlir
  tokamak explain model.hlo --json         kernels and decisions, for programs
  tokamak explain model.hlo --strict       exit 3 when there is a host step
  tokamak explain model.hlo --fusion=rules --decisions   as XLA would, by the paper's rules
  tokamak explain model.hlo --kernel add_3       the kernel itself, and its LLVM IR
  tokamak explain model.hlo --target h200 --kernel 2   the second step as CUDA C++
  tokamak explain model.hlo --dot | dot -Tsvg > model.svg
  tokamak explain model.hlo --diff rules search  which kernels only one of the plans has
  tokamak explain --diff before.hlo after.hlo    the same of two programs
  tokamak explain model.hlo --target host,h200   where it is faster, and at what size that turns
  tokamak explain model.hlo --never-fuse=train.py:12 --require-fused=a,b   what users pin
  tokamak explain xla.concat-multi-user    what a rule means
  tokamak explain --as-given module_0001.jit_f.after_optimizations.txt   what XLA decided
)";
constexpr char kBenchHelp[] =
    "Measures FILE fused by each way, in turn, and what its kernels take.";
constexpr char kBenchExamples[] =
    R"(Each way is compiled, called once, then called in turn with the others, round after round.
Below the table stands after how many calls the last way has paid for its compilation.

--counters has NVRTC compile the kernels for an H200, which takes no GPU: registers and spills of a
thread, threads of a team, teams, team memory, and the share of a multiprocessor's threads that
these leave room for. Counters of the hardware (instructions, stalls, bytes of DRAM) are not among
them: `ncu tokamak run FILE --backend cuda --seed 1` shows those where ncu may read them.

Examples:
  tokamak bench model.hlo
  tokamak bench model.mlir --fusion none,search --seconds 10 --json
  tokamak bench model.mlir --backend cuda --counters
)";
constexpr char kLintHelp[] = "Names the lines of FILE that cost more than they need.";
constexpr char kLintExamples[] =
    R"(Each remark has its rule, the microseconds of a call that it is about, the lines of the user's
program, and what to write in their place:
  lint.concat-multi-user   a concatenation is stored because several users read it
  lint.unrolled-loop       a loop in Python has become as many copies of its body
  lint.one-dispatch        a call takes longer to be called than to be computed

Examples:
  tokamak lint model.mlir
  tokamak lint model.mlir --json
)";
constexpr char kCalibrateHelp[] = "Measures this machine: what prices of kernels are made of.";
constexpr char kCalibrateExamples[] =
    R"(Bandwidth by size, operations, launches and threads are measured with kernels of our own, in
less than half a minute, and kept in the cache folder for this machine. Run it when nothing else
runs. `tokamak explain` says which machine file it prices with.

Examples:
  tokamak calibrate
  tokamak calibrate -o my_machine.json
)";
constexpr char kOptHelp[] = "Runs passes over every program of FILE and prints the result as HLO.";
constexpr char kOptExamples[] =
    R"(A pipeline is a list of passes; a group in parentheses with a star is repeated until
a round changes nothing: --passes='inline,dce,(simplify,cse)*'. "default" is what a
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
  tokamak opt model.hlo --check-each --json          the same for each pass alone
  tokamak opt model.hlo --fusion=rules --decisions   the fusions of XLA as the paper has them
  tokamak opt model.hlo --fusion=rules --lift=concat-multi-user
)";
constexpr char kBisectHelp[] = "Names the pass that changes the values or the speed of FILE.";
constexpr char kBisectExamples[] =
    R"(Runs the pipeline and, after each pass, the program: on drawn inputs, on inputs full
of NaN, infinities, zeros and extremes, and on those of --inputs.

Examples:
  tokamak bisect model.hlo --by values       the first pass after which a bit differs (exit 1)
  tokamak bisect model.hlo --target h200     also those that rewrite for a GPU; once one may have
                                             rounded, values are compared within rounding
  tokamak bisect model.hlo --by time         how long the program runs after each pass
)";

// The help of an option names its values, so these add nothing to its line.
CLI::Validator OneOf(std::vector<std::string> names) {
  auto fault = [names = std::move(names)](const std::string& word) {
    bool known = std::find(names.begin(), names.end(), word) != names.end();
    return known ? std::string() : NoneOf(word, names);
  };
  return CLI::Validator(fault, "");
}

template <typename T>
CLI::Validator InRange(T low, T high) {
  return CLI::Range(low, high).description("");
}

void AddFusion(CLI::App& command, FusionWords& fusion) {
  command.add_option("--fusion", fusion.mode,
                     "What makes kernels of instructions: none, rules, greedy or search");
  command.add_option("--effort", fusion.effort,
                     "What planning may take: fast (tier 0 alone), default (about a second for a "
                     "large program) or max");
  command.add_option("--lift", fusion.lift, "Rules of --fusion=rules that are left out")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      .add_option("--skip", fusion.skip, "Passes that are left out, of --fusion=rules or before")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      .add_option("--never-fuse", fusion.pins.never_fuse,
                  "Instructions (names, or train.py:12) that no kernel shares with others")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      .add_option("--fuse", fusion.pins.fuse,
                  "Instructions that are one kernel, if there can be one: --fuse=a,b")
      ->allow_extra_args(false);
  command
      .add_option("--require-fused", fusion.pins.require_fused,
                  "The same, and an error that says why where it cannot be")
      ->allow_extra_args(false);
  command.add_option("--plan", fusion.plan,
                     "Build the kernels of this plan (`explain --write-plan`) without a search");
}

void AddExplainFlag(CLI::App& command, bool& flag) {
  command.add_flag("--explain_fusion_decisions,--explain-fusion-decisions", flag,
                   "Also print what `tokamak explain --decisions` tells of kernels, on standard "
                   "error");
}

void AddRun(CLI::App& app, RunCommand& run) {
  CLI::App* command = app.add_subcommand("run", kRunHelp);
  command->footer(kRunExamples);
  command->add_option("FILE", run.files, "Programs: .mlir, .mlirbc or .hlo; - is standard input")
      ->required();
  command->add_option("--backend", run.backend,
                      "interp, cpu or cuda (default: the best one built in)");
  command->add_flag("--batch", run.batch,
                    "FILE is a JSON list of programs with arrays of their own: {\"file\": F, "
                    "\"inputs\": F.npz, \"outputs\": F.npz}");
  command->add_option("--inputs", run.inputs, "A .npz file with in_0, in_1 ...");
  command->add_option("--expect", run.expect, "A .npz file with out_0, out_1 ... to compare with");
  command->add_option("--outputs", run.outputs, "Write the results to this .npz file");
  command->add_option("--repeat", run.repeat, "Run N times, print times, and compare the bits")
      ->check(InRange(int64_t{1}, int64_t{1} << 40));
  AddFusion(*command, run.fusion);
  AddExplainFlag(*command, run.explain);
  command->add_option("--seed", run.seed, "Draw the inputs: reals in [-1, 1), integers in [0, 4)");
  command->add_flag(
      "--strict", run.strict,
      "No rewrite that may change a value, no instruction without a kernel (unless the "
      "backend is interp), no second opinion of --expect");
  command
      ->add_option("--precision", run.precision,
                   "Of dots and convolutions that leave it to the compiler: default (on a GPU 10 "
                   "bits of an f32's mantissa) or highest")
      ->check(OneOf({"default", "highest"}));
  command->add_flag("--oracle", run.oracle,
                    "Keep reals in double to the end instead of rounding after every op");
  command->add_flag("--flush-subnormals", run.flush_subnormals,
                    "Take subnormal numbers for 0 after every op, as XLA CPU does");
  command->add_option("--rtol", run.tolerance.rtol, "Relative tolerance of --expect");
  command->add_option("--atol", run.tolerance.atol, "Absolute tolerance of --expect");
  command->add_option("--ulp", run.tolerance.ulp, "Tolerance of --expect in representable steps");
  command->add_flag("--json", run.json, "One line of JSON a file");
  // Tests of the tests only: hidden.
  command->add_flag("--spoil", run.spoil, "Change what every check expects")->group("");
  command->add_flag("--hoist", run.hoist, "Constants of the entry become arguments")->group("");
  command->add_option("--spoil-kernel", run.spoil_kernel, "It writes a wrong number")->group("");
}

void AddCheck(CLI::App& app, CheckCommand& check) {
  CLI::App* command = app.add_subcommand("check", kCheckHelp);
  command->footer(kCheckExamples);
  command->add_option("FILE", check.files, "Programs; - is standard input")->required();
  command->add_flag("--json", check.json, "One line of JSON a file");
  command->add_flag("--hash", check.hash,
                    "Print the structural hash: equal programs, equal hashes");
  command->add_flag("--histogram", check.histogram, "Print how often each op stands in it");
  command->add_flag("--round-trip", check.round_trip, "Print it in both forms and read that back");
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
  command->add_flag("--markdown", ops.markdown, "As docs/ops.md has it");
  command->add_flag("--samples", ops.samples, "The programs that cpu and cuda are told from")
      ->group("");
  command->add_option("--tests", ops.tests, "Count the programs of this folder that hold the op");
}

void AddReduce(CLI::App& app, ReduceCommand& reduce) {
  CLI::App* command = app.add_subcommand("reduce", kReduceHelp);
  command->footer(kReduceExamples);
  command->add_option("FILE", reduce.file, "A program that fails")->required();
  command->add_option("--command", reduce.command, "A shell command with {} for the file");
  command->add_option("--fails-with", reduce.fails_with, "An exit code of `run`, or mismatch");
  command->add_option("--inputs", reduce.inputs, "Inputs of `run` (default: drawn)");
  command->add_option("--expect", reduce.expect, "Expected results of `run`");
  command->add_option("--seed", reduce.seed, "Draw the inputs of `run` from this seed");
  command->add_option("--seconds", reduce.seconds, "Stop after this long");
  command
      ->add_option("--timeout", reduce.timeout,
                   "Kill an attempt after this many seconds; it counts as not failing")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_option("-o,--output", reduce.output,
                      "Where the smallest goes (default: FILE.reduced.hlo)");
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
  command->add_option("--vector-bits", opt.vector_bits, "Of the target, whatever it has");
  command->add_option("--passes", opt.passes, "The pipeline (default: default, cpu or gpu)");
  command->add_option("--skip", opt.skip, "Leave these passes out")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--stop-after", opt.stop_after, "Stop after the first run of this pass");
  command->add_option("--dump-after", opt.dump_after, "Also print the program after these passes")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--fusion", opt.fusion,
                      "rules: also the paper's four fusion passes; none, greedy, search: nothing");
  command->add_option("--lift", opt.lift, "Rules of those passes that are left out")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_flag("--strict", opt.strict, "No rewrite that may change a bit of a result");
  command->add_flag("--fast-math", opt.fast_math, "Rules that hold for real numbers only, too");
  command->add_flag("--time-passes", opt.time_passes, "Print a table of passes instead");
  command->add_flag("--verify-each", opt.verify_each, "Verify the program after each pass");
  command->add_flag("--decisions", opt.decisions, "Print every change, on standard error");
  command->add_flag("--check-values", opt.check_values,
                    "Run the program before and after, and compare the bits");
  command->add_flag("--check-each", opt.check_each, "The same for each pass alone, as a table");
  command->add_option("--seconds", opt.seconds, "Programs that run longer are not compared");
  command->add_option("--inputs", opt.inputs, "Compare on these inputs, too: a .npz file");
  AddExplainFlag(*command, opt.explain);
  command->add_flag("--list", opt.list, "Show all passes with their targets, and the pipelines");
  command->add_flag("--json", opt.json, "Passes, decisions and comparisons as a line of JSON");
  command->add_option("-o,--output", opt.output, "Where the result goes; - is standard output");
}

void AddBisect(CLI::App& app, BisectCommand& bisect) {
  CLI::App* command = app.add_subcommand("bisect", kBisectHelp);
  command->footer(kBisectExamples);
  command->add_option("FILE", bisect.file, "A program; - is standard input")->required();
  command->add_option("--by", bisect.by, "values or time")->check(OneOf({"values", "time"}));
  AddPassTarget(*command, bisect.target);
  command->add_option("--passes", bisect.passes, "The pipeline (default: default, cpu or gpu)");
  command->add_option("--skip", bisect.skip, "Leave these passes out")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--inputs", bisect.inputs, "Run on these inputs, too: a .npz file");
  command->add_option("--seconds", bisect.seconds, "Give up on a program that runs longer");
  command->add_flag("--strict", bisect.strict, "No rewrite that may change a bit of a result");
  command->add_flag("--json", bisect.json, "One line of JSON a program");
}

void AddPacks(CLI::App& command, std::string& packs) {
  command
      .add_option("--packs", packs,
                  "Kernels that run as one launch: none (the default for CPUs), auto (where it "
                  "pays; for GPUs), all")
      ->check(OneOf({"none", "auto", "all"}));
}

void AddKernels(CLI::App& app, KernelsCommand& kernels) {
  CLI::App* command = app.add_subcommand("kernels", kKernelsHelp);
  command->footer(kKernelsExamples);
  command->add_option("FILE", kernels.file, "A program; - is standard input")->required();
  command->add_option("--passes", kernels.passes, "The pipeline before it");
  command->add_option("--target", kernels.target, "cpu or cuda (an H200)")
      ->check(OneOf({"cpu", "cuda"}));
  command->add_flag("--cuda", kernels.cuda, "As CUDA C++, for --target cuda");
  command->add_flag("--hoist", kernels.hoist, "Constants of the entry become arguments")->group("");
  command
      ->add_option("--vector-bits", kernels.vector_bits,
                   "Of the machine: 64, 128, 256 ... 4096 (default: this one)")
      ->check(OneOf({"64", "128", "256", "512", "1024", "2048", "4096"}));
  command
      ->add_option("--memory-limit", kernels.memory_limit,
                   "Bytes that temporary arrays may take at a time (default: any)")
      ->check(InRange(int64_t{1}, int64_t{1} << 62));
  command
      ->add_option("--library", kernels.library,
                   "Whether it has OpenBLAS: on, off, or auto (the default): as this machine")
      ->check(OneOf({"auto", "on", "off"}));
  AddFusion(*command, kernels.fusion);
  command->add_flag("--unfused", kernels.unfused, "One kernel for each instruction");
  AddPacks(*command, kernels.packs);
  command->add_flag("--text,!--no-text", kernels.text, "Print the kernels, not only the steps");
  command->add_flag("--decisions", kernels.decisions, "Print every judgement, on standard error");
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
                   "Ways to compare, with commas between them (none,rules,greedy,search)")
      ->delimiter(',')
      ->check(OneOf({"none", "rules", "greedy", "search"}));
  command->add_option("--effort", bench.effort, "What planning may take: fast, default or max");
  command->add_option("--seconds", bench.seconds, "Of measuring, in all (3 rounds at least)")
      ->check(InRange(0.0, 1e6));
  command->add_option("--rounds", bench.rounds, "At most so many")
      ->check(InRange(int64_t{3}, int64_t{1} << 20));
  command->add_option("--seed", bench.seed, "Of the inputs, which are drawn");
  command->add_flag("--counters", bench.counters,
                    "Also what each kernel takes of an H200, by the first way and by the last");
  command->add_flag("--json", bench.json, "One line of JSON a program");
}

void AddCalibrate(CLI::App& app, CalibrateCommand& calibrate) {
  CLI::App* command = app.add_subcommand("calibrate", kCalibrateHelp);
  command->footer(kCalibrateExamples);
  command->add_option("-o", calibrate.output, "The machine file to write (default: the cache's)");
  command->add_flag("--quiet", calibrate.quiet, "No progress on standard error");
  command->add_option("--fit", calibrate.fit, "Fit rates to kernels of this JSON file instead")
      ->group("");
  command->add_option("--machine", calibrate.machine, "The machine file that is fitted")->group("");
}

void AddExplain(CLI::App& app, ExplainCommand& explain) {
  CLI::App* command = app.add_subcommand("explain", kExplainHelp);
  command->footer(kExplainExamples);
  command->add_option("FILE", explain.file, "A program, - is standard input; or a rule's name");
  command->add_flag("--json", explain.json, "One line of JSON a program, decisions among it");
  AddFusion(*command, explain.fusion);
  command
      ->add_option("--target", explain.target,
                   "host (the default), h200, or host,h200: where it is faster, transfers "
                   "included, and at what size that turns")
      ->check(OneOf({"host", "h200", "host,h200", "h200,host"}));
  command->add_flag("--as-given", explain.as_given,
                    "FILE is XLA's after_optimizations text: what XLA made, and where it stopped");
  command->add_flag("--decisions", explain.decisions, "Print every judgement, too");
  command->add_flag("--unfused", explain.unfused, "One kernel for each instruction");
  command->add_option(
      "--kernel", explain.kernel,
      "Print this kernel (its name, or its number from 1 as steps run) as kernel form and as "
      "LLVM IR or CUDA C++");
  command->add_option("--write-plan", explain.write_plan,
                      "Write the plan to this file, as JSON: `run --plan` builds it again");
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
                    "Run every kernel by itself, on drawn arguments, and print what it takes");
  command->add_option("--seconds", explain.seconds, "For each kernel (default: 0.03)");
  command->add_option("--device", explain.device, "A GPU's are measured there")->group("");
  AddPacks(*command, explain.packs);
  command->add_flag("--strict", explain.strict,
                    "No rewrite that may change a bit of a result; exit 3 on a host step");
}

void AddLint(CLI::App& app, ExplainCommand& lint) {
  CLI::App* command = app.add_subcommand("lint", kLintHelp);
  command->footer(kLintExamples);
  command->add_option("FILE", lint.file, "A program; - is standard input")->required();
  command->add_flag("--json", lint.json, "One line of JSON a program");
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

RefusedWords Refused(const CLI::App& app, const std::vector<std::string>& words,
                     const CLI::ParseError& error) {
  RefusedWords refused;
  refused.words = words;
  refused.fault = error.what();
  for (const CLI::App* command : app.get_subcommands({}))
    refused.commands.push_back(command->get_name());
  refused.unexpected = app.remaining(/*recurse=*/true);
  const auto chosen = app.get_subcommands();
  if (chosen.empty()) return refused;
  refused.command = chosen[0]->get_name();
  for (const CLI::Option* option : chosen[0]->get_options())
    for (const std::string& name : option->get_lnames()) refused.options.push_back("--" + name);
  return refused;
}

int ParseAndRun(const std::vector<std::string>& words, Console& console) {
  CLI::App app(
      "A fusing tensor compiler: reads, checks, runs and converts StableHLO and HLO programs.",
      "tokamak");
  app.footer("`tokamak COMMAND --help` tells more and shows examples.");
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
    std::vector<std::string> reversed(words.rbegin(), words.rend());  // as CLI11 wants them
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    const auto chosen = app.get_subcommands();
    console.Out(chosen.empty() ? app.help() : chosen[0]->help());
    return 0;
  } catch (const CLI::CallForVersion& version) {
    console.Out(std::string(version.what()) + "\n");
    return 0;
  } catch (const CLI::ParseError& error) {
    return console.Report(UsageError(Refused(app, words, error)));
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
