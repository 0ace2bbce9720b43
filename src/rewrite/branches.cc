#include "rewrite/branches.h"

#include <algorithm>

#include "analysis/effects.h"
#include "ir/compare.h"
#include "rewrite/editor.h"
#include "support/hash.h"

namespace tokamak {

Branches::Branches(Instr* conditional) : instr(conditional) {
  size_t next = 1;
  for (const Computation* branch : conditional->called()) {
    auto first = conditional->operands().begin() + static_cast<std::ptrdiff_t>(next);
    size_t count = branch->parameters().size();
    arguments.emplace_back(first, first + static_cast<std::ptrdiff_t>(count));
    next += count;
  }
}

Instr* RebuildConditional(const Branches& branches, Shape shape) {
  const Instr& old = *branches.instr;
  std::vector<Instr*> operands = {branches.index()};
  for (const auto& arguments : branches.arguments)
    operands.insert(operands.end(), arguments.begin(), arguments.end());
  Instr* made = Editor::Beside(old).Make(Op::kConditional, std::move(shape), std::move(operands));
  made->set_name(old.name());
  made->set_attrs(old.attrs());
  made->set_called({old.called().begin(), old.called().end()});
  return made;
}

CommonCode::CommonCode(const Branches& branches) : count_(branches.size()) {
  for (size_t k = 0; k < branches.size(); ++k) Enter(branches, k);
}

void CommonCode::Enter(const Branches& branches, size_t k) {
  const Computation& branch = *branches.branch(k);
  InstrMap<int> numbers(branch, -1);
  for (size_t i = 0; i < branches.arguments[k].size(); ++i) {
    Instr* outer = branches.arguments[k][i];
    const Instr* parameter = branch.parameter(i);
    if (IsPinned(*parameter) || !(parameter->shape() == outer->shape())) continue;
    auto [it, is_new] = outer_.emplace(outer, static_cast<int>(classes_.size()));
    if (is_new) classes_.push_back({parameter, outer, {}, 0});
    numbers[parameter] = it->second;
    classes_[Index(it->second)].branches = count_;  // an outer value is available in all branches
  }
  for (const Instr* instr : branch.PostOrder()) {
    if (instr->op() == Op::kParameter || !IsPlain(*instr) || IsPinned(*instr)) continue;
    std::vector<int> operands;
    for (const Instr* operand : instr->operands()) operands.push_back(numbers[operand]);
    if (std::ranges::count(operands, -1) > 0) continue;
    numbers[instr] = Find(*instr, std::move(operands), k);
  }
  numbers_.push_back(std::move(numbers));
}

int CommonCode::Find(const Instr& instr, std::vector<int> operands, size_t k) {
  Hasher hasher;
  hasher.Add(instr.op());
  hasher.Add(instr.shape().Hash());
  hasher.Add(HashAttrs(instr.op(), instr.attrs()));
  for (int operand : operands) hasher.Add(operand);
  auto [begin, end] = by_hash_.equal_range(hasher.digest());
  for (auto it = begin; it != end; ++it) {
    Class& known = classes_[Index(it->second)];
    const Instr& first = *known.first;
    bool same = first.op() == instr.op() && first.shape() == instr.shape() &&
                known.operands == operands && first.captures() == instr.captures() &&
                std::ranges::equal(first.called(), instr.called()) &&
                EqualAttrs(instr.op(), first.attrs(), instr.attrs()) && SameExtras(first, instr);
    if (!same) continue;
    if (known.branches < k) return -1;  // an earlier branch has no member
    known.branches = k + 1;
    return it->second;
  }
  if (k > 0) return -1;
  auto number = static_cast<int>(classes_.size());
  classes_.push_back({&instr, nullptr, std::move(operands), 1});
  by_hash_.emplace(hasher.digest(), number);
  return number;
}

int CommonCode::ClassOf(size_t branch, const Instr* instr) const {
  int number = numbers_[branch][instr];
  return number >= 0 && classes_[Index(number)].branches == count_ ? number : -1;
}

}  // namespace tokamak
