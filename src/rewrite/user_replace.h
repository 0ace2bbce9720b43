#pragma once

#include <vector>

#include "rewrite/user_match.h"

namespace tokamak {

// Writes a replacement where an instance of its pattern was found.
class UserReplacer {
 public:
  // `replacement` must outlive it and belongs to another module.
  UserReplacer(const Computation& replacement, Module& module)
      : replacement_(replacement), module_(module) {}

  // Replaces the roots of the instance. False if that would lose something that the program states;
  // nothing is changed then.
  bool Replace(const UserMatch& match);

 private:
  Computation* CopyOf(const Computation& from);
  Instr* Copy(const Instr& instr, Computation& to, std::vector<Instr*>& copies);

  const Computation& replacement_;
  Module& module_;
  std::vector<std::pair<const Computation*, Computation*>> computations_;
  OriginId origins_ = OriginId::kNone;
  TextPos pos_;
};

// Whether an inner value of the match is used outside of it, and its own instruction in the pattern
// is not in `kept`.
bool HasOtherUsers(const UserMatch& match, const std::vector<const Instr*>& kept);
// Whether instructions of the match are annotated, or depend on each other so that the results
// cannot be replaced together.
bool IsReplaceable(const UserMatch& match);
// The instructions of the pattern that the replacement computes as well.
std::vector<const Instr*> KeptBy(const Computation& pattern, const Computation& replacement);

}  // namespace tokamak
