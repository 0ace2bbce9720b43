#include "kernel/sim_program.h"

#include "kernel/divergence.h"
#include "kernel/placement.h"

namespace tokamak {
namespace {

class Decoder {
 public:
  explicit Decoder(const Kernel& kernel)
      : kernel_(kernel), placement_(kernel), divergence_(kernel) {}

  SimProgram Decode() {
    values_.resize(kernel_.nodes.size());
    program_.copies.assign(kernel_.arrays.size(), 1);
    program_.extents.assign(kernel_.extents.size(), UINT32_MAX);
    for (const Loop& loop : kernel_.loops) loops_.push_back(LoopSlot(loop));
    for (size_t i = 0; i < kernel_.nodes.size(); ++i) Leaf(kernel_.nodes[i], values_[i]);
    DecodeBlock(kernel_.body);
    Append(SimKind::kEnd);
    return std::move(program_);
  }

 private:
  int64_t ConstantOf(ValueId id) const {
    return IntOfBits(ScalarType::kIndex, kernel_.node(id).bits);
  }

  uint32_t NewSlots(uint32_t count) {
    auto at = static_cast<uint32_t>(program_.slots.size());
    program_.slots.resize(program_.slots.size() + count);
    return at;
  }

  SimOperand LoopSlot(const Loop& loop) {
    if (!IsVector(kernel_, loop)) return {NewSlots(1), 0};
    auto lanes = static_cast<uint32_t>(ConstantOf(loop.extent));
    SimOperand slot{NewSlots(lanes), 1};
    for (uint32_t i = 0; i < lanes; ++i) program_.slots[slot.at + i] = i;
    return slot;
  }

  // Values that no operation computes.
  void Leaf(const ScalarNode& node, SimOperand& slot) {
    if (node.prim == Prim::kLoop) {
      slot = loops_[static_cast<size_t>(node.loop())];
    } else if (node.prim == Prim::kConst) {
      slot = {NewSlots(1), 0};
      program_.slots[slot.at] = node.bits;
    } else if (node.prim == Prim::kExtent) {
      slot = {NewSlots(1), 0};
      program_.extents[static_cast<size_t>(node.extent())] = slot.at;
    }
  }

  SimOp& Append(SimKind kind) {
    SimOp op;
    op.kind = kind;
    op.lanes = static_cast<uint16_t>(lanes_);
    op.under_vector = in_vector_;
    op.stmt = stmt_;
    program_.ops.push_back(op);
    return program_.ops.back();
  }
  uint32_t Here() const { return static_cast<uint32_t>(program_.ops.size()); }
  SimOperand Slot(ValueId id) const { return values_[static_cast<size_t>(id)]; }

  // Allocates slots for a value and appends the operation that fills them.
  SimOp& AppendValue(SimKind kind, ValueId id) {
    const ScalarNode& node = kernel_.node(id);
    bool wide = in_vector_ && divergence_.ByLane(id);
    uint32_t lanes = wide ? lanes_ : 1;
    SimOperand slot{NewSlots(lanes), wide ? 1u : 0u};
    values_[static_cast<size_t>(id)] = slot;
    SimOp& op = Append(kind);
    op.prim = node.prim;
    op.type = node.type;
    op.lanes = static_cast<uint16_t>(lanes);
    op.to = slot.at;
    op.value = id;
    SimOperand* operands[] = {&op.a, &op.b, &op.c};
    for (size_t i = 0; i < static_cast<size_t>(node.arity()); ++i)
      *operands[i] = Slot(node.operands[i]);
    if (node.arity() > 0) op.from = kernel_.node(node.operands[0]).type;
    if (node.prim == Prim::kLoad || node.prim == Prim::kRead)
      op.array = static_cast<uint32_t>(node.array());
    return op;
  }

  void Compute(ValueId id) {
    const ScalarNode& node = kernel_.node(id);
    if (node.prim == Prim::kLoad) {
      AppendValue(SimKind::kLoad, id);
      return;
    }
    SimOp& op = AppendValue(SimKind::kCompute, id);
    op.compute = ComputeOf(op.prim, op.type, op.from);
    bool divides = (op.prim == Prim::kDiv || op.prim == Prim::kRem) && IsInteger(op.type);
    if (divides || (op.type == ScalarType::kIndex && kernel_.index_bits == 32))
      op.kind = SimKind::kChecked;
  }

  void DecodeBlock(const StmtList& block) {
    for (size_t i = 0; i <= block.size(); ++i) {
      for (ValueId id : placement_.Before(block, i)) Compute(id);
      if (i < block.size()) DecodeStmt(block[i]);
    }
  }

  void DecodeStmt(const Stmt& stmt) {
    int outer = stmt_;
    stmt_ = next_stmt_++;
    switch (stmt.kind) {
      case StmtKind::kFor:
        For(stmt);
        break;
      case StmtKind::kIf:
        If(stmt);
        break;
      case StmtKind::kWhile:
        While(stmt);
        break;
      case StmtKind::kStore: {
        SimOp& op = Append(SimKind::kStore);
        op.array = static_cast<uint32_t>(stmt.array);
        op.a = Slot(stmt.index);
        op.b = Slot(stmt.value);
        bool is_uniform = op.a.step == 0 && op.b.step == 0 && masks_ == 0;
        if (in_vector_ && divergence_.PerLane(stmt.array)) {
          program_.copies[static_cast<size_t>(stmt.array)] = lanes_;
        } else if (in_vector_ && is_uniform) {
          op.lanes = 1;  // the store happens once per thread, not per lane
        }
        break;
      }
      case StmtKind::kRead:
        AppendValue(SimKind::kRead, stmt.value);
        break;
      case StmtKind::kShuffle:
        AppendValue(SimKind::kShuffle, stmt.value);
        break;
      case StmtKind::kBarrier:
        Append(SimKind::kBarrier).scope = stmt.scope;
        break;
      case StmtKind::kAsync:
        Async(stmt);
        break;
      case StmtKind::kMatMul: {
        SimOp& op = Append(stmt.matmul.async ? SimKind::kAsyncMultiply : SimKind::kMultiply);
        op.array = static_cast<uint32_t>(stmt.array);
        op.product = &stmt.matmul;
        op.a = Slot(stmt.index);
        op.b = Slot(stmt.matmul.lhs_index);
        op.c = Slot(stmt.matmul.rhs_index);
        op.to = Slot(stmt.matmul.depth).at;
        break;
      }
    }
    stmt_ = outer;
  }

  void Async(const Stmt& stmt) {
    SimOp& op = Append(SimKind::kAsync);
    op.async = stmt.async.get();
    if (HasArray(op.async->kind)) op.array = static_cast<uint32_t>(stmt.array);
    if (HasMbarrier(op.async->kind)) op.a = Slot(stmt.index);
    if (op.async->kind == AsyncKind::kWait) op.b = Slot(op.async->parity);
    if (!HasCopy(op.async->kind)) return;
    const TileCopy& copy = op.async->copy;
    op.b = Slot(op.async->kind == AsyncKind::kCopy ? copy.to_index : copy.from_index);
    op.c.at = static_cast<uint32_t>(program_.coordinates.size());
    for (const TileCopy::Dimension& dimension : copy.dimensions)
      program_.coordinates.push_back(Slot(dimension.at).at);
  }

  void For(const Stmt& stmt) {
    const Loop& loop = kernel_.loop(stmt.loop);
    SimOperand variable = loops_[static_cast<size_t>(stmt.loop)];
    if (loop.role == LoopRole::kGrid || loop.role == LoopRole::kThread) {
      auto& loops = loop.role == LoopRole::kGrid ? program_.grid : program_.thread;
      loops.push_back({variable.at, loop.extent});
      DecodeBlock(stmt.body);
      return;
    }
    if (IsVector(kernel_, loop)) {
      lanes_ = static_cast<uint32_t>(ConstantOf(loop.extent));
      in_vector_ = true;
      Append(SimKind::kVector);
      DecodeBlock(stmt.body);
      Append(SimKind::kVectorEnd);
      lanes_ = 1;
      in_vector_ = false;
      return;
    }
    uint32_t begin = Here();
    SimOp& enter = Append(SimKind::kLoop);
    enter.to = variable.at;
    enter.a = Slot(loop.extent);
    DecodeBlock(stmt.body);
    SimOp& next = Append(SimKind::kNext);
    next.to = variable.at;
    next.a = Slot(loop.extent);
    next.target = begin + 1;
    program_.ops[begin].target = Here();
  }

  SimOp& Decide(SimKind kind, const Stmt& stmt) {
    SimOp& op = Append(kind);
    op.a = Slot(stmt.condition);
    op.uniform = stmt.uniform;
    if (stmt.uniform) op.decision = program_.decisions++;
    return op;
  }

  bool IsMasked(const Stmt& stmt) const { return in_vector_ && divergence_.ByLane(stmt.condition); }

  void If(const Stmt& stmt) {
    bool masked = IsMasked(stmt);
    uint32_t test = Here();
    Decide(masked ? SimKind::kMaskIf : SimKind::kUnless, stmt);
    masks_ += masked ? 1 : 0;
    DecodeBlock(stmt.body);
    if (stmt.else_body.empty()) {
      program_.ops[test].target = Here();
    } else if (masked) {
      uint32_t turn = Here();
      Append(SimKind::kMaskElse).a = Slot(stmt.condition);
      program_.ops[test].target = turn;
      DecodeBlock(stmt.else_body);
      program_.ops[turn].target = Here();
    } else {
      uint32_t leave = Here();
      Append(SimKind::kJump);
      program_.ops[test].target = Here();
      DecodeBlock(stmt.else_body);
      program_.ops[leave].target = Here();
    }
    if (masked) Append(SimKind::kMaskEnd);
    masks_ -= masked ? 1 : 0;
  }

  void While(const Stmt& stmt) {
    bool masked = IsMasked(stmt);
    if (masked) Append(SimKind::kMaskBegin);
    masks_ += masked ? 1 : 0;
    uint32_t head = Here();
    DecodeBlock(stmt.condition_stmts);
    uint32_t test = Here();
    Decide(masked ? SimKind::kMaskWhile : SimKind::kUnless, stmt);
    DecodeBlock(stmt.body);
    Append(SimKind::kJump).target = head;
    program_.ops[test].target = Here();
    if (masked) Append(SimKind::kMaskEnd);
    masks_ -= masked ? 1 : 0;
  }

  const Kernel& kernel_;
  Placement placement_;
  Divergence divergence_;
  SimProgram program_;
  std::vector<SimOperand> values_, loops_;
  uint32_t lanes_ = 1;
  bool in_vector_ = false;
  int masks_ = 0;  // number of open masks
  int stmt_ = -1, next_stmt_ = 0;
};

}  // namespace

SimProgram DecodeKernel(const Kernel& kernel) {
  return Decoder(kernel).Decode();
}

}  // namespace tokamak
