#include "kernel/placement.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace tokamak {
namespace {

bool HasNoPlace(Prim prim) {
  return prim == Prim::kConst || prim == Prim::kExtent || prim == Prim::kLoop;
}

}  // namespace

Placement::Placement(const Kernel& kernel) : kernel_(kernel) {
  loop_blocks_.assign(kernel.loops.size(), -1);
  read_places_.resize(kernel.nodes.size());
  shared_.resize(kernel.nodes.size());
  AddChildren(AddBlock(kernel.body, -1, 0, false, false));
  size_t slots = 0;
  for (const Node& node : blocks_) {
    first_slot_.push_back(slots);
    slots += node.block->size() + 1;
  }
  slot_begin_.assign(slots + 1, 0);
  FindEarliest();
  CollectUses();
  order_.assign(kernel.nodes.size(), 0);
  Number(kernel.body);
  Choose();
}

std::span<const ValueId> Placement::Before(const Block& block, size_t i) const {
  size_t slot = SlotOf({numbers_.at(&block), i});
  return std::span(values_).subspan(slot_begin_[slot], slot_begin_[slot + 1] - slot_begin_[slot]);
}

int Placement::AddBlock(const Block& block, int parent, size_t at, bool loop, bool conditional) {
  Node node{.block = &block, .parent = parent, .at = at};
  if (parent >= 0) {
    const Node& around = blocks_[static_cast<size_t>(parent)];
    node.depth = around.depth + 1;
    node.loops = around.loops + (loop ? 1 : 0);
  }
  node.conditional = conditional;
  int number = static_cast<int>(blocks_.size());
  blocks_.push_back(node);
  numbers_.emplace(&block, number);
  return number;
}

void Placement::AddChildren(int block) {
  const Block& stmts = *blocks_[static_cast<size_t>(block)].block;
  for (size_t i = 0; i < stmts.size(); ++i) {
    const Stmt& stmt = stmts[i];
    switch (stmt.kind) {
      case StmtKind::kFor: {
        bool may_be_empty = ranges_.Of(kernel_, kernel_.loop(stmt.loop).extent).low < 1;
        int body = AddBlock(stmt.body, block, i, true, may_be_empty);
        loop_blocks_[static_cast<size_t>(stmt.loop)] = body;
        AddChildren(body);
        break;
      }
      case StmtKind::kIf:
        AddChildren(AddBlock(stmt.body, block, i, false, true));
        if (!stmt.otherwise.empty()) AddChildren(AddBlock(stmt.otherwise, block, i, false, true));
        break;
      case StmtKind::kWhile: {
        int head = AddBlock(stmt.head, block, i, true, false);
        AddChildren(head);
        // The head runs before the body and what it reads is known there.
        AddChildren(AddBlock(stmt.body, head, stmt.head.size(), false, true));
        break;
      }
      case StmtKind::kRead:
      case StmtKind::kShuffle:
        read_places_[static_cast<size_t>(stmt.value)] = {block, i};
        break;
      case StmtKind::kStore:
      case StmtKind::kBarrier:
      case StmtKind::kMultiply:
        break;
    }
  }
}

bool Placement::MayFault(const ScalarNode& node) {
  if (node.prim == Prim::kLoad) {
    Range index = ranges_.Of(kernel_, node.operands[0]);
    return index.low < 0 || index.high >= kernel_.array(node.array()).size;
  }
  if ((node.prim != Prim::kDiv && node.prim != Prim::kRem) || !IsInteger(node.type)) return false;
  const ScalarNode& divisor = kernel_.node(node.operands[1]);
  if (divisor.prim != Prim::kConst)
    return node.type != ScalarType::kIndex || ranges_.Of(kernel_, node.operands[1]).low <= 0;
  int64_t value = IntOfBits(divisor.type, divisor.bits);
  return value == 0 || value == -1;
}

Placement::Place Placement::Raised(Place place, int to) const {
  while (place.block != to) {
    const Node& node = blocks_[static_cast<size_t>(place.block)];
    place = {node.parent, node.at};
  }
  return place;
}

int Placement::Common(int x, int y) const {
  while (x != y) {
    int& deeper =
        blocks_[static_cast<size_t>(x)].depth >= blocks_[static_cast<size_t>(y)].depth ? x : y;
    deeper = blocks_[static_cast<size_t>(deeper)].parent;
  }
  return x;
}

// Operands are older than their users.
void Placement::FindEarliest() {
  earliest_.assign(kernel_.nodes.size(), 0);
  may_fault_.assign(kernel_.nodes.size(), false);
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    const ScalarNode& node = kernel_.nodes[i];
    if (node.prim == Prim::kLoop) {
      earliest_[i] = std::max(loop_blocks_[static_cast<size_t>(node.loop())], 0);
    } else if (IsOrdered(node.prim)) {
      earliest_[i] = std::max(read_places_[i].block, 0);
    } else {
      may_fault_[i] = MayFault(node);
      for (ValueId operand : kernel_.operands(ValueId{static_cast<uint32_t>(i)})) {
        if (may_fault_[static_cast<size_t>(operand)]) may_fault_[i] = true;
        int known = earliest_[static_cast<size_t>(operand)];
        if (blocks_[static_cast<size_t>(known)].depth >
            blocks_[static_cast<size_t>(earliest_[i])].depth)
          earliest_[i] = known;
      }
    }
  }
}

void Placement::Use(ValueId value, Place place) {
  auto number = static_cast<size_t>(value);
  Place& shared = shared_[number];
  shared = shared.block < 0 ? place : Shared(shared, place);
  if (may_fault_[number]) uses_[number].push_back(place);
}

Placement::Place Placement::Shared(Place x, Place y) const {
  int block = Common(x.block, y.block);
  return {block, std::min(Raised(x, block).at, Raised(y, block).at)};
}

void Placement::CollectUses() {
  for (size_t b = 0; b < blocks_.size(); ++b) {
    const Block& stmts = *blocks_[b].block;
    for (size_t i = 0; i < stmts.size(); ++i) {
      const Stmt& stmt = stmts[i];
      Place place{static_cast<int>(b), i};
      switch (stmt.kind) {
        case StmtKind::kFor:
          Use(kernel_.loop(stmt.loop).extent, place);
          break;
        case StmtKind::kIf:
          Use(stmt.condition, place);
          break;
        case StmtKind::kWhile:
          Use(stmt.condition, {numbers_.at(&stmt.head), stmt.head.size()});
          break;
        case StmtKind::kStore:
          Use(stmt.index, place);
          Use(stmt.value, place);
          break;
        case StmtKind::kRead:
        case StmtKind::kShuffle:
          for (ValueId operand : kernel_.operands(stmt.value)) Use(operand, place);
          break;
        case StmtKind::kMultiply:
          for (ValueId operand : OperandsOf(stmt)) Use(operand, place);
          break;
        case StmtKind::kBarrier:
          break;
      }
    }
  }
}

int Placement::ChildOf(int block, int within) const {
  while (blocks_[static_cast<size_t>(within)].parent != block)
    within = blocks_[static_cast<size_t>(within)].parent;
  return within;
}

// Whether a run of the block comes to one of these uses, all of which are in it or below.
bool Placement::SurelyUsed(int block, const std::vector<Place>& uses) const {
  std::map<int, std::vector<Place>> inner;  // by the block right under this one
  for (const Place& use : uses) {
    if (use.block == block) return true;
    inner[ChildOf(block, use.block)].push_back(use);
  }
  std::map<size_t, int> sure_branches;  // of the if that is this statement
  for (const auto& [child, below] : inner) {
    if (!SurelyUsed(child, below)) continue;
    const Node& node = blocks_[static_cast<size_t>(child)];
    if (!node.conditional) return true;
    bool is_if = node.at < blocks_[static_cast<size_t>(block)].block->size() &&
                 (*blocks_[static_cast<size_t>(block)].block)[node.at].kind == StmtKind::kIf;
    if (is_if && ++sure_branches[node.at] == 2) return true;
  }
  return false;
}

// The fewest blocks in each of which a use surely follows.
void Placement::Split(const std::vector<Place>& uses, std::vector<Place>& places) const {
  int shared = uses[0].block;
  for (const Place& use : uses) shared = Common(shared, use.block);
  if (SurelyUsed(shared, uses)) {
    Place place{shared, SIZE_MAX};
    for (const Place& use : uses) place.at = std::min(place.at, Raised(use, shared).at);
    places.push_back(place);
    return;
  }
  std::map<int, std::vector<Place>> inner;
  for (const Place& use : uses) inner[ChildOf(shared, use.block)].push_back(use);
  for (const auto& [child, below] : inner) Split(below, places);
}

// Moved out of loops, as far as operands are known and nothing may fault that would not have.
Placement::Place Placement::Hoisted(Place place, size_t value) const {
  int best = place.block;
  for (int b = place.block; b != earliest_[value];) {
    const Node& block = blocks_[static_cast<size_t>(b)];
    if (block.conditional && may_fault_[value]) break;
    b = block.parent;
    if (b < 0) break;
    if (blocks_[static_cast<size_t>(b)].loops < blocks_[static_cast<size_t>(best)].loops) best = b;
  }
  return Raised(place, best);
}

std::vector<Placement::Place> Placement::PlacesOf(size_t value) const {
  std::vector<Place> places;
  Split(uses_.at(value), places);
  for (Place& place : places) place = Hoisted(place, value);
  // One that has come to stand around another serves both.
  for (bool again = places.size() > 1; again;) {
    again = false;
    for (size_t i = 0; i < places.size() && !again; ++i)
      for (size_t k = 0; k < places.size() && !again; ++k) {
        if (i == k || Common(places[i].block, places[k].block) != places[i].block) continue;
        places[i].at = std::min(places[i].at, Raised(places[k], places[i].block).at);
        places.erase(places.begin() + static_cast<int64_t>(k));
        again = true;
      }
  }
  return places;
}

// Users are younger than their operands: when a value's turn comes, all of its users have places.
void Placement::Choose() {
  for (size_t i = kernel_.nodes.size(); i-- > 0;) {
    const ScalarNode& node = kernel_.nodes[i];
    if (HasNoPlace(node.prim) || IsOrdered(node.prim) || shared_[i].block < 0) continue;
    ValueId id{static_cast<uint32_t>(i)};
    if (may_fault_[i]) {
      for (const Place& place : PlacesOf(i)) Put(id, place);
    } else {
      Put(id, Hoisted(shared_[i], i));
    }
  }
  std::ranges::sort(chosen_, {}, [&](const auto& chosen) {
    return std::pair(chosen.first, order_[static_cast<size_t>(chosen.second)]);
  });
  values_.reserve(chosen_.size());
  for (const auto& [slot, value] : chosen_) {
    ++slot_begin_[slot + 1];
    values_.push_back(value);
  }
  std::partial_sum(slot_begin_.begin(), slot_begin_.end(), slot_begin_.begin());
}

void Placement::Put(ValueId value, Place place) {
  chosen_.emplace_back(SlotOf(place), value);
  for (ValueId operand : kernel_.operands(value)) Use(operand, place);
}

// Numbers the values that a statement needs, operands first: an order that does not depend on the
// one in which they were made.
void Placement::Number(const Block& block) {
  for (const Stmt& stmt : block) {
    switch (stmt.kind) {
      case StmtKind::kFor:
        NumberValue(kernel_.loop(stmt.loop).extent);
        break;
      case StmtKind::kIf:
        NumberValue(stmt.condition);
        break;
      case StmtKind::kWhile:
        Number(stmt.head);
        NumberValue(stmt.condition);
        break;
      case StmtKind::kStore:
        NumberValue(stmt.index);
        NumberValue(stmt.value);
        break;
      case StmtKind::kRead:
      case StmtKind::kShuffle:
        for (ValueId operand : kernel_.operands(stmt.value)) NumberValue(operand);
        break;
      case StmtKind::kMultiply:
        for (ValueId operand : OperandsOf(stmt)) NumberValue(operand);
        break;
      case StmtKind::kBarrier:
        break;
    }
    Number(stmt.body);
    Number(stmt.otherwise);
  }
}

void Placement::NumberValue(ValueId value) {
  stack_.assign(1, value);
  while (!stack_.empty()) {
    ValueId id = stack_.back();
    uint32_t& order = order_[static_cast<size_t>(id)];
    const ScalarNode& node = kernel_.node(id);
    if (order != 0 || HasNoPlace(node.prim) || IsOrdered(node.prim)) {
      stack_.pop_back();
      continue;
    }
    size_t size = stack_.size();
    for (size_t i = static_cast<size_t>(node.arity()); i-- > 0;) {
      Prim prim = kernel_.node(node.operands[i]).prim;
      if (order_[static_cast<size_t>(node.operands[i])] == 0 && !HasNoPlace(prim) &&
          !IsOrdered(prim))
        stack_.push_back(node.operands[i]);
    }
    if (stack_.size() > size) continue;
    order = next_++;
    stack_.pop_back();
  }
}

}  // namespace tokamak
