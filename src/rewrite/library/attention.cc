#include <limits>

#include "rewrite/editor.h"
#include "rewrite/library/library.h"

namespace tokamak {
namespace {

// A new computation op(a, b) of two scalars.
Computation* BodyOf(Module& module, Op op, ElementType type) {
  Computation* body = module.AddComputation("attention_" + std::string(InfoOf(op).name));
  body->is_public = false;
  Instr* a = body->AppendParameter(0, Shape::Scalar(type), "a");
  Instr* b = body->AppendParameter(1, Shape::Scalar(type), "b");
  body->set_root(body->Append(op, Shape::Scalar(type), {a, b}));
  return body;
}

// x reduced along its last dimension and broadcast back.
Instr* ReduceLast(LibraryCallReader& call, Instr* x, Op op, double start) {
  const Shape shape = x->shape();
  Dims dims = shape.dims(), broadcast_dims;
  dims.pop_back();
  for (size_t i = 0; i < dims.size(); ++i) broadcast_dims.push_back(static_cast<int64_t>(i));
  Instr* init = call.make.Filled(Shape::Scalar(shape.type()), start);
  Instr* reduced = Editor::Beside(call.call())
                       .Make(Op::kReduce, Shape::Array(shape.type(), dims), {x, init},
                             DimensionsAttrs{{static_cast<int64_t>(dims.size())}});
  reduced->set_called({BodyOf(*x->parent()->module(), op, shape.type())});
  return call.make.MakeShaped(Op::kBroadcast, shape, {reduced}, DimensionsAttrs{broadcast_dims});
}

// Masks out keys after the query.
Instr* MaskCausal(LibraryCallReader& call, Instr* x) {
  Shape index = x->shape().WithType(ElementType::kS32);
  Editor& make = call.make;
  Instr* query = make.MakeShaped(Op::kIota, index, {}, IotaAttrs{index.rank() - 2});
  Instr* key = make.MakeShaped(Op::kIota, index, {}, IotaAttrs{index.rank() - 1});
  Instr* seen =
      make.Make(Op::kCompare, {key, query}, CompareAttrs{.direction = CompareDirection::kLe});
  Instr* none = make.Filled(x->shape(), -std::numeric_limits<double>::infinity());
  return make.Make(Op::kSelect, {seen, x, none});
}

bool IsHarmless(LibraryCallReader& call, const nlohmann::json& config) {
  if (!call.KnowsAll(config,
                     {"fmha_scale", "dropout_rate", "bmm1_dot_dimension_numbers",
                      "bmm2_dot_dimension_numbers", "mask_type", "is_causal_mask",
                      "sliding_window_length", "is_paged_attention", "max_seg_per_batch"},
                     {"seed", "intermediate_tensor_shape", "is_flash_attention"}))
    return false;
  if (call.Number(config, "dropout_rate", 0) != 0) call.No("it has dropout");
  if (call.Number(config, "sliding_window_length", 0) > 0) call.No("a sliding window");
  if (call.Number(config, "max_seg_per_batch", 1) > 1) call.No("packed sequences");
  if (call.Text(config, "is_paged_attention", "false") != "false") call.No("pages");
  return call.why().empty();
}

}  // namespace

// softmax(scale * dot(q, k) + bias) times v.
Instr* ReadAttention(LibraryCallReader& call, std::string_view target) {
  bool has_bias = target == "__cudnn$fmhaScaleBiasSoftmax";
  if (!has_bias && target != "__cudnn$fmhaSoftmax")
    return call.No("unsupported attention: dropout, backward or f8");
  const nlohmann::json& config = call.Config("cudnn_fmha_backend_config");
  if (!IsHarmless(call, config)) return nullptr;
  const Instr& instr = call.call();
  if (instr.operand_count() != (has_bias ? 4u : 3u)) return call.No("unsupported operands");
  DotAttrs first, second;
  if (!call.ReadDot(call.Find(config, "bmm1_dot_dimension_numbers"), first)) return nullptr;
  if (!call.ReadDot(call.Find(config, "bmm2_dot_dimension_numbers"), second)) return nullptr;
  double scale = call.Number(config, "fmha_scale", 1);
  std::string mask = call.Text(config, "mask_type", "NO_MASK");
  bool causal = mask == "CAUSAL" || call.Text(config, "is_causal_mask", "false") == "true";
  if (mask != "NO_MASK" && mask != "CAUSAL") call.No("mask " + mask);
  if (!call.why().empty()) return nullptr;

  Editor& make = call.make;
  Instr* narrow = make.Make(Op::kDot, {instr.operand(0), instr.operand(1)}, first);
  if (narrow == nullptr || narrow->shape().rank() < 2 || !IsReal(narrow->shape().type()))
    return call.No("its first product");
  Instr* x = make.MakeShaped(Op::kDot, call.Wide(narrow->shape()),
                             {instr.operand(0), instr.operand(1)}, first);
  x = call.Scale(x, scale);
  if (has_bias) x = make.Make(Op::kAdd, {x, call.Convert(instr.operand(3), x->shape().type())});
  if (x != nullptr && causal) x = MaskCausal(call, x);
  Instr* weights = call.Convert(x, instr.operand(2)->shape().type());
  Shape out = call.result().WithoutLayout();
  if (make.MakeShaped(Op::kDot, out, {weights, instr.operand(2)}, second) == nullptr)
    return call.No("its second product or its bias does not have the shape " + ToString(out));
  Instr* most = ReduceLast(call, x, Op::kMaximum, -std::numeric_limits<double>::infinity());
  Instr* powers = make.Make(Op::kExp, {make.Make(Op::kSubtract, {x, most})});
  Instr* share = make.Make(Op::kDivide, {powers, ReduceLast(call, powers, Op::kAdd, 0.0)});
  weights = call.Convert(share, instr.operand(2)->shape().type());
  return make.MakeShaped(Op::kDot, out, {weights, instr.operand(2)}, second);
}

}  // namespace tokamak
