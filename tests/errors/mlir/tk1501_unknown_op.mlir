// StableHLO has no such op.
// RUN: check
// ERROR: TK1501 at 5:8
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.frobnicate %x : tensor<2xf32>
  return %0 : tensor<2xf32>
}
