#include "kernel/placement.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace tokamak {
namespace {

bool IsNeverPlaced(Prim prim) {
  return prim == Prim::kConst || prim == Prim::kExtent || prim == Prim::kLoop;
}

}  // namespace

Placement::Placement(const Kernel& kernel) : kernel_(kernel) {
  loop_blocks_.assign(kernel.loops.size(), -1);
  read_points_.resize(kernel.nodes.size());
  common_.resize(kernel.nodes.size());
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

std::span<const ValueId> Placement::Before(const StmtList& block, size_t i) const {
  size_t slot = SlotOf({numbers_.at(&block), i});
  return std::span(values_).subspan(slot_begin_[slot], slot_begin_[slot + 1] - slot_begin_[slot]);
}

int Placement::AddBlock(const StmtList& block, int parent, size_t at, bool loop, bool conditional) {
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
  const StmtList& stmts = *blocks_[static_cast<size_t>(block)].block;
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
        if (!stmt.else_body.empty()) AddChildren(AddBlock(stmt.else_body, block, i, false, true));
        break;
      case StmtKind::kWhile: {
        int head = AddBlock(stmt.condition_stmts, block, i, true, false);
        AddChildren(head);
        // The body is a child of the head, because values read in the head are available in the
        // body.
        AddChildren(AddBlock(stmt.body, head, stmt.condition_stmts.size(), false, true));
        break;
      }
      case StmtKind::kRead:
      case StmtKind::kShuffle:
        read_points_[static_cast<size_t>(stmt.value)] = {block, i};
        break;
      case StmtKind::kStore:
      case StmtKind::kBarrier:
      case StmtKind::kMatMul:
      case StmtKind::kAsync:
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

Placement::ProgramPoint Placement::Raised(ProgramPoint point, int to) const {
  while (point.block != to) {
    const Node& node = blocks_[static_cast<size_t>(point.block)];
    point = {node.parent, node.at};
  }
  return point;
}

int Placement::Common(int x, int y) const {
  while (x != y) {
    int& deeper =
        blocks_[static_cast<size_t>(x)].depth >= blocks_[static_cast<size_t>(y)].depth ? x : y;
    deeper = blocks_[static_cast<size_t>(deeper)].parent;
  }
  return x;
}

// One pass suffices: operands precede their users.
void Placement::FindEarliest() {
  earliest_.assign(kernel_.nodes.size(), 0);
  may_fault_.assign(kernel_.nodes.size(), false);
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    const ScalarNode& node = kernel_.nodes[i];
    if (node.prim == Prim::kLoop) {
      earliest_[i] = std::max(loop_blocks_[static_cast<size_t>(node.loop())], 0);
    } else if (IsOrdered(node.prim)) {
      earliest_[i] = std::max(read_points_[i].block, 0);
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

void Placement::Use(ValueId value, ProgramPoint point) {
  auto number = static_cast<size_t>(value);
  ProgramPoint& common = common_[number];
  common = common.block < 0 ? point : CommonBlock(common, point);
  if (may_fault_[number]) uses_[number].push_back(point);
}

Placement::ProgramPoint Placement::CommonBlock(ProgramPoint x, ProgramPoint y) const {
  int block = Common(x.block, y.block);
  return {block, std::min(Raised(x, block).at, Raised(y, block).at)};
}

void Placement::CollectUses() {
  for (size_t b = 0; b < blocks_.size(); ++b) {
    const StmtList& stmts = *blocks_[b].block;
    for (size_t i = 0; i < stmts.size(); ++i) {
      const Stmt& stmt = stmts[i];
      ProgramPoint point{static_cast<int>(b), i};
      switch (stmt.kind) {
        case StmtKind::kFor:
          Use(kernel_.loop(stmt.loop).extent, point);
          break;
        case StmtKind::kIf:
          Use(stmt.condition, point);
          break;
        case StmtKind::kWhile:
          Use(stmt.condition, {numbers_.at(&stmt.condition_stmts), stmt.condition_stmts.size()});
          break;
        case StmtKind::kStore:
          Use(stmt.index, point);
          Use(stmt.value, point);
          break;
        case StmtKind::kRead:
        case StmtKind::kShuffle:
          for (ValueId operand : kernel_.operands(stmt.value)) Use(operand, point);
          break;
        case StmtKind::kMatMul:
          for (ValueId operand : MatMulOperandsOf(stmt)) Use(operand, point);
          break;
        case StmtKind::kAsync:
          for (ValueId operand : AsyncOperandsOf(stmt)) Use(operand, point);
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

// Whether every execution of the block reaches one of these uses, all of which are in it or nested.
bool Placement::IsCertainlyUsed(int block, const std::vector<ProgramPoint>& uses) const {
  std::map<int, std::vector<ProgramPoint>> inner;  // by child block
  for (const ProgramPoint& use : uses) {
    if (use.block == block) return true;
    inner[ChildOf(block, use.block)].push_back(use);
  }
  // Per if statement: number of its branches that surely use the value.
  std::map<size_t, int> sure_branches;
  for (const auto& [child, below] : inner) {
    if (!IsCertainlyUsed(child, below)) continue;
    const Node& node = blocks_[static_cast<size_t>(child)];
    if (!node.conditional) return true;
    bool is_if = node.at < blocks_[static_cast<size_t>(block)].block->size() &&
                 (*blocks_[static_cast<size_t>(block)].block)[node.at].kind == StmtKind::kIf;
    if (is_if && ++sure_branches[node.at] == 2) return true;
  }
  return false;
}

// The smallest set of blocks such that each surely reaches a use.
void Placement::Split(const std::vector<ProgramPoint>& uses,
                      std::vector<ProgramPoint>& points) const {
  int common = uses[0].block;
  for (const ProgramPoint& use : uses) common = Common(common, use.block);
  if (IsCertainlyUsed(common, uses)) {
    ProgramPoint point{common, SIZE_MAX};
    for (const ProgramPoint& use : uses) point.at = std::min(point.at, Raised(use, common).at);
    points.push_back(point);
    return;
  }
  std::map<int, std::vector<ProgramPoint>> inner;
  for (const ProgramPoint& use : uses) inner[ChildOf(common, use.block)].push_back(use);
  for (const auto& [child, below] : inner) Split(below, points);
}

// Hoists a point out of loops, while operands are available and no new fault can occur.
Placement::ProgramPoint Placement::Hoisted(ProgramPoint point, size_t value) const {
  int best = point.block;
  for (int b = point.block; b != earliest_[value];) {
    const Node& block = blocks_[static_cast<size_t>(b)];
    if (block.conditional && may_fault_[value]) break;
    b = block.parent;
    if (b < 0) break;
    if (blocks_[static_cast<size_t>(b)].loops < blocks_[static_cast<size_t>(best)].loops) best = b;
  }
  return Raised(point, best);
}

std::vector<Placement::ProgramPoint> Placement::PointsOf(size_t value) const {
  std::vector<ProgramPoint> points;
  Split(uses_.at(value), points);
  for (ProgramPoint& point : points) point = Hoisted(point, value);
  // A point whose block encloses that of another serves both.
  for (bool again = points.size() > 1; again;) {
    again = false;
    for (size_t i = 0; i < points.size() && !again; ++i)
      for (size_t k = 0; k < points.size() && !again; ++k) {
        if (i == k || Common(points[i].block, points[k].block) != points[i].block) continue;
        points[i].at = std::min(points[i].at, Raised(points[k], points[i].block).at);
        points.erase(points.begin() + static_cast<int64_t>(k));
        again = true;
      }
  }
  return points;
}

// In reverse order: all users of a value are placed before the value itself.
void Placement::Choose() {
  for (size_t i = kernel_.nodes.size(); i-- > 0;) {
    const ScalarNode& node = kernel_.nodes[i];
    if (IsNeverPlaced(node.prim) || IsOrdered(node.prim) || common_[i].block < 0) continue;
    ValueId id{static_cast<uint32_t>(i)};
    if (may_fault_[i]) {
      for (const ProgramPoint& point : PointsOf(i)) Put(id, point);
    } else {
      Put(id, Hoisted(common_[i], i));
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

void Placement::Put(ValueId value, ProgramPoint point) {
  chosen_.emplace_back(SlotOf(point), value);
  for (ValueId operand : kernel_.operands(value)) Use(operand, point);
}

// Numbers values in the order in which statements need them, operands first. The order is
// independent of the order in which the nodes were created.
void Placement::Number(const StmtList& block) {
  for (const Stmt& stmt : block) {
    switch (stmt.kind) {
      case StmtKind::kFor:
        NumberValue(kernel_.loop(stmt.loop).extent);
        break;
      case StmtKind::kIf:
        NumberValue(stmt.condition);
        break;
      case StmtKind::kWhile:
        Number(stmt.condition_stmts);
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
      case StmtKind::kMatMul:
        for (ValueId operand : MatMulOperandsOf(stmt)) NumberValue(operand);
        break;
      case StmtKind::kAsync:
        for (ValueId operand : AsyncOperandsOf(stmt)) NumberValue(operand);
        break;
      case StmtKind::kBarrier:
        break;
    }
    Number(stmt.body);
    Number(stmt.else_body);
  }
}

void Placement::NumberValue(ValueId value) {
  stack_.assign(1, value);
  while (!stack_.empty()) {
    ValueId id = stack_.back();
    uint32_t& order = order_[static_cast<size_t>(id)];
    const ScalarNode& node = kernel_.node(id);
    if (order != 0 || IsNeverPlaced(node.prim) || IsOrdered(node.prim)) {
      stack_.pop_back();
      continue;
    }
    size_t size = stack_.size();
    for (size_t i = static_cast<size_t>(node.arity()); i-- > 0;) {
      Prim prim = kernel_.node(node.operands[i]).prim;
      if (order_[static_cast<size_t>(node.operands[i])] == 0 && !IsNeverPlaced(prim) &&
          !IsOrdered(prim))
        stack_.push_back(node.operands[i]);
    }
    if (stack_.size() > size) continue;
    order = next_++;
    stack_.pop_back();
  }
}

}  // namespace tokamak
