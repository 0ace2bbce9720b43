#pragma once

// Translates XLA's calls of cuBLAS and cuDNN into ops. Each function returns the value of the
// call's first result, or null with a reason. Any part of a configuration that is not understood is
// such a reason.

#include <initializer_list>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "rewrite/rules.h"

namespace tokamak {

class LibraryCallReader {
 public:
  // `config` is the call's configuration: any JSON value.
  LibraryCallReader(Instr* call, const nlohmann::json& config, Editor& edit)
      : call_(*call), config_(config), make(edit) {}

  const Instr& call() const { return call_; }
  // The shape of the array that the call computes: its result, or the first of its results.
  const Shape& result() const {
    return call_.shape().IsTuple() ? call_.shape().elements()[0] : call_.shape();
  }
  const std::string& why() const { return why_; }
  Instr* No(std::string why);  // sets the reason and returns null

  // The configuration: in most versions of XLA a field `name` of the call's, which may have others
  // for all kinds of calls.
  const nlohmann::json& Config(std::string_view name) const;
  // Null if the field is absent or `config` is not a dictionary.
  static const nlohmann::json* Find(const nlohmann::json& config, std::string_view name);
  // The field's number, or `otherwise` if the field is absent. Accepts strings of digits, which
  // protocol buffers use for 64-bit integers. Anything else is a reason to fail.
  double Number(const nlohmann::json& config, std::string_view name, double otherwise);
  // The field's text, likewise; that of a number or a Boolean is as JSON writes it.
  std::string Text(const nlohmann::json& config, std::string_view name, std::string_view otherwise);
  // Sets a reason and returns false if some field is in neither list.
  bool KnowsAll(const nlohmann::json& config, std::initializer_list<std::string_view> read,
                std::initializer_list<std::string_view> harmless);
  // Parses the dimension numbers of a dot.
  bool ReadDot(const nlohmann::json* numbers, DotAttrs& attrs);

  // The shape for accumulation and epilogue: at least f32, rounded once at the end.
  Shape Wide(const Shape& shape) const;
  Instr* Convert(Instr* x, ElementType type);
  Instr* Scale(Instr* x, double factor);
  Instr* Relu(Instr* x);

 private:
  const Instr& call_;
  const nlohmann::json& config_;
  std::string why_;

 public:
  Editor& make;
};

Instr* ReadGemm(LibraryCallReader& call);
Instr* MatchConvolution(LibraryCallReader& call, std::string_view target);
Instr* ReadAttention(LibraryCallReader& call, std::string_view target);

}  // namespace tokamak
