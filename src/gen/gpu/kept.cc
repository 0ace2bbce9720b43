#include "gen/gpu/kept.h"

#include <algorithm>

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

void KeptValues::Keep(int64_t count) {
  is_kept_ = true;
  for (Value& value : values_) {
    ElementType type = value.instr->shape().type();
    value.is_complex = IsComplex(type);
    for (size_t part = 0; part < (value.is_complex ? 2u : 1u); ++part)
      value.arrays[part] = b_.Local("kept", ComputeType(type), Space::kRegisters, count);
  }
}

void KeptValues::Bind(size_t pass, const Coordinates& at, Scalar number) {
  for (const Value& value : kept()) {
    if (pass <= value.made || pass > value.last) continue;
    Element element{b_.Read(value.arrays[0], number), {}};
    if (value.is_complex) element[1] = b_.Read(value.arrays[1], number);
    emitter_.Remember(*value.instr, at, element);
  }
}

void KeptValues::Keep(size_t pass, const Coordinates& at, Scalar number) {
  for (const Value& value : kept()) {
    if (pass != value.made) continue;
    Element element = emitter_.At(*value.instr, at);
    if (!emitter_.fault().empty()) return;
    b_.Store(value.arrays[0], number, element[0]);
    if (value.is_complex) b_.Store(value.arrays[1], number, element[1]);
  }
}

}  // namespace tokamak::gpu
