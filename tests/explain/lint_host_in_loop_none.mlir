// A callback after the loop.
// RUN: lint --target h200 --rules host-in-loop
// OUT: no lints
//     def f(x):
//         c = jax.lax.fori_loop(0, 100, lambda i, c: jnp.sin(c), x)
//         jax.debug.callback(print, c[0])
//         return c
#loc = loc(unknown)
#loc1 = loc("x")
module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @maximal_mesh_0 = <[], device_ids=[0]> {stablehlo.mesh = {axes = [], device_ids = dense<0> : tensor<1xi64>}} loc(#loc)
  func.func public @main(%arg0: tensor<64xf32> loc("x")) -> (tensor<64xf32> {jax.result_info = "result"}) {
    %c = stablehlo.constant dense<0> : tensor<i32> loc(#loc12)
    %0:2 = stablehlo.while(%iterArg = %c, %iterArg_0 = %arg0) : tensor<i32>, tensor<64xf32>
    cond {
      %c_1 = stablehlo.constant dense<100> : tensor<i32> loc(#loc20)
      %3 = stablehlo.compare LT, %iterArg, %c_1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1> loc(#loc24)
      stablehlo.return %3 : tensor<i1> loc(#loc20)
    } do {
      %3 = func.call @closed_call(%iterArg_0) : (tensor<64xf32>) -> tensor<64xf32> loc(#loc25)
      %c_1 = stablehlo.constant dense<1> : tensor<i32> loc(#loc20)
      %4 = stablehlo.add %iterArg, %c_1 : tensor<i32> loc(#loc26)
      stablehlo.return %4, %3 : tensor<i32>, tensor<64xf32> loc(#loc20)
    } loc(#loc20)
    %1 = stablehlo.slice %0#1 [0:1] : (tensor<64xf32>) -> tensor<1xf32> loc(#loc14)
    %2 = stablehlo.reshape %1 : (tensor<1xf32>) -> tensor<f32> loc(#loc15)
    stablehlo.custom_call @xla_ffi_python_cpu_callback(%2) {backend_config = "", has_side_effect = true, mhlo.backend_config = {index = 0 : ui64}, operand_layouts = [dense<> : tensor<0xindex>], result_layouts = [], sdy.sharding = #sdy.sharding_per_value<[<@maximal_mesh_0, []>]>} : (tensor<f32>) -> () loc(#loc22)
    return %0#1 : tensor<64xf32> loc(#loc17)
  } loc(#loc)
  func.func private @closed_call(%arg0: tensor<64xf32> loc(unknown)) -> tensor<64xf32> {
    %0 = stablehlo.sine %arg0 : tensor<64xf32> loc(#loc19)
    return %0 : tensor<64xf32> loc(#loc)
  } loc(#loc23)
} loc(#loc)
#loc2 = loc("model.py":2:8 to :61)
#loc3 = loc("model.py":3:30 to :34)
#loc4 = loc("model.py":3:4 to :35)
#loc5 = loc("main.py":297:17 to :52)
#loc6 = loc("model.py":2:47 to :57)
#loc7 = loc("f"(#loc2))
#loc8 = loc("f"(#loc3))
#loc9 = loc("f"(#loc4))
#loc10 = loc("lower"(#loc5))
#loc11 = loc("f.<locals>.<lambda>"(#loc6))
#loc12 = loc("jit(f)/scan"(#loc7))
#loc13 = loc(callsite(#loc7 at #loc7))
#loc14 = loc("jit(f)/slice"(#loc8))
#loc15 = loc("jit(f)/squeeze"(#loc8))
#loc16 = loc("jit(f)/debug_callback"(#loc9))
#loc17 = loc("jit(f)"(#loc10))
#loc18 = loc("while/body/closed_call"(#loc7))
#loc19 = loc("sin"(#loc11))
#loc20 = loc("jit(f)/while"(#loc13))
#loc21 = loc(callsite(#loc13 at #loc7))
#loc22 = loc("debug_callback:"(#loc16))
#loc23 = loc("closed_call:"(#loc18))
#loc24 = loc("jit(f)/while/cond/lt"(#loc21))
#loc25 = loc("jit(f)/while/body/closed_call"(#loc21))
#loc26 = loc("jit(f)/while/body/add"(#loc21))
