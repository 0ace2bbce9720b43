// A bf16 array is stored as f32 and read in each iteration.
// RUN: lint --target h200 --rules upcast
// OUT: lint.upcast
// OUT: model.py:2
// OUT: 4.19 MB of bf16 are stored as f32, f32[1024,1024]
//     def f(x, c):
//         h = x.astype(jnp.float32)
//         def body(c, _):
//             return jnp.tanh(c @ h), None
//         return jax.lax.scan(body, c, None, length=10)[0]
#loc = loc(unknown)
#loc1 = loc("x")
#loc2 = loc("c")
module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<1024x1024xbf16> loc("x"), %arg1: tensor<64x1024xf32> loc("c")) -> (tensor<64x1024xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.convert %arg0 : (tensor<1024x1024xbf16>) -> tensor<1024x1024xf32> loc(#loc13)
    %c = stablehlo.constant dense<0> : tensor<i32> loc(#loc14)
    %1:3 = stablehlo.while(%iterArg = %0, %iterArg_0 = %c, %iterArg_1 = %arg1) : tensor<1024x1024xf32>, tensor<i32>, tensor<64x1024xf32>
    cond {
      %c_2 = stablehlo.constant dense<10> : tensor<i32> loc(#loc20)
      %2 = stablehlo.compare LT, %iterArg_0, %c_2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1> loc(#loc23)
      stablehlo.return %2 : tensor<i1> loc(#loc20)
    } do {
      %2 = func.call @closed_call(%iterArg, %iterArg_1) : (tensor<1024x1024xf32>, tensor<64x1024xf32>) -> tensor<64x1024xf32> loc(#loc24)
      %c_2 = stablehlo.constant dense<1> : tensor<i32> loc(#loc20)
      %3 = stablehlo.add %iterArg_0, %c_2 : tensor<i32> loc(#loc25)
      stablehlo.return %iterArg, %3, %2 : tensor<1024x1024xf32>, tensor<i32>, tensor<64x1024xf32> loc(#loc20)
    } loc(#loc20)
    return %1#2 : tensor<64x1024xf32> loc(#loc16)
  } loc(#loc)
  func.func private @closed_call(%arg0: tensor<1024x1024xf32> loc(unknown), %arg1: tensor<64x1024xf32> loc(unknown)) -> tensor<64x1024xf32> {
    %0 = stablehlo.dot_general %arg1, %arg0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<64x1024xf32>, tensor<1024x1024xf32>) -> tensor<64x1024xf32> loc(#loc18)
    %1 = stablehlo.tanh %0 : tensor<64x1024xf32> loc(#loc19)
    return %1 : tensor<64x1024xf32> loc(#loc)
  } loc(#loc22)
} loc(#loc)
#loc3 = loc("model.py":2:8 to :29)
#loc4 = loc("model.py":5:11 to :49)
#loc5 = loc("main.py":297:17 to :52)
#loc6 = loc("model.py":4:24 to :29)
#loc7 = loc("model.py":4:15 to :30)
#loc8 = loc("f"(#loc3))
#loc9 = loc("f"(#loc4))
#loc10 = loc("lower"(#loc5))
#loc11 = loc("f.<locals>.body"(#loc6))
#loc12 = loc("f.<locals>.body"(#loc7))
#loc13 = loc("jit(f)/convert_element_type"(#loc8))
#loc14 = loc("jit(f)/scan"(#loc9))
#loc15 = loc(callsite(#loc9 at #loc9))
#loc16 = loc("jit(f)"(#loc10))
#loc17 = loc("while/body/closed_call"(#loc9))
#loc18 = loc("dot_general"(#loc11))
#loc19 = loc("tanh"(#loc12))
#loc20 = loc("jit(f)/while"(#loc15))
#loc21 = loc(callsite(#loc15 at #loc9))
#loc22 = loc("closed_call:"(#loc17))
#loc23 = loc("jit(f)/while/cond/lt"(#loc21))
#loc24 = loc("jit(f)/while/body/closed_call"(#loc21))
#loc25 = loc("jit(f)/while/body/add"(#loc21))
