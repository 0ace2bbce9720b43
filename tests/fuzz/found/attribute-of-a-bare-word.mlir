func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.custom_call"(%x) {call_target_name = "f", mhlo.thing = stablehlo.torch_index_selecta} : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
