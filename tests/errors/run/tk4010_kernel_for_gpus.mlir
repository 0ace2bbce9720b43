// A custom kernel with a CUDA source only, on a CPU.
// RUN: run --seed=1
// ERROR: TK4010 at 5:8
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = stablehlo.custom_call @tokamak.kernel(%x) {api_version = 4 : i32, backend_config = {kernel = "{\22name\22: \22k\22, \22inputs\22: [\22x\22], \22outputs\22: [\22out\22], \22cuda\22: \22int i;\22}"}} : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
