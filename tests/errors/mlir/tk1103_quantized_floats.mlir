// Quantized storage must be an integer type.
// RUN: check
// ERROR: TK1103 at 4:45
func.func @main(%x: tensor<2x!quant.uniform<f32:f32, 0.5>>) {
  return
}
