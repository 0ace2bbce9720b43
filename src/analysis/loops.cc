#include "analysis/loops.h"

#include <algorithm>

#include "ir/compare_direction.h"

namespace tokamak {
namespace {

int WidthOf(ElementType type) {
  return InfoOf(type).bits;
}

uint64_t MaskOf(ElementType type) {
  int width = WidthOf(type);
  return width >= 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
}

// Maps integers of a type to unsigned ranks in increasing order: the least value has rank 0.
uint64_t Ranked(ElementType type, int64_t value) {
  uint64_t bits = static_cast<uint64_t>(value) & MaskOf(type);
  return IsSigned(type) ? bits ^ (uint64_t{1} << (WidthOf(type) - 1)) : bits;
}

// Trip count of `x < limit` on ranks. A negative step is a large unsigned one.
std::optional<uint64_t> CountUp(uint64_t start, uint64_t step, uint64_t limit, uint64_t greatest) {
  if (start >= limit) return 0;
  if (step == 0) return std::nullopt;
  uint64_t way = limit - start;
  uint64_t count = way / step + (way % step != 0 ? 1 : 0);
  uint64_t gone = 0;
  if (__builtin_mul_overflow(count, step, &gone) || gone > greatest - start) return std::nullopt;
  return count;
}

// The smallest n with n * step = way modulo 2^width.
std::optional<uint64_t> CountUntilEqual(uint64_t step, uint64_t way, ElementType type) {
  if (way == 0) return 0;
  if (step == 0) return std::nullopt;
  int shift = __builtin_ctzll(step);
  if (__builtin_ctzll(way) < shift) return std::nullopt;  // never equals the limit
  uint64_t odd = step >> shift, inverse = odd;            // correct modulo 8
  // Newton's iteration: each step doubles the number of correct low bits.
  for (int i = 0; i < 6; ++i) inverse *= 2 - odd * inverse;
  return ((way >> shift) * inverse) & (MaskOf(type) >> shift);
}

std::optional<int64_t> ConstantInteger(const Instr* instr) {
  if (instr->op() != Op::kConstant || !instr->shape().IsScalar()) return std::nullopt;
  if (!IsInteger(instr->shape().type()) || instr->shape().quant() != nullptr) return std::nullopt;
  return instr->attrs<ConstantAttrs>().literal.IntAt(0);
}

// Whether `user` and `root` are the only users of `value`.
bool IsUsedOnlyBy(const Instr* value, const Instr* user, const Instr* root) {
  return std::ranges::all_of(value->users(),
                             [&](const Instr* u) { return u == user || u == root; });
}

// The only dimension whose start is an induction variable; all other starts are known integers.
std::optional<std::pair<int64_t, size_t>> MovingDimension(const WhileLoop& loop,
                                                          const Instr* access, size_t first_start) {
  std::optional<std::pair<int64_t, size_t>> found;
  for (size_t i = first_start; i < access->operand_count(); ++i) {
    const Instr* start = access->operand(i);
    if (KnownInteger(loop, start)) continue;
    std::optional<size_t> number = ParameterNumber(start);
    if (!number || found || !InductionOf(loop, *number)) return std::nullopt;
    found = {static_cast<int64_t>(i - first_start), *number};
  }
  return found;
}

}  // namespace

std::optional<WhileLoop> LoopOf(Instr* instr) {
  if (instr->op() != Op::kWhile || instr->operand_count() == 0) return std::nullopt;
  WhileLoop loop{instr, instr->called(0), instr->called(1)};
  for (const Instr* operand : instr->operands())
    if (operand->shape().IsTuple()) return std::nullopt;
  const Instr* root = loop.body->root();
  if (loop.size() > 1 && root->op() != Op::kTuple) return std::nullopt;
  return loop;
}

std::optional<size_t> ParameterNumber(const Instr* instr) {
  if (instr->op() != Op::kParameter) return std::nullopt;
  return static_cast<size_t>(instr->attrs<ParameterAttrs>().number);
}

std::optional<int64_t> KnownInteger(const WhileLoop& loop, const Instr* value) {
  if (std::optional<size_t> number = ParameterNumber(value))
    return loop.IsInvariant(*number) ? ConstantInteger(loop.init(*number)) : std::nullopt;
  return ConstantInteger(value);
}

std::optional<Induction> InductionOf(const WhileLoop& loop, size_t i) {
  const Shape& shape = loop.in_body(i)->shape();
  if (!shape.IsScalar() || !IsInteger(shape.type()) || shape.quant() != nullptr)
    return std::nullopt;
  Induction induction{shape.type(), ConstantInteger(loop.init(i)), 0};
  if (loop.IsInvariant(i)) return induction;
  const Instr *next = loop.next(i), *self = loop.in_body(i);
  bool adds = next->op() == Op::kAdd;
  if (!adds && next->op() != Op::kSubtract) return std::nullopt;
  const Instr* by = next->operand(1);
  if (adds && by == self) by = next->operand(0);
  if (next->operand(0) != self && !(adds && next->operand(1) == self)) return std::nullopt;
  std::optional<int64_t> step = KnownInteger(loop, by);
  if (!step) return std::nullopt;
  induction.step = adds ? *step : static_cast<int64_t>(0 - static_cast<uint64_t>(*step));
  return induction;
}

std::optional<uint64_t> CountTrips(ElementType type, int64_t start, int64_t step, int64_t limit,
                                   CompareDirection direction) {
  uint64_t mask = MaskOf(type), by = static_cast<uint64_t>(step) & mask;
  uint64_t from = Ranked(type, start), to = Ranked(type, limit);
  switch (direction) {
    case CompareDirection::kEq:
      if (from != to) return 0;
      return by == 0 ? std::nullopt : std::optional<uint64_t>(1);
    case CompareDirection::kNe:
      return CountUntilEqual(by, (to - from) & mask, type);
    case CompareDirection::kGt:
    case CompareDirection::kGe:  // mirrored: ~x reverses the order
      return CountTrips(type, ~start, static_cast<int64_t>(0 - static_cast<uint64_t>(step)), ~limit,
                        Swapped(direction));
    case CompareDirection::kLe:
      if (to == mask) return std::nullopt;
      return CountUp(from, by, to + 1, mask);
    case CompareDirection::kLt:
      return CountUp(from, by, to, mask);
  }
  return std::nullopt;
}

std::optional<uint64_t> TripCount(const WhileLoop& loop) {
  const Instr* root = loop.condition->root();
  if (root->op() == Op::kConstant && root->shape().IsScalar() &&
      root->attrs<ConstantAttrs>().literal.IntAt(0) == 0)
    return 0;
  if (root->op() != Op::kCompare) return std::nullopt;
  const auto& compare = root->attrs<CompareAttrs>();
  if (compare.type != CompareType::kNone) return std::nullopt;
  const Instr *x = root->operand(0), *y = root->operand(1);
  CompareDirection direction = compare.direction;
  std::optional<int64_t> limit = KnownInteger(loop, y);
  if (!limit) {
    limit = KnownInteger(loop, x);
    std::swap(x, y);
    direction = Swapped(direction);
  }
  std::optional<size_t> number = ParameterNumber(x);
  if (!limit || !number) return std::nullopt;
  std::optional<Induction> induction = InductionOf(loop, *number);
  if (!induction || !induction->start) return std::nullopt;
  return CountTrips(induction->type, *induction->start, induction->step, *limit, direction);
}

int64_t ValueAfter(const Induction& induction, uint64_t count) {
  uint64_t bits =
      static_cast<uint64_t>(*induction.start) + static_cast<uint64_t>(induction.step) * count;
  int unused = 64 - WidthOf(induction.type);
  bits <<= unused;
  return IsSigned(induction.type) ? static_cast<int64_t>(bits) >> unused
                                  : static_cast<int64_t>(bits >> unused);
}

std::vector<ScanAccess> ScanAccesses(const WhileLoop& loop) {
  std::vector<ScanAccess> accesses;
  const Instr* root = loop.body->root();
  for (size_t i = 0; i < loop.size(); ++i) {
    const Instr *self = loop.in_body(i), *next = loop.next(i);
    if (!self->shape().IsArray() || !loop.in_condition(i)->users().empty()) continue;
    bool is_write = next->op() == Op::kDynamicUpdateSlice && next->operand(0) == self;
    const Instr* access = is_write ? next : nullptr;
    if (loop.IsInvariant(i))
      for (const Instr* user : self->users())
        if (user->op() == Op::kDynamicSlice && user->operand(0) == self) access = user;
    if (access == nullptr || !IsUsedOnlyBy(self, access, root)) continue;
    auto moving = MovingDimension(loop, access, is_write ? 2 : 1);
    if (!moving) continue;
    const Shape& slice = is_write ? access->operand(1)->shape() : access->shape();
    accesses.push_back({i, moving->second, moving->first,
                        slice.dim(static_cast<size_t>(moving->first)), is_write});
  }
  return accesses;
}

bool RunsInChunks(const Instr& loop) {
  if (!loop.has_extras()) return false;
  return std::ranges::any_of(loop.extras().frontend_attributes,
                             [](const AttrEntry& entry) { return entry.name == kChunksAttribute; });
}

}  // namespace tokamak
