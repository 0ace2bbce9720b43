#include <algorithm>

#include "gen/random_bits.h"
#include "gen/region.h"
#include "passes/passes.h"
#include "rewrite/edit_computations.h"
#include "rewrite/editor.h"

namespace tokamak {
namespace {

class RandomExpander {
 public:
  explicit RandomExpander(Instr& random)
      : random_(random), make_(random), state_(random.operand(0)) {}

  bool IsFit() const {
    if (!random_.shape().IsTuple() || random_.shape().elements().size() != 2) return false;
    if (HasControlDependencies(random_)) return false;
    const Shape &state = state_->shape(), &bits = random_.shape().elements()[1];
    return IsPlainArray(state) && state.type() == ElementType::kU64 && state.rank() == 1 &&
           state.dim(0) >= 2 && IsPlainArray(bits) && !IsComplex(bits.type());
  }

  void Run() {
    Shape plain = random_.shape().elements()[1].WithoutLayout();
    Instr* bits = make_.Make(Op::kRngBitGenerator, plain, {state_}, random_.attrs());
    make_.ReplaceParts({NextState(), bits});
  }

 private:
  // The number of counter values that the bits consume.
  uint64_t Counters() const {
    const Shape& bits = random_.shape().elements()[1];
    auto count = static_cast<uint64_t>(bits.ElementCount());
    bool is_wide = InfoOf(bits.type()).bits == 64;
    if (IsPhilox()) return (count * (is_wide ? 2 : 1) + kPhiloxWords - 1) / kPhiloxWords;
    if (is_wide || bits.rank() == 0 || count == 0) return count;
    const Dims& dims = bits.dims();
    auto even = std::find_if(dims.begin(), dims.end(), [](int64_t d) { return d % 2 == 0; });
    if (even == dims.end()) even = std::max_element(dims.begin(), dims.end());
    auto split = static_cast<uint64_t>(*even);
    return count / split * ((split + 1) / 2);
  }
  bool IsPhilox() const {
    return random_.attrs<RngBitGeneratorAttrs>().algorithm != RngAlgorithm::kThreeFry;
  }

  Instr* NextState() {
    Shape shape = Shape::Array(ElementType::kU64, state_->shape().dims());
    auto words = static_cast<size_t>(shape.dim(0));
    std::vector<uint64_t> more(words);
    more[1] = Counters();
    Bytes bytes = Bytes::Copy(more.data(), words * sizeof(uint64_t));
    Instr* added =
        make_.Make(Op::kConstant, shape, {}, ConstantAttrs{Literal::Array(shape, bytes)});
    Instr* next = make_.Make(Op::kAdd, shape, {state_, added}, {});
    if (!IsPhilox() || words <= 2) return next;
    // Carries into the upper half of the counter when the lower half overflows.
    Shape one = Shape::Array(ElementType::kU64, {1});
    auto low = [&](Instr* of) {
      return make_.Make(Op::kSlice, one, {of}, SliceAttrs{{1}, {2}, {1}});
    };
    Instr* over =
        make_.Make(Op::kCompare, Shape::Array(ElementType::kPred, {1}), {low(next), low(state_)},
                   CompareAttrs{CompareDirection::kLt, CompareType::kNone});
    Instr* carry = make_.Make(Op::kConvert, one, {over}, {});
    Instr* zero = make_.Make(Op::kConstant, Shape::Scalar(ElementType::kU64), {},
                             ConstantAttrs{Literal::ScalarInt(ElementType::kU64, 0)});
    carry = make_.Make(Op::kPad, shape, {carry, zero},
                       PadAttrs{{2}, {static_cast<int64_t>(words) - (2 + 1)}, {0}});
    return make_.Make(Op::kAdd, shape, {next, carry}, {});
  }

  Instr& random_;
  Editor make_;
  Instr* state_;
};

}  // namespace

// Splits a rng-bit-generator into the next state, in plain ops, and an rng-bit-generator that
// returns only the bits (an array). The bits can be generated per element, so they fuse into their
// consumers.
Result<Changed> ExpandRandom(Module& module, PassContext& context) {
  return EditComputations(module, [&](Computation& computation) {
    bool changed = false;
    for (Instr* instr : computation.PostOrder()) {
      if (instr->op() != Op::kRngBitGenerator) continue;
      RandomExpander expander(*instr);
      if (!expander.IsFit()) continue;
      context.Accepted("random.expand", *instr);
      expander.Run();
      changed = true;
    }
    return changed;
  });
}

}  // namespace tokamak
