#pragma once

// Translates XLA's calls of cuBLAS and cuDNN into ops. Each function returns the value of the
// call's first result, or null with a reason. Any part of a configuration that is not understood is
// such a reason.

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
  // The shape of the array that the call computes: its result, or the first of its results.
  const Shape& result() const {
    return call_.shape().IsTuple() ? call_.shape().elements()[0] : call_.shape();
  }
  const std::string& why() const { return why_; }
  Instr* No(std::string why);  // sets the reason and returns null

  // The field's number, or `otherwise` if the field is absent. Anything but a number is a reason to
  // fail.
  double Number(const Json& config, std::string_view name, double otherwise);
  // The field's text, likewise.
  std::string Text(const Json& config, std::string_view name, std::string_view otherwise);
  // Sets a reason and returns false if some field is in neither list.
  bool KnowsAll(const Json& config, std::initializer_list<std::string_view> read,
                std::initializer_list<std::string_view> harmless);
  // Parses the dimension numbers of a dot.
  bool ReadDot(const Json* numbers, DotAttrs& attrs);

  // The shape for accumulation and epilogue: at least f32, rounded once at the end.
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
Instr* MatchConvolution(LibraryCall& call, std::string_view target);
Instr* ReadAttention(LibraryCall& call, std::string_view target);

}  // namespace tokamak
