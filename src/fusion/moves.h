#pragma once

#include <string_view>
#include <vector>

#include "fusion/draft.h"

namespace tokamak {

// A change of a draft that somebody may like, and its name among the decisions.
struct Move {
  std::string_view rule;           // "fusion.vertical"
  const Instr* subject = nullptr;  // the value that it is about
  const Instr* other = nullptr;    // a root of the other end
  Change change;
};

// The moves that begin at a group, in an order that follows from the program:
//   vertical     what it reads is no longer stored, but computed by all who need it
//   again        the same here alone; others go on reading it
//   merge        it and the maker of what it reads are one kernel
//   sibling      it and another that reads the same are one kernel
//   dissolve     all that a maker of its inputs makes is computed where it is needed
//   later        in place of what it reads, something smaller is stored that all readers compute of
//   it split        one of its roots gets a kernel of its own store        something that it
//   computes gets a kernel of its own
std::vector<Move> MovesOf(const Draft& draft, int group);

// Vertical, and merges of the value's maker and those who read it if it is to be stored anyway.
// `value` is made by a group.
std::vector<Move> MovesOfValue(const Draft& draft, const Instr& value);
// Again, sibling and dissolve, of all pairs that the group is one of.
std::vector<Move> SideMovesOf(const Draft& draft, int group);

}  // namespace tokamak
