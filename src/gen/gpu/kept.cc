#include "gen/gpu/kept.h"

#include <algorithm>
#include <numeric>

namespace tokamak::gpu {

// Goes down from what a pass needs, as far as elements stay at their places. What an earlier pass
// has computed is kept, and nothing below it is needed.
void KeptValues::Visit(const Instr& instr, size_t pass, const Region& region, const Dims& dims) {
  if (IsImmediate(instr) || !instr.shape().IsArray() || instr.shape().dims() != dims) return;
  // Costs nothing to compute again.
  if (instr.op() == Op::kBroadcast || instr.op() == Op::kIota) return;
  auto [first, is_new] = first_.try_emplace(&instr, pass);
  if (!is_new) {
    if (first->second == pass) return;
    auto same = [&](const Value& value) { return value.instr == &instr; };
    auto kept = std::find_if(values_.begin(), values_.end(), same);
    if (kept == values_.end())
      kept = values_.insert(kept, {.instr = &instr, .made = first->second});
    kept->last = pass;
    return;
  }
  bool inside =
      std::find(region.instrs.begin(), region.instrs.end(), &instr) != region.instrs.end();
  if (!inside || !instr.info().Is(kElementwise)) return;
  for (const Instr* operand : instr.operands()) Visit(*operand, pass, region, dims);
}

// At the boundary where most of them live.
int64_t KeptValues::MostWords(size_t passes) const {
  int64_t most = 0;
  for (size_t pass = 1; pass < passes; ++pass) {
    int64_t words = 0;
    for (const Value& value : values_) {
      if (value.made >= pass || value.last < pass) continue;
      ElementType type = value.instr->shape().type();
      int64_t bytes = BytesOf(ComputeType(type)) * (IsComplex(type) ? 2 : 1);
      words += (bytes + 3) / 4;
    }
    most = std::max(most, words);
  }
  return most;
}

int64_t KeptValues::Find(const Region& region, const RowLevels& levels, const Dims& dims,
                         const std::vector<const Instr*>& last) {
  for (size_t pass = 0; pass < levels.levels.size(); ++pass)
    for (const Reducer& reducer : levels.levels[pass])
      for (size_t i = 0; i < reducer.count; ++i)
        Visit(*reducer.instr->operand(i), pass, region, dims);
  for (const Instr* needed : last) Visit(*needed, levels.levels.size(), region, dims);
  return MostWords(levels.levels.size() + 1);
}

std::vector<KeptValues::Slot> KeptValues::FindSlots(
    std::vector<std::vector<size_t>>& of_values) const {
  std::vector<Slot> slots;
  std::vector<size_t> order(values_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t x, size_t y) { return values_[x].made < values_[y].made; });
  of_values.assign(values_.size(), {});
  for (size_t i : order) {
    const Value& value = values_[i];
    ElementType type = value.instr->shape().type();
    for (size_t part = 0; part < (IsComplex(type) ? 2u : 1u); ++part) {
      // A pass reads an element's old values before it keeps new ones.
      size_t slot = 0;
      while (slot < slots.size() &&
             (slots[slot].type != ComputeType(type) || slots[slot].last > value.made))
        ++slot;
      if (slot == slots.size()) slots.push_back({.type = ComputeType(type)});
      slots[slot].last = value.last;
      of_values[i].push_back(slot);
    }
  }
  return slots;
}

int64_t KeptValues::TeamBytes() const {
  std::vector<std::vector<size_t>> of_values;
  int64_t bytes = 0;
  for (const Slot& slot : FindSlots(of_values)) bytes += BytesOf(slot.type);
  return bytes;
}

void KeptValues::Keep(int64_t count, int64_t team_count) {
  is_kept_ = true;
  std::vector<std::vector<size_t>> of_values;
  std::vector<Slot> slots = FindSlots(of_values);
  if (team_count > 0)
    for (Slot& slot : slots)
      slot.array = b_.Local("team_kept", slot.type, Space::kTeam, team_count);
  for (size_t i = 0; i < values_.size(); ++i) {
    Value& value = values_[i];
    ElementType type = value.instr->shape().type();
    value.is_complex = IsComplex(type);
    for (size_t part = 0; part < of_values[i].size(); ++part) {
      value.arrays[part] = b_.Local("kept", ComputeType(type), Space::kRegisters, count);
      value.team_arrays[part] = slots[of_values[i][part]].array;
    }
  }
}

std::pair<ArrayId, Scalar> KeptValues::PlaceOf(const Value& value, size_t part,
                                               const KeptElement& element) const {
  if (!element.in_team.ok()) return {value.arrays[part], element.number};
  return {value.team_arrays[part], element.in_team};
}

void KeptValues::Bind(size_t pass, const Coordinates& at, const KeptElement& kept_at) {
  // Another element's, or an earlier pass's, were read in a block that is closed.
  if (!kept().empty()) emitter_.Forget();
  for (const Value& value : kept()) {
    if (pass <= value.made || pass > value.last) continue;
    Element element;
    for (size_t part = 0; part < (value.is_complex ? 2u : 1u); ++part) {
      auto [array, place] = PlaceOf(value, part, kept_at);
      element[part] = b_.Read(array, place);
    }
    emitter_.Remember(*value.instr, at, element);
  }
}

void KeptValues::Keep(size_t pass, const Coordinates& at, const KeptElement& kept_at) {
  for (const Value& value : kept()) {
    if (pass != value.made) continue;
    Element element = emitter_.At(*value.instr, at);
    if (!emitter_.fault().empty()) return;
    for (size_t part = 0; part < (value.is_complex ? 2u : 1u); ++part) {
      auto [array, place] = PlaceOf(value, part, kept_at);
      b_.Store(array, place, element[part]);
    }
  }
}

}  // namespace tokamak::gpu
