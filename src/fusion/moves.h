#pragma once

// The moves of the planner: the local changes by which it improves a candidate plan. Each rule name
// is also the name under which `tokamak explain` reports the move.

#include <string_view>
#include <vector>

#include "fusion/candidate_plan.h"

namespace tokamak {

// A change of a candidate plan that may pay, and how the log names it.
struct Move {
  std::string_view rule;           // "fusion.vertical"
  const Instr* subject = nullptr;  // the value that is moved
  const Instr* other = nullptr;    // a root of the other group involved
  Change change;
};

// The moves that start at a group G, in an order that depends on the program only. P is a group
// that stores a value v that G reads.
//
//   fusion.vertical        v is no longer stored; every consumer recomputes it. P loses its root v,
//                          or disappears if v was its only root.
//   fusion.recompute       G alone recomputes v; other consumers still load it.
//   fusion.merge           P and G become one kernel. It stores v if others read it (multi-output).
//   fusion.sibling         G and a group that reads many of the same bytes become one kernel.
//   fusion.dissolve        P disappears: all its values are recomputed by their consumers. A kernel
//                          remains for values that must be in memory.
//   fusion.store-narrower  P stores a smaller value that all consumers of v compute from v, instead
//                          of v: a dropout mask instead of the random words.
//   fusion.split           one root of G gets its own kernel.
//   fusion.store           a value that G computes internally is stored by its own kernel, and all
//                          groups that computed it load it.
//
// A move need not be legal: the caller checks that generators support the new regions, that no
// cycle arises and that constraints hold (search.h: IsLegal).
std::vector<Move> MovesOf(const CandidatePlan& candidate, int group);

// The vertical move of a value, and merges of its producer with its consumers if the value stays
// stored. Requires that a group stores `value`. For the first phase of the greedy planner.
std::vector<Move> MovesOfValue(const CandidatePlan& candidate, const Instr& value);
// The recompute, sibling and dissolve moves, and the remaining merges, of all pairs that contain
// the group. For the second phase of the greedy planner.
std::vector<Move> SideMovesOf(const CandidatePlan& candidate, int group);

}  // namespace tokamak
