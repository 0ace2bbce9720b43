#pragma once

#include <llvm/IR/IRBuilder.h>

#include "backend/cpu/target.h"
#include "kernel/kernel.h"

// Code of a multiply.

namespace tokamak::cpu {

struct ProductOperands {
  Multiplication product;
  ScalarType type{};                                          // of the matrices
  llvm::Value *to = nullptr, *lhs = nullptr, *rhs = nullptr;  // where their elements begin
  llvm::Value* depth = nullptr;                               // i64, at least 1
};

// Whether the processor's tiles multiply it. `depth_multiple`: the depth is a multiple of this.
bool FitsTiles(const Target& target, ScalarType type, const Multiplication& product,
               int64_t depth_multiple);

// The tiles, before the first such product of a function and after the last.
void EmitTilesBegin(llvm::IRBuilder<>& b);
void EmitTilesEnd(llvm::IRBuilder<>& b);

void EmitTileProduct(llvm::IRBuilder<>& b, const ProductOperands& operands);
void EmitVectorProduct(llvm::IRBuilder<>& b, const Target& target, const ProductOperands& operands);

}  // namespace tokamak::cpu
