// The upper half of the product: of signed and of unsigned numbers, of 4 to 64 bits.
// RUN: run
func.func public @main() {
  %x = stablehlo.constant dense<[2147483647, -2147483648, -1, 65536]> : tensor<4xi32>
  %y = stablehlo.constant dense<[2, 2, 1, 65536]> : tensor<4xi32>
  %r = chlo.mulhi %x, %y : tensor<4xi32>, tensor<4xi32> -> tensor<4xi32>
  check.expect_eq_const %r, dense<[0, -1, -1, 1]> : tensor<4xi32>
  %a = stablehlo.constant dense<[4294967295, 3]> : tensor<2xui32>
  %b = "chlo.mulhi"(%a, %a) : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xui32>
  check.expect_eq_const %b, dense<[4294967294, 0]> : tensor<2xui32>
  %c = stablehlo.constant dense<[-128, 127]> : tensor<2xi8>
  %d = "chlo.mulhi"(%c, %c) : (tensor<2xi8>, tensor<2xi8>) -> tensor<2xi8>
  check.expect_eq_const %d, dense<[64, 63]> : tensor<2xi8>
  %e = stablehlo.constant dense<[-9223372036854775808, -3]> : tensor<2xi64>
  %f = "chlo.mulhi"(%e, %e) : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  check.expect_eq_const %f, dense<[4611686018427387904, 0]> : tensor<2xi64>
  %g = stablehlo.constant dense<[15, 7]> : tensor<2xui4>
  %h = "chlo.mulhi"(%g, %g) : (tensor<2xui4>, tensor<2xui4>) -> tensor<2xui4>
  check.expect_eq_const %h, dense<[14, 3]> : tensor<2xui4>
  %i = stablehlo.constant dense<[-8, 7]> : tensor<2xi4>
  %j = stablehlo.constant dense<[7, 7]> : tensor<2xi4>
  %k = "chlo.mulhi"(%i, %j) : (tensor<2xi4>, tensor<2xi4>) -> tensor<2xi4>
  check.expect_eq_const %k, dense<[-4, 3]> : tensor<2xi4>
  return
}
