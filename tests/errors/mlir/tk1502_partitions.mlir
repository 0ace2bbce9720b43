// A program runs on one partition at least.
// RUN: check
// ERROR: TK1502 at 4:19
module attributes {mhlo.num_partitions = 0 : i32} {
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    return %x : tensor<2xf32>
  }
}
