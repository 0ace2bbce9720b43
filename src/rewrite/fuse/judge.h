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

// The first rule that speaks against a fusion, and the numbers that decided.
struct Refusal {
  FusionRule rule{};
  std::string because;
};
using Judgement = std::optional<Refusal>;  // nothing: it may be

// Asks the rules of rules.def, laws first, then the factors that are not lifted.
class Judge {
 public:
  // `control_binds`: whether control edges count; those that a scheduler added afterwards do not.
  Judge(const Module& module, const PassContext& context, bool control_binds = true)
      : limits_(context.limits),
        lifted_(context.options.lifted),
        effects_(module),
        control_binds_(control_binds) {}

  // Whether `producer` may be computed inside of one user, other users apart.
  Judgement MayEnter(const Instr& producer, const Instr& user) const;
  // Whether an instruction with several users may be computed in each of them.
  Judgement MayBeCopied(const Instr& producer) const;
  // Whether a fusion may go into all of its users.
  Judgement MayBeMerged(const Instr& fusion) const;
  // Whether both may be one kernel with the results of both, if they are IsAcyclic.
  Judgement MayShareLoop(const Instr& a, const Instr& b) const;
  // Whether the instruction may run beside others in one launch.
  Judgement MayBePacked(const Instr& instr) const;

  // Nothing stands between a and b, in either direction.
  bool IsAcyclic(const Instr& a, const Instr& b) const;

  bool IsLargeReduction(const Instr& instr) const;
  int64_t ArgumentsOf(const Instr& a, const Instr& b, bool joined) const;
  const PassLimits& limits() const { return limits_; }
  bool IsLifted(FusionRule rule) const { return lifted_.Has(rule); }

 private:
  Judgement LawsOfEntry(const Instr& producer, const Instr& user) const;
  Judgement Size(const Instr& a, const Instr& b, bool joined) const;
  bool Reaches(const Instr& from, const Instr& to) const;

  const PassLimits& limits_;
  const LiftedRules& lifted_;
  Effects effects_;
  bool control_binds_;
};

// The records of a pass. It may ask the same again in its next round: a refusal is told once.
class Records {
 public:
  explicit Records(PassContext& context) : context_(context) {}
  void Refused(const Refusal& refusal, const Instr& subject, const Instr* other);
  void Moved(FusionRule move, const Instr& subject, const Instr* other, std::string because = {});

 private:
  PassContext& context_;
  std::set<std::tuple<FusionRule, std::string, std::string>> told_;
};

}  // namespace tokamak::fuse
