#include "rewrite/library/library.h"

namespace tokamak {
namespace {

// Windows and dimension numbers of the calls describe the forward convolution y = conv(x, w),
// whichever of the three arrays the call computes from the other two.
struct Forward {
  const Shape &x, &w, &y;
  const ConvDims& dims;
  const Window& window;

  int64_t Size(size_t i) const { return w.dim(static_cast<size_t>(dims.kernel_spatial[i])); }
  int64_t In(size_t i) const { return x.dim(static_cast<size_t>(dims.input_spatial[i])); }
  int64_t Out(size_t i) const { return y.dim(static_cast<size_t>(dims.output_spatial[i])); }
};

// dx: the gradient of y, dilated by the strides, convolved with the reversed w.
ConvolutionAttrs BackwardInput(const Forward& f) {
  ConvolutionAttrs attrs;
  for (size_t i = 0; i < f.window.size(); ++i) {
    const WindowDim& w = f.window[i];
    int64_t reach = (f.Size(i) - 1) * w.window_dilation;
    WindowDim dim{.size = f.Size(i), .window_dilation = w.window_dilation, .reversed = !w.reversed};
    dim.base_dilation = w.stride;
    dim.pad_low = reach - w.pad_low;
    dim.pad_high = f.In(i) - 1 - (f.Out(i) - 1) * w.stride + w.pad_low;
    attrs.window.push_back(dim);
  }
  const ConvDims& d = f.dims;
  attrs.dims = {.input_batch = d.output_batch,
                .input_feature = d.output_feature,
                .kernel_input = d.kernel_output,
                .kernel_output = d.kernel_input,
                .output_batch = d.input_batch,
                .output_feature = d.input_feature,
                .input_spatial = d.output_spatial,
                .kernel_spatial = d.kernel_spatial,
                .output_spatial = d.input_spatial};
  return attrs;
}

// dw: x convolved with the gradient of y, with batch and feature dimensions exchanged.
ConvolutionAttrs BackwardFilter(const Forward& f) {
  ConvolutionAttrs attrs;
  for (size_t i = 0; i < f.window.size(); ++i) {
    const WindowDim& w = f.window[i];
    WindowDim dim{.size = f.Out(i), .stride = w.window_dilation, .pad_low = w.pad_low};
    dim.window_dilation = w.stride;
    dim.pad_high =
        (f.Size(i) - 1) * w.window_dilation + (f.Out(i) - 1) * w.stride + 1 - f.In(i) - w.pad_low;
    attrs.window.push_back(dim);
  }
  const ConvDims& d = f.dims;
  attrs.dims = {.input_batch = d.input_feature,
                .input_feature = d.input_batch,
                .kernel_input = d.output_batch,
                .kernel_output = d.output_feature,
                .output_batch = d.kernel_input,
                .output_feature = d.kernel_output,
                .input_spatial = d.input_spatial,
                .kernel_spatial = d.output_spatial,
                .output_spatial = d.kernel_spatial};
  return attrs;
}

bool HasBackward(LibraryCallReader& call, const Forward& f) {
  const CustomCallAttrs& attrs = call.call().attrs<CustomCallAttrs>();
  bool plain = attrs.feature_group_count == 1 && attrs.batch_group_count == 1;
  for (const WindowDim& dim : f.window) plain = plain && dim.base_dilation == 1 && !dim.reversed;
  bool fits = f.x.rank() == f.y.rank() && f.w.rank() == f.y.rank() &&
              f.dims.input_spatial.size() == f.window.size() &&
              f.dims.output_spatial.size() == f.window.size() &&
              f.dims.kernel_spatial.size() == f.window.size();
  for (const Dims* list : {&f.dims.input_spatial, &f.dims.output_spatial, &f.dims.kernel_spatial})
    for (int64_t index : *list) fits = fits && index >= 0 && index < f.y.rank();
  if (!plain || !fits) call.No("it has groups, or a dilated or reversed window");
  return plain && fits;
}

Instr* Activate(LibraryCallReader& call, Instr* x, const std::string& mode, double slope) {
  if (x == nullptr || mode == "kNone" || mode == "0") return x;
  Editor& make = call.make;
  if (mode == "kRelu") return call.Relu(x);
  Instr* zero = make.Filled(x->shape(), 0.0);
  Instr* positive =
      make.Make(Op::kCompare, {x, zero}, CompareAttrs{.direction = CompareDirection::kGt});
  if (mode == "kRelu6") return make.Make(Op::kMinimum, {call.Relu(x), make.Filled(x->shape(), 6)});
  if (mode == "kElu") return make.Make(Op::kSelect, {positive, x, make.Make(Op::kExpm1, {x})});
  if (mode == "kLeakyRelu") return make.Make(Op::kSelect, {positive, x, call.Scale(x, slope)});
  return call.No("activation " + mode);
}

// scale * conv + side_scale * side + bias, then the activation.
Instr* Finish(LibraryCallReader& call, Instr* x, const nlohmann::json& config, bool has_bias) {
  const Instr& instr = call.call();
  double side_scale = call.Number(config, "side_input_scale", 0);
  double slope = call.Number(config, "leakyrelu_alpha", 0);
  x = call.Scale(x, call.Number(config, "conv_result_scale", 1));
  size_t next = 2;
  if (has_bias) {
    if (instr.operand_count() < 3 || instr.operand(2)->shape().rank() != 1)
      return call.No("the bias is missing");
    Instr* wide = call.Convert(instr.operand(next++), x->shape().type());
    Instr* bias = call.make.MakeShaped(
        Op::kBroadcast, x->shape(), {wide},
        DimensionsAttrs{{instr.attrs<CustomCallAttrs>().conv_dims->output_feature}});
    if (instr.operand_count() > next && side_scale != 0)
      x = call.make.Make(
          Op::kAdd,
          {x, call.Scale(call.Convert(instr.operand(next), x->shape().type()), side_scale)});
    if (instr.operand_count() > next) ++next;
    x = call.make.Make(Op::kAdd, {x, bias});
  }
  if (next != instr.operand_count()) return call.No("unsupported operands");
  x = Activate(call, x, call.Text(config, "activation_mode", "kNone"), slope);
  if (!call.why().empty()) return nullptr;
  return call.Convert(x, call.result().type());
}

}  // namespace

Instr* MatchConvolution(LibraryCallReader& call, std::string_view target) {
  const nlohmann::json& config = call.Config("cudnn_conv_backend_config");
  if (!call.KnowsAll(
          config, {"conv_result_scale", "activation_mode", "side_input_scale", "leakyrelu_alpha"},
          {}))
    return nullptr;
  const Instr& instr = call.call();
  const CustomCallAttrs& attrs = instr.attrs<CustomCallAttrs>();
  if (!attrs.window || !attrs.conv_dims || instr.operand_count() < 2)
    return call.No("no window or dimension numbers");
  const Shape &a = instr.operand(0)->shape(), &b = instr.operand(1)->shape(), &out = call.result();
  if (!a.IsArray() || !b.IsArray() || !IsReal(a.type()) || !IsReal(b.type()) || !IsReal(out.type()))
    return call.No("a convolution of " + ToString(a) + " and " + ToString(b));
  ConvolutionAttrs conv;
  if (target == "__cudnn$convForward" || target == "__cudnn$convBiasActivationForward") {
    conv.window = *attrs.window;
    conv.dims = *attrs.conv_dims;
    conv.feature_group_count = attrs.feature_group_count;
    conv.batch_group_count = attrs.batch_group_count;
  } else if (target == "__cudnn$convBackwardInput") {
    Forward f{out, b, a, *attrs.conv_dims, *attrs.window};
    if (!HasBackward(call, f)) return nullptr;
    conv = BackwardInput(f);
  } else if (target == "__cudnn$convBackwardFilter") {
    Forward f{a, out, b, *attrs.conv_dims, *attrs.window};
    if (!HasBackward(call, f)) return nullptr;
    conv = BackwardFilter(f);
  } else {
    return call.No("unsupported kind of convolution");
  }
  conv.precision = attrs.precision;
  Instr* x = call.make.MakeShaped(Op::kConvolution, call.Wide(out),
                                  {instr.operand(0), instr.operand(1)}, conv);
  if (x == nullptr) return call.No("its window does not have the result shape " + ToString(out));
  return Finish(call, x, config, target == "__cudnn$convBiasActivationForward");
}

}  // namespace tokamak
