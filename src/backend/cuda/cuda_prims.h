#pragma once

#include <array>
#include <string>
#include <string_view>

#include "kernel/scalar.h"

// Spelling of scalar types, constants and primitives in CUDA C++.
namespace tokamak::cuda {

// Spells types and primitives. f16 and bf16 values are held as the unsigned short of their bits.
class Spelling {
 public:
  explicit Spelling(int index_bits) : index_bits_(index_bits) {}

  std::string_view Type(ScalarType type) const;
  std::string Constant(ScalarType type, Bits bits) const;
  // A pure primitive of operands of type `from` whose expressions are given.
  std::string Prim(Prim prim, ScalarType type, ScalarType from,
                   const std::array<std::string, 3>& operands) const;
  // __shfl_xor_sync of a value, converted to and from a type that the intrinsic accepts.
  std::string Shuffle(ScalarType type, const std::string& value, const std::string& lane,
                      std::string_view mask) const;

 private:
  int BitsOf(ScalarType type) const;
  std::string Wrapping(ScalarType type, std::string_view op, const std::string& x,
                       const std::string& y) const;
  std::string Arithmetic(tokamak::Prim prim, ScalarType type, const std::string& x,
                         const std::string& y) const;
  std::string Counted(tokamak::Prim prim, ScalarType type, const std::string& x) const;
  std::string MulHigh(ScalarType type, const std::string& x, const std::string& y) const;
  std::string Convert(ScalarType type, ScalarType from, const std::string& x) const;
  std::string Bitcast(ScalarType type, ScalarType from, const std::string& x) const;
  std::string Float(tokamak::Prim prim, ScalarType type,
                    const std::array<std::string, 3>& operands) const;

  int index_bits_;
};

}  // namespace tokamak::cuda
