// A chlo op that broadcasts arrays of unknown sizes.
// RUN: check
// ERROR: TK1509 at 5:8
func.func @main(%x: tensor<?xf32>, %y: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %0 = "chlo.broadcast_add"(%x, %y) : (tensor<?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
