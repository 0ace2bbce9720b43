// Result accuracies of all three modes; an omitted field is 0.
// RUN: convert --to hlo
// AFTER:
// HloModule m
// ENTRY main {
//   x = f32[3] parameter(0)
//   a = f32[3] exponential(x), result_accuracy={mode=highest}
//   %b = f32[3] sine(a), result_accuracy={tolerance={atol=0.001,rtol=2e-04,ulps=3}}
//   c = f32[3] cosine(%b), result_accuracy={tolerance={atol=0,rtol=0,ulps=3}}
//   ROOT d = f32[3] tanh(c)
// }
// RUN: check --round-trip
module @m {
  func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
    %a = stablehlo.exponential %x {result_accuracy = #stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<HIGHEST>>} : tensor<3xf32>
    %b = stablehlo.sine %a {result_accuracy = #stablehlo.result_accuracy<atol = 1.0e-3, rtol = 2.0e-4, ulps = 3, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<3xf32>
    %c = stablehlo.cosine %b {result_accuracy = #stablehlo.result_accuracy<ulps = 3, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<3xf32>
    %d = stablehlo.tanh %c {result_accuracy = #stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<DEFAULT>>} : tensor<3xf32>
    return %d : tensor<3xf32>
  }
}
