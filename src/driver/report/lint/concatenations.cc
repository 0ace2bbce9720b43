// lint.concat-multi-user: a concatenation is stored and read again by several steps.

#include <fmt/format.h>

#include "driver/report/lint/lint_subject.h"
#include "driver/report/xla_dump.h"

namespace tokamak {
namespace {

constexpr const char* kConcatRule = "lint.concat-multi-user";
// Smaller concatenations that are never stored are not worth a note: a cache line costs nothing
// (chosen).
constexpr int64_t kMinNotedConcat = int64_t{1} << 16;

// A concatenation of the program that runs costs something if it is stored: it is written, and
// reread by each user.
void AddStoredConcat(LintSubject& subject, const Instr& concat) {
  const LintSubject::Traffic& traffic = subject.TrafficOf(concat);
  if (!traffic.is_stored || traffic.readers == 0) return;
  int64_t bytes = LintBytes(concat);
  subject.Add({.rule = kConcatRule,
               .lines = SourceLines(concat),
               .us = subject.ClaimTraffic(traffic, bytes),
               .text = fmt::format("a concatenation of {} bytes is stored for {} users and read "
                                   "again by {} steps: compute with its operands and concatenate "
                                   "last",
                                   bytes, concat.users().size(), traffic.readers)});
}

bool IsSharedConcat(const Instr& instr) {
  return instr.op() == Op::kConcatenate && instr.users().size() > 1;
}

}  // namespace

void LintConcatenations(LintSubject& subject) {
  for (const auto& computation : subject.compiled().computations())
    for (const Instr* instr : computation->PostOrder())
      if (IsSharedConcat(*instr)) AddStoredConcat(subject, *instr);
  if (!subject.has_written()) return;
  for (const Instr* instr : subject.written().entry()->PostOrder()) {
    if (!IsSharedConcat(*instr) || LintBytes(*instr) < kMinNotedConcat) continue;
    bool is_stored = subject.StepsOf(*instr).empty();  // nothing of it runs: nothing is saved
    for (const Instr* compiled : subject.CompiledAs(*instr))
      is_stored |= subject.TrafficOf(*compiled).is_stored;
    if (is_stored) continue;
    auto accesses = static_cast<int64_t>(instr->users().size()) + 1;
    subject.AddAvoided(kConcatRule, LintLinesOf({instr}),
                       fmt::format("the concatenation of {} bytes with {} users is never stored",
                                   LintBytes(*instr), instr->users().size()),
                       subject.UsOfBytes(LintBytes(*instr) * accesses));
  }
}

}  // namespace tokamak
