#include "gen/library/tensor_convolution.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cost/rates.h"
#include "gen/gpu/tensor_tiling.h"
#include "gen/library/convolution.h"
#include "gen/library/dot.h"
#include "support/ceil_div.h"

namespace tokamak {
namespace {

using Along = gpu::WindowDimension::Along;
using ConvForm = LibraryConvolution::Form;
using ConvSpace = LibraryConvolution::SpatialDim;

// The tilings of a convolution as a dot, without the dot. Rows are pixels and K is taps and
// channels; in a filter gradient, rows are taps and channels and K is pixels.
class TensorConvolutionChoice {
 public:
  TensorConvolutionChoice(const LibraryConvolution& c, const Machine& machine)
      : c_(c),
        machine_(machine),
        is_filter_(c.form == ConvForm::kBackwardFilter),
        form_(gpu::FormOf(StorageType(c.type))) {}

  // `is_laid_out`: for the library, which else needs the filter, or its gradient, in another
  // layout. `is_combined`: what follows the library's call is a kernel of its own.
  TensorConvolution Choose(bool copies_filter, bool is_laid_out, bool is_combined) const {
    TensorConvolution best = Best();
    if (best.slices == 0) return {};
    best.copies_filter = copies_filter;
    // The phases have launches of their own.
    if (!best.has_phases) best.us += RatesOf(machine_).graph_gap_us;
    double copy_us = StoredUs(2 * FilterBytes());
    if (copies_filter) best.us += copy_us;
    best.library_us = EstimateCost(WorkOf(c_, machine_), machine_).total();
    if (!is_laid_out) best.library_us += copy_us;
    if (is_combined) best.library_us += StoredUs(2 * WorkOf(c_, machine_).writes);
    return best;
  }

  // The fastest one, whatever the library does.
  TensorConvolution Best() const {
    TensorConvolution best;
    best.us = std::numeric_limits<double>::infinity();
    if (!IsSupported()) return best;
    if (c_.form == ConvForm::kBackwardData) return WithPhases();
    if (is_filter_) {
      SearchSlices(best);
    } else {
      best.slices = 1;
      best.us = TimeOf(best);
    }
    return best;
  }

 private:
  // Dimensions of the window that fit a tensor of the bulk copy engine, beside batch and features.
  static constexpr size_t kMaxTensorSpace = TileCopy::kMaxRank - 2;
  // K of a slice at least, and slices at most. Chosen: beyond, storing the sums takes as long as
  // the multiplies.
  static constexpr int64_t kConvMinSliceDepth = 512, kConvMaxSlices = 64;

  bool IsSupported() const {
    if ((c_.type == ElementType::kF32 && !(c_.tf32 && machine_.tf32)) || c_.groups != 1 ||
        c_.space.size() > kMaxTensorSpace)
      return false;
    int64_t unit = TileCopy::kAlignment / BytesOf(c_.type);
    if (c_.inputs % unit != 0 || c_.outputs % unit != 0) return false;
    if (c_.form == ConvForm::kBackwardData) return true;  // its phases have no strides
    return std::ranges::all_of(c_.space, [&](const ConvSpace& dim) {
      return (is_filter_ ? dim.stride : std::max(dim.stride, dim.dilation)) <= TileCopy::kMaxStep;
    });
  }

  // The phases of an input gradient, each a convolution of the results' gradient without strides.
  // Who reads the input gradient reads the results of all phases: joining them costs nothing.
  TensorConvolution WithPhases() const {
    TensorConvolution all{.slices = 1, .has_phases = true};
    LibraryConvolution phase = c_;
    phase.form = ConvForm::kForward;
    std::swap(phase.inputs, phase.outputs);
    AddPhases(phase, 0, all);
    return all;
  }

  void AddPhases(LibraryConvolution& phase, size_t d, TensorConvolution& all) const {
    if (d < c_.space.size()) {
      const ConvSpace& dim = c_.space[d];
      for (int64_t first = 0; first < dim.stride; ++first) {
        // The taps from the first one on, in steps of the stride.
        int64_t taps = first < dim.w ? CeilDiv(dim.w - first, dim.stride) : 0;
        phase.space[d] = {.x = dim.y, .w = taps, .y = CeilDiv(dim.x, dim.stride)};
        if (taps > 0) AddPhases(phase, d + 1, all);
      }
      return;
    }
    TensorConvolution one = TensorConvolutionChoice(phase, machine_).Best();
    if (one.slices == 0) all.slices = 0;
    all.us += one.us + RatesOf(machine_).graph_gap_us;
  }

  int64_t line() const { return form_.line(); }
  int64_t Depth() const {
    return is_filter_ ? c_.batch * c_.Count(&ConvSpace::y) : c_.Count(&ConvSpace::w) * c_.inputs;
  }

  // The fastest slices of the batch or of the first dimension of images; none if pixels do not fill
  // panels exactly.
  void SearchSlices(TensorConvolution& best) const {
    // The slices are another dimension of the tensors.
    int64_t most = c_.space.size() == kMaxTensorSpace ? 1 : kConvMaxSlices;
    for (bool cuts_space : {false, true}) {
      int64_t size = cuts_space ? c_.space[0].y : c_.batch;
      for (int64_t slices = 1; slices <= std::min(size, most); ++slices) {
        if (slices > 1 && Depth() / slices < kConvMinSliceDepth) break;
        TensorConvolution next{.slices = slices, .is_filter = true, .cuts_space = cuts_space};
        if (size % slices != 0 || !FillsPanels(next)) continue;
        next.us = TimeOf(next);
        if (next.us < best.us) best = next;
      }
    }
  }

  // Whether powers of two that divide the sizes of a slice make a panel.
  bool FillsPanels(const TensorConvolution& choice) const {
    int64_t images = choice.cuts_space ? c_.batch : c_.batch / choice.slices;
    int64_t box = images & -images;
    for (size_t d = 0; d < c_.space.size(); ++d) {
      int64_t size = choice.cuts_space && d == 0 ? c_.space[d].y / choice.slices : c_.space[d].y;
      box *= size & -size;
    }
    return box >= line();
  }

  gpu::WindowTiling WindowOf(const TensorConvolution& choice) const {
    gpu::WindowTiling window;
    window.is_k_major = {!is_filter_, !is_filter_};
    gpu::WindowDimension features{.size = c_.inputs, .terms = {}};
    if (is_filter_) {
      features.terms = {{Along::kRow, 0}};
      window.rows.push_back({c_.inputs});
      for (const ConvSpace& dim : c_.space) window.rows.push_back({dim.w});
      window.depth.push_back({Depth() / choice.slices, line()});
    } else {
      features.terms = {{Along::kDepth, 0}};
      for (const ConvSpace& dim : c_.space) window.rows.push_back({dim.y});
      window.rows.push_back({c_.batch});
      window.depth = {{c_.Count(&ConvSpace::w)}, {c_.inputs, line()}};
    }
    window.tensors[0] = {features};
    for (size_t i = 0; i < window.rows.size(); ++i) {
      window.row_order.push_back(i);
      if (is_filter_) continue;
      int64_t step = i < c_.space.size() ? c_.space[i].stride : 1;
      window.tensors[0].push_back({.size = window.rows[i].size, .terms = {{Along::kRow, i, step}}});
    }
    return window;
  }

  // Microseconds of the multiplies with the best tiles, which hide memory in part, and of the sums
  // of slices.
  double TimeOf(const TensorConvolution& choice) const {
    gpu::TensorTiling tiling;
    tiling.window = WindowOf(choice);
    for (gpu::TensorOperand* operand : {&tiling.lhs, &tiling.rhs}) {
      operand->dimensions.resize(1);
      operand->stored = StorageType(c_.type);
      operand->is_k_major = !is_filter_;
    }
    gpu::SetForm(tiling, form_);
    double multiplies =
        gpu::TensorTime(tiling, {.batch = choice.slices, .n = c_.outputs, .k = Depth()}, machine_);
    Work memory = WorkOf(c_, machine_);
    double us = std::hypot(multiplies, CopyUs(memory.reads + memory.writes, RatesOf(machine_)));
    if (choice.slices == 1) return us;
    // The sums are stored in f32 and read again.
    double sums = static_cast<double>(choice.slices) * FilterBytes() * sizeof(float) /
                  static_cast<double>(BytesOf(c_.type));
    return us + StoredUs(2 * sums);
  }

  double FilterBytes() const {
    return static_cast<double>(c_.Count(&ConvSpace::w) * c_.inputs * c_.outputs * BytesOf(c_.type));
  }
  // Microseconds of a kernel that moves so many bytes.
  double StoredUs(double bytes) const {
    const Rates& rates = RatesOf(machine_);
    return CopyUs(bytes, rates) + rates.graph_gap_us;
  }

  const LibraryConvolution& c_;
  const Machine& machine_;
  bool is_filter_;
  gpu::TensorForm form_;
};

// Whether the lines of a filter are neither of input nor of output channels. TF32 is multiplied
// along the input channels only.
bool CopiesFilter(const Instr& conv, const LibraryConvolution& read) {
  if (read.form == ConvForm::kBackwardFilter) return false;
  const ConvDims& dims = conv.attrs<ConvolutionAttrs>().dims;
  int64_t last = conv.shape().rank() - 1;
  return dims.kernel_input != last &&
         (dims.kernel_output != last || read.type == ElementType::kF32);
}

// Whether a value is stored that follows elementwise from the result alone and other arrays, as
// after a bias and an activation: the result of a convolution, a dot or the program needs it. The
// kernel of a convolution can store it instead of its own result.
bool IsCombined(const Instr& conv) {
  // Values. Chosen: a bias, a residual, an activation and conversions are fewer.
  constexpr int kMaxCombined = 16;
  const Instr* last = &conv;
  bool is_combined = false;
  for (int i = 0; i < kMaxCombined && last->users().size() == 1; ++i) {
    const Instr* user = *last->users().begin();
    bool is_moved = user->op() == Op::kTranspose || user->op() == Op::kReshape;
    if ((!user->info().Is(kElementwise) && !is_moved) || !user->shape().IsArray() ||
        user->shape().ElementCount() != conv.shape().ElementCount())
      break;
    is_combined = is_combined || !is_moved;
    last = user;
  }
  if (!is_combined) return false;
  return last->parent()->root() == last ||
         std::ranges::any_of(last->users(), [](const Instr* user) {
           return user->op() == Op::kConvolution || user->op() == Op::kDot ||
                  user->op() == Op::kTuple;
         });
}

}  // namespace

TensorConvolution TensorConvolutionOf(const Instr& conv, const Machine& machine) {
  if (!machine.is_gpu() || !machine.async_multiply || conv.op() != Op::kConvolution) return {};
  std::optional<LibraryConvolution> read = MatchConvolution(conv);
  if (!read || read->HasManyTaps() ||
      (read->form == ConvForm::kBackwardData &&
       !CanSplitBaseDilation(conv.attrs<ConvolutionAttrs>().window)) ||
      read->Multiplications() < LibraryConvolution::kLeastWork ||
      PrefersKernelInLoop(conv, read->Multiplications()))
    return {};
  return TensorConvolutionChoice(*read, machine)
      .Choose(CopiesFilter(conv, *read), MatchLaidOutConvolution(conv).has_value(),
              IsCombined(conv));
}

}  // namespace tokamak
