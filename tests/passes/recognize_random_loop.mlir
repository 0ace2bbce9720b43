// Threefry as a loop of five times four rounds, with alternating keys and rotations, in a function or inlined.
// RUN: opt --passes=recognize-random,inline,dce
// OUT: threefry2x32(
// RUN: opt --passes=recognize-random,inline,flatten-tuples,(simplify,dce)*,order
// SAME-AS: recognize_random_loop_inlined.hlo
// RUN: opt --passes=inline,flatten-tuples,(simplify,fold-constants,cse,dce)*,recognize-random,(simplify,dce)*,order
// SAME-AS: recognize_random_loop_inlined.hlo
// RUN: opt
// SAME-AS: recognize_random_loop_inlined.hlo
func.func public @main(%k0: tensor<ui32>, %k1: tensor<ui32>, %x0: tensor<3xui32>, %x1: tensor<3xui32>) -> (tensor<3xui32>, tensor<3xui32>) {
  %0:2 = call @draw(%k0, %k1, %x0, %x1) : (tensor<ui32>, tensor<ui32>, tensor<3xui32>, tensor<3xui32>) -> (tensor<3xui32>, tensor<3xui32>)
  return %0#0, %0#1 : tensor<3xui32>, tensor<3xui32>
}
func.func private @draw(%k0: tensor<ui32>, %k1: tensor<ui32>, %x0: tensor<3xui32>, %x1: tensor<3xui32>) -> (tensor<3xui32>, tensor<3xui32>) {
  %even = stablehlo.constant dense<[13, 15, 26, 6]> : tensor<4xui32>
  %odd = stablehlo.constant dense<[17, 29, 16, 24]> : tensor<4xui32>
  %parity = stablehlo.constant dense<466688986> : tensor<ui32>
  %k01 = stablehlo.xor %k0, %k1 : tensor<ui32>
  %k2 = stablehlo.xor %k01, %parity : tensor<ui32>
  %b0 = stablehlo.broadcast_in_dim %k0, dims = [] : (tensor<ui32>) -> tensor<3xui32>
  %b1 = stablehlo.broadcast_in_dim %k1, dims = [] : (tensor<ui32>) -> tensor<3xui32>
  %v0 = stablehlo.add %x0, %b0 : tensor<3xui32>
  %v1 = stablehlo.add %x1, %b1 : tensor<3xui32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:8 = stablehlo.while(%i = %zero, %a = %v0, %b = %v1, %p = %k1, %q = %k2, %o = %k0, %d = %even, %e = %odd) : tensor<i32>, tensor<3xui32>, tensor<3xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>
  cond {
    %n = stablehlo.constant dense<5> : tensor<i32>
    %c = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    %32 = stablehlo.constant dense<32> : tensor<ui32>
    %s0 = stablehlo.slice %d [0:1] : (tensor<4xui32>) -> tensor<1xui32>
    %l0 = stablehlo.reshape %s0 : (tensor<1xui32>) -> tensor<ui32>
    %m0 = stablehlo.subtract %32, %l0 : tensor<ui32>
    %lb0 = stablehlo.broadcast_in_dim %l0, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %mb0 = stablehlo.broadcast_in_dim %m0, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %a0 = stablehlo.add %a, %b : tensor<3xui32>
    %h0 = stablehlo.shift_left %b, %lb0 : tensor<3xui32>
    %g0 = stablehlo.shift_right_logical %b, %mb0 : tensor<3xui32>
    %f0 = stablehlo.or %h0, %g0 : tensor<3xui32>
    %y0 = stablehlo.xor %a0, %f0 : tensor<3xui32>
    %s1 = stablehlo.slice %d [1:2] : (tensor<4xui32>) -> tensor<1xui32>
    %l1 = stablehlo.reshape %s1 : (tensor<1xui32>) -> tensor<ui32>
    %m1 = stablehlo.subtract %32, %l1 : tensor<ui32>
    %lb1 = stablehlo.broadcast_in_dim %l1, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %mb1 = stablehlo.broadcast_in_dim %m1, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %a1 = stablehlo.add %a0, %y0 : tensor<3xui32>
    %h1 = stablehlo.shift_left %y0, %lb1 : tensor<3xui32>
    %g1 = stablehlo.shift_right_logical %y0, %mb1 : tensor<3xui32>
    %f1 = stablehlo.or %h1, %g1 : tensor<3xui32>
    %y1 = stablehlo.xor %a1, %f1 : tensor<3xui32>
    %s2 = stablehlo.slice %d [2:3] : (tensor<4xui32>) -> tensor<1xui32>
    %l2 = stablehlo.reshape %s2 : (tensor<1xui32>) -> tensor<ui32>
    %m2 = stablehlo.subtract %32, %l2 : tensor<ui32>
    %lb2 = stablehlo.broadcast_in_dim %l2, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %mb2 = stablehlo.broadcast_in_dim %m2, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %a2 = stablehlo.add %a1, %y1 : tensor<3xui32>
    %h2 = stablehlo.shift_left %y1, %lb2 : tensor<3xui32>
    %g2 = stablehlo.shift_right_logical %y1, %mb2 : tensor<3xui32>
    %f2 = stablehlo.or %h2, %g2 : tensor<3xui32>
    %y2 = stablehlo.xor %a2, %f2 : tensor<3xui32>
    %s3 = stablehlo.slice %d [3:4] : (tensor<4xui32>) -> tensor<1xui32>
    %l3 = stablehlo.reshape %s3 : (tensor<1xui32>) -> tensor<ui32>
    %m3 = stablehlo.subtract %32, %l3 : tensor<ui32>
    %lb3 = stablehlo.broadcast_in_dim %l3, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %mb3 = stablehlo.broadcast_in_dim %m3, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %a3 = stablehlo.add %a2, %y2 : tensor<3xui32>
    %h3 = stablehlo.shift_left %y2, %lb3 : tensor<3xui32>
    %g3 = stablehlo.shift_right_logical %y2, %mb3 : tensor<3xui32>
    %f3 = stablehlo.or %h3, %g3 : tensor<3xui32>
    %y3 = stablehlo.xor %a3, %f3 : tensor<3xui32>
    %pb = stablehlo.broadcast_in_dim %p, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %qb = stablehlo.broadcast_in_dim %q, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %ib = stablehlo.convert %next : (tensor<i32>) -> tensor<ui32>
    %ic = stablehlo.broadcast_in_dim %ib, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %na = stablehlo.add %a3, %pb : tensor<3xui32>
    %nb = stablehlo.add %y3, %qb : tensor<3xui32>
    %nc = stablehlo.add %nb, %ic : tensor<3xui32>
    stablehlo.return %next, %na, %nc, %q, %o, %p, %e, %d : tensor<i32>, tensor<3xui32>, tensor<3xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>
  }
  return %r#1, %r#2 : tensor<3xui32>, tensor<3xui32>
}
