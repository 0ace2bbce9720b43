// lint.unrolled-loop: a Python loop was traced into many copies of one line.
//
// An unrolled loop is recognized by source line: many instructions of one line, op and shape that
// are computed alike and form a chain, in which each depends on the previous one. The longest chain
// is found by dynamic programming over the post-order, linear per line.

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "driver/report/lint/lint_subject.h"
#include "driver/report/xla_dump.h"

namespace tokamak {
namespace {

constexpr const char* kUnrolledRule = "lint.unrolled-loop";
// This many equal instructions of one line, each depending on the previous one, are an unrolled
// loop (chosen).
constexpr int64_t kMinUnrolledSteps = 8;
// Levels of operands that equal instructions have in common (chosen). With the op alone, the
// multiplications of a gradient formula would look like a loop.
constexpr int kSameDepth = 3;
constexpr size_t kMostOperands = 4;  // compared operands per instruction (chosen)
// Lines examined for loops, most frequent first (chosen: bounds the time).
constexpr size_t kMostLines = 200;

std::string LineWithFrame(const Instr& instr) {
  if (instr.origins() == OriginId::kNone) return "";
  const Module& module = *instr.parent()->module();
  for (const Origin* origin : module.origins().Of(instr.origins()))
    if (origin->frame != FrameId::kNone) return SourceLineOf(module.origins().frame(origin->frame));
  return "";
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

// Whether a value is a constant, or one of two, as the coefficients of erf_inv are.
bool IsCoefficient(const Instr* value) {
  value = LintSource(value);
  if (value->op() == Op::kSelect)
    return LintSource(value->operand(1))->op() == Op::kConstant &&
           LintSource(value->operand(2))->op() == Op::kConstant;
  return value->op() == Op::kConstant;
}

// Whether they are the steps of a polynomial, y * x + c with constants c: a formula, not a loop.
bool ArePolynomial(const std::vector<const Instr*>& instrs) {
  Op op = instrs[0]->op();
  if (op != Op::kFma && op != Op::kAdd && op != Op::kMultiply) return false;
  std::map<const Instr*, int64_t> uses;
  int64_t with_coefficient = 0, most = 0;
  for (const Instr* instr : instrs) {
    bool has = false;
    for (const Instr* operand : instr->operands()) {
      has |= IsCoefficient(operand);
      most = std::max(most, ++uses[operand]);
    }
    with_coefficient += has ? 1 : 0;
  }
  // All but the first and the last step of it, which may differ.
  auto needed = static_cast<int64_t>(instrs.size()) - 2;
  return op == Op::kMultiply ? most >= needed : with_coefficient >= needed;
}

class UnrolledLoops {
 public:
  explicit UnrolledLoops(LintSubject& subject) : subject_(subject) {}

  void Run() {
    for (const auto& computation : subject_.compiled().computations()) LookIn(*computation);
    AddFindings();
    AddRerolled();
  }

 private:
  // Equal instructions of one line. A line belongs to one loop, that of its longest chain.
  struct Chain {
    std::string line;
    int64_t repeats = 0, instrs = 0;
  };

  // A long chain of alike instructions distinguishes an unrolled loop from one line that is used at
  // many independent sites.
  void LookIn(const Computation& computation) {
    std::vector<Instr*> order = computation.PostOrder();
    std::map<std::tuple<std::string, Op, std::string>, std::vector<const Instr*>> like;
    for (const Instr* instr : order) {
      if (instr->info().Is(kDataMovement) || instr->op() == Op::kConstant ||
          instr->op() == Op::kBroadcast || instr->op() == Op::kParameter)
        continue;
      std::string line = LineWithFrame(*instr);
      if (!line.empty()) like[{line, instr->op(), ToString(instr->shape())}].push_back(instr);
    }
    std::vector<std::pair<std::string, const std::vector<const Instr*>*>> many;
    for (const auto& [key, instrs] : like)
      if (static_cast<int64_t>(instrs.size()) >= kMinUnrolledSteps && AreSame(instrs) &&
          !ArePolynomial(instrs))
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
  void AddFindings() {
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
    const std::vector<StepReport>& steps = subject_.report().steps;
    for (size_t i = 0; i < steps.size(); ++i) {
      std::vector<Loop*> loops_of_lines;
      for (const std::string& line : steps[i].lines)
        if (auto at = chain_of_line_.find(line); at != chain_of_line_.end())
          loops_of_lines.push_back(&loops[chains_[at->second].repeats]);
      double fraction =
          subject_.unclaimed(i) / static_cast<double>(std::max<size_t>(1, loops_of_lines.size()));
      for (Loop* loop : loops_of_lines) loop->us += subject_.Claim(i, fraction);
    }
    for (auto& [repeats, loop] : loops)
      subject_.Add({.rule = kUnrolledRule,
                    .lines = std::move(loop.lines),
                    .us = loop.us,
                    .text = fmt::format(
                        "an unrolled Python loop: {} iterations, {} instructions of the program; "
                        "jax.lax.scan or fori_loop compiles its body once",
                        repeats, loop.instrs),
                    .fix = {.kind = "scan", .numbers = {repeats}}});
  }

  // Loops that the pass reroll has found: their bodies are compiled once.
  void AddRerolled() {
    const OriginTable& origins = subject_.compiled().origins();
    for (const Decision& decision : subject_.report().log().all()) {
      if (decision.rule != "reroll.steps" || decision.verdict != Verdict::kAccepted) continue;
      std::vector<std::string> lines;
      for (const Origin* origin : origins.Of(decision.origins))
        if (origin->frame != FrameId::kNone) {
          const Frame& frame = origins.frame(origin->frame);
          std::string line = fmt::format("{}:{}", frame.file, frame.line);
          if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
        }
      subject_.AddAvoided(kUnrolledRule, std::move(lines),
                          "the unrolled Python loop runs as a loop, " + decision.because);
    }
  }

  LintSubject& subject_;
  std::vector<Chain> chains_;
  std::map<std::string, size_t> chain_of_line_;
};

}  // namespace

void LintUnrolledLoops(LintSubject& subject) {
  UnrolledLoops(subject).Run();
}

}  // namespace tokamak
