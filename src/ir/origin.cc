#include "ir/origin.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "support/hash.h"

namespace tokamak {
namespace {

uint64_t HashOf(const Frame& f) {
  Hasher hasher;
  hasher.Add(std::string_view(f.file));
  hasher.Add(std::string_view(f.function));
  for (int32_t v : {f.line, f.column, f.end_line, f.end_column}) hasher.Add(v);
  hasher.Add(f.caller);
  return hasher.digest();
}

uint64_t HashOf(const Origin& o) {
  Hasher hasher;
  hasher.Add(std::string_view(o.op_name));
  hasher.Add(std::string_view(o.op_type));
  hasher.Add(std::string_view(o.other));
  hasher.Add(o.frame);
  return hasher.digest();
}

uint64_t HashOf(const std::vector<uint32_t>& set) {
  // Most sets have one member, and most are new: neighbours stay neighbours.
  if (set.size() == 1) return set[0];
  Hasher hasher;
  for (uint32_t member : set) hasher.Add(member);
  return hasher.digest();
}

// The index of `item` in `items`, added at the end when it is new.
template <typename T, typename Item>
uint32_t Intern(std::vector<T>& items, OriginIndex& index, Item&& item) {
  auto next = static_cast<uint32_t>(items.size());
  uint32_t id = index.FindOrAdd(HashOf(item), next, [&](uint32_t i) { return items[i] == item; });
  if (id == next) items.push_back(std::forward<Item>(item));
  return id;
}

}  // namespace

void OriginIndex::Grow() {
  std::vector<std::pair<uint64_t, uint32_t>> old = std::move(slots_);
  slots_.assign(old.empty() ? 64 : old.size() * 2, {});
  size_t mask = slots_.size() - 1;
  for (const auto& slot : old) {
    if (slot.second == 0) continue;
    size_t i = slot.first & mask;
    while (slots_[i].second != 0) i = (i + 1) & mask;
    slots_[i] = slot;
  }
}

OriginTable::OriginTable() {
  frames_.emplace_back();  // FrameId::kNone
  sets_.emplace_back();    // OriginId::kNone
}

FrameId OriginTable::AddFrame(const Frame& frame) {
  return FrameId{Intern(frames_, frame_index_, frame)};
}

OriginId OriginTable::Add(const Origin& origin) {
  return InternSet({Intern(origins_, origin_index_, origin)});
}

OriginId OriginTable::InternSet(std::vector<uint32_t> members) {
  if (members.empty()) return OriginId::kNone;
  return OriginId{Intern(sets_, set_index_, std::move(members))};
}

OriginId OriginTable::Merge(OriginId a, OriginId b) {
  if (a == b || b == OriginId::kNone) return a;
  if (a == OriginId::kNone) return b;
  const std::vector<uint32_t>& x = sets_[static_cast<size_t>(a)];
  const std::vector<uint32_t>& y = sets_[static_cast<size_t>(b)];
  std::vector<uint32_t> both;
  std::set_union(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(both));
  return InternSet(std::move(both));
}

std::vector<const Origin*> OriginTable::Of(OriginId set) const {
  std::vector<const Origin*> list;
  for (uint32_t member : sets_[static_cast<size_t>(set)]) list.push_back(&origins_[member]);
  return list;
}

}  // namespace tokamak
