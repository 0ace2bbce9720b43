#pragma once

// The pass interface. A pass is a function from a verified module to a verified module that
// computes the same values. Each pass is one .cc file in src/passes (src/passes/target if it
// depends on the target, src/xla_rules if it follows XLA's), declared by its row in passes.def. A
// pass prints nothing and has no flags: its changes and rejections are records in the context's
// log, its thresholds are in PassLimits. It keeps no pointer to an instruction after it returns,
// runs in linear time, and is deterministic. See docs/adding_a_pass.md.

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
class RuleHost;         // rewrite/user_rules.h

enum class Changed : bool { kNo, kYes };
inline Changed operator|(Changed a, Changed b) {
  return a == Changed::kYes ? a : b;
}
inline Changed& operator|=(Changed& a, Changed b) {
  return a = a | b;
}

// Thresholds of passes: plain data that a plan records and a tuner may change. The defaults are
// chosen: no measurement is recorded for them.
struct PassLimits {
  // Iterations of a fix-point group. A group that still changes after this many is reported,
  // because its rules undo each other.
  int64_t iterations = 12;
  // Rule firings in one computation: this many per instruction, plus a constant.
  int64_t firings_an_instr = 16;
  // Calls are no longer inlined once the module would exceed both limits: a number of instructions,
  // and a multiple of its original size.
  int64_t inlined_instrs = int64_t{1} << 17, inlined_growth = 16;
  // Bytes of one folded constant, bytes of all folded constants of one run of the pass, and
  // operations spent on them (elements times flops: counted rather than timed, so that the result
  // is deterministic).
  int64_t folded_bytes = int64_t{1} << 16, folded_bytes_in_all = int64_t{1} << 24;
  int64_t folded_work = int64_t{1} << 22;
  // Instructions of loops and calls that may be visited to analyse one computation: a constant,
  // plus a multiple of its own size.
  int64_t followed_instrs = 4096, followed_growth = 16;
  // Bytes by which the carried state of one loop may grow for values hoisted out of it.
  int64_t hoisted_bytes = int64_t{1} << 26;
  // A conditional becomes a select if its branches have at most this many instructions with at most
  // this many elements in total. Beyond that, reading the predicate on the host is cheaper.
  int64_t selected_instrs = 16, selected_elements = 1 << 14;
  // Repeated steps become a loop if there are at least rerolled_steps of them with at least
  // rerolled_instrs instructions in total. Fewer instructions suffice if one step is large, or
  // contains more than elementwise math.
  int64_t rerolled_steps = 4, rerolled_instrs = 96, rerolled_step = 16, rerolled_heavy = 24;
  // Bytes of the tables of numbers that differ between steps.
  int64_t rerolled_table_bytes = int64_t{1} << 24;
  // Limits of XLA's fusion rules (explain/rules.def). fused_arguments: inputs and results of one
  // kernel; fused_instrs: its instructions; fused_registers: its live values.
  // fused_small_reduction: smaller reductions are computed as loops. fused_visits: instructions
  // visited per cycle check. horizontal_elements, horizontal_instrs: size of each member of a
  // horizontally fused launch.
  int64_t fused_arguments = 64, fused_instrs = 1000, fused_registers = 255;
  int64_t fused_small_reduction = 16, fused_visits = 4000;
  int64_t horizontal_elements = 128 * 2048, horizontal_instrs = 30;
};

struct PassOptions {
  bool strict = false;      // only bit-exact changes
  LiftedRules lifted = {};  // XLA fusion rules to disable
  // Receives the values of arguments that a pass adds to the entry. Null: passes may not add any.
  std::vector<Value>* added = nullptr;
  RuleHost* user_rules = nullptr;  // null: none apply
};

// Kinds of targets, as bits: a row of passes.def names those that its pass applies to.
enum TargetKind : uint8_t {
  kNoTarget = 0,  // the pass does not depend on the target
  kCpu = 1,
  kGpu = 2,
  kCpuOrGpu = 3,
};

// What target passes know about the target. Passes do not change it, except that library queries
// are answered on demand and cached (TargetLibraries).
struct PassTarget {
  TargetKind kind = kNoTarget;
  const Machine* machine = nullptr;  // not null if there is a target
  // If null, machine->uses_library states whether there are libraries, and convolutions in a
  // library's layout are left to it.
  TargetLibraries* libraries = nullptr;
  // Whether Tokamak's planner forms the fusion groups; false with --fusion=none and --fusion=rules.
  bool is_planned = true;
  int64_t chunk_iterations = 0;  // iterations per launch; 0: as the cost model decides
};

// The fusion, and the part of it, that an instruction belonged to; fusion -1: none. A horizontal
// fusion has several parts.
struct FusionTag {
  int fusion = -1, part = 0;
};

// The former fusions of instructions whose fusion bodies were inlined (inline-fusions).
struct FusionTags {
  // Indexed by the number of a computation in its module and the id of an instruction. Empty: no
  // fusions.
  std::vector<std::vector<FusionTag>> of;
  int count = 0;  // number of fusions
};

class PassContext {
 public:
  explicit PassContext(DecisionLog& decisions, PassLimits thresholds = {},
                       PassOptions switches = {}, PassTarget rewritten_for = {})
      : log(decisions), limits(thresholds), options(switches), target(rewritten_for) {}

  // Records a decision of the running pass. `rule` is static text, "topic.reason".
  void Accepted(std::string_view rule, const Instr& subject, const Instr* other = nullptr,
                std::string because = {}) {
    Record(Verdict::kAccepted, rule, subject, other, std::move(because));
  }
  void Rejected(std::string_view rule, const Instr& subject, const Instr* other = nullptr,
                std::string because = {}) {
    Record(Verdict::kRejected, rule, subject, other, std::move(because));
  }

  // A change decided by the cost model, with estimates in microseconds before and after.
  void AcceptedByCost(std::string_view rule, const Instr& subject, double before_us,
                      double after_us, std::string because) {
    log.Add({.pass = pass,
             .rule = rule,
             .subject = LabelOf(subject),
             .origins = subject.origins(),
             .before_us = before_us,
             .after_us = after_us,
             .because = std::move(because)});
  }

  // Only for target passes: the runner does not call them without a target.
  const Machine& machine() const { return *target.machine; }

  DecisionLog& log;
  const PassLimits limits;
  const PassOptions options;
  const PassTarget target;
  std::string_view pass;   // name of the running pass; set by the runner
  FusionTags fusion_tags;  // set by inline-fusions; valid until the module changes

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
