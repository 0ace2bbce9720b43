// An unnamed instruction is pinned by the name that explain shows, not by its name before the passes.
// RUN: explain --no-compare
// KERNELS: 1
// OUT: tanh.1, exponential.2, tanh.3
// RUN: explain --no-compare --never-fuse=tanh.1
// KERNELS: 2
// OUT: loop     tanh_1  1 ops
// OUT: loop     tanh_3  2 ops
func.func public @main(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = stablehlo.tanh %x : tensor<64xf32>
  %1 = stablehlo.tanh %0 : tensor<64xf32>
  %2 = stablehlo.tanh %x : tensor<64xf32>
  %3 = stablehlo.exponential %2 : tensor<64xf32>
  %4 = stablehlo.tanh %3 : tensor<64xf32>
  return %4 : tensor<64xf32>
}
