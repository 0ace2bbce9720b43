// A bit of an integer is an i1, lowest first; elements of eight and of four bits, and reals.
// RUN: run
// VALUES: out_0: u8[2] {141, 255}
// VALUES: out_1: pred[2,8] {true, false, true, true, false, false, false, true, false, true, true, true, true, true, true, true}
// VALUES: out_2: s4[2] {-3, 7}
// VALUES: out_3: pred[2,4] {true, false, true, false, true, true, true, true}
// VALUES: out_4: f16[] {1}
// VALUES: out_5: pred[8] {true, false, true, true, false, false, false, true}
// VALUES: out_6: u64[] {9223372036854775809}
// RUN: run --strict --hoist
// VALUES: out_0: u8[2] {141, 255}
// VALUES: out_1: pred[2,8] {true, false, true, true, false, false, false, true, false, true, true, true, true, true, true, true}
// VALUES: out_2: s4[2] {-3, 7}
// VALUES: out_3: pred[2,4] {true, false, true, false, true, true, true, true}
// VALUES: out_4: f16[] {1}
// VALUES: out_5: pred[8] {true, false, true, true, false, false, false, true}
// VALUES: out_6: u64[] {9223372036854775809}
module {
  func.func @main() -> (tensor<2xui8>, tensor<2x8xi1>, tensor<2xi4>, tensor<2x4xi1>, tensor<f16>, tensor<8xi1>, tensor<ui64>) {
    %a = stablehlo.constant dense<[[true, false, true, true, false, false, false, true], [true, true, true, true, true, true, true, true]]> : tensor<2x8xi1>
    %b = stablehlo.bitcast_convert %a : (tensor<2x8xi1>) -> tensor<2xui8>
    %c = stablehlo.constant dense<[-115, -2]> : tensor<2xi8>
    %d = stablehlo.bitcast_convert %c : (tensor<2xi8>) -> tensor<2x8xi1>
    %e = stablehlo.constant dense<[[true, false, true, true], [true, true, true, false]]> : tensor<2x4xi1>
    %f = stablehlo.bitcast_convert %e : (tensor<2x4xi1>) -> tensor<2xi4>
    %g = stablehlo.constant dense<[5, -1]> : tensor<2xi4>
    %h = stablehlo.bitcast_convert %g : (tensor<2xi4>) -> tensor<2x4xi1>
    %i = stablehlo.constant dense<[false, false, false, false, false, false, false, false, false, false, true, true, true, true, false, false]> : tensor<16xi1>
    %j = stablehlo.bitcast_convert %i : (tensor<16xi1>) -> tensor<f16>
    %k = stablehlo.constant dense<[true, false, true, true, false, false, false, true]> : tensor<8xi1>
    %l = stablehlo.bitcast_convert %k : (tensor<8xi1>) -> tensor<8xi1>
    %m = stablehlo.iota dim = 0 : tensor<64xi32>
    %n = stablehlo.constant dense<63> : tensor<64xi32>
    %o = stablehlo.remainder %m, %n : tensor<64xi32>
    %p = stablehlo.constant dense<0> : tensor<64xi32>
    %q = stablehlo.compare EQ, %o, %p : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
    %r = stablehlo.bitcast_convert %q : (tensor<64xi1>) -> tensor<ui64>
    return %b, %d, %f, %h, %j, %l, %r : tensor<2xui8>, tensor<2x8xi1>, tensor<2xi4>, tensor<2x4xi1>, tensor<f16>, tensor<8xi1>, tensor<ui64>
  }
}
