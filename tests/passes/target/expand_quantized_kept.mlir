// Kept: integers that are no quantized numbers.
// RUN: opt --target host --passes=expand-quantized
// TAKEN: none
func.func @main(%x: tensor<3xi8>, %y: tensor<3xi8>) -> tensor<3xi8> {
  %a = stablehlo.add %x, %y : tensor<3xi8>
  return %a : tensor<3xi8>
}
