// The entry is ambiguous.
// RUN: run
// ERROR: TK6004
// ERR: run: the program has no function main, and 2 public functions: f, g
// ERR: note: rename the function to run to main, or make the others private
func.func @f() -> tensor<f32> {
  %0 = stablehlo.constant dense<1.0> : tensor<f32>
  return %0 : tensor<f32>
}
func.func @g() -> tensor<f32> {
  %0 = stablehlo.constant dense<1.0> : tensor<f32>
  return %0 : tensor<f32>
}
