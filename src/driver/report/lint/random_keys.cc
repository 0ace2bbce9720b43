// lint.key-reuse: two draws, or a draw and a split, from one key of threefry.
//
// Keys are equal if they are computed alike: every instruction has a hash of its op, attributes and
// operands. Draws and splits count from 0 (an iota); a fold_in does not consume its key. Draws that
// a gradient repeats (jax.checkpoint, the backward pass of a custom gradient) are the same draw.

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "driver/report/lint/lint_subject.h"
#include "ir/compare.h"
#include "support/hash.h"

namespace tokamak {
namespace {

constexpr size_t kMostDrawsNamed = 4;  // lines in a finding (chosen)

bool DependsOnIotaOnly(const Instr& counter, int depth) {
  if (counter.op() == Op::kIota) return true;
  if (counter.op() == Op::kConstant) return false;
  if (depth == 0 || counter.operand_count() == 0) return false;
  // Every operand but constants counts.
  bool counts = false;
  for (const Instr* operand : counter.operands()) {
    if (LintSource(operand)->op() == Op::kConstant) continue;
    if (!DependsOnIotaOnly(*operand, depth - 1)) return false;
    counts = true;
  }
  return counts;
}

class KeyReuse {
 public:
  explicit KeyReuse(LintSubject& subject) : subject_(subject) {}

  void Run() {
    for (const auto& computation : subject_.written().computations())
      if (computation->CountOf(Op::kThreefry2x32) > 1) LookIn(*computation);
  }

 private:
  struct Draw {
    const Instr* instr;
    std::string name;  // name stack
  };

  static std::string NameStack(const Instr& instr) {
    for (const Origin* origin : instr.parent()->module()->origins().Of(instr.origins()))
      return origin->op_name;
    return "";
  }

  // Hashes of what instructions compute; equal values have equal hashes.
  void Number(const Computation& computation) {
    numbers_.clear();
    for (const Instr* instr : computation.PostOrder()) {
      Hasher hasher;
      hasher.Add(instr->op());
      hasher.Add(instr->shape().Hash());
      hasher.Add(HashAttrs(instr->op(), instr->attrs()));
      for (const Instr* operand : instr->operands()) hasher.Add(numbers_[operand]);
      // Calls may have effects: their results are their own.
      if (!instr->called().empty() || instr->op() == Op::kCustomCall)
        hasher.Add(static_cast<uint64_t>(instr->id()) + 1);
      numbers_[instr] = hasher.digest();
    }
  }

  static bool IsDraw(const Instr& threefry, const std::string& name) {
    constexpr int kDepth = 8;  // from a counter to its iota (JAX has 4)
    for (std::string_view part : {"fold_in", "remat", "checkpoint", "transpose("})
      if (name.find(part) != std::string::npos) return false;
    return DependsOnIotaOnly(*threefry.operand(2), kDepth) ||
           DependsOnIotaOnly(*threefry.operand(3), kDepth);
  }

  void LookIn(const Computation& computation) {
    Number(computation);
    std::map<std::pair<uint64_t, uint64_t>, std::vector<Draw>> draws;
    std::vector<std::pair<uint64_t, uint64_t>> order;
    for (const Instr* instr : computation.PostOrder()) {
      if (instr->op() != Op::kThreefry2x32) continue;
      std::string name = NameStack(*instr);
      if (!IsDraw(*instr, name)) continue;
      std::pair key(numbers_[LintSource(instr->operand(0))],
                    numbers_[LintSource(instr->operand(1))]);
      std::vector<Draw>& of_key = draws[key];
      if (of_key.empty()) order.push_back(key);
      of_key.push_back({instr, std::move(name)});
    }
    for (const auto& key : order) Report(draws[key]);
  }

  void Report(const std::vector<Draw>& draws) {
    if (draws.size() < 2) return;
    std::vector<const Instr*> instrs;
    for (const Draw& draw : draws)
      if (instrs.size() < kMostDrawsNamed) instrs.push_back(draw.instr);
    const Shape &first = instrs[0]->shape(), &second = instrs[1]->shape();
    bool splits = std::any_of(draws.begin(), draws.end(), [](const Draw& draw) {
      return draw.name.find("split") != std::string::npos;
    });
    const char* what = splits ? "a key is split and used" : "a key is used for several draws";
    const char* result = first == second && !splits ? "they are equal" : "they are not independent";
    subject_.Add({.rule = "lint.key-reuse",
                  .lines = LintLinesOf(instrs),
                  .text = fmt::format("{} ({} in all): {}; jax.random.split gives a key for each",
                                      what, draws.size(), result),
                  .fix = {.kind = "split_keys", .text = "jax.random.split"}});
  }

  LintSubject& subject_;
  std::unordered_map<const Instr*, uint64_t> numbers_;
};

}  // namespace

void LintRandomKeys(LintSubject& subject) {
  if (subject.has_written()) KeyReuse(subject).Run();
}

}  // namespace tokamak
