// Hash-consed terms in normal form. A sum is a sorted list of (term, multiplicity) and a constant,
// modulo 2^32; an xor is a sorted list of terms and a constant. Nested sums are flattened into the
// list, so that equal sums are the same node whatever their grouping and order:
//
//   (x + y) + (x + 3)  ->  {x: 2, y: 1} + 3        x ^ (y ^ x)  ->  y
//   (x << r) | (x >> (32 - r)), or with +          ->  rotl(x, r)
//
// Broadcasts are pushed to the leaves for the same reason: broadcast(x + y) is broadcast(x) +
// broadcast(y). Each operation merges two sorted lists. Lists have at most kMaxTermParts entries
// and broadcasts at most kMaxBroadcastWeight nodes, so an operation takes constant time.

#include "analysis/word_terms.h"

#include <algorithm>

#include "support/hash.h"

namespace tokamak {
namespace {

// Parts of a term at most. Threefry's 20 rounds and three keys need fewer; longer sums become
// leaves, so that a chain of a million additions takes linear time. Chosen.
constexpr size_t kMaxTermParts = 64;
// Tree size up to which a broadcast term is rebuilt with the broadcast at its leaves. Chosen.
constexpr uint32_t kMaxBroadcastWeight = 48;
constexpr uint64_t kWord = 0xffffffff;  // mask of a 32-bit word

uint64_t HashOf(const TermNode& node) {
  Hasher hasher;
  hasher.Add(node.kind);
  hasher.Add(node.number);
  for (auto [term, times] : node.parts) {
    hasher.Add(term);
    hasher.Add(times);
  }
  return hasher.digest();
}

uint64_t HashOf(const TermLeaf& leaf) {
  Hasher hasher;
  hasher.Add(leaf.part);
  hasher.Add(leaf.base == nullptr ? 0 : 1 + static_cast<uint64_t>(leaf.base->id()));
  for (int64_t dim : leaf.broadcast_map.dims) hasher.Add(dim);
  for (int source : leaf.broadcast_map.sources) hasher.Add(source);
  return hasher.digest();
}

bool SameLeaf(const TermLeaf& a, const TermLeaf& b) {
  return a.base == b.base && a.part == b.part && a.broadcast_map == b.broadcast_map;
}

// Parts of a sum or xor; a term of another kind is its own only part.
std::vector<std::pair<WordTerm, uint32_t>> SummandsOf(const TermNode& node, WordTerm term,
                                                      TermKind kind) {
  if (node.kind == kind) return node.parts;
  if (node.kind == TermKind::kNumber) return {};
  return {{term, 1}};
}

uint64_t ConstantOf(const TermNode& node, TermKind kind) {
  return node.kind == kind || node.kind == TermKind::kNumber ? node.number & kWord : 0;
}

}  // namespace

WordTerm WordTerms::Intern(TermNode node) {
  uint64_t hash = HashOf(node);
  auto [begin, end] = table_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    const TermNode& other = nodes_[it->second];
    if (other.kind == node.kind && other.number == node.number && other.parts == node.parts)
      return it->second;
  }
  uint64_t weight = 1;
  for (auto [term, times] : node.parts) weight += nodes_[term].weight;
  node.weight = static_cast<uint32_t>(std::min<uint64_t>(weight, uint64_t{1} << 20));
  WordTerm term = static_cast<WordTerm>(nodes_.size());
  if (node.kind == TermKind::kXor) xors_.push_back(term);
  nodes_.push_back(std::move(node));
  table_.emplace(hash, term);
  return term;
}

WordTerm WordTerms::Number(uint64_t bits) {
  return Intern({TermKind::kNumber, bits, {}, 1});
}

WordTerm WordTerms::InternLeaf(TermLeaf leaf) {
  uint64_t hash = HashOf(leaf);
  auto [begin, end] = table_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    const TermNode& other = nodes_[it->second];
    if (other.kind == TermKind::kLeaf && SameLeaf(leaves_[other.number], leaf)) return it->second;
  }
  WordTerm term = static_cast<WordTerm>(nodes_.size());
  nodes_.push_back({TermKind::kLeaf, leaves_.size(), {}, 1});
  leaves_.push_back(std::move(leaf));
  table_.emplace(hash, term);
  return term;
}

WordTerm WordTerms::Leaf(const Instr* base, uint32_t part, const Dims& dims) {
  TermLeaf leaf{base, part, {dims, {}}};
  for (size_t i = 0; i < dims.size(); ++i)
    leaf.broadcast_map.sources.push_back(dims[i] == 1 ? -1 : static_cast<int>(i));
  return InternLeaf(std::move(leaf));
}

// a + times * b; subtraction is times = 2^32 - 1. Terms whose multiplicity becomes 0 disappear.
WordTerm WordTerms::AddTimes(WordTerm a, WordTerm b, uint32_t times) {
  if (a == kNoTerm || b == kNoTerm) return kNoTerm;
  if (times == 1) {
    if (nodes_[b].kind == TermKind::kShiftLeft) std::swap(a, b);
    WordTerm rotation = RotationOf(a, b);
    if (rotation != kNoTerm) return Shift(TermKind::kRotate, nodes_[a].parts[0].first, rotation);
  }
  std::vector<std::pair<WordTerm, uint32_t>> left = SummandsOf(nodes_[a], a, TermKind::kSum);
  std::vector<std::pair<WordTerm, uint32_t>> right = SummandsOf(nodes_[b], b, TermKind::kSum);
  uint64_t number = ConstantOf(nodes_[a], TermKind::kSum);
  number += times * ConstantOf(nodes_[b], TermKind::kSum);
  std::vector<std::pair<WordTerm, uint32_t>> parts;
  size_t i = 0, j = 0;
  while (i < left.size() || j < right.size()) {
    bool from_left = j == right.size() || (i < left.size() && left[i].first <= right[j].first);
    bool from_right = i == left.size() || (j < right.size() && right[j].first <= left[i].first);
    WordTerm term = from_left ? left[i].first : right[j].first;
    uint32_t count = (from_left ? left[i++].second : 0) +
                     (from_right ? static_cast<uint32_t>(times * right[j++].second) : 0);
    if (count != 0) parts.push_back({term, count});
  }
  number &= kWord;
  if (parts.empty()) return Number(number);
  if (parts.size() == 1 && parts[0].second == 1 && number == 0) return parts[0].first;
  if (parts.size() > kMaxTermParts) return kNoTerm;
  return Intern({TermKind::kSum, number, std::move(parts), 1});
}

WordTerm WordTerms::MakeXor(std::vector<std::pair<WordTerm, uint32_t>> parts, uint64_t number) {
  // (x << r) ^ (x >> (32 - r)) is a rotation.
  for (size_t i = 0; i < parts.size(); ++i) {
    if (nodes_[parts[i].first].kind != TermKind::kShiftLeft) continue;
    for (size_t j = 0; j < parts.size(); ++j) {
      WordTerm distance = RotationOf(parts[i].first, parts[j].first);
      if (i == j || distance == kNoTerm) continue;
      WordTerm rotated = Shift(TermKind::kRotate, nodes_[parts[i].first].parts[0].first, distance);
      parts.erase(parts.begin() + static_cast<ptrdiff_t>(std::max(i, j)));
      parts.erase(parts.begin() + static_cast<ptrdiff_t>(std::min(i, j)));
      return Xor(MakeXor(std::move(parts), number), rotated);
    }
  }
  if (parts.empty()) return Number(number);
  if (parts.size() == 1 && number == 0) return parts[0].first;
  if (parts.size() > kMaxTermParts) return kNoTerm;
  return Intern({TermKind::kXor, number, std::move(parts), 1});
}

// A term that occurs in both operands cancels: the symmetric difference of the lists.
WordTerm WordTerms::Xor(WordTerm a, WordTerm b) {
  if (a == kNoTerm || b == kNoTerm) return kNoTerm;
  std::vector<std::pair<WordTerm, uint32_t>> left = SummandsOf(nodes_[a], a, TermKind::kXor);
  std::vector<std::pair<WordTerm, uint32_t>> right = SummandsOf(nodes_[b], b, TermKind::kXor);
  std::vector<std::pair<WordTerm, uint32_t>> parts;
  std::ranges::set_symmetric_difference(left, right, std::back_inserter(parts));
  uint64_t number = ConstantOf(nodes_[a], TermKind::kXor) ^ ConstantOf(nodes_[b], TermKind::kXor);
  return MakeXor(std::move(parts), number);
}

WordTerm WordTerms::Without(WordTerm xor_term, WordTerm part) {
  const TermNode& node = nodes_[xor_term];
  std::vector<std::pair<WordTerm, uint32_t>> parts = node.parts;
  std::erase_if(parts, [part](const auto& p) { return p.first == part; });
  return MakeXor(std::move(parts), node.number);
}

// The distance if the two are the halves of a rotation, left shift first; else kNoTerm.
WordTerm WordTerms::RotationOf(WordTerm a, WordTerm b) const {
  const TermNode &left = nodes_[a], &right = nodes_[b];
  bool halves = left.kind == TermKind::kShiftLeft && right.kind == TermKind::kShiftRight &&
                left.number + right.number == 32 && left.parts[0] == right.parts[0];
  return halves ? static_cast<WordTerm>(left.number) : kNoTerm;
}

WordTerm WordTerms::Or(WordTerm a, WordTerm b) {
  if (a == kNoTerm || b == kNoTerm) return kNoTerm;
  if (a == b || (IsNumber(b) && nodes_[b].number == 0)) return a;
  if (IsNumber(a) && nodes_[a].number == 0) return b;
  if (nodes_[a].kind != TermKind::kShiftLeft) std::swap(a, b);
  WordTerm distance = RotationOf(a, b);
  if (distance == kNoTerm) return kNoTerm;
  return Shift(TermKind::kRotate, nodes_[a].parts[0].first, distance);
}

WordTerm WordTerms::Shift(TermKind kind, WordTerm a, uint64_t distance) {
  if (a == kNoTerm || distance == 0) return a;
  if (IsNumber(a)) {
    uint64_t x = nodes_[a].number & kWord;
    uint64_t low = x << distance,
             high = x >> (kind == TermKind::kRotate ? 32 - distance : distance);
    if (kind == TermKind::kShiftRight) return Number(high);
    return Number((kind == TermKind::kRotate ? low | high : low) & kWord);
  }
  if (kind == TermKind::kRotate && nodes_[a].kind == TermKind::kRotate)
    return Shift(kind, nodes_[a].parts[0].first, (nodes_[a].number + distance) % 32);
  return Intern({kind, distance, {{a, 1}}, 1});
}

WordTerm WordTerms::ShiftLeft(WordTerm a, uint64_t distance) {
  return distance >= 32 ? Number(0) : Shift(TermKind::kShiftLeft, a, distance);
}

WordTerm WordTerms::ShiftRight(WordTerm a, uint64_t distance) {
  return distance >= 32 ? Number(0) : Shift(TermKind::kShiftRight, a, distance);
}

// Rebuilds the term with the broadcast composed into its leaves. A shared subterm is rebuilt once
// per use, hence the limit on the weight.
WordTerm WordTerms::Broadcast(WordTerm a, const BroadcastMap& broadcast_map) {
  if (a == kNoTerm || nodes_[a].weight > kMaxBroadcastWeight) return kNoTerm;
  const TermNode node = nodes_[a];
  switch (node.kind) {
    case TermKind::kNumber:
      return a;
    case TermKind::kLeaf: {
      const TermLeaf& inner = leaves_[node.number];
      TermLeaf outer{inner.base, inner.part, broadcast_map};
      for (size_t i = 0; i < outer.broadcast_map.sources.size(); ++i) {
        int& source = outer.broadcast_map.sources[i];
        if (source >= 0) source = inner.broadcast_map.sources[static_cast<size_t>(source)];
        if (outer.broadcast_map.dims[i] == 1) source = -1;
      }
      return InternLeaf(std::move(outer));
    }
    case TermKind::kSum: {
      WordTerm sum = Number(node.number);
      for (auto [part, times] : node.parts)
        sum = AddTimes(sum, Broadcast(part, broadcast_map), times);
      return sum;
    }
    case TermKind::kXor: {
      WordTerm result = Number(node.number);
      for (auto [part, times] : node.parts) result = Xor(result, Broadcast(part, broadcast_map));
      return result;
    }
    case TermKind::kRotate:
    case TermKind::kShiftLeft:
    case TermKind::kShiftRight:
      return Shift(node.kind, Broadcast(node.parts[0].first, broadcast_map), node.number);
  }
  return kNoTerm;
}

}  // namespace tokamak
