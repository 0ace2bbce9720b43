// Constants whose bytes are at the end of the file; i1 takes a byte or a bit per element.
// RUN: run
func.func @main() -> (tensor<2xf32>, tensor<3xi1>, tensor<9xi1>) {
  %0 = stablehlo.constant dense_resource<floats> : tensor<2xf32>
  %1 = stablehlo.constant dense_resource<bytes> : tensor<3xi1>
  %2 = stablehlo.constant dense_resource<bits> : tensor<9xi1>
  return %0, %1, %2 : tensor<2xf32>, tensor<3xi1>, tensor<9xi1>
}
{-#
  dialect_resources: {
    builtin: {
      floats: "0x040000000000803F00000040",
      bytes: "0x01000000010001",
      bits: "0x010000000501"
    }
  }
#-}
// VALUES: out_0: f32[2] {1, 2}
// VALUES: out_1: pred[3] {true, false, true}
// VALUES: out_2: pred[9] {true, false, true, false, false, false, false, false, true}
