// Checks that a range of instructions is n equal steps of p instructions each (an unrolled loop),
// and describes the data flow between them. Instruction `offset` of step s is at position begin + s
// * p + offset of the line.
//
//   a0 b0 c0 | a1 b1 c1 | a2 b2 c2      an operand of step s is either outside in all steps,
//                                       or the instruction at one offset of step s - d, with one d
//
// The first d steps have no such predecessor: their operands are the initial values of the carried
// value (history). Outside users of step values are either a concatenate of one value of all steps
// (collected: a stacked output) or a use of a single step (used). Views of outside values do not
// count: their users outside keep using them. CheckSteps is linear in the range and its uses.

#include "rewrite/steps.h"

#include <algorithm>
#include <unordered_set>

#include "ir/compare.h"
#include "rewrite/bodies.h"

namespace tokamak {
namespace {

bool AreSameStep(const Instr& a, const Instr& b) {
  bool same = a.op() == b.op() && a.shape() == b.shape() && a.captures() == b.captures() &&
              a.operand_count() == b.operand_count() && std::ranges::equal(a.called(), b.called());
  if (!same || !SameExtras(a, b)) return false;
  return a.op() == Op::kSlice || EqualAttrs(a.op(), a.attrs(), b.attrs());
}

bool AllEqual(const StepRange& range) {
  for (size_t offset = 0; offset < range.period; ++offset)
    for (size_t step = 1; step < range.count; ++step)
      if (!AreSameStep(*range.At(0, offset), *range.At(step, offset))) return false;
  return true;
}

// Records the values that the first steps use from steps before the first.
bool CheckOperand(Steps& steps, size_t offset, size_t slot) {
  const StepRange& range = steps.range;
  auto position_of = [&](size_t step) {
    return range.PositionOf(range.At(step, offset)->operand(slot));
  };
  size_t last = range.count - 1;
  std::optional<StepRange::StepPosition> position = position_of(last);
  StepOperand& from = steps.operands[offset][slot];
  from.is_outside = !position.has_value();
  if (from.is_outside) {
    for (size_t step = 0; step < last; ++step)
      if (position_of(step)) return false;
    return true;
  }
  from.offset = position->offset;
  from.distance = last - position->step;
  if (from.distance > kMostHistory || from.distance >= last) return false;
  std::vector<Instr*>& history = steps.history[from.offset];
  if (history.size() < from.distance) history.resize(from.distance, nullptr);
  for (size_t step = 0; step < last; ++step) {
    std::optional<StepRange::StepPosition> here = position_of(step);
    if (step >= from.distance) {
      if (!here || here->offset != from.offset || here->step + from.distance != step) return false;
      continue;
    }
    if (here) return false;
    Instr* value = range.At(step, offset)->operand(slot);
    Instr*& known = history[from.distance - step - 1];
    if (known != nullptr && known != value) return false;
    known = value;
    if (!(value->shape() == range.At(0, from.offset)->shape())) return false;
  }
  return true;
}

// Whether `instr` only inserts a dimension of size 1 before dimension `d` of its operand.
bool AddsDimension(const Instr& instr, int64_t d) {
  if (instr.op() != Op::kBroadcast && instr.op() != Op::kReshape) return false;
  const Shape &out = instr.shape(), &in = instr.operand(0)->shape();
  if (out.rank() != in.rank() + 1 || out.dim(static_cast<size_t>(d)) != 1) return false;
  Dims without = out.dims(), dims_kept;
  without.erase(without.begin() + d);
  if (without != in.dims() || out.layout() != nullptr) return false;
  if (instr.op() == Op::kReshape) return true;
  for (int64_t i = 0; i < in.rank(); ++i) dims_kept.push_back(i < d ? i : i + 1);
  return instr.attrs<DimensionsAttrs>().dimensions == dims_kept;
}

// The step value that operand `i` of a concatenate corresponds to.
struct Part {
  bool is_step = false, is_new_dimension = false;
  size_t step = 0, offset = 0;
};

Part PartOf(const StepRange& range, const Instr& concatenate, size_t i) {
  const Instr* operand = concatenate.operand(i);
  if (auto position = range.PositionOf(operand))
    return {true, false, position->step, position->offset};
  if (operand->has_extras() || operand->operand_count() != 1) return {};
  auto position = range.PositionOf(operand->operand(0));
  int64_t d = concatenate.attrs<DimensionAttrs>().dimension;
  if (!position || !AddsDimension(*operand, d)) return {};
  return {true, true, position->step, position->offset};
}

// Finds runs of operands that are one value of steps 0, 1 ... n - 1 in order.
void FindCollected(Steps& steps, Instr* concatenate) {
  const StepRange& range = steps.range;
  if (concatenate->shape().layout() != nullptr) return;
  std::vector<Part> parts;
  for (size_t i = 0; i < concatenate->operand_count(); ++i)
    parts.push_back(PartOf(range, *concatenate, i));
  for (size_t i = 0; i + range.count <= parts.size();) {
    size_t k = 0;
    while (k < range.count && parts[i + k].is_step && parts[i + k].step == k &&
           parts[i + k].offset == parts[i].offset &&
           parts[i + k].is_new_dimension == parts[i].is_new_dimension)
      ++k;
    if (k == range.count && steps.is_view[parts[i].offset] == 0)
      steps.collected.push_back({concatenate, i, parts[i].offset, parts[i].is_new_dimension});
    i += std::max<size_t>(k, 1);
  }
}

// Views of outside values: users outside keep using the views of the steps.
void FindViews(Steps& steps) {
  const StepRange& range = steps.range;
  for (size_t offset = 0; offset < range.period; ++offset) {
    bool is_view = IsViewOp(range.At(0, offset)->op());
    for (const StepOperand& from : steps.operands[offset])
      is_view =
          is_view && (from.is_outside || (from.distance == 0 && steps.is_view[from.offset] != 0));
    steps.is_view[offset] = is_view;
  }
}

// Finds users of the steps that are outside, and how they use them.
void FindUses(Steps& steps) {
  const StepRange& range = steps.range;
  std::unordered_set<const Instr*> seen;
  auto is_concatenate = [](const Instr* u) { return u->op() == Op::kConcatenate; };
  for (size_t offset = 0; offset < range.period; ++offset) {
    if (steps.is_view[offset] != 0) continue;
    for (Instr* user : range.At(0, offset)->users()) {
      if (range.PositionOf(user)) continue;
      auto look = [&](Instr* taker) {
        if (is_concatenate(taker) && !range.PositionOf(taker) && seen.insert(taker).second)
          FindCollected(steps, taker);
      };
      look(user);
      if (user->op() != Op::kBroadcast && user->op() != Op::kReshape) continue;
      for (Instr* taker : user->users()) look(taker);
    }
  }
  std::unordered_set<const Instr*> covered;  // operands of concatenates, as instructions
  std::unordered_set<uint64_t> direct;       // or as values of a step
  std::unordered_set<const Instr*> beside;   // operands of such concatenates that are in no group
  for (const Collected& c : steps.collected)
    for (size_t i = 0; i < range.count; ++i) {
      const Instr* operand = c.concatenate->operand(c.first + i);
      if (c.is_new_dimension && operand->users().size() == 1 &&
          operand->parent()->root() != operand)
        covered.insert(operand);
      else if (!c.is_new_dimension)
        direct.insert((static_cast<uint64_t>(c.concatenate->id()) << 32) + c.offset);
    }
  for (size_t i = 0; i < steps.collected.size();) {
    const Instr* concatenate = steps.collected[i].concatenate;
    size_t next = 0;
    auto enter_until = [&](size_t end) {
      for (; next < end; ++next) beside.insert(concatenate->operand(next));
    };
    for (; i < steps.collected.size() && steps.collected[i].concatenate == concatenate; ++i) {
      enter_until(steps.collected[i].first);
      next += range.count;
    }
    enter_until(concatenate->operand_count());
  }
  for (size_t offset = 0; offset < range.period; ++offset) {
    if (steps.is_view[offset] != 0) continue;
    for (size_t step = 0; step < range.count; ++step) {
      const Instr* value = range.At(step, offset);
      bool used = value->parent()->root() == value || beside.contains(value);
      for (const Instr* user : value->users()) {
        if (range.PositionOf(user) || covered.contains(user)) continue;
        used = used || !direct.contains((static_cast<uint64_t>(user->id()) << 32) + offset);
      }
      if (used) steps.used[offset].push_back(step);
    }
  }
}

}  // namespace

std::vector<Instr*> StepRange::All(size_t offset) const {
  std::vector<Instr*> all;
  all.reserve(count);
  for (size_t step = 0; step < count; ++step) all.push_back(At(step, offset));
  return all;
}

std::optional<StepRange::StepPosition> StepRange::PositionOf(const Instr* instr) const {
  int64_t position = line->PositionOf(instr);
  if (position < static_cast<int64_t>(begin)) return std::nullopt;
  size_t from = static_cast<size_t>(position) - begin;
  if (from >= period * count) return std::nullopt;
  return StepPosition{from / period, from % period};
}

bool Steps::IsCollected(size_t offset) const {
  return std::ranges::any_of(collected, [&](const Collected& c) { return c.offset == offset; });
}

std::optional<Steps> CheckSteps(const StepRange& range) {
  if (!AllEqual(range)) return std::nullopt;
  Steps steps;
  steps.range = range;
  steps.operands.resize(range.period);
  steps.history.resize(range.period);
  steps.used.resize(range.period);
  steps.is_view.resize(range.period, 0);
  for (size_t offset = 0; offset < range.period; ++offset) {
    size_t slots = range.At(0, offset)->operand_count();
    steps.operands[offset].resize(slots);
    for (size_t slot = 0; slot < slots; ++slot)
      if (!CheckOperand(steps, offset, slot)) return std::nullopt;
  }
  FindViews(steps);
  FindUses(steps);
  // A value that leaves a step is carried, so it must be an array without extras.
  for (size_t offset = 0; offset < range.period; ++offset) {
    bool leaves =
        !steps.history[offset].empty() || !steps.used[offset].empty() || steps.IsCollected(offset);
    const Instr& value = *range.At(0, offset);
    if (!leaves) continue;
    if (!value.shape().IsStaticArray() || IsPinned(value) || value.shape().quant() != nullptr)
      return std::nullopt;
    for (const Instr* before : steps.history[offset])
      if (before == nullptr) return std::nullopt;
  }
  return steps;
}

// A loop may start at any instruction of its period. Live ranges of a middle step are added as
// differences at their ends, modulo the period.
size_t BestPhase(const StepRange& range, size_t most) {
  // Counts the values of a middle step that are live at each possible start of a step.
  size_t period = range.period, middle = range.count / 2;
  std::vector<int64_t> changes(period + 1, 0);
  for (size_t offset = 0; offset < period; ++offset) {
    const Instr* value = range.At(middle, offset);
    size_t until = offset;
    size_t begin = range.begin + middle * period;
    for (const Instr* user : value->users()) {
      if (!range.PositionOf(user)) continue;
      until = std::max(until, static_cast<size_t>(range.line->PositionOf(user)) - begin);
    }
    size_t length = until - offset;  // live before offset + 1 .. until
    for (size_t at = offset + 1; length > 0; at = 0) {
      size_t part = std::min(length, period - at % period);
      changes[at % period] += 1;
      changes[at % period + part] -= 1;
      length -= part;
      if (at % period + part < period) break;
    }
  }
  size_t best = 0;
  int64_t alive = 0, least = INT64_MAX;
  for (size_t phase = 0; phase <= std::min(most, period - 1); ++phase) {
    alive += changes[phase];
    if (alive >= least) continue;
    least = alive;
    best = phase;
  }
  return best;
}

}  // namespace tokamak
