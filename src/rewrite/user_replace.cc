#include "rewrite/user_replace.h"

#include <algorithm>
#include <unordered_set>

#include "ir/compare.h"
#include "rewrite/replace.h"

namespace tokamak {
namespace {

// Whether the program says more about an inner value than the pattern does about its own.
bool IsAnnotated(const Instr& instr, const Instr& pattern) {
  bool says = instr.has_extras() &&
              (instr.extras().sharding || !instr.extras().frontend_attributes.empty());
  return says && !SameExtras(instr, pattern);
}

size_t NumberIn(const Instr& instr) {
  return static_cast<size_t>(instr.id());
}

// Operands visited to find a cycle between the results of one instance. Chosen: larger programs
// with such rules are rare; the instance is then left alone.
constexpr size_t kMostVisited = 100'000;

// Whether a variable is computed from a root: results replaced together would depend on themselves.
bool DependsOnRoots(const UserMatch& match) {
  std::vector<const Instr*> open(match.variables.begin(), match.variables.end());
  std::unordered_set<const Instr*> seen(open.begin(), open.end());
  while (!open.empty()) {
    const Instr* next = open.back();
    open.pop_back();
    if (std::ranges::count(match.roots, next) > 0 || seen.size() > kMostVisited) return true;
    for (const Instr* operand : next->operands())
      if (seen.insert(operand).second) open.push_back(operand);
  }
  return false;
}

bool AllBelong(std::span<Instr* const> users, const UserMatch& match);

// Whether an instruction is a part of the match. Broadcasts of single elements are not listed in
// it, because a pattern matches such elements through any number of them.
bool Belongs(const Instr* user, const UserMatch& match) {
  if (std::ranges::count(match.inner, user) > 0 || std::ranges::count(match.roots, user) > 0)
    return true;
  bool is_passed = SingleElementOf(user) != user && user->parent()->root() != user;
  return is_passed && !user->users().empty() && AllBelong(user->users(), match);
}

bool AllBelong(std::span<Instr* const> users, const UserMatch& match) {
  return std::ranges::all_of(users, [&](const Instr* user) { return Belongs(user, match); });
}

// A replacement of one result: the instruction that takes its place.
struct Placed {
  Instr *from, *to;
  bool is_new;
};

bool CanPlace(std::vector<Placed>& placed) {
  for (Placed& one : placed) {
    if (one.is_new && Compatible(one.from->shape(), one.to->shape()))
      one.to->set_shape(one.from->shape());
    if (!CanReplace(*one.from, *one.to, one.is_new)) return false;
  }
  return true;
}

}  // namespace

bool HasOtherUsers(const UserMatch& match, const std::vector<const Instr*>& kept) {
  for (size_t i = 0; i < match.inner.size(); ++i) {
    const Instr& inner = *match.inner[i];
    if (std::ranges::count(kept, match.inner_patterns[i]) > 0) continue;
    bool is_result = inner.parent()->root() == &inner;
    if (is_result || !AllBelong(inner.users(), match)) return true;
  }
  return false;
}

bool IsReplaceable(const UserMatch& match) {
  for (size_t i = 0; i < match.inner.size(); ++i)
    if (IsAnnotated(*match.inner[i], *match.inner_patterns[i])) return false;
  return match.roots.size() == 1 || !DependsOnRoots(match);
}

std::vector<const Instr*> KeptBy(const Computation& pattern, const Computation& replacement) {
  std::vector<const Instr*> kept;
  UserMatcher matcher(pattern, MatchMode::kExact);
  for (const Instr* p : pattern.Instrs()) {
    if (p->op() == Op::kParameter || p->operand_count() == 0) continue;
    for (const Instr* r : replacement.Instrs()) {
      if (!matcher.Computes(p, r, replacement.parameters())) continue;
      kept.push_back(p);
      break;
    }
  }
  return kept;
}

Computation* UserReplacer::CopyOf(const Computation& from) {
  for (auto [known, copy] : computations_)
    if (known == &from) return copy;
  Computation* to = module_.AddComputation(from.name());
  computations_.emplace_back(&from, to);
  to->is_public = false;
  to->origins = origins_;
  std::vector<Instr*> copies(from.id_limit(), nullptr);
  for (const Instr* instr : from.PostOrder()) Copy(*instr, *to, copies);
  to->set_root(copies[NumberIn(*from.root())]);
  return to;
}

// Metadata comes from the replaced instruction: ids of origins belong to one module.
Instr* UserReplacer::Copy(const Instr& instr, Computation& to, std::vector<Instr*>& copies) {
  Instr*& copy = copies[NumberIn(instr)];
  if (instr.op() == Op::kParameter) {
    copy = to.AppendParameter(instr.attrs<ParameterAttrs>().number, instr.shape(), instr.name());
  } else {
    std::vector<Instr*> operands;
    for (const Instr* operand : instr.operands()) operands.push_back(copies[NumberIn(*operand)]);
    std::vector<Computation*> called;
    for (const Computation* callee : instr.called()) called.push_back(CopyOf(*callee));
    copy = CopyTo(to, instr, std::move(operands));
    copy->set_called(std::move(called));
    copy->set_name("");  // the replaced instruction gives its own
  }
  copy->set_origins(origins_);
  copy->set_pos(pos_);
  return copy;
}

bool UserReplacer::Replace(const UserMatch& match) {
  Instr& first = *match.roots[0];
  Computation& to = *first.parent();
  OriginTable& table = module_.origins();
  origins_ = first.origins();
  for (const Instr* root : match.roots) origins_ = table.Merge(origins_, root->origins());
  for (const Instr* inner : match.inner) origins_ = table.Merge(origins_, inner->origins());
  pos_ = first.pos();
  std::vector<Instr*> copies(replacement_.id_limit(), nullptr), made;
  for (size_t k = 0; k < match.variables.size(); ++k) {
    const Instr& parameter = *replacement_.parameter(k);
    Instr* value = match.variables[k];
    // A single element may have another rank than in the pattern.
    if (!SameDims(value->shape(), parameter.shape())) {
      value = to.Append(Op::kReshape, parameter.shape(), {value});
      value->set_origins(origins_);
      made.push_back(value);
    }
    copies[NumberIn(parameter)] = value;
  }
  for (const Instr* instr : replacement_.PostOrder()) {
    bool is_result_tuple = instr == replacement_.root() && instr->op() == Op::kTuple;
    if (instr->op() != Op::kParameter && !is_result_tuple) made.push_back(Copy(*instr, to, copies));
  }
  std::vector<Instr*> results = ResultsOfPattern(replacement_);
  std::vector<Placed> placed;
  for (size_t i = 0; i < results.size(); ++i) {
    Instr* value = copies[NumberIn(*results[i])];
    placed.push_back({match.roots[i], value, std::ranges::count(made, value) > 0});
  }
  if (!CanPlace(placed)) {
    for (size_t i = made.size(); i-- > 0;) to.Remove(made[i]);
    return false;
  }
  for (const Placed& one : placed) ReplaceBy(one.from, one.to, one.is_new);
  for (const Placed& one : placed) RemoveUnused(one.from);
  return true;
}

}  // namespace tokamak
