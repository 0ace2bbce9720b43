#pragma once

// What a pass is: a function of a verified module that leaves a verified module which computes the
// same. One pass is one .cc file in src/passes (those that depend on the target:
// src/passes/target), declared by its row in passes.def. A pass prints nothing and has no flags of
// its own: what it did and what it declined are records in the context's log, its thresholds are in
// PassLimits. It keeps no pointer to an instruction past its end, is linear, and gives the same
// result in every run. docs/adding_a_pass.md tells more.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "explain/decision.h"
#include "explain/rules.h"
#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

struct Machine;         // cost/machine.h
class TargetLibraries;  // gen/library/libraries.h
class Value;            // interp/value.h

enum class Changed : bool { kNo, kYes };
inline Changed operator|(Changed a, Changed b) {
  return a == Changed::kYes ? a : b;
}
inline Changed& operator|=(Changed& a, Changed b) {
  return a = a | b;
}

// Thresholds of passes: plain data, which a plan records and a tuner may change.
struct PassLimits {
  // A fix-point group that still changes after so many rounds is reported: its rules fight.
  int64_t rounds = 12;
  // Firings of rules in one computation: so many for each instruction, and some more.
  int64_t firings_an_instr = 16;
  // Calls are kept once the module would hold more instructions than both of these.
  int64_t inlined_instrs = int64_t{1} << 17, inlined_growth = 16;
  // Bytes of one folded constant, of all of one run of the pass, and operations spent on them
  // (elements times flops: counted, not timed, so that the result is the same everywhere).
  int64_t folded_bytes = int64_t{1} << 16, folded_bytes_in_all = int64_t{1} << 24;
  int64_t folded_work = int64_t{1} << 22;
  // Instructions of loops and calls that are looked into to understand one computation: so many,
  // and so many for each of its own.
  int64_t followed_instrs = 4096, followed_growth = 16;
  // Bytes by which what one loop carries may grow for values computed before it.
  int64_t hoisted_bytes = int64_t{1} << 26;
  // A loop is written out if it then has at most so many instructions (each round counted).
  int64_t unrolled_instrs = 1024;
  // Both branches are computed, and one is chosen, when they have at most so many instructions and
  // those so many elements in all: less than it costs to ask the host which branch to take.
  int64_t selected_instrs = 16, selected_elements = 1 << 14;
  // Equal steps become a loop when there are so many, and when they have so many instructions in
  // all; fewer do where one step is large, or does more than elementwise math.
  int64_t rerolled_steps = 4, rerolled_instrs = 96, rerolled_step = 16, rerolled_heavy = 24;
  // Bytes of the tables of numbers that differ from step to step.
  int64_t rerolled_table_bytes = int64_t{1} << 24;
  // Dots that share an operand are merged when joining the others copies no more than is read once
  // less, and so many bytes for each dot that goes.
  int64_t merged_dot_bytes = int64_t{1} << 20;
  // Of the paper's fusions (explain/rules.def): inputs and results, instructions, and values held
  // at a time of one kernel; a smaller reduction is a loop; instructions looked at for one question
  // about cycles; what goes side by side in one launch has at most so many elements and
  // instructions.
  int64_t fused_arguments = 64, fused_instrs = 1000, fused_registers = 255;
  int64_t fused_small_reduction = 16, fused_visits = 4000;
  int64_t packed_elements = 128 * 2048, packed_instrs = 30;
};

struct PassOptions {
  bool strict = false;      // nothing that may change a bit of a result
  bool fast_math = false;   // rules that hold for real numbers only
  LiftedRules lifted = {};  // of the paper's fusions
  // Where a pass puts the values of arguments that it adds to the entry; null: none may add any.
  std::vector<Value>* added = nullptr;
};

// Kinds of targets, as bits: a row of passes.def names those that its pass rewrites for.
enum TargetKind : uint8_t {
  kNoTarget = 0,  // of a pass: it does not depend on the target
  kCpu = 1,
  kGpu = 2,
  kCpuOrGpu = 3,
};

// What target passes know about the target. No pass changes it: what a library computes is asked
// when it is needed, and the answers stay (TargetLibraries).
struct PassTarget {
  TargetKind kind = kNoTarget;
  const Machine* machine = nullptr;  // not null if there is a target
  // Null: machine->matrix_library says whether there are libraries, and convolutions in the layout
  // of one are left to it.
  TargetLibraries* libraries = nullptr;
  // Tokamak's own planner forms the fusion groups; not with --fusion=none and --fusion=rules.
  bool is_planned = true;
  int64_t chunk_iterations = 0;  // of a loop in one launch; 0: as many as its cost allows
};

// The fusion and the part of it that an instruction was in; -1: none. A horizontal fusion has
// several parts.
struct FusionTag {
  int fusion = -1, part = 0;
};

// What is known of fusions whose bodies were put in their place (inline-fusions).
struct FusionTags {
  // By the number of a computation in its module and the id of an instruction; none: no fusion.
  std::vector<std::vector<FusionTag>> of;
  int count = 0;  // of fusions
};

class PassContext {
 public:
  explicit PassContext(DecisionLog& decisions, PassLimits thresholds = {},
                       PassOptions switches = {}, PassTarget rewritten_for = {})
      : log(decisions), limits(thresholds), options(switches), target(rewritten_for) {}

  // Records of the pass that runs. `rule` is static text, "topic.reason".
  void Taken(std::string_view rule, const Instr& subject, const Instr* other = nullptr,
             std::string because = {}) {
    Record(Verdict::kTaken, rule, subject, other, std::move(because));
  }
  void Rejected(std::string_view rule, const Instr& subject, const Instr* other = nullptr,
                std::string because = {}) {
    Record(Verdict::kRejected, rule, subject, other, std::move(because));
  }

  // A change that an estimate decided, in microseconds before and after.
  void TakenByCost(std::string_view rule, const Instr& subject, double before_us, double after_us,
                   std::string because) {
    log.Add({.pass = pass,
             .rule = rule,
             .subject = LabelOf(subject),
             .origins = subject.origins(),
             .before_us = before_us,
             .after_us = after_us,
             .because = std::move(because)});
  }

  // Only of target passes: the runner does not call them without a target.
  const Machine& machine() const { return *target.machine; }

  DecisionLog& log;
  const PassLimits limits;
  const PassOptions options;
  const PassTarget target;
  std::string_view pass;   // the name of the one that runs; the runner sets it
  FusionTags fusion_tags;  // set by inline-fusions; hold until the module changes

 private:
  void Record(Verdict verdict, std::string_view rule, const Instr& subject, const Instr* other,
              std::string because) {
    log.Add({.pass = pass,
             .rule = rule,
             .verdict = verdict,
             .subject = LabelOf(subject),
             .other = other == nullptr ? std::string() : LabelOf(*other),
             .origins = subject.origins(),
             .because = std::move(because)});
  }
};

using PassFn = Result<Changed> (*)(Module& module, PassContext& context);

}  // namespace tokamak
