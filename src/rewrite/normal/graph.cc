#include "rewrite/normal/graph.h"

#include <algorithm>

#include "ir/compare.h"

namespace tokamak {
namespace {

uint64_t CombineHash(Op op, const Shape& shape, const Attrs& attrs, std::vector<uint64_t> operands,
                     std::span<Computation* const> called, ComputationHashes& called_hashes) {
  Hasher hasher;
  hasher.Add(op);
  hasher.Add(shape.Hash());
  hasher.Add(HashAttrs(op, attrs));
  if (IsCommutative(op)) std::sort(operands.begin(), operands.end());
  for (uint64_t operand : operands) hasher.Add(operand);
  for (const Computation* computation : called) hasher.Add(called_hashes.Of(*computation));
  return hasher.digest();
}

uint64_t ParameterHash(int64_t number, const Shape& shape, std::span<const uint64_t> colours) {
  Hasher hasher;
  hasher.Add(Op::kParameter);
  hasher.Add(shape.Hash());
  size_t index = static_cast<size_t>(number);
  hasher.Add(index < colours.size() ? colours[index] : static_cast<uint64_t>(number));
  return hasher.digest();
}

}  // namespace

InstrMap<uint64_t> ValueHashes(const Computation& computation, ComputationHashes& called,
                               std::span<const uint64_t> colours) {
  InstrMap<uint64_t> hashes(computation);
  for (const Instr* instr : computation.PostOrder()) {
    if (instr->op() == Op::kParameter) {
      hashes[instr] = ParameterHash(instr->attrs<ParameterAttrs>().number, instr->shape(), colours);
      continue;
    }
    std::vector<uint64_t> operands;
    for (const Instr* operand : instr->operands()) operands.push_back(hashes[operand]);
    hashes[instr] = CombineHash(instr->op(), instr->shape(), instr->attrs(), std::move(operands),
                                instr->called(), called);
  }
  return hashes;
}

uint64_t ComputationHashes::Of(const Computation& computation) {
  auto it = known_.find(&computation);
  if (it != known_.end()) return it->second;
  InstrMap<uint64_t> hashes = ValueHashes(computation, *this);
  Hasher hasher;
  hasher.Add(hashes[computation.root()]);
  for (const Instr* instr : computation.Instrs())
    if (Acts(*instr)) hasher.Add(hashes[instr]);
  return known_[&computation] = hasher.digest();
}

bool ComputationHashes::Acts(const Instr& instr) {
  if (instr.info().Is(kSideEffect)) return true;
  return std::ranges::any_of(instr.called(), [&](const Computation* c) { return Acts(*c); });
}

bool ComputationHashes::Acts(const Computation& computation) {
  auto it = acts_.find(&computation);
  if (it != acts_.end()) return it->second;
  bool acts = false;
  for (const Instr* instr : computation.Instrs()) acts = acts || Acts(*instr);
  return acts_[&computation] = acts;
}

uint64_t NormalGraph::ValueHash(Op op, const Shape& shape, std::span<Instr* const> operands,
                                const Attrs& attrs, std::span<Computation* const> called) const {
  std::vector<uint64_t> hashes;
  for (const Instr* operand : operands) hashes.push_back(HashOf(operand));
  return CombineHash(op, shape, attrs, std::move(hashes), called, *called_hashes_);
}

Instr* NormalGraph::Append(Op op, const Shape& shape, std::vector<Instr*> operands,
                           const Attrs& attrs, std::vector<Computation*> called, size_t captures) {
  uint64_t hash = ValueHash(op, shape, operands, attrs, called);
  Instr* instr = target_->Append(op, shape, std::move(operands), attrs);
  instr->set_called(std::move(called));
  instr->set_captures(captures);
  hashes_[instr] = hash;
  return instr;
}

Instr* NormalGraph::Intern(Op op, const Shape& shape, std::vector<Instr*> operands,
                           const Attrs& attrs, std::vector<Computation*> called, size_t captures) {
  if (IsCommutative(op) && HashOf(operands[1]) < HashOf(operands[0]))
    std::swap(operands[0], operands[1]);
  for (const Computation* callee : called)
    if (called_hashes_->Acts(*callee))
      return Append(op, shape, std::move(operands), attrs, std::move(called), captures);
  uint64_t hash = ValueHash(op, shape, operands, attrs, called);
  auto [begin, end] = table_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    Instr* known = it->second;
    bool same = known->op() == op && known->shape() == shape &&
                std::ranges::equal(known->operands(), operands) &&
                EqualAttrs(op, known->attrs(), attrs);
    if (same) return known;  // called computations are equal by hash
  }
  Instr* instr = Append(op, shape, std::move(operands), attrs, std::move(called), captures);
  table_.emplace(hash, instr);
  return instr;
}

Instr* NormalGraph::Make(Op op, const Shape& shape, std::vector<Instr*> operands,
                         const Attrs& attrs, std::vector<Computation*> called, size_t captures) {
  Shape plain = shape.WithoutLayout();
  if (Instr* simpler = Simplify(*this, op, plain, operands, attrs, called)) return simpler;
  return Intern(op, plain, std::move(operands), attrs, std::move(called), captures);
}

Instr* NormalGraph::Parameter(int64_t number, const Shape& shape, uint64_t colour) {
  Instr* instr = target_->AppendParameter(number, shape.WithoutLayout());
  std::vector<uint64_t> colours(static_cast<size_t>(number) + 1, colour);
  hashes_[instr] = ParameterHash(number, instr->shape(), colours);
  return instr;
}

Instr* NormalGraph::Constant(const Literal& literal) {
  return Make(Op::kConstant, literal.shape(), {}, ConstantAttrs{literal});
}

}  // namespace tokamak
