// The gradient divides 0 by x where x is 0.
// RUN: lint --target h200 --rules where-nan
// OUT: lint.where-nan
// OUT: model.py:2
// OUT: the gradient is NaN where the condition of jnp.where is false
//     def f(x):
//         return jax.grad(lambda x: jnp.sum(jnp.where(x > 0, jnp.log(x), 0.0)))(x)
#loc = loc(unknown)
#loc1 = loc("x")
module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4096xf32> loc("x")) -> (tensor<4096xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc(#loc14)
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4096xf32> loc(#loc15)
    %1 = stablehlo.compare GT, %arg0, %0, FLOAT : (tensor<4096xf32>, tensor<4096xf32>) -> tensor<4096xi1> loc(#loc15)
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32> loc(#loc14)
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4096xf32> loc(#loc16)
    %3 = call @_where(%1, %2) : (tensor<4096xi1>, tensor<4096xf32>) -> tensor<4096xf32> loc(#loc17)
    %4 = stablehlo.divide %3, %arg0 : tensor<4096xf32> loc(#loc18)
    return %4 : tensor<4096xf32> loc(#loc14)
  } loc(#loc)
  func.func private @_where(%arg0: tensor<4096xi1> loc(unknown), %arg1: tensor<4096xf32> loc(unknown)) -> tensor<4096xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc(#loc)
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4096xf32> loc(#loc7)
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<4096xi1>, tensor<4096xf32> loc(#loc8)
    return %1 : tensor<4096xf32> loc(#loc)
  } loc(#loc20)
} loc(#loc)
#loc2 = loc("main.py":297:17 to :52)
#loc3 = loc("model.py":2:48 to :53)
#loc4 = loc("model.py":2:30 to :72)
#loc5 = loc("model.py":2:38 to :71)
#loc6 = loc("model.py":2:55 to :65)
#loc7 = loc("broadcast_in_dim")
#loc8 = loc("select_n")
#loc9 = loc("lower"(#loc2))
#loc10 = loc("f.<locals>.<lambda>"(#loc3))
#loc11 = loc("f.<locals>.<lambda>"(#loc4))
#loc12 = loc("f.<locals>.<lambda>"(#loc5))
#loc13 = loc("f.<locals>.<lambda>"(#loc6))
#loc14 = loc("jit(f)"(#loc9))
#loc15 = loc("jit(f)/jvp()/gt"(#loc10))
#loc16 = loc("jit(f)/transpose(jvp())/broadcast_in_dim"(#loc11))
#loc17 = loc("jit(f)/transpose(jvp(jit(_where)))"(#loc12))
#loc18 = loc("jit(f)/transpose(jvp())/div"(#loc13))
#loc19 = loc("jit(f)/transpose(jvp())/jit"(#loc12))
#loc20 = loc("jit:"(#loc19))
