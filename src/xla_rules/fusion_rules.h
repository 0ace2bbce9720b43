#pragma once

#include <optional>
#include <set>
#include <string>
#include <tuple>

#include "analysis/effects.h"
#include "explain/rules.h"
#include "ir/ir.h"
#include "rewrite/pass.h"

namespace tokamak::fuse {

// The first rule that rejects a fusion, and the numbers behind the decision.
struct Rejection {
  FusionRule rule{};
  std::string because;
};
using MaybeRejection = std::optional<Rejection>;  // nullopt: the fusion is allowed

// Evaluates the rules of explain/rules.def: legality rules first, then the profitability rules that
// are not disabled.
class FusionRules {
 public:
  // `control_binds`: whether control dependences count. Those that a scheduler added later do not.
  FusionRules(const Module& module, const PassContext& context, bool control_binds = true)
      : limits_(context.limits),
        lifted_(context.options.lifted),
        effects_(module),
        control_binds_(control_binds) {}

  // Whether `producer` may be computed inside one user, ignoring its other users.
  MaybeRejection MayEnter(const Instr& producer, const Instr& user) const;
  // Whether an instruction with several users may be duplicated into each of them.
  MaybeRejection MayBeCopied(const Instr& producer) const;
  // Whether a fusion may be merged into all of its users.
  MaybeRejection MayBeMerged(const Instr& fusion) const;
  // Whether both may become one kernel with the results of both, provided that IsAcyclic holds.
  MaybeRejection MayShareLoop(const Instr& a, const Instr& b) const;
  // Whether the instruction may be part of a horizontally fused launch.
  MaybeRejection MayFuseHorizontally(const Instr& instr) const;

  // Whether no dependence path leads from a to b or from b to a.
  bool IsAcyclic(const Instr& a, const Instr& b) const;

  bool IsLargeReduction(const Instr& instr) const;
  int64_t ArgumentsOf(const Instr& a, const Instr& b, bool joined) const;
  const PassLimits& limits() const { return limits_; }
  bool IsLifted(FusionRule rule) const { return lifted_.Has(rule); }

 private:
  MaybeRejection LegalityOfEntry(const Instr& producer, const Instr& user) const;
  MaybeRejection Size(const Instr& a, const Instr& b, bool joined) const;
  bool Reaches(const Instr& from, const Instr& to) const;

  const PassLimits& limits_;
  const LiftedRules& lifted_;
  Effects effects_;
  bool control_binds_;
};

// The decision records of a pass. A pass may repeat a query in its next iteration; each rejection
// is recorded once.
class Records {
 public:
  explicit Records(PassContext& context) : context_(context) {}
  void RecordRejection(const Rejection& reason, const Instr& subject, const Instr* other);
  void Moved(FusionRule move, const Instr& subject, const Instr* other, std::string because = {});

 private:
  PassContext& context_;
  std::set<std::tuple<FusionRule, std::string, std::string>> recorded_;
};

}  // namespace tokamak::fuse
