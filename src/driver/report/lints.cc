// Advice about a user's program, with the predicted microseconds that each change could save:
//
//   lint.concat-multi-user   a concatenation is stored and read again by several steps
//   lint.unrolled-loop       a Python loop was traced into many copies of one line
//   lint.dispatch-bound      a call computes for less time than it takes to dispatch
//
// Savings must not be counted twice: each microsecond of a step is claimed by at most one lint
// (Claim). An unrolled loop is recognized by source line: many instructions of one line, op and
// shape that are computed alike and form a chain, in which each depends on the previous one. The
// longest chain is found by dynamic programming over the post-order, linear per line.

#include "driver/report/lints.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "cost/rates.h"
#include "driver/report/xla_dump.h"

namespace tokamak {
namespace {

// Overhead of calling a compiled function from Python, in microseconds: per call, and per argument
// and result (docs/results/dispatch.md).
constexpr double kDispatchUs = 4.5, kDispatchUsOfArray = 0.7;
// This many equal instructions of one line, each depending on the previous one, are an unrolled
// loop (chosen).
constexpr int64_t kMinUnrolledSteps = 8;
// Levels of operands that equal instructions have in common (chosen). With the op alone, the
// multiplications of a gradient formula would look like a loop.
constexpr int kSameDepth = 3;
constexpr size_t kMostOperands = 4;  // compared operands per instruction (chosen)
// Lines examined for loops, most frequent first (chosen: bounds the time).
constexpr size_t kMostLines = 200;

std::string LineOf(const Instr& instr) {
  if (instr.origins() == OriginId::kNone) return "";
  const Module& module = *instr.parent()->module();
  for (const Origin* origin : module.origins().Of(instr.origins()))
    if (origin->frame != FrameId::kNone) return SourceLines(instr)[0];
  return "";
}

// The part of a step's time spent on this many of its bytes.
double MemoryMicrosOf(const StepReport& step, int64_t bytes) {
  double moved = std::max<double>(1, static_cast<double>(step.reads + step.writes));
  double us = step.estimate ? step.estimate->memory : step.predicted_us.value_or(0);
  return static_cast<double>(step.runs()) * us * std::min(1.0, static_cast<double>(bytes) / moved);
}

int64_t BytesOf(const Instr& instr) {
  return instr.shape().IsArray() ? instr.shape().ByteSize() : 0;
}

// Appends the ops that compute the instruction, `depth` levels deep.
void AppendOps(std::string& out, const Instr& instr, int depth) {
  out += InfoOf(instr.op()).name;
  if (depth == 0 || instr.operands().size() > kMostOperands) return;
  out += '(';
  for (const Instr* operand : instr.operands()) {
    AppendOps(out, *operand, depth - 1);
    out += ' ';
  }
  out += ')';
}

// Whether most of them are computed in the same way as several others. In an unrolled loop all are,
// except those of the first iterations.
bool AreSame(const std::vector<const Instr*>& instrs) {
  std::map<std::string, int64_t> ways;
  for (const Instr* instr : instrs) {
    std::string way;
    for (const Origin* origin : instr->parent()->module()->origins().Of(instr->origins())) {
      way = origin->op_name;
      break;
    }
    AppendOps(way, *instr, kSameDepth);
    ++ways[way];
  }
  int64_t alike = 0;
  for (const auto& [way, count] : ways)
    if (count >= kMinUnrolledSteps / 2) alike += count;
  return 2 * alike >= static_cast<int64_t>(instrs.size());
}

class Linter {
 public:
  Linter(const Module& module, const CompileReport& report) : module_(module), report_(report) {
    for (const StepReport& step : report.steps) unclaimed_.push_back(step.us());
    lints_.call_us = report.totals.us;
  }

  Lints Run() {
    if (report_.steps.empty()) return {};
    for (const auto& computation : module_.computations())
      for (const Instr* instr : computation->PostOrder())
        if (instr->op() == Op::kConcatenate && instr->users().size() > 1) LookAtConcat(*instr);
    for (const auto& computation : module_.computations()) LookForLoops(*computation);
    AddLoops();
    LookAtDispatch();
    std::stable_sort(lints_.all.begin(), lints_.all.end(),
                     [](const Lint& x, const Lint& y) { return x.us > y.us; });
    return std::move(lints_);
  }

 private:
  // A step's time is claimed by one lint only.
  double Claim(size_t step, double us) {
    double claimed = std::min(us, unclaimed_[step]);
    unclaimed_[step] -= claimed;
    return claimed;
  }

  // A concatenation costs something if it is stored: it is written, and reread by each user.
  void LookAtConcat(const Instr& concat) {
    std::vector<std::pair<size_t, double>> fractions;
    int64_t consumers = 0;
    bool stored = false;
    for (size_t i = 0; i < report_.steps.size(); ++i) {
      const StepReport& step = report_.steps[i];
      bool makes = std::find(step.made.begin(), step.made.end(), &concat) != step.made.end();
      bool reads = std::find(step.read.begin(), step.read.end(), &concat) != step.read.end();
      stored |= makes;
      consumers += reads ? 1 : 0;
      if (makes || reads) fractions.emplace_back(i, MemoryMicrosOf(step, BytesOf(concat)));
    }
    if (!stored || consumers == 0) return;
    double us = 0;
    for (const auto& [step, fraction] : fractions) us += Claim(step, fraction);
    lints_.all.push_back(
        {"lint.concat-multi-user", SourceLines(concat), us,
         fmt::format("a concatenation of {} bytes is stored for {} users and read "
                     "again by {} steps: compute with its operands and concatenate last",
                     BytesOf(concat), concat.users().size(), consumers)});
  }

  // Equal instructions of one line. A line belongs to one loop, that of its longest chain.
  struct Chain {
    std::string line;
    int64_t repeats = 0, instrs = 0;
  };

  // A long chain of alike instructions distinguishes an unrolled loop from one line that is used at
  // many independent sites.
  void LookForLoops(const Computation& computation) {
    std::vector<Instr*> order = computation.PostOrder();
    std::map<std::tuple<std::string, Op, std::string>, std::vector<const Instr*>> like;
    for (const Instr* instr : order) {
      if (instr->info().Is(kDataMovement) || instr->op() == Op::kConstant ||
          instr->op() == Op::kBroadcast || instr->op() == Op::kParameter)
        continue;
      std::string line = LineOf(*instr);
      if (!line.empty()) like[{line, instr->op(), ToString(instr->shape())}].push_back(instr);
    }
    std::vector<std::pair<std::string, const std::vector<const Instr*>*>> many;
    for (const auto& [key, instrs] : like)
      if (static_cast<int64_t>(instrs.size()) >= kMinUnrolledSteps && AreSame(instrs))
        many.emplace_back(std::get<0>(key), &instrs);
    std::stable_sort(many.begin(), many.end(), [](const auto& x, const auto& y) {
      return x.second->size() > y.second->size();
    });
    many.resize(std::min(many.size(), kMostLines));
    for (const auto& [line, instrs] : many) {
      int64_t repeats = LongestChain(computation, order, *instrs);
      if (repeats < kMinUnrolledSteps) continue;
      auto [at, is_new] = chain_of_line_.emplace(line, chains_.size());
      if (is_new) chains_.push_back({line, 0, 0});
      Chain& chain = chains_[at->second];
      chain.repeats = std::max(chain.repeats, repeats);
      chain.instrs += static_cast<int64_t>(instrs->size());
    }
  }

  // The maximum number of members on any path from value to user.
  static int64_t LongestChain(const Computation& computation, const std::vector<Instr*>& order,
                              const std::vector<const Instr*>& members) {
    InstrMap<int64_t> length(computation, 0);
    for (const Instr* member : members) length[member] = 1;
    int64_t longest = 0;
    for (const Instr* instr : order) {
      int64_t before = 0;
      for (const Instr* operand : instr->operands()) before = std::max(before, length[operand]);
      length[instr] += before;
      longest = std::max(longest, length[instr]);
    }
    return longest;
  }

  // Chains of equal length form one loop. A step's time is divided among the loops of its lines, in
  // proportion to its number of lines in each.
  void AddLoops() {
    struct Loop {
      std::vector<std::string> lines;
      int64_t instrs = 0;
      double us = 0;
    };
    std::map<int64_t, Loop> loops;  // by trip count
    for (const Chain& chain : chains_) {
      Loop& loop = loops[chain.repeats];
      loop.lines.push_back(chain.line);
      loop.instrs += chain.instrs;
    }
    for (size_t i = 0; i < report_.steps.size(); ++i) {
      std::vector<Loop*> loops_of_lines;
      for (const std::string& line : report_.steps[i].lines)
        if (auto at = chain_of_line_.find(line); at != chain_of_line_.end())
          loops_of_lines.push_back(&loops[chains_[at->second].repeats]);
      double fraction =
          unclaimed_[i] / static_cast<double>(std::max<size_t>(1, loops_of_lines.size()));
      for (Loop* loop : loops_of_lines) loop->us += Claim(i, fraction);
    }
    for (auto& [repeats, loop] : loops)
      lints_.all.push_back(
          {"lint.unrolled-loop", std::move(loop.lines), loop.us,
           fmt::format("an unrolled Python loop: {} iterations, {} instructions of the program; "
                       "jax.lax.scan or fori_loop compiles its body once",
                       repeats, loop.instrs)});
  }

  void LookAtDispatch() {
    bool loops = std::any_of(report_.steps.begin(), report_.steps.end(),
                             [](const StepReport& step) { return step.calls != 1; });
    double launch = report_.machine().is_gpu() ? RatesOf(report_.machine()).stream_gap_us : 0;
    const Shape& results = module_.entry()->root()->shape();
    size_t arrays = module_.entry()->parameters().size() + LeavesOf(results).size();
    double dispatch = kDispatchUs + kDispatchUsOfArray * static_cast<double>(arrays) + launch;
    if (loops || report_.totals.host > 0 || report_.totals.us >= dispatch) return;
    lints_.call_us = dispatch;
    lints_.all.push_back({"lint.dispatch-bound",
                          {},
                          dispatch - report_.totals.us,
                          fmt::format("a call computes for {:.3g} us and takes about {:.3g} us to "
                                      "dispatch: move the loop around it into the program with "
                                      "jax.lax.scan, or batch calls with jax.vmap",
                                      report_.totals.us, dispatch)});
  }

  const Module& module_;
  const CompileReport& report_;
  Lints lints_;
  std::vector<double> unclaimed_;  // microseconds of each step not yet claimed by a lint
  std::vector<Chain> chains_;
  std::map<std::string, size_t> chain_of_line_;
};

}  // namespace

Lints LintsOf(const Module& module, const CompileReport& report) {
  return Linter(module, report).Run();
}

}  // namespace tokamak
