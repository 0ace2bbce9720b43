#include <cmath>
#include <numbers>

#include "rewrite/library/library.h"

namespace tokamak {
namespace {

// Adds the vector along the free dimensions of the second operand, which are the minor ones.
Instr* AddVector(LibraryCallReader& call, Instr* x, Instr* vector, size_t columns) {
  const Shape &out = call.result(), &bias = vector->shape();
  if (bias.rank() != static_cast<int64_t>(columns) || bias.rank() > out.rank())
    return call.No("the bias is " + ToString(bias));
  auto nth = [](const Shape& shape, size_t i) {
    return shape.layout() != nullptr && i < shape.layout()->minor_to_major.size()
               ? shape.layout()->minor_to_major[i]
               : shape.rank() - 1 - static_cast<int64_t>(i);
  };
  Dims broadcast_dims(columns);
  for (size_t i = 0; i < columns; ++i)
    broadcast_dims[static_cast<size_t>(nth(bias, i))] = nth(out, i);
  for (size_t i = 0; i + 1 < columns; ++i)
    if (broadcast_dims[i] >= broadcast_dims[i + 1]) return call.No("the bias is transposed");
  Instr* wide = call.Convert(vector, x->shape().type());
  Instr* broadcast =
      call.make.MakeShaped(Op::kBroadcast, x->shape(), {wide}, DimensionsAttrs{broadcast_dims});
  return call.make.Make(Op::kAdd, {x, broadcast});
}

// x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))), the approximation that cuBLAS uses.
Instr* Gelu(LibraryCallReader& call, Instr* x) {
  if (x == nullptr) return nullptr;
  Editor& make = call.make;
  Instr* cube = make.Make(Op::kMultiply, {make.Make(Op::kMultiply, {x, x}), x});
  Instr* inner = make.Make(Op::kAdd, {x, call.Scale(cube, 0.044715)});
  Instr* tanh = make.Make(Op::kTanh, {call.Scale(inner, std::sqrt(2 / std::numbers::pi))});
  Instr* one = make.Filled(x->shape(), 1);
  return make.Make(Op::kMultiply, {call.Scale(x, 0.5), make.Make(Op::kAdd, {one, tanh})});
}

// DEFAULT, RELU, BIAS, BIAS_RELU ...: first adds a vector, then applies a function.
Instr* Epilogue(LibraryCallReader& call, Instr* x, std::string_view name, size_t next,
                size_t columns) {
  if (name.starts_with("BIAS")) {
    if (call.call().operand_count() <= next) return call.No("the bias is missing");
    x = AddVector(call, x, call.call().operand(next++), columns);
    name.remove_prefix(4);
    if (name.starts_with("_")) name.remove_prefix(1);
  }
  if (x == nullptr) return nullptr;
  if (next != call.call().operand_count())
    return call.No(std::to_string(call.call().operand_count()) + " operands, " +
                   std::to_string(next) + " are understood");
  if (name.empty() || name == "DEFAULT") return x;
  if (name == "RELU") return call.Relu(x);
  if (name == "GELU") return Gelu(call, x);
  if (name == "SILU") return call.make.Make(Op::kMultiply, {x, call.make.Make(Op::kLogistic, {x})});
  return call.No("epilogue " + std::string(name));
}

}  // namespace

// alpha * dot(lhs, rhs) + beta * C, then the epilogue.
Instr* ReadGemm(LibraryCallReader& call) {
  const nlohmann::json& config = call.Config("gemm_backend_config");
  if (!call.KnowsAll(config,
                     {"alpha_real", "alpha_imag", "beta", "dot_dimension_numbers", "epilogue",
                      "precision_config", "grad_x", "grad_y", "damax_output"},
                     {"selected_algorithm", "lhs_stride", "rhs_stride", "batch_size",
                      "autotune_workspace_size"}))
    return nullptr;
  for (std::string_view flag : {"grad_x", "grad_y", "damax_output"})
    if (call.Text(config, flag, "false") != "false") return call.No(std::string(flag));
  DotAttrs attrs;
  if (!call.ReadDot(call.Find(config, "dot_dimension_numbers"), attrs)) return nullptr;
  double alpha = call.Number(config, "alpha_real", 1), beta = call.Number(config, "beta", 0);
  if (call.Number(config, "alpha_imag", 0) != 0) return call.No("a complex factor");
  std::string epilogue = call.Text(config, "epilogue", "DEFAULT");
  if (!call.why().empty()) return nullptr;
  if (const nlohmann::json* precision = call.Find(config, "precision_config"))
    if (call.Text(*precision, "algorithm", "ALG_UNSET") != "ALG_UNSET")
      return call.No("algorithm " + call.Text(*precision, "algorithm", ""));

  const Instr& instr = call.call();
  if (instr.operand_count() < 2) return call.No("fewer than two operands");
  const Shape &rhs = instr.operand(1)->shape(), &out = call.result();
  bool plain = alpha == 1 && beta == 0 && epilogue == "DEFAULT";
  if (!plain && !IsReal(out.type())) return call.No("more than a product of " + ToString(out));
  Shape shape = plain ? out.WithoutLayout() : call.Wide(out);
  Instr* x = call.make.MakeShaped(Op::kDot, shape, {instr.operand(0), instr.operand(1)}, attrs);
  if (x == nullptr) return call.No("its dimensions do not have the result shape " + ToString(out));
  x = call.Scale(x, alpha);
  size_t next = 2;
  if (beta != 0) {
    if (instr.operand_count() < 3) return call.No("beta without an operand");
    x = call.make.Make(Op::kAdd,
                       {x, call.Scale(call.Convert(instr.operand(next++), shape.type()), beta)});
    if (x == nullptr) return call.No("the added array has another shape");
  }
  size_t columns =
      static_cast<size_t>(rhs.rank()) - attrs.rhs_batch.size() - attrs.rhs_contracting.size();
  x = Epilogue(call, x, epilogue, next, columns);
  return call.Convert(x, out.type());
}

}  // namespace tokamak
