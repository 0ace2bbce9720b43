// The same in StableHLO.
// RUN: check
// ERROR: TK2403 at 5:8
func.func @main(%x: tensor<64x128xf32>, %w: tensor<256x512xf32>) -> tensor<64x512xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x128xf32>, tensor<256x512xf32>) -> tensor<64x512xf32>
  return %0 : tensor<64x512xf32>
}
