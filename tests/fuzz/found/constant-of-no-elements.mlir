func.func @main() -> tensor<2x0xf32> {
  %0 = stablehlo.constant dense<> : tensor<2x0xf32>
  return %0 : tensor<2x0xf32>
}
