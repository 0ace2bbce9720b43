// Kept: integers that are not quantized numbers.
// RUN: opt --target host --passes=expand-quantized
// ACCEPTED: none
func.func @main(%x: tensor<3xi8>, %y: tensor<3xi8>) -> tensor<3xi8> {
  %a = stablehlo.add %x, %y : tensor<3xi8>
  return %a : tensor<3xi8>
}
