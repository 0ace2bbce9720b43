#include "gen/gpu/chain_sources.h"

#include <algorithm>
#include <memory>

namespace tokamak::gpu {
namespace {

// Elements of a reshape that inserts or removes dimensions of size 1: the same coordinates. With
// index arithmetic they would be other values, unless it is simplified completely.
class UnitReshapeSource : public ElementSource {
 public:
  UnitReshapeSource(KernelBuilder& b, ElementEmitter& emitter, const Instr& reshape)
      : b_(b), emitter_(emitter), reshape_(reshape) {}

  Element At(const Coordinates& at, size_t) override {
    const Instr& from = *reshape_.operand(0);
    Coordinates rest, operand_at;
    for (size_t d = 0; d < at.size(); ++d)
      if (reshape_.shape().dim(d) != 1) rest.push_back(at[d]);
    size_t next = 0;
    for (int64_t size : from.shape().dims())
      operand_at.push_back(size == 1 ? b_.Index(0) : rest[next++]);
    return emitter_.At(from, operand_at);
  }

 private:
  KernelBuilder& b_;
  ElementEmitter& emitter_;
  const Instr& reshape_;
};

bool OnlyInsertsUnits(const Instr& reshape) {
  auto without = [](const Dims& dims) {
    Dims rest;
    for (int64_t size : dims)
      if (size != 1) rest.push_back(size);
    return rest;
  };
  return without(reshape.shape().dims()) == without(reshape.operand(0)->shape().dims());
}

// The element of another value at the same coordinates.
class SameElementSource : public ElementSource {
 public:
  SameElementSource(ElementEmitter& emitter, const Instr& from) : emitter_(emitter), from_(from) {}
  Element At(const Coordinates& at, size_t) override { return emitter_.At(from_, at); }

 private:
  ElementEmitter& emitter_;
  const Instr& from_;
};

class ShortExpSource : public ElementSource {
 public:
  ShortExpSource(KernelBuilder& b, ElementEmitter& emitter, const Instr& exp)
      : b_(b), emitter_(emitter), exp_(exp) {}
  Element At(const Coordinates& at, size_t) override {
    Element power{ShortExp(emitter_.At(*exp_.operand(0), at)[0]), {}};
    return ConvertElement(b_, ElementType::kF32, exp_.shape().type(), power);
  }

 private:
  KernelBuilder& b_;
  ElementEmitter& emitter_;
  const Instr& exp_;
};

// x * (1 / y): the reciprocal is one for all columns or rows, if y is.
class QuotientSource : public ElementSource {
 public:
  QuotientSource(KernelBuilder& b, ElementEmitter& emitter, const Instr& divide,
                 const std::unordered_map<const Instr*, Scalar>& reciprocals)
      : b_(b), emitter_(emitter), divide_(divide), reciprocals_(reciprocals) {}
  Element At(const Coordinates& at, size_t) override {
    Scalar x = emitter_.At(*divide_.operand(0), at)[0];
    auto known = reciprocals_.find(&divide_);
    Scalar reciprocal =
        known != reciprocals_.end() ? known->second : 1 / emitter_.At(*divide_.operand(1), at)[0];
    return ConvertElement(b_, ElementType::kF32, divide_.shape().type(), {x * reciprocal, {}});
  }

 private:
  KernelBuilder& b_;
  ElementEmitter& emitter_;
  const Instr& divide_;
  const std::unordered_map<const Instr*, Scalar>& reciprocals_;
};

// exp(x - shift), with the shift in use, as far as the types of the program allow it.
class ExponentialSource : public ElementSource {
 public:
  ExponentialSource(KernelBuilder& b, ElementEmitter& emitter, const RunningChain& running,
                    const Scalar& shift)
      : b_(b), emitter_(emitter), running_(running), shift_(shift) {}
  Element At(const Coordinates& at, size_t) override {
    Element power{ShortExp(emitter_.At(*running_.x, at)[0] - shift_), {}};
    return ConvertElement(b_, ElementType::kF32, running_.exponential->shape().type(), power);
  }

 private:
  KernelBuilder& b_;
  ElementEmitter& emitter_;
  const RunningChain& running_;
  const Scalar& shift_;
};

}  // namespace

Scalar ShortExp(Scalar x) {
  constexpr double kLog2E = 0x1.715476p+0;  // value of log2(e) (definition), rounded to f32
  return x.builder().Make(Prim::kExp2, {x * kLog2E});
}

void SetChainSources(KernelBuilder& b, ElementEmitter& emitter, const FusedRegion& region,
                     const ChainRegion& found, const Scalar& shift,
                     const std::unordered_map<const Instr*, Scalar>& reciprocals) {
  const RunningChain& running = found.running;
  auto same = [&](const Instr& instr, const Instr& from) {
    emitter.SetSource(instr, std::make_shared<SameElementSource>(emitter, from));
  };
  for (const Instr* instr : region.instrs) {
    if (instr->op() == Op::kReshape && OnlyInsertsUnits(*instr))
      emitter.SetSource(*instr, std::make_shared<UnitReshapeSource>(b, emitter, *instr));
    bool is_unpadded = found.along->IsUnpadded(*instr) ||
                       std::ranges::any_of(found.along_products, [&](const DimsAlong& along) {
                         return along.IsUnpadded(*instr);
                       });
    if (is_unpadded) same(*instr, *instr->operand(0)->operand(0));
    if (found.along->Of(*instr) == nullptr ||
        AccumulatorElementType(instr->shape().type()) != ElementType::kF32)
      continue;
    if (instr->op() == Op::kExp)
      emitter.SetSource(*instr, std::make_shared<ShortExpSource>(b, emitter, *instr));
    if (instr->op() == Op::kDivide)
      emitter.SetSource(*instr, std::make_shared<QuotientSource>(b, emitter, *instr, reciprocals));
  }
  for (const RunningChain::RowFactor& factor : running.factors)
    same(*factor.op, *factor.op->operand(factor.element));
  if (running.exponential != nullptr)
    emitter.SetSource(*running.exponential,
                      std::make_shared<ExponentialSource>(b, emitter, running, shift));
}

}  // namespace tokamak::gpu
