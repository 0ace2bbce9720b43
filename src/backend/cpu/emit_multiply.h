#pragma once

#include <llvm/IR/IRBuilder.h>

#include "backend/cpu/target.h"
#include "kernel/kernel.h"

// LLVM IR of a multiply statement: by AMX tiles or by vectors.

namespace tokamak::cpu {

struct ProductOperands {
  MatrixMultiply product;
  ScalarType type{};                                          // of the matrices
  llvm::Value *to = nullptr, *lhs = nullptr, *rhs = nullptr;  // pointers to the first elements
  llvm::Value* depth = nullptr;  // the contracted dimension K: i64, at least 1
};

// Whether AMX tiles can compute it. `depth_multiple`: K is a multiple of this.
bool FitsTiles(const Target& target, ScalarType type, const MatrixMultiply& product,
               int64_t depth_multiple);

// Configures the tiles before the first such product of a function, and releases them after the
// last.
void EmitTilesBegin(llvm::IRBuilder<>& b);
void EmitTilesEnd(llvm::IRBuilder<>& b);

void EmitTileProduct(llvm::IRBuilder<>& b, const ProductOperands& operands);
void EmitVectorProduct(llvm::IRBuilder<>& b, const Target& target, const ProductOperands& operands);

}  // namespace tokamak::cpu
