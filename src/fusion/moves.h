#pragma once

// The moves of the planner: the local changes by which it improves a candidate plan. The rule of a
// move is its kind, and the name under which `tokamak explain` reports it.

#include <string_view>
#include <vector>

#include "fusion/candidate_plan.h"
#include "fusion/chain_slices.h"

namespace tokamak {

// A change of a candidate plan, and its names in the decision log.
struct Move {
  std::string_view rule;  // one of the rules below: "fusion.vertical"
  // The value that the move is about: r below for split and store, the first common input for
  // sibling, v or an alias of it for merge, the first stored value of the chain for chain, else v.
  const Instr* subject = nullptr;
  // A second value for the log: a root of P for merge, of the other group for sibling, another root
  // of G for split, the smaller value for store-narrower, else a root of G. Never null.
  const Instr* other_value = nullptr;
  Change change;
};

// Whether it can be the root of a kernel that is worth having: it computes something.
bool MayBeRoot(const Instr& instr);

// The moves that start at a group G, in an order that depends on the program only. v is a value
// that G reads, and P is the group that stores v.
//
// Recomputation, from one consumer of v to all consumers of all values of P:
//
//   fusion.recompute       G computes v itself; other consumers still load it.
//   fusion.vertical        v is no longer stored; every consumer computes it. P loses its root v,
//                          or is removed if v was its only root.
//   fusion.dissolve        No consumer loads a value of P; each computes what it needs. P is
//                          removed, or keeps only the values that must be stored.
//
// Combination:
//
//   fusion.merge           P and G become one kernel. It stores v if others read it (multi-output).
//   fusion.chain           G computes a dot whose operand follows from rows of another dot's
//                          results (analysis/dot_chains.h). It computes all of the chain, and
//                          stores values of rows that others read. Groups that then store nothing
//                          that others read are removed. Machines with asynchronous multiplies
//                          only.
//   fusion.sibling         G and a group that reads some of the same arrays become one kernel. They
//                          have at least 1/4 (1 / kMinCommonBytesDivisor) of the input bytes of the
//                          one that reads less in common; others may share a launch (horizontal.h).
//
// Storage:
//
//   fusion.store-narrower  Instead of v, P stores a smaller value that every consumer of v computes
//                          from v and needs instead of v (PostDominatorsOf): a dropout mask instead
//                          of the random bits.
//   fusion.load            G loads a value v that it computed although P stores v.
//   fusion.split           A root r of G gets its own kernel.
//   fusion.store           An internal value r of G is stored by its own kernel, and all groups
//                          that computed it load it.
//
// Only moves that can be useful are enumerated: store, for example, only for values that would
// otherwise be evaluated repeatedly and for transposed operands of dots, and no move changes more
// than 16 consumers (kMaxConsumers). A move need not be legal: the caller checks that generators
// support the new regions, that no cycle arises and that constraints hold (search.h: IsLegal).
std::vector<Move> MovesOf(const CandidatePlan& candidate, int group, ChainSlices& slices);

// For the first phase of the greedy planner (greedy.h): the vertical move of a value, unless it
// must be stored; and the merges of its producer with each consumer, if the value must be stored or
// several groups read it. Requires that a group stores `value`.
std::vector<Move> MovesOfValue(const CandidatePlan& candidate, const Instr& value);
// For the second phase of the greedy planner: the recompute, dissolve and sibling moves of a group
// with any other, and the merges that MovesOfValue does not enumerate. The moves that rearrange or
// undo fusions (store-narrower, load, split and store) are left to the search.
std::vector<Move> PairMovesOf(const CandidatePlan& candidate, int group);

}  // namespace tokamak
