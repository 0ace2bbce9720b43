#include "gen/gpu/cached_values.h"

#include <algorithm>
#include <numeric>

#include "kernel/gpu_limits.h"
#include "support/ceil_div.h"

namespace tokamak::gpu {

// Walks down from the values that a pass uses, through elementwise ops. Values that an earlier pass
// computed are cached, and their operands are not needed.
void CachedValues::Visit(const Instr& instr, size_t pass, const FusedRegion& region,
                         const Dims& dims) {
  if (IsImmediate(instr) || !instr.shape().IsArray() || instr.shape().dims() != dims) return;
  // Free to recompute.
  if (instr.op() == Op::kBroadcast || instr.op() == Op::kIota) return;
  auto [first, is_new] = first_.try_emplace(&instr, pass);
  if (!is_new) {
    if (first->second == pass) return;
    auto same = [&](const Value& value) { return value.instr == &instr; };
    auto cached = std::find_if(values_.begin(), values_.end(), same);
    if (cached == values_.end())
      cached = values_.insert(cached, {.instr = &instr, .first_pass = first->second});
    cached->last_pass = pass;
    return;
  }
  bool inside =
      std::find(region.instrs.begin(), region.instrs.end(), &instr) != region.instrs.end();
  if (!inside || !instr.info().Is(kElementwise)) return;
  for (const Instr* operand : instr.operands()) Visit(*operand, pass, region, dims);
}

// Registers at the pass boundary where most values are live.
int64_t CachedValues::MaxRegisters(size_t passes) const {
  int64_t most = 0;
  for (size_t pass = 1; pass < passes; ++pass) {
    int64_t thread_registers = 0;
    for (const Value& value : values_) {
      if (value.first_pass >= pass || value.last_pass < pass) continue;
      ElementType type = value.instr->shape().type();
      int64_t bytes = BytesOf(ComputeType(type)) * (IsComplex(type) ? 2 : 1);
      thread_registers += CeilDiv(bytes, kRegisterBytes);
    }
    most = std::max(most, thread_registers);
  }
  return most;
}

int64_t CachedValues::Find(const FusedRegion& region, const RowLevels& levels, const Dims& dims,
                           const std::vector<const Instr*>& last) {
  for (size_t pass = 0; pass < levels.levels.size(); ++pass)
    for (const Reducer& reducer : levels.levels[pass])
      for (size_t i = 0; i < reducer.input_count; ++i)
        Visit(*reducer.instr->operand(i), pass, region, dims);
  for (const Instr* needed : last) Visit(*needed, levels.levels.size(), region, dims);
  return MaxRegisters(levels.levels.size() + 1);
}

std::vector<CachedValues::Slot> CachedValues::FindSlots(
    std::vector<std::vector<size_t>>& slots_of_value) const {
  std::vector<Slot> slots;
  std::vector<size_t> order(values_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) {
    return values_[x].first_pass < values_[y].first_pass;
  });
  slots_of_value.assign(values_.size(), {});
  for (size_t i : order) {
    const Value& value = values_[i];
    ElementType type = value.instr->shape().type();
    for (size_t component = 0; component < (IsComplex(type) ? 2u : 1u); ++component) {
      // A pass reads an element's old values before it caches new ones.
      size_t slot = 0;
      while (slot < slots.size() &&
             (slots[slot].type != ComputeType(type) || slots[slot].last_pass > value.first_pass))
        ++slot;
      if (slot == slots.size()) slots.push_back({.type = ComputeType(type)});
      slots[slot].last_pass = value.last_pass;
      slots_of_value[i].push_back(slot);
    }
  }
  return slots;
}

int64_t CachedValues::SharedBytes() const {
  std::vector<std::vector<size_t>> slots_of_value;
  int64_t bytes = 0;
  for (const Slot& slot : FindSlots(slots_of_value)) bytes += BytesOf(slot.type);
  return bytes;
}

void CachedValues::Allocate(int64_t count, int64_t shared_count) {
  is_cached_ = true;
  std::vector<std::vector<size_t>> slots_of_value;
  std::vector<Slot> slots = FindSlots(slots_of_value);
  if (shared_count > 0)
    for (Slot& slot : slots)
      slot.array = b_.Local("shared_cache", slot.type, Space::kShared, shared_count);
  for (size_t i = 0; i < values_.size(); ++i) {
    Value& value = values_[i];
    ElementType type = value.instr->shape().type();
    value.is_complex = IsComplex(type);
    for (size_t component = 0; component < slots_of_value[i].size(); ++component) {
      value.arrays[component] = b_.Local("cached", ComputeType(type), Space::kRegisters, count);
      value.shared_arrays[component] = slots[slots_of_value[i][component]].array;
    }
  }
}

std::pair<ArrayId, Scalar> CachedValues::LocationOf(const Value& value, size_t component,
                                                    const CachedElement& element) const {
  if (!element.shared_index.ok()) return {value.arrays[component], element.register_index};
  return {value.shared_arrays[component], element.shared_index};
}

void CachedValues::LoadCached(size_t pass, const Coordinates& at, const CachedElement& cached_at) {
  // Values of another element or pass were read in a kernel block that is closed.
  if (!cached().empty()) emitter_.ClearMemo();
  for (const Value& value : cached()) {
    if (pass <= value.first_pass || pass > value.last_pass) continue;
    Element element;
    for (size_t component = 0; component < (value.is_complex ? 2u : 1u); ++component) {
      auto [array, index] = LocationOf(value, component, cached_at);
      element[component] = b_.Read(array, index);
    }
    emitter_.Memoize(*value.instr, at, element);
  }
}

void CachedValues::StoreCached(size_t pass, const Coordinates& at, const CachedElement& cached_at) {
  for (const Value& value : cached()) {
    if (pass != value.first_pass) continue;
    Element element = emitter_.At(*value.instr, at);
    if (!emitter_.failure().empty()) return;
    for (size_t component = 0; component < (value.is_complex ? 2u : 1u); ++component) {
      auto [array, index] = LocationOf(value, component, cached_at);
      b_.Store(array, index, element[component]);
    }
  }
}

}  // namespace tokamak::gpu
