// Ops must be inside functions.
// RUN: check
// ERROR: TK1510 at 5:8
module {
  %0 = stablehlo.constant dense<1.0> : tensor<f32>
}
