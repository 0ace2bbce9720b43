// Concatenates. A rule that visits all operands visits at most kMostOperands of them, or runs once
// per concatenate.

#include <algorithm>

#include "rewrite/rules/conditions.h"
#include "rewrite/rules/topics.h"

namespace tokamak {
namespace {

using m::a;
using m::x;

// Operand counts; chosen to keep the rules linear. kMostOperands: searched by a slice for its
// operand. kMostFlattened: operands copied when a chain of concatenates is flattened.
constexpr size_t kMostOperands = 1024, kMostFlattened = 128;

int64_t AlongOf(const Instr* concatenate) {
  return concatenate->attrs<DimensionAttrs>().dimension;
}
int64_t SizeAlong(const Instr* operand, int64_t d) {
  return SizeAt(operand->shape(), d);
}
Instr* MakeConcatenate(Editor& edit, std::vector<Instr*> operands, int64_t d) {
  if (operands.size() == 1) return operands[0];
  return edit.Make(Op::kConcatenate, std::move(operands), DimensionAttrs{d});
}

bool CanFlatten(const Instr* instr, const Instr* operand) {
  return operand->op() == Op::kConcatenate && HasOneUser(operand) && !operand->has_extras() &&
         AlongOf(operand) == AlongOf(instr);
}

Instr* Flattened(Editor& edit, const m::Match& match) {
  std::vector<Instr*> flat;
  for (Instr* operand : match.root()->operands()) {
    if (CanFlatten(match.root(), operand)) {
      flat.insert(flat.end(), operand->operands().begin(), operand->operands().end());
    } else {
      flat.push_back(operand);
    }
  }
  return MakeConcatenate(edit, std::move(flat), AlongOf(match.root()));
}

// Whether `next` starts where `slice` ends, in the same array.
bool GoesOn(const Instr* slice, const Instr* next, int64_t along) {
  if (slice->op() != Op::kSlice || next->op() != Op::kSlice) return false;
  if (slice->operand(0) != next->operand(0)) return false;
  const auto &first = slice->attrs<SliceAttrs>(), &second = next->attrs<SliceAttrs>();
  for (size_t d = 0; d < first.starts.size(); ++d) {
    if (first.strides[d] != 1 || second.strides[d] != 1) return false;
    bool fits = d == static_cast<size_t>(along)
                    ? first.limits[d] == second.starts[d]
                    : first.starts[d] == second.starts[d] && first.limits[d] == second.limits[d];
    if (!fits) return false;
  }
  return true;
}

// Merges adjacent slices of one array into one slice.
Instr* JoinSlices(Editor& edit, const m::Match& match) {
  int64_t along = AlongOf(match.root());
  std::vector<Instr*> joined;
  auto operands = match.root()->operands();
  for (size_t i = 0; i < operands.size();) {
    size_t last = i;
    while (last + 1 < operands.size() && GoesOn(operands[last], operands[last + 1], along)) ++last;
    if (last == i) {
      joined.push_back(operands[i++]);
      continue;
    }
    auto d = static_cast<size_t>(along);
    SliceAttrs attrs = operands[i]->attrs<SliceAttrs>();
    attrs.limits[d] = operands[last]->attrs<SliceAttrs>().limits[d];
    joined.push_back(edit.Make(Op::kSlice, {operands[i]->operand(0)}, std::move(attrs)));
    if (joined.back() == nullptr) return nullptr;
    i = last + 1;
  }
  return MakeConcatenate(edit, std::move(joined), along);
}
bool HasNeighbours(const m::Match& match) {
  auto operands = match.root()->operands();
  for (size_t i = 1; i < operands.size(); ++i)
    if (GoesOn(operands[i - 1], operands[i], AlongOf(match.root()))) return true;
  return false;
}

// The operands that a slice of a concatenate overlaps, and the offset of the first of them.
struct Seen {
  size_t first = 0, count = 0;
  int64_t begin = 0;
};
Seen SeenBy(const Instr* slice, const Instr* concatenate) {
  int64_t along = AlongOf(concatenate);
  auto d = static_cast<size_t>(along);
  const auto& attrs = slice->attrs<SliceAttrs>();
  Seen seen;
  int64_t begin = 0;
  for (size_t i = 0; i < concatenate->operand_count(); ++i) {
    int64_t end = begin + SizeAlong(concatenate->operand(i), along);
    if (end > attrs.starts[d] && begin < attrs.limits[d]) {
      if (seen.count == 0) seen = {i, 0, begin};
      ++seen.count;
    }
    begin = end;
  }
  return seen;
}

Instr* SliceOfSeen(Editor& edit, const m::Match& match) {
  Seen seen = SeenBy(match.root(), match[a]);
  if (seen.count == 0 || seen.count == match[a]->operand_count()) return nullptr;
  // would copy data that is already materialized
  if (seen.count > 1 && !HasOneUser(match[a])) return nullptr;
  auto first = match[a]->operands().begin() + static_cast<std::ptrdiff_t>(seen.first);
  std::vector<Instr*> operands(first, first + static_cast<std::ptrdiff_t>(seen.count));
  SliceAttrs attrs = match.root()->attrs<SliceAttrs>();
  auto d = static_cast<size_t>(AlongOf(match[a]));
  attrs.starts[d] -= seen.begin;
  attrs.limits[d] -= seen.begin;
  Instr* rest = MakeConcatenate(edit, std::move(operands), AlongOf(match[a]));
  return edit.Make(Op::kSlice, {rest}, std::move(attrs));
}

// Whether all operands are broadcasts of one scalar.
Instr* OneScalar(const Instr* concatenate) {
  Instr* scalar = nullptr;
  for (Instr* operand : concatenate->operands()) {
    if (operand->op() != Op::kBroadcast || !operand->operand(0)->shape().IsScalar()) return nullptr;
    if (scalar != nullptr && scalar != operand->operand(0)) return nullptr;
    scalar = operand->operand(0);
  }
  return scalar;
}

}  // namespace

// long: a table
std::span<const Rule> ConcatenateRules() {
  static constexpr Rule kRules[] = {
      {"concatenate.one", "a concatenate of one array", m::Concatenate(),
       [](Editor&, const m::Match& match) { return match.root()->operand(0); },
       [](const m::Match& match) { return match.root()->operand_count() == 1; },
       R"(x = f32[3] parameter(0)
          ROOT c = f32[3] concatenate(x), dimensions={0})"},
      {"concatenate.empty", "empty operands of a concatenate are removed", m::Concatenate(),
       [](Editor& edit, const m::Match& match) {
         std::vector<Instr*> some;
         int64_t d = AlongOf(match.root());
         for (Instr* operand : match.root()->operands())
           if (SizeAlong(operand, d) > 0) some.push_back(operand);
         if (some.empty()) some.push_back(match.root()->operand(0));
         return MakeConcatenate(edit, std::move(some), d);
       },
       [](const m::Match& match) {
         return match.root()->operand_count() > 1 &&
                std::ranges::any_of(match.root()->operands(), [&](const Instr* operand) {
                  return SizeAlong(operand, AlongOf(match.root())) == 0;
                });
       },
       R"(x = f32[3] parameter(0)
          y = f32[0] parameter(1)
          ROOT c = f32[3] concatenate(x, y), dimensions={0})"},
      {"concatenate.flattens", "a concatenate of concatenates is one", m::Concatenate(), Flattened,
       [](const m::Match& match) {
         size_t count = 0;
         bool any = false;
         for (const Instr* operand : match.root()->operands()) {
           bool flat = CanFlatten(match.root(), operand);
           any = any || flat;
           count += flat ? operand->operand_count() : 1;
         }
         return any && count <= kMostFlattened;
       },
       R"(x = f32[3] parameter(0)
          y = f32[2] parameter(1)
          a = f32[5] concatenate(x, y), dimensions={0}
          ROOT c = f32[10] concatenate(y, a, x), dimensions={0})"},
      {"concatenate.of-slices", "neighbouring slices of one array are one slice", m::Concatenate(),
       JoinSlices, HasNeighbours,
       R"(x = f32[2,9] parameter(0)
          a = f32[2,3] slice(x), slice={[0:2], [1:4]}
          b = f32[2,4] slice(x), slice={[0:2], [4:8]}
          ROOT c = f32[2,7] concatenate(a, b), dimensions={1})"},
      {"concatenate.of-scalar", "broadcasts of one scalar beside each other", m::Concatenate(),
       [](Editor& edit, const m::Match& match) {
         return edit.Broadcast(OneScalar(match.root()), match.shape());
       },
       [](const m::Match& match) { return OneScalar(match.root()) != nullptr; },
       R"(x = f32[] parameter(0)
          a = f32[3] broadcast(x), dimensions={}
          b = f32[4] broadcast(x), dimensions={}
          ROOT c = f32[7] concatenate(a, b), dimensions={0})"},
      {"slice.of-concatenate", "a slice sees some of the operands only",
       m::Slice(m::Bind(a, m::Concatenate())), SliceOfSeen,
       [](const m::Match& match) { return match[a]->operand_count() <= kMostOperands; },
       R"(x = f32[3] parameter(0)
          y = f32[4] parameter(1)
          z = f32[5] parameter(2)
          a = f32[12] concatenate(x, y, z), dimensions={0}
          ROOT s = f32[4] slice(a), slice={[4:12:2]})"},
  };
  return kRules;
}

}  // namespace tokamak
