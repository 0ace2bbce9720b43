#include "lower/memory.h"

#include <algorithm>
#include <map>
#include <string>

#include "support/alignment.h"
#include "support/ceil_div.h"

namespace tokamak {
namespace {

int64_t Aligned(int64_t bytes) {
  return std::max(kArrayAlignment, RoundUp(bytes, kArrayAlignment));
}

// Best-fit free list of the arena.
class FreeList {
 public:
  int64_t Take(int64_t bytes) {
    auto best = ranges_.end();
    for (auto it = ranges_.begin(); it != ranges_.end(); ++it)
      if (it->second >= bytes && (best == ranges_.end() || it->second < best->second)) best = it;
    if (best != ranges_.end()) {
      auto [offset, size] = *best;
      ranges_.erase(best);
      if (size > bytes) ranges_.emplace(offset + bytes, size - bytes);
      return offset;
    }
    // Grow the last free range if it touches the end of the arena.
    if (!ranges_.empty()) {
      auto last = std::prev(ranges_.end());
      if (last->first + last->second == end_) {
        int64_t offset = last->first;
        ranges_.erase(last);
        end_ = offset + bytes;
        return offset;
      }
    }
    int64_t offset = end_;
    end_ += bytes;
    return offset;
  }

  void Give(int64_t offset, int64_t bytes) {
    auto next = ranges_.lower_bound(offset);
    if (next != ranges_.end() && offset + bytes == next->first) {
      bytes += next->second;
      next = ranges_.erase(next);
    }
    if (next != ranges_.begin()) {
      auto before = std::prev(next);
      if (before->first + before->second == offset) {
        before->second += bytes;
        return;
      }
    }
    ranges_.emplace(offset, bytes);
  }

  int64_t end() const { return end_; }

 private:
  std::map<int64_t, int64_t> ranges_;  // offset, bytes
  int64_t end_ = 0;
};

}  // namespace

MemoryValue MemoryPlan::New(int64_t bytes) {
  values_.push_back({.bytes = bytes});
  return static_cast<MemoryValue>(values_.size() - 1);
}

MemoryValue MemoryPlan::NewFixed(int64_t bytes, int32_t memory) {
  MemoryValue value = New(bytes);
  Value& fixed = values_.back();
  fixed.memory = memory;
  fixed.is_external = true;
  fixed.def = -1;
  fixed.offset = 0;
  return value;
}

MemoryValue MemoryPlan::Find(MemoryValue value) const {
  while (values_[static_cast<size_t>(value)].parent != kNoMemory)
    value = values_[static_cast<size_t>(value)].parent;
  return value;
}

void MemoryPlan::Define(MemoryValue value) {
  if (value == kNoMemory) return;
  Value& root = Root(value);
  root.def = std::min(root.def, now_);
  root.last = std::max(root.last, now_);
}

void MemoryPlan::Use(MemoryValue value) {
  if (value == kNoMemory) return;
  Root(value).last = now_;
  uses_.push_back(value);
}

size_t MemoryPlan::BeginLoop() {
  return uses_.size();
}

void MemoryPlan::EndLoop(size_t mark, int64_t begin) {
  for (size_t i = mark; i < uses_.size(); ++i) {
    Value& root = Root(uses_[i]);
    if (root.def < begin) root.last = now_;
  }
}

void MemoryPlan::AddCopy(MemoryValue to, MemoryValue from) {
  copies_.push_back({to, from, now_});
}

void MemoryPlan::MayAlias(MemoryValue output, MemoryValue input) {
  aliases_.push_back({output, input, now_});
}

void MemoryPlan::Join(MemoryValue into, MemoryValue value) {
  MemoryValue x = Find(into), y = Find(value);
  if (x == y) return;
  Value &kept = values_[static_cast<size_t>(x)], &gone = values_[static_cast<size_t>(y)];
  kept.def = std::min(kept.def, gone.def);
  kept.last = std::max(kept.last, gone.last);
  gone.parent = x;
}

bool MemoryPlan::MayOverwrite(MemoryValue input, MemoryValue output, int64_t at) const {
  const Value& old = Root(input);
  if (old.last < at) return true;
  if (old.last > at) return false;
  MemoryValue x = Find(input), y = Find(output);
  auto overlaps = [&](MemoryValue to, MemoryValue from, int64_t when) {
    return when == at && Find(to) == y && Find(from) == x;
  };
  for (const Copy& copy : copies_)
    if (overlaps(copy.to, copy.from, copy.at)) return true;
  for (const Alias& alias : aliases_)
    if (overlaps(alias.output, alias.input, alias.at)) return true;
  return false;
}

bool MemoryPlan::JoinCarry(MemoryValue carry, MemoryValue next) {
  MemoryValue x = Find(carry), y = Find(next);
  if (x == y) return true;
  const Value &old = values_[static_cast<size_t>(x)], &made = values_[static_cast<size_t>(y)];
  if (made.is_external || made.memory != 0 || made.bytes != old.bytes) return false;
  if (!MayOverwrite(carry, next, made.def)) return false;
  Join(carry, next);
  return true;
}

bool MemoryPlan::PairCarry(MemoryValue carry, MemoryValue next, int64_t begin) {
  MemoryValue x = Find(carry), y = Find(next);
  const Value& old = values_[static_cast<size_t>(x)];
  Value& made = values_[static_cast<size_t>(y)];
  if (x == y || made.is_external || made.memory != 0 || made.bytes != old.bytes) return false;
  if (made.def <= begin) return false;
  made.def = begin;
  return true;
}

bool MemoryPlan::JoinBranch(MemoryValue result, MemoryValue value, int64_t begin) {
  MemoryValue x = Find(result), y = Find(value);
  const Value &to = values_[static_cast<size_t>(x)], &made = values_[static_cast<size_t>(y)];
  if (x == y || made.is_external || made.memory != 0 || made.bytes != to.bytes) return false;
  if (made.def < begin) return false;
  Join(result, value);
  return true;
}

bool MemoryPlan::AssignToResult(MemoryValue value, int32_t memory, MemoryValue donor) {
  Value& root = Root(value);
  if (root.is_external || root.memory != 0) return false;
  if (donor != kNoMemory && !MayOverwrite(donor, value, root.def)) return false;
  root.donor = donor;
  root.memory = memory;
  root.offset = 0;
  root.last = INT64_MAX;
  return true;
}

// A value that dies in the step that defines a result, and that the result may overwrite, is moved
// to the result's memory for its whole live range. In reverse program order, so that chains of such
// values all end up there.
void MemoryPlan::ShareResults() {
  for (size_t s = aliases_.size(); s-- > 0;) {
    const Alias& alias = aliases_[s];
    MemoryValue x = Find(alias.input), y = Find(alias.output);
    const Value &input = values_[static_cast<size_t>(x)], &output = values_[static_cast<size_t>(y)];
    if (x == y || input.is_external || output.is_external || input.bytes != output.bytes) continue;
    if (input.memory != 0 || output.memory == 0) continue;
    if (input.last != alias.at || output.def != alias.at) continue;
    if (output.donor != kNoMemory && Root(output.donor).last >= input.def) continue;
    Join(y, x);
  }
}

void MemoryPlan::Assign() {
  // A copy whose source is dead afterwards is elided.
  for (const Copy& copy : copies_) {
    MemoryValue x = Find(copy.from), y = Find(copy.to);
    const Value &from = values_[static_cast<size_t>(x)], &to = values_[static_cast<size_t>(y)];
    if (x == y || from.is_external || to.is_external || from.bytes != to.bytes) continue;
    if (from.memory != 0 && to.memory != 0) continue;
    if (from.last != copy.at || to.def != copy.at) continue;
    MemoryValue donor = std::max(from.donor, to.donor);
    if (donor != kNoMemory && Root(donor).last >= std::min(from.def, to.def)) continue;
    int32_t memory = std::max(from.memory, to.memory);
    int64_t offset = memory != 0 ? 0 : -1;
    Join(y, x);
    Root(y).memory = memory;
    Root(y).offset = offset;
    Root(y).donor = donor;
  }
  ShareResults();
  std::vector<MemoryValue> order;
  for (size_t i = 0; i < values_.size(); ++i) {
    const Value& value = values_[i];
    if (value.parent == kNoMemory && value.memory == 0 && value.def != INT64_MAX)
      order.push_back(static_cast<MemoryValue>(i));
  }
  std::sort(order.begin(), order.end(), [&](MemoryValue x, MemoryValue y) {
    const Value &a = values_[static_cast<size_t>(x)], &b = values_[static_cast<size_t>(y)];
    return std::pair(a.def, x) < std::pair(b.def, y);
  });
  std::multimap<MemoryValue, MemoryValue> inputs_of;  // by output
  for (const Alias& alias : aliases_)
    if (Root(alias.output).def == alias.at)
      inputs_of.emplace(Find(alias.output), Find(alias.input));
  FreeList free;
  std::multimap<int64_t, MemoryValue> live;  // by end of live range
  for (MemoryValue id : order) {
    Value& value = values_[static_cast<size_t>(id)];
    while (!live.empty() && live.begin()->first < value.def) {
      const Value& dead = values_[static_cast<size_t>(live.begin()->second)];
      free.Give(dead.offset, Aligned(dead.bytes));
      live.erase(live.begin());
    }
    // In place of an input that dies in this step.
    auto [begin, end] = inputs_of.equal_range(id);
    for (auto it = begin; it != end && value.offset < 0; ++it) {
      for (auto [dies, alive] = live.equal_range(value.def); dies != alive; ++dies) {
        const Value& input = values_[static_cast<size_t>(it->second)];
        if (dies->second != it->second || input.bytes != value.bytes) continue;
        value.offset = input.offset;
        live.erase(dies);
        break;
      }
    }
    if (value.offset < 0) value.offset = free.Take(Aligned(value.bytes));
    live.emplace(value.last, id);
  }
  arena_bytes_ = free.end();
}

BufferSlice MemoryPlan::SliceOf(MemoryValue value) const {
  const Value& root = Root(value);
  return {root.memory, std::max<int64_t>(root.offset, 0)};
}

std::string MemoryPlan::Check() const {
  struct Span {
    int64_t def, last, begin, end;
    size_t number;
  };
  std::vector<Span> spans;
  for (size_t i = 0; i < values_.size(); ++i) {
    const Value& v = values_[i];
    if (v.parent == kNoMemory && v.memory == 0 && v.offset >= 0 && v.def != INT64_MAX)
      spans.push_back({v.def, v.last, v.offset, v.offset + v.bytes, i});
  }
  std::sort(spans.begin(), spans.end(), [](const Span& x, const Span& y) { return x.def < y.def; });
  std::vector<Span> live;
  for (const Span& span : spans) {
    std::erase_if(live, [&](const Span& other) { return other.last < span.def; });
    for (const Span& other : live) {
      if (other.end <= span.begin || span.end <= other.begin) continue;
      bool shared = std::any_of(aliases_.begin(), aliases_.end(), [&](const Alias& alias) {
        return alias.at == span.def && other.last == span.def &&
               static_cast<size_t>(Find(alias.output)) == span.number &&
               static_cast<size_t>(Find(alias.input)) == other.number;
      });
      if (!shared)
        return "values " + std::to_string(other.number) + " and " + std::to_string(span.number) +
               " share bytes at step " + std::to_string(span.def);
    }
    live.push_back(span);
  }
  return "";
}

std::vector<MemoryPlan::Life> MemoryPlan::Lives() const {
  std::vector<Life> lives;
  for (const Value& v : values_)
    if (v.parent == kNoMemory && v.memory == 0 && v.offset >= 0 && v.def != INT64_MAX)
      lives.push_back({v.def, v.last, v.offset, v.bytes});
  std::stable_sort(lives.begin(), lives.end(),
                   [](const Life& x, const Life& y) { return x.last < y.last; });
  return lives;
}

}  // namespace tokamak
