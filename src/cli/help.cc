#include "cli/help.h"

#include <algorithm>
#include <iterator>

namespace tokamak {

const char kTopHelp[] =
    R"(FILE is StableHLO text (.mlir), MLIR bytecode (.mlirbc) or HLO text (.hlo). JAX writes
one with `jax.jit(f).lower(*args).as_text()`.

Examples:
  tokamak run model.mlir --seed 1     runs it on random inputs
  tokamak explain model.mlir          its kernels, their predicted times, and the reasons
  tokamak lint model.mlir             the source lines that cost more time than necessary
  tokamak explain TK2103              what an error code, a rule or a pass means

`tokamak COMMAND --help` shows the options of a command, with examples.
)";

const CommandHelp kRunHelp = {
    "Runs @main (or the only public function) of each program in FILE.",
    R"(Inputs are the arrays in_0, in_1 ... of --inputs; results are out_0, out_1 ...; tuples are
flattened depth first. bf16, f8 and sub-byte types are stored as unsigned arrays of their
bits. Checks inside the program (check.expect_eq ...) run and are counted: "checks: 3 passed".

Examples:
  tokamak run add.mlir                                   a program without inputs
  tokamak run model.hlo --seed 1                         random inputs of seed 1
  tokamak run model.hlo --inputs io.npz --expect io.npz  compares with out_0 ... of io.npz
  tokamak run model.mlirbc --inputs in.npz --outputs out.npz

Default tolerance of --expect: integers and preds exact; floats 1e-4 + 1e-4*|expected|
(bf16, f16: 2e-2; f8: 1e-1); NaN equals NaN. If an element differs, the program runs again
with floats rounded only at the end, then with subnormal numbers flushed to 0 (as on XLA
CPU); an element that agrees with one of these runs is accepted, and a note reports it.
--strict compares with the first run only.

Exit codes: 0 success, 1 a mismatch or a failed check, 2 bad input or usage, 3 unsupported,
4 no memory, disk or device, 70 internal error. With several programs, the highest.
)"};

const CommandHelp kCheckHelp = {
    "Parses and verifies every program of each FILE.",
    R"(FILE is StableHLO text (.mlir), MLIR bytecode (.mlirbc) or HLO text (.hlo); the format is
detected from the bytes. Errors have a location and a reason.

Examples:
  tokamak check model.mlir
  tokamak check *.hlo --json             one line of JSON per file
  tokamak check model.hlo --histogram    how often each op occurs
  tokamak check model.hlo --round-trip   also prints it in both formats and parses that again
)"};

const CommandHelp kConvertHelp = {
    "Prints every program of FILE in another format.",
    R"(Features that the other format lacks are printed in Tokamak's own syntax, which it can parse.

Examples:
  tokamak convert model.mlirbc --to mlir
  tokamak convert model.mlir --to hlo -o model.hlo
)"};

const CommandHelp kOpsHelp = {"Shows every op and its support on each backend.",
                              R"(Examples:
  tokamak ops
  tokamak ops --json
  tokamak ops --markdown --tests tests/run > docs/ops.md
)"};

const CommandHelp kReduceHelp = {
    "Makes a failing program smaller while it still fails, and writes the smallest.",
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
)"};

const CommandHelp kKernelsHelp = {
    "Prints the kernels and steps that FILE becomes on a CPU or a GPU.",
    R"(Examples:
  tokamak kernels model.hlo                              kernel IR, then the steps
  tokamak kernels model.hlo --target cuda --cuda         as CUDA C++ for an H200
  tokamak kernels model.hlo --no-text --fusion=greedy    only the steps
)"};

const CommandHelp kExplainHelp = {
    "Explains how FILE is compiled: kernels, costs, and ops without a kernel.",
    R"(The heading has the totals of the program fused and with one kernel per instruction. It is
followed by a row per step in execution order; the steps of a training step are grouped by
forward, backward and update, which are derived from JAX's names. Below each row are its
instructions and their source lines. Times are predicted, or measured with --measure.

A host step is an instruction without a kernel: it is interpreted, and the line below has the
reason. `tokamak kernels FILE` prints the kernels themselves.

Examples:
  tokamak explain model.mlir
  tokamak explain model.hlo --json               kernels and decisions, machine-readable
  tokamak explain model.hlo --strict             exit 3 if there is a host step
  tokamak explain model.hlo --fusion=rules --decisions   with XLA's fusion rules (2023)
  tokamak explain model.hlo --kernel add_3       the kernel itself, and its LLVM IR
  tokamak explain model.hlo --target h200 --kernel 2     the second step as CUDA C++
  tokamak explain model.hlo --dot | dot -Tsvg > model.svg
  tokamak explain model.hlo --diff rules search  the kernels that only one of the plans has
  tokamak explain --diff before.hlo after.hlo    the same for two programs
  tokamak explain model.hlo --target host,h200   which is faster, and the break-even size
  tokamak explain model.hlo --never-fuse=train.py:12 --require-fused=a,b   fusion constraints
  tokamak explain xla.concat-multi-user          what a rule means; also a pass, or TK2103
  tokamak explain model.hlo --html model.html    a page for browsers
  tokamak explain model.hlo --diff rules search --html diff.html   both plans, side by side
  tokamak explain model.hlo --trace model.json   the timeline, for ui.perfetto.dev
  tokamak explain --xla-dump module_0001.jit_f.after_optimizations.txt     what XLA decided
  tokamak explain --xla-dump dump.txt --html xla.html   beside what Tokamak makes of it
)"};

const CommandHelp kBenchHelp = {
    "Measures FILE under each fusion mode, and the resources of its kernels.",
    R"(The program is compiled and called once in each mode; then calls of the modes alternate.
Below the table is the number of calls after which the last mode amortizes its compilation.

--counters compiles the kernels for an H200 with NVRTC, which needs no GPU: registers and
spills per thread, threads per block, blocks, shared memory, and occupancy. Hardware counters
(instructions, stalls, DRAM bytes) are not included: where ncu has permission to read them,
`ncu tokamak run FILE --backend cuda --seed 1` shows them.

Examples:
  tokamak bench model.hlo
  tokamak bench model.mlir --fusion none,search --seconds 10 --json
  tokamak bench model.mlir --backend cuda --counters
)"};

const CommandHelp kLintHelp = {
    "Names the source lines of FILE that cost more time than necessary.",
    R"(Each finding has its rule, the microseconds per call that it costs, the lines of the user's
program, and what to write instead. Notes name costs that Tokamak removes itself, and what that
saves. `tokamak explain lint.unrolled-loop` describes a rule; docs/lint.md lists them.

A comment `# tokamak: ignore[lint.unrolled-loop]` on a line or above it suppresses findings there;
without brackets, those of all rules.

Exit code 1: the warnings reach --fail-on, or there is one with --strict.

`tokamak lint [options] script.py [arguments]` runs a Python script and lints each program that it
compiles, times its calls. Then --fix (or --fix=FILE) also writes a patch, whose changes were
verified by running it, --apply changes the files, and --timeout ends the script.

Examples:
  tokamak lint model.mlir
  tokamak lint --fix train.py --steps 100
  tokamak lint model.mlir --target h200 --fail-on 10%
  tokamak lint model.mlir --ignore dispatch-bound,tf32 --strict
  tokamak lint model.mlir --sarif > lint.sarif
)"};

const CommandHelp kCalibrateHelp = {
    "Measures the rates of this machine for the cost model.",
    R"(Bandwidth by size, operations, launches and threads are measured with generated kernels, in
less than half a minute, and saved in the cache folder for this machine. Run it on an idle
machine. `tokamak explain` reports the machine file that it uses.

Examples:
  tokamak calibrate
  tokamak calibrate -o my_machine.json
)"};

const CommandHelp kOptHelp = {
    "Runs passes over every program of FILE and prints the result as HLO.",
    R"(A pipeline is a list of passes; a group in parentheses with a star is repeated until an
iteration changes nothing: --passes='inline,dce,(simplify,cse)*'. A compilation runs the
pipeline "default" first, then "cpu" or "gpu" for its target. `tokamak opt --list` shows all
passes and these pipelines.

Examples:
  tokamak opt model.hlo                              the default pipeline
  tokamak opt model.mlir --passes=inline,dce         some passes
  tokamak opt model.hlo --target h200                also the passes for a GPU
  tokamak opt model.hlo --skip=cse --time-passes     a table: instructions, changes, ms
  tokamak opt model.hlo --decisions                  what each rule did, on standard error
  tokamak opt model.hlo --stop-after=inline          stops after the first run of inline
  tokamak opt model.hlo --dump-after=cse             also prints it after each run of cse
  tokamak opt model.hlo --check-values               compares the values before and after
  tokamak opt model.hlo --check-each --json          the same for each pass separately
  tokamak opt model.hlo --fusion=rules --decisions   XLA's fusion passes (2023, arXiv 2301.13062)
  tokamak opt model.hlo --fusion=rules --lift=concat-multi-user
)"};

const CommandHelp kBisectHelp = {
    "Names the pass that changes the values or the speed of FILE.",
    R"(Runs the program after each pass of the pipeline: on random inputs, on inputs with many NaN,
infinities, zeros and extremes, and on those of --inputs.

Examples:
  tokamak bisect model.hlo --by values       the first pass after which a bit differs (exit 1)
  tokamak bisect model.hlo --target h200     also the passes for a GPU; after a pass that may
                                             round, values are compared within rounding
  tokamak bisect model.hlo --by time         how long the program runs after each pass
)"};

std::string_view ValueName(std::string_view option) {
  struct Row {
    std::string_view option, value;
  };
  constexpr Row kRows[] = {
      {"FILE", ""},           {"backend", "NAME"},      {"batch", "FILE"},
      {"by", "NAME"},         {"command", "COMMAND"},   {"diff", "A B"},
      {"dump-after", "A,B"},  {"effort", "NAME"},       {"expect", "FILE.npz"},
      {"fails-with", "N"},    {"fuse", "A,B"},          {"fusion", "NAME"},
      {"horizontal", "NAME"}, {"inputs", "FILE.npz"},   {"kernel", "NAME"},
      {"library", "NAME"},    {"lift", "A,B"},          {"never-fuse", "A,B"},
      {"o", "FILE"},          {"output", "FILE"},       {"outputs", "FILE.npz"},
      {"passes", "A,B"},      {"plan", "FILE"},         {"plugin", "FILE"},
      {"precision", "NAME"},  {"require-fused", "A,B"}, {"schedule", "KERNEL=SCHEDULE"},
      {"skip", "A,B"},        {"stop-after", "NAME"},   {"target", "NAME"},
      {"tests", "FOLDER"},    {"to", "NAME"},           {"write-plan", "FILE"},
  };
  const Row* row = std::find_if(std::begin(kRows), std::end(kRows),
                                [&](const Row& at) { return at.option == option; });
  return row == std::end(kRows) ? "" : row->value;
}

std::string Wrapped(std::string_view text) {
  constexpr size_t kColumns = 68;  // of 100, beside the column of the options' names (chosen)
  std::string wrapped;
  size_t column = 0;
  while (!text.empty()) {
    std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    bool fits = column + 1 + word.size() <= kColumns;
    if (column > 0) wrapped += fits ? ' ' : '\n';
    column = (column > 0 && fits ? column + 1 : 0) + word.size();
    wrapped += word;
  }
  return wrapped;
}

}  // namespace tokamak
