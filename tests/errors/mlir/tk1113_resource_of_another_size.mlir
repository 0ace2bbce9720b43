// Five bytes after the alignment, but two f32 need eight.
// RUN: check
// ERROR: TK1113 at 5:42
func.func @main() -> tensor<2xf32> {
  %0 = stablehlo.constant dense_resource<weights> : tensor<2xf32>
  return %0 : tensor<2xf32>
}
{-#
  dialect_resources: { builtin: { weights: "0x040000000000803F00" } }
#-}
