// JAX's custom calls for GPUs, and our own spelling of the op: the same words.
// RUN: run
// VALUES: out_0: u32[2] {1797259609, 481924860}
// VALUES: out_1: u32[2] {2579123966, 3137350631}
// VALUES: out_2: u64[2] {7719171245655871230, 2069851515966729191}
func.func public @main() -> (tensor<2xui32>, tensor<2xui32>, tensor<2xui64>) {
  %k = stablehlo.constant dense<[0, 4294967295]> : tensor<2xui32>
  %w:2 = stablehlo.custom_call @cu_threefry2x32_ffi(%k, %k, %k, %k) {api_version = 4 : i32} : (tensor<2xui32>, tensor<2xui32>, tensor<2xui32>, tensor<2xui32>) -> (tensor<2xui32>, tensor<2xui32>)
  %r = "tokamak.threefry2x32"(%k, %k, %k, %k) : (tensor<2xui32>, tensor<2xui32>, tensor<2xui32>, tensor<2xui32>) -> tensor<2xui64>
  return %w#0, %w#1, %r : tensor<2xui32>, tensor<2xui32>, tensor<2xui64>
}
