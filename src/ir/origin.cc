#include "ir/origin.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <unordered_set>
#include <utility>

#include "support/hash.h"

namespace tokamak {
namespace {

uint64_t FrameHash(const Frame& f) {
  Hasher hasher;
  hasher.Add(std::string_view(f.file));
  hasher.Add(std::string_view(f.function));
  for (int32_t v : {f.line, f.column, f.end_line, f.end_column}) hasher.Add(v);
  hasher.Add(f.caller);
  return hasher.digest();
}

uint64_t OriginHash(const Origin& o) {
  Hasher hasher;
  hasher.Add(std::string_view(o.op_name));
  hasher.Add(std::string_view(o.op_type));
  hasher.Add(std::string_view(o.other));
  hasher.Add(o.frame);
  return hasher.digest();
}

// The index of `item` in `items`; appends it if it is new.
template <typename T, typename Item>
uint32_t Intern(std::vector<T>& items, OriginIndex& index, uint64_t hash, Item&& item) {
  auto next = static_cast<uint32_t>(items.size());
  uint32_t id = index.FindOrAdd(hash, next, [&](uint32_t i) { return items[i] == item; });
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
  return FrameId{Intern(frames_, frame_index_, FrameHash(frame), frame)};
}

OriginId OriginTable::Add(const Origin& origin) {
  Set one;
  one.members = {Intern(origins_, origin_index_, OriginHash(origin), origin)};
  return InternSet(std::move(one));
}

uint64_t OriginTable::HashOf(const Set& set) {
  // Most sets have one member, and most are new; this keeps consecutive origins in consecutive
  // slots.
  if (set.members.size() == 1) return set.members[0];
  Hasher hasher;
  for (uint32_t member : set.members) hasher.Add(member);
  hasher.Add(set.left);
  hasher.Add(set.right);
  return hasher.digest();
}

OriginId OriginTable::InternSet(Set set) {
  uint64_t hash = HashOf(set);
  return OriginId{Intern(sets_, set_index_, hash, std::move(set))};
}

OriginId OriginTable::Merge(OriginId a, OriginId b) {
  // Members listed in a set; larger sets only reference the two merged sets. Chosen.
  constexpr size_t kMostMembers = 32;
  if (a == b || b == OriginId::kNone) return a;
  if (a == OriginId::kNone) return b;
  const Set& x = sets_[static_cast<size_t>(a)];
  const Set& y = sets_[static_cast<size_t>(b)];
  if (x.left == b || x.right == b) return a;
  if (y.left == a || y.right == a) return b;
  Set both;
  if (!x.is_large() && !y.is_large())
    std::set_union(x.members.begin(), x.members.end(), y.members.begin(), y.members.end(),
                   std::back_inserter(both.members));
  if (both.members.empty() || both.members.size() > kMostMembers)
    both = {{}, std::min(a, b), std::max(a, b)};
  return InternSet(std::move(both));
}

std::vector<const Origin*> OriginTable::Of(OriginId set) const {
  std::vector<const Origin*> list;
  const Set& top = sets_[static_cast<size_t>(set)];
  if (!top.is_large()) {
    for (uint32_t member : top.members) list.push_back(&origins_[member]);
    return list;
  }
  std::unordered_set<OriginId> seen = {set};
  std::vector<OriginId> open = {set};
  std::vector<uint32_t> members;
  while (!open.empty()) {
    const Set& next = sets_[static_cast<size_t>(open.back())];
    open.pop_back();
    members.insert(members.end(), next.members.begin(), next.members.end());
    if (!next.is_large()) continue;
    for (OriginId part : {next.left, next.right})
      if (seen.insert(part).second) open.push_back(part);
  }
  std::sort(members.begin(), members.end());
  members.erase(std::unique(members.begin(), members.end()), members.end());
  for (uint32_t member : members) list.push_back(&origins_[member]);
  return list;
}

OriginId OriginTable::AddMark(std::string_view name, int64_t number) {
  Origin mark;
  mark.other = std::string(name) + std::to_string(number);
  return Add(mark);
}

std::vector<int64_t> OriginTable::MarksOf(OriginId set, std::string_view name) const {
  std::vector<int64_t> numbers;
  for (const Origin* origin : Of(set)) {
    if (!origin->other.starts_with(name)) continue;
    std::string_view digits = std::string_view(origin->other).substr(name.size());
    int64_t number = 0;
    auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    bool is_mark = fault == std::errc() && end == digits.data() + digits.size() && number >= 0;
    if (is_mark) numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

}  // namespace tokamak
