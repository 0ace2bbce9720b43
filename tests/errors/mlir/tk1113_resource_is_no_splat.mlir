// A resource contains every element: a single one is not a splat, as it is in dense<"0x...">.
// RUN: check
func.func @main() -> tensor<2xf32> {
  %0 = stablehlo.constant dense_resource<r> : tensor<2xf32>
  return %0 : tensor<2xf32>
}
{-#
  dialect_resources: {
    builtin: {
      r: "0x040000000000803F"
    }
  }
#-}
// ERROR: TK1113 at 4:42
