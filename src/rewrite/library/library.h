#pragma once

// What XLA's calls of cuBLAS and cuDNN compute, as ops. Each function gives the value of the call's
// first result, or null and says why: whatever a configuration holds that is not understood counts.

#include <initializer_list>
#include <string>
#include <string_view>

#include "rewrite/json.h"
#include "rewrite/rules.h"

namespace tokamak {

class LibraryCall {
 public:
  LibraryCall(Instr* call, const Json& config, Editor& edit)
      : call_(*call), config_(config), make(edit) {}

  const Instr& call() const { return call_; }
  const Json& config() const { return config_; }
  // The array that the call computes: its result, or the first of its results.
  const Shape& result() const {
    return call_.shape().IsTuple() ? call_.shape().elements()[0] : call_.shape();
  }
  const std::string& why() const { return why_; }
  Instr* No(std::string why);  // null

  // The field's number; `otherwise` where it is not there. What is no number is a reason.
  double Number(const Json& config, std::string_view name, double otherwise);
  // The field's text, likewise.
  std::string Text(const Json& config, std::string_view name, std::string_view otherwise);
  // The first field that is in neither list is a reason. False then.
  bool KnowsAll(const Json& config, std::initializer_list<std::string_view> read,
                std::initializer_list<std::string_view> harmless);
  // Dimension numbers of a product.
  bool ReadDot(const Json* numbers, DotAttrs& attrs);

  // Sums and what follows them are at least f32, and rounded once.
  Shape Wide(const Shape& shape) const;
  Instr* Convert(Instr* x, ElementType type);
  Instr* Scale(Instr* x, double factor);
  Instr* Relu(Instr* x);

 private:
  const Instr& call_;
  const Json& config_;
  std::string why_;

 public:
  Editor& make;
};

Instr* ReadGemm(LibraryCall& call);
Instr* ReadConvolution(LibraryCall& call, std::string_view target);
Instr* ReadAttention(LibraryCall& call, std::string_view target);

}  // namespace tokamak
