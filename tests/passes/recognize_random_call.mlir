// JAX's custom call for random bits on GPUs is the same op.
// RUN: opt --passes=recognize-random,inline,flatten-tuples,(simplify,dce)*
// ACCEPTED: custom-call.2 -> threefry2x32.6 by random.threefry-call
// OUT: threefry2x32(
func.func public @main(%k: tensor<3xui32>, %x: tensor<3xui32>) -> (tensor<3xui32>, tensor<3xui32>) {
  %0:2 = stablehlo.custom_call @cu_threefry2x32_ffi(%k, %k, %x, %x) {api_version = 4 : i32, backend_config = {}, operand_layouts = [dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>], result_layouts = [dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>]} : (tensor<3xui32>, tensor<3xui32>, tensor<3xui32>, tensor<3xui32>) -> (tensor<3xui32>, tensor<3xui32>)
  return %0#0, %0#1 : tensor<3xui32>, tensor<3xui32>
}
