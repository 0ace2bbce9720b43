// Divergence analysis for vector loops: how each value varies across the lanes. The lattice has
// three levels, and a value only moves down:
//
//   uniform  ->  affine (base + step * lane)  ->  varying
//
// Uniform values are emitted as scalars, affine indices as vector accesses with a scalar base,
// varying ones as gathers and scatters. `base_multiple` divides the base, which keeps (base + lane)
// / c uniform if no lane crosses a multiple of c. Register arrays are uniform, or per-lane if lanes
// write different values or under divergent conditions; a per-lane array makes its reads varying,
// so both are computed to a fixed point.
//
// The analysis also rejects kernel forms that the CPU backend does not compile (TK4001). Linear in
// the kernel per sweep; each sweep but the last makes another array per-lane.

#include "backend/cpu/lanes.h"

#include <algorithm>
#include <numeric>
#include <string>

namespace tokamak::cpu {
namespace {

Error NotForCpu(const Kernel& kernel, const std::string& what) {
  return MakeError(ErrorCode::kKernelForm, "kernel " + kernel.name + ": " + what);
}

constexpr LaneFact kVaries{.kind = LaneKind::kVarying};

LaneFact Affine(int64_t step, int64_t base_multiple, int64_t lanes) {
  if (step == 0) return {};
  return {LaneKind::kAffine, step, base_multiple, lanes};
}

}  // namespace

const Loop* GridOf(const Kernel& kernel) {
  if (kernel.body.size() != 1 || kernel.body[0].kind != StmtKind::kFor) return nullptr;
  const Loop& loop = kernel.loop(kernel.body[0].loop);
  return loop.role == LoopRole::kGrid ? &loop : nullptr;
}

Result<Lanes> Lanes::Of(const Kernel& kernel) {
  Lanes lanes(kernel);
  lanes.facts_.resize(kernel.nodes.size());
  lanes.read_lanes_.assign(kernel.nodes.size(), 0);
  lanes.laned_.assign(kernel.arrays.size(), 0);
  TOK_RETURN_IF_ERROR(lanes.Collect(kernel.body, {}));
  // Fixed point: each pass makes at least one more array per-lane, or is the last.
  do {
    lanes.FindFacts();
  } while (lanes.PropagateLanes());
  TOK_RETURN_IF_ERROR(lanes.CheckRegisters());
  lanes.narrow_index_ = kernel.index_bits == 32 || lanes.IndicesFit32Bits();
  return lanes;
}

// The extent of a loop inside a vector loop decides which lanes run its body, as a condition does.
Status Lanes::CollectFor(const Stmt& stmt, Site around) {
  const Loop& loop = kernel_->loop(stmt.loop);
  const ScalarNode& extent = kernel_->node(loop.extent);
  bool is_constant = extent.prim == Prim::kConst;
  int64_t trips = is_constant ? IntOfBits(extent.type, extent.bits) : 0;
  switch (loop.role) {
    case LoopRole::kThread:
      return NotForCpu(*kernel_, "loop " + loop.name + " is over the threads of a block");
    case LoopRole::kVector:
      if (around.lanes > 1) return NotForCpu(*kernel_, "nested vector loops");
      if (!is_constant || trips < 1 || trips > kMaxLanes)
        return NotForCpu(*kernel_, "vector loop " + loop.name + " must have from 1 to " +
                                       std::to_string(kMaxLanes) + " lanes");
      around.lanes = trips;
      break;
    case LoopRole::kUnrolled:
      if (!is_constant)
        return NotForCpu(*kernel_, "unrolled loop " + loop.name + " has no constant extent");
      break;
    case LoopRole::kGrid:
    case LoopRole::kSerial:
      break;
  }
  if (around.lanes > 1) around.deciders.push_back(loop.extent);
  return Collect(stmt.body, around);
}

// Records each access with the vector loop around it and the conditions that decide whether a lane
// executes it.
Status Lanes::Collect(const StmtList& block, const Site& around) {
  for (const Stmt& stmt : block) {
    Site site = around;
    site.stmt = &stmt;
    switch (stmt.kind) {
      case StmtKind::kFor:
        TOK_RETURN_IF_ERROR(CollectFor(stmt, site));
        break;
      case StmtKind::kIf:
        if (site.lanes > 1) site.deciders.push_back(stmt.condition);
        TOK_RETURN_IF_ERROR(Collect(stmt.body, site));
        TOK_RETURN_IF_ERROR(Collect(stmt.else_body, site));
        break;
      case StmtKind::kWhile:
        if (site.lanes > 1) site.deciders.push_back(stmt.condition);
        TOK_RETURN_IF_ERROR(Collect(stmt.condition_stmts, site));
        TOK_RETURN_IF_ERROR(Collect(stmt.body, site));
        break;
      case StmtKind::kShuffle:
        if (kernel_->node(stmt.value).prim == Prim::kMatch) return NotForCpu(*kernel_, "a match");
        if (!kernel_->IsConstant(kernel_->node(stmt.value).operands[1]))
          return NotForCpu(*kernel_, "a shuffle by a number that is not constant");
        [[fallthrough]];
      case StmtKind::kRead:
        read_lanes_[static_cast<size_t>(stmt.value)] = site.lanes;
        [[fallthrough]];
      case StmtKind::kStore:
        sites_.push_back(std::move(site));
        break;
      case StmtKind::kAsync:
        return NotForCpu(*kernel_, "asynchronous work");
      case StmtKind::kBarrier:  // a block is one thread whose lanes run in lockstep
      case StmtKind::kMatMul:
        break;
    }
  }
  return Ok();
}

// Operands precede their users.
void Lanes::FindFacts() {
  for (size_t i = 0; i < facts_.size(); ++i) facts_[i] = FactOf(ValueId{static_cast<uint32_t>(i)});
}

LaneFact Lanes::FactOf(ValueId id) {
  const ScalarNode& node = kernel_->node(id);
  if (node.prim == Prim::kLoop) {
    const Loop& loop = kernel_->loop(node.loop());
    if (loop.role != LoopRole::kVector) return {};
    auto lanes = static_cast<int64_t>(kernel_->node(loop.extent).bits);
    return lanes == 1 ? LaneFact{} : Affine(1, 0, lanes);
  }
  if (node.prim == Prim::kRead && read_lanes_[static_cast<size_t>(id)] > 1 &&
      LanesOf(node.array()) > 0)
    return kVaries;
  auto operands = kernel_->operands(id);
  if (std::ranges::all_of(operands, [&](ValueId x) { return IsUniform(x); })) return {};
  return node.type == ScalarType::kIndex ? FactOfIndex(node) : kVaries;
}

// Overflow of a step, or a product of two lane-dependent values, loses the affine form.
LaneFact Lanes::FactOfIndex(const ScalarNode& node) {
  if (node.arity() != 2) return kVaries;
  LaneFact sides[2];
  for (size_t i : {0, 1}) {
    sides[i] = of(node.operands[i]);
    if (sides[i].kind == LaneKind::kVarying) return kVaries;
    if (sides[i].kind == LaneKind::kUniform)
      sides[i].base_multiple = ranges_.Of(*kernel_, node.operands[i]).stride;
  }
  const LaneFact &x = sides[0], &y = sides[1];
  int64_t lanes = std::max(x.lanes, y.lanes), step = 0, multiple = 0;
  switch (node.prim) {
    case Prim::kAdd:
      if (__builtin_add_overflow(x.step, y.step, &step)) return kVaries;
      return Affine(step, std::gcd(x.base_multiple, y.base_multiple), lanes);
    case Prim::kSub:
      if (__builtin_sub_overflow(x.step, y.step, &step)) return kVaries;
      return Affine(step, std::gcd(x.base_multiple, y.base_multiple), lanes);
    case Prim::kMul: {
      const ScalarNode& factor = kernel_->node(node.operands[1]);
      int64_t by = IntOfBits(factor.type, factor.bits);
      if (factor.prim != Prim::kConst || by == INT64_MIN ||
          __builtin_mul_overflow(x.step, by, &step) ||
          __builtin_mul_overflow(x.base_multiple, std::abs(by), &multiple))
        return kVaries;
      return Affine(step, multiple, lanes);
    }
    case Prim::kDiv:
    case Prim::kRem:
      return FactOfDivision(node, x);
    default:
      return kVaries;
  }
}

// (base + lane) / c where c and base are multiples of a number that no lane reaches: the quotient
// is uniform, and the remainder is base % c + lane.
LaneFact Lanes::FactOfDivision(const ScalarNode& node, const LaneFact& x) {
  const ScalarNode& divisor = kernel_->node(node.operands[1]);
  int64_t by = IntOfBits(divisor.type, divisor.bits), reach = 0;
  if (divisor.prim != Prim::kConst || by <= 0 || x.step < 0) return kVaries;
  if (ranges_.Of(*kernel_, node.operands[0]).low < 0) return kVaries;
  int64_t whole = std::gcd(x.base_multiple, by);
  if (__builtin_mul_overflow(x.step, x.lanes - 1, &reach) || reach >= whole) return kVaries;
  return node.prim == Prim::kDiv ? LaneFact{} : Affine(x.step, whole, x.lanes);
}

// Registers that the lanes write at a uniform index become per-lane, unless the written value is
// uniform.
bool Lanes::PropagateLanes() {
  bool changed = false;
  for (const Site& site : sites_) {
    const Stmt& stmt = *site.stmt;
    if (stmt.kind != StmtKind::kStore || site.lanes <= 1) continue;
    if (kernel_->array(stmt.array).space != Space::kRegisters) continue;
    if (LanesOf(stmt.array) > 0 || !IsUniform(stmt.index)) continue;
    bool is_uniform = IsUniform(stmt.value) &&
                      std::ranges::all_of(site.deciders, [&](ValueId x) { return IsUniform(x); });
    if (is_uniform) continue;
    laned_[static_cast<size_t>(stmt.array)] = site.lanes;
    changed = true;
  }
  return changed;
}

Status Lanes::CheckRegisters() const {
  for (const Site& site : sites_) {
    const Stmt& stmt = *site.stmt;
    if (stmt.kind == StmtKind::kShuffle) continue;
    ArrayId array = stmt.kind == StmtKind::kStore ? stmt.array : kernel_->node(stmt.value).array();
    int64_t lanes = LanesOf(array);
    if (lanes == 0) continue;
    const std::string& name = kernel_->array(array).name;
    if (site.lanes <= 1 && stmt.kind == StmtKind::kRead)
      return NotForCpu(
          *kernel_,
          "registers " + name + " are private to each lane, but are read outside the vector loop");
    if (site.lanes > 1 && site.lanes != lanes)
      return NotForCpu(*kernel_,
                       "registers " + name + " belong to vector loops of different lanes");
  }
  return Ok();
}

// Vector addresses then use 32-bit lanes: twice as many per register.
bool Lanes::IndicesFit32Bits() {
  auto fits = [&](ValueId id) {
    if (kernel_->node(id).type != ScalarType::kIndex) return true;
    Range range = ranges_.Of(*kernel_, id);
    return range.low >= INT32_MIN && range.high <= INT32_MAX;
  };
  for (size_t i = 0; i < facts_.size(); ++i) {
    ValueId id{static_cast<uint32_t>(i)};
    if (IsUniform(id)) continue;
    if (!fits(id) || !std::ranges::all_of(kernel_->operands(id), fits)) return false;
  }
  return true;
}

}  // namespace tokamak::cpu
