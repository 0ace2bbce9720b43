// A callback in each iteration.
// RUN: lint --target h200 --rules host-in-loop
// OUT: lint.host-in-loop
// OUT: model.py:3
// OUT: every iteration waits for the host, which runs custom-call
//     def f(x):
//         def body(i, c):
//             jax.debug.callback(print, c[0])
//             return jnp.sin(c)
//         return jax.lax.fori_loop(0, 100, body, x)
#loc = loc(unknown)
#loc1 = loc("x")
module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @maximal_mesh_0 = <[], device_ids=[0]> {stablehlo.mesh = {axes = [], device_ids = dense<0> : tensor<1xi64>}} loc(#loc)
  func.func public @main(%arg0: tensor<64xf32> loc("x")) -> (tensor<64xf32> {jax.result_info = "result"}) {
    %c = stablehlo.constant dense<0> : tensor<i32> loc(#loc12)
    %0:2 = stablehlo.while(%iterArg = %c, %iterArg_0 = %arg0) : tensor<i32>, tensor<64xf32>
    cond {
      %c_1 = stablehlo.constant dense<100> : tensor<i32> loc(#loc20)
      %1 = stablehlo.compare LT, %iterArg, %c_1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1> loc(#loc24)
      stablehlo.return %1 : tensor<i1> loc(#loc20)
    } do {
      %1 = func.call @closed_call(%iterArg_0) : (tensor<64xf32>) -> tensor<64xf32> loc(#loc25)
      %c_1 = stablehlo.constant dense<1> : tensor<i32> loc(#loc20)
      %2 = stablehlo.add %iterArg, %c_1 : tensor<i32> loc(#loc26)
      stablehlo.return %2, %1 : tensor<i32>, tensor<64xf32> loc(#loc20)
    } loc(#loc20)
    return %0#1 : tensor<64xf32> loc(#loc14)
  } loc(#loc)
  func.func private @closed_call(%arg0: tensor<64xf32> loc(unknown)) -> tensor<64xf32> {
    %0 = stablehlo.slice %arg0 [0:1] : (tensor<64xf32>) -> tensor<1xf32> loc(#loc16)
    %1 = stablehlo.reshape %0 : (tensor<1xf32>) -> tensor<f32> loc(#loc17)
    stablehlo.custom_call @xla_ffi_python_cpu_callback(%1) {backend_config = "", has_side_effect = true, mhlo.backend_config = {index = 0 : ui64}, operand_layouts = [dense<> : tensor<0xindex>], result_layouts = [], sdy.sharding = #sdy.sharding_per_value<[<@maximal_mesh_0, []>]>} : (tensor<f32>) -> () loc(#loc23)
    %2 = stablehlo.sine %arg0 : tensor<64xf32> loc(#loc19)
    return %2 : tensor<64xf32> loc(#loc)
  } loc(#loc22)
} loc(#loc)
#loc2 = loc("model.py":5:11 to :45)
#loc3 = loc("main.py":297:17 to :52)
#loc4 = loc("model.py":3:34 to :38)
#loc5 = loc("model.py":3:8 to :39)
#loc6 = loc("model.py":4:15 to :25)
#loc7 = loc("f"(#loc2))
#loc8 = loc("lower"(#loc3))
#loc9 = loc("f.<locals>.body"(#loc4))
#loc10 = loc("f.<locals>.body"(#loc5))
#loc11 = loc("f.<locals>.body"(#loc6))
#loc12 = loc("jit(f)/scan"(#loc7))
#loc13 = loc(callsite(#loc7 at #loc7))
#loc14 = loc("jit(f)"(#loc8))
#loc15 = loc("while/body/closed_call"(#loc7))
#loc16 = loc("slice"(#loc9))
#loc17 = loc("squeeze"(#loc9))
#loc18 = loc("debug_callback"(#loc10))
#loc19 = loc("sin"(#loc11))
#loc20 = loc("jit(f)/while"(#loc13))
#loc21 = loc(callsite(#loc13 at #loc7))
#loc22 = loc("closed_call:"(#loc15))
#loc23 = loc("debug_callback:"(#loc18))
#loc24 = loc("jit(f)/while/cond/lt"(#loc21))
#loc25 = loc("jit(f)/while/body/closed_call"(#loc21))
#loc26 = loc("jit(f)/while/body/add"(#loc21))
