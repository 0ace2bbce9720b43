#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/range.h"

namespace tokamak {

// Schedules the pure values of a kernel (global code motion, as in Click's "Global Code Motion,
// Global Value Numbering"). The candidates for a value lie between the statement block where its
// operands are available and the common ancestor of its uses. Placement takes the one of least loop
// depth, and within it the latest point.
//
// A value that may fault (a load that is not provably in bounds, an integer division, and
// everything computed from them) is never speculated: it is computed only at points from which a
// use is certain to be reached. If its uses are in several conditional blocks, it is duplicated
// into these blocks, none of which is nested in another.
class Placement {
 public:
  // The kernel must outlive this object and must not change.
  explicit Placement(const Kernel& kernel);

  // The values to compute in `block` before its statement i, in topological order, otherwise in the
  // order in which statements need them. The index block.size() means the end of the block, which
  // occurs only in the head of a while (its condition). Constants, extents and loop variables are
  // not placed.
  std::span<const ValueId> Before(const StmtList& block, size_t i) const;

 private:
  struct Node {  // a statement block
    const StmtList* block = nullptr;
    int parent = -1;
    size_t at = 0;  // index of the parent's statement that contains this block
    int depth = 0, loops = 0;
    bool conditional = false;  // may not run although its parent runs
  };
  struct ProgramPoint {
    int block = -1;
    size_t at = 0;
  };

  int AddBlock(const StmtList& block, int parent, size_t at, bool loop, bool conditional);
  void AddChildren(int block);
  ProgramPoint Raised(ProgramPoint point,
                      int to) const;  // the statement of block `to` that contains `point`
  int Common(int x, int y) const;
  void Use(ValueId value, ProgramPoint point);
  bool MayFault(const ScalarNode& node);
  int ChildOf(int block, int within) const;  // the child of `block` that contains `within`
  // The innermost block that contains both points, and its first statement that contains either.
  ProgramPoint CommonBlock(ProgramPoint x, ProgramPoint y) const;
  bool IsCertainlyUsed(int block, const std::vector<ProgramPoint>& uses) const;
  void Split(const std::vector<ProgramPoint>& uses, std::vector<ProgramPoint>& points) const;
  ProgramPoint Hoisted(ProgramPoint point, size_t value) const;
  // Points at which a value that may fault is computed.
  std::vector<ProgramPoint> PointsOf(size_t value) const;
  void FindEarliest();
  void CollectUses();
  void Number(const StmtList& block);
  void NumberValue(ValueId value);
  void Put(ValueId value, ProgramPoint point);
  void Choose();
  size_t SlotOf(ProgramPoint point) const {
    return first_slot_[static_cast<size_t>(point.block)] + point.at;
  }

  const Kernel& kernel_;
  RangeTable ranges_;
  std::vector<Node> blocks_;
  std::unordered_map<const StmtList*, int> numbers_;
  std::vector<int> loop_blocks_;  // the body of each loop
  std::vector<int> earliest_;     // per value
  std::vector<bool> may_fault_;   // per value: it or one of its transitive operands may fault
  std::vector<ProgramPoint> read_points_;  // points of reads and shuffles
  std::vector<ProgramPoint> common_;       // per value: the common ancestor of its uses
  std::unordered_map<size_t, std::vector<ProgramPoint>> uses_;  // values that may fault only
  // Per value: position in a walk over the statements; 0: not visited.
  std::vector<uint32_t> order_;
  uint32_t next_ = 1;
  std::vector<ValueId> stack_;  // scratch of one walk
  // Every statement of a block, and the end of the block, has a slot. values_ stores the values of
  // all slots contiguously, in slot order; slot_begin_ has the first index of each slot.
  std::vector<size_t> first_slot_;  // per block
  std::vector<std::pair<size_t, ValueId>> chosen_;
  std::vector<uint32_t> slot_begin_;
  std::vector<ValueId> values_;
};

}  // namespace tokamak
