// Instructions of an inlined function have the name of its call as a prefix, and its line.
// RUN: opt --passes=inline,dce
// OUT: cosine(
// OUT: op_name="jit(step)/transpose(jvp(jit(part)))/cos"
// OUT: op_name="jit(step)/transpose(jvp(jit(part)))/jit(inner)/sin"
// OUT: op_name="jit(step)/own"
func.func public @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = call @part(%x) : (tensor<4xf32>) -> tensor<4xf32> loc(#call)
  %1 = stablehlo.exponential %0 : tensor<4xf32> loc(#own)
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
func.func private @part(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.cosine %x : tensor<4xf32> loc(#cos)
  %1 = call @inner(%0) : (tensor<4xf32>) -> tensor<4xf32> loc(#inner)
  %2 = stablehlo.negate %1 : tensor<4xf32>
  return %2 : tensor<4xf32>
}
func.func private @inner(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.sine %x : tensor<4xf32> loc(#sin)
  %1 = stablehlo.negate %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}
#file = loc("train.py":7:3)
#call = loc("jit(step)/transpose(jvp(jit(part)))"(#file))
#own = loc("jit(step)/own"(#file))
#cos = loc("cos")
#inner = loc("jit(inner)")
#sin = loc("sin")
