#include <algorithm>

#include "gen/region.h"
#include "passes/passes.h"
#include "passes/target/left_to_library.h"
#include "rewrite/edit_computations.h"
#include "rewrite/editor.h"
#include "support/ceil_div.h"

namespace tokamak {
namespace {

// Multiplications. Chosen: below it, launches cost more than is saved.
constexpr double kLeastProducts = 1 << 16;

// With base dilation d, results d * i + phase read the input through the taps first, first + d ...;
// tap j of these reads element i + j - pad_low of the undilated input.
struct Phase {
  int64_t first = 0, taps = 0, pad_low = 0;
};
Phase PhaseOf(const WindowDim& window, int64_t phase) {
  const int64_t d = window.base_dilation;
  const int64_t first = ((window.pad_low - phase) % d + d) % d;
  return {first, first < window.size ? CeilDiv(window.size - first, d) : 0,
          (window.pad_low - phase - first) / d};
}

class ConvolutionSplitter {
 public:
  explicit ConvolutionSplitter(Instr& conv)
      : conv_(conv),
        make_(conv, Editor::Naming::kUnnamed),
        attrs_(conv.attrs<ConvolutionAttrs>()),
        shape_(conv.shape().WithoutLayout()) {
    for (size_t d = 0; d < attrs_.window.size(); ++d)
      if (attrs_.window[d].base_dilation > 1) split_.push_back(d);
    // In the order of the result's dimensions.
    std::ranges::sort(split_, {}, [&](size_t d) { return attrs_.dims.output_spatial[d]; });
  }

  bool Pays() const {
    if (!CanSplitBaseDilation(attrs_.window)) return false;
    for (const Instr* operand : conv_.operands())
      if (!IsPlainArray(operand->shape()) || operand->shape().ElementCount() == 0) return false;
    if (!IsPlainArray(conv_.shape())) return false;
    const Shape& kernel = conv_.operand(1)->shape();
    const int64_t features = kernel.dim(static_cast<size_t>(attrs_.dims.kernel_output));
    // With one output feature per group it is not a matrix product (expand_convolutions.cc).
    if (features == attrs_.feature_group_count * attrs_.batch_group_count) return false;
    double products = static_cast<double>(shape_.ElementCount()) *
                      static_cast<double>(kernel.ElementCount() / features);
    return products >= kLeastProducts;
  }

  void Run() {
    std::vector<Phase> phases(attrs_.window.size());
    Instr* result = Joined(0, phases);
    Dims dims = shape_.dims(), begin(dims.size(), 0), step(dims.size(), 1);
    for (size_t d : split_) dims[OutputAt(d)] = PhaseSize(d) * attrs_.window[d].base_dilation;
    result = Make(Op::kReshape, dims, {result});
    if (dims != shape_.dims())
      result = Make(Op::kSlice, shape_.dims(), {result}, SliceAttrs{begin, shape_.dims(), step});
    result->set_name(conv_.name());
    make_.Replace(result);
  }

 private:
  size_t OutputAt(size_t d) const { return static_cast<size_t>(attrs_.dims.output_spatial[d]); }
  // Results per phase; the last result of some phases may be superfluous.
  int64_t PhaseSize(size_t d) const {
    return CeilDiv(shape_.dim(OutputAt(d)), attrs_.window[d].base_dilation);
  }
  Instr* Make(Op op, const Dims& dims, std::vector<Instr*> operands, Attrs attrs = {}) {
    return make_.Make(op, Shape::Array(shape_.type(), dims), std::move(operands), std::move(attrs));
  }

  // [..., positions, phases, ...]: concatenates the phases of split_[number] and of the following
  // dimensions.
  Instr* Joined(size_t number, std::vector<Phase>& phases) {
    if (number == split_.size()) return Part(phases);
    const size_t d = split_[number];
    std::vector<Instr*> splits;
    for (int64_t phase = 0; phase < attrs_.window[d].base_dilation; ++phase) {
      phases[d] = PhaseOf(attrs_.window[d], phase);
      splits.push_back(Joined(number + 1, phases));
    }
    Dims dims = splits[0]->shape().dims();
    const size_t at = OutputAt(d) + number + 1;
    dims[at] = attrs_.window[d].base_dilation;
    return Make(Op::kConcatenate, dims, splits, DimensionAttrs{static_cast<int64_t>(at)});
  }

  Instr* Part(const std::vector<Phase>& phases) {
    ConvolutionAttrs attrs = attrs_;
    Instr* kernel = conv_.operand(1);
    Dims positions = shape_.dims(), begin(kernel->shape().dims().size(), 0),
         end = kernel->shape().dims(), step(begin.size(), 1), taps = end;
    bool is_empty = false;
    for (size_t d : split_) {
      const Phase& phase = phases[d];
      const size_t at = static_cast<size_t>(attrs_.dims.kernel_spatial[d]);
      const int64_t size =
          conv_.operand(0)->shape().dim(static_cast<size_t>(attrs_.dims.input_spatial[d]));
      positions[OutputAt(d)] = PhaseSize(d);
      begin[at] = std::min(phase.first, end[at]);
      step[at] = attrs_.window[d].base_dilation;
      taps[at] = phase.taps;
      is_empty = is_empty || phase.taps == 0;
      attrs.window[d] = {.size = phase.taps,
                         .pad_low = phase.pad_low,
                         .pad_high = PhaseSize(d) + phase.taps - 1 - size - phase.pad_low};
    }
    Instr* part = nullptr;
    if (is_empty) {
      Instr* zero = Make(Op::kConstant, {}, {}, ConstantAttrs{Literal::Scalar(shape_.type(), 0)});
      part = Make(Op::kBroadcast, positions, {zero}, DimensionsAttrs{{}});
    } else {
      Instr* seen = make_.Make(Op::kSlice, Shape::Array(kernel->shape().type(), taps), {kernel},
                               SliceAttrs{begin, end, step});
      part = Make(Op::kConvolution, positions, {conv_.operand(0), seen}, std::move(attrs));
    }
    Dims with_phases;
    for (size_t i = 0; i < positions.size(); ++i) {
      with_phases.push_back(positions[i]);
      if (std::ranges::any_of(split_, [&](size_t d) { return OutputAt(d) == i; }))
        with_phases.push_back(1);
    }
    return Make(Op::kReshape, with_phases, {part});
  }

  Instr& conv_;
  Editor make_;
  const ConvolutionAttrs attrs_;
  const Shape shape_;
  std::vector<size_t> split_;  // dimensions of the window
};

}  // namespace

// Splits a convolution with base dilation (a transposed convolution, or the input gradient of a
// strided one) into undilated convolutions, one per phase of the window relative to the dilation.
// Each has only the taps that read an element. A dilation by 2 in both dimensions gives four, with
// a quarter of the multiplications in total. Small convolutions stay, because the launches would
// cost more.
Result<Changed> SplitDilatedConvolutions(Module& module, PassContext& context) {
  return EditComputations(module, [&](Computation& computation) {
    bool changed = false;
    for (Instr* instr : computation.Instrs()) {
      if (instr->op() != Op::kConvolution ||
          IsLeftToLibrary(*instr, TensorConvolutionOf(*instr, context.machine()), context.target))
        continue;
      ConvolutionSplitter splitter(*instr);
      if (!splitter.Pays()) continue;
      context.Accepted("convolution.remove-base-dilation", *instr);
      splitter.Run();
      changed = true;
    }
    return changed;
  });
}

}  // namespace tokamak
