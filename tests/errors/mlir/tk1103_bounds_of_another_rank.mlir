// A vector with two bounds.
// RUN: check
// ERROR: TK1103 at 4:35
func.func @main(%x: tensor<?xf32, #stablehlo.bounds<3, 4>>) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}
