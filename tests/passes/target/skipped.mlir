// Any target pass can be skipped: its op is then computed in another way.
// RUN: run --backend cpu --skip expand-quantized,split-reductions,expand-ops
// VALUES: out_0: f32[3] {0, -8, 8}
// RUN: run --backend sim-cuda --skip expand-quantized --skip split-reductions
// VALUES: out_0: f32[3] {0, -8, 8}
// RUN: run --backend cpu --skip no-such-pass
// ERROR: TK3001
func.func @main() -> tensor<3xf32> {
  %x = stablehlo.constant dense<[1.0, -3.2, 7.9]> : tensor<3xf32>
  %y = stablehlo.constant dense<[2.1, -4.9, 0x7F800000]> : tensor<3xf32>
  %a = stablehlo.uniform_quantize %x : (tensor<3xf32>) -> tensor<3x!quant.uniform<i8:f32, 2.0:-4>>
  %b = stablehlo.uniform_quantize %y : (tensor<3xf32>) -> tensor<3x!quant.uniform<i8<-8:7>:f32, 0.5:3>>
  %c = stablehlo.add %a, %b : (tensor<3x!quant.uniform<i8:f32, 2.0:-4>>, tensor<3x!quant.uniform<i8<-8:7>:f32, 0.5:3>>) -> tensor<3x!quant.uniform<i8:f32, 4.0:1>>
  %d = stablehlo.uniform_dequantize %c : (tensor<3x!quant.uniform<i8:f32, 4.0:1>>) -> tensor<3xf32>
  return %d : tensor<3xf32>
}
