// One device sends to a channel that is never read, the other waits on another one: an error, not a hang.
// RUN: run
module {
  func.func @gives(%x: tensor<i32>, %token: !stablehlo.token) -> !stablehlo.token {
    %0 = "stablehlo.send"(%x, %token) {channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>, is_host_transfer = true} : (tensor<i32>, !stablehlo.token) -> !stablehlo.token
    return %0 : !stablehlo.token
  }
  func.func @takes(%token: !stablehlo.token) -> (tensor<i32>, !stablehlo.token) {
    %0:2 = "stablehlo.recv"(%token) {channel_handle = #stablehlo.channel_handle<handle = 2, type = 3>, is_host_transfer = true} : (!stablehlo.token) -> (tensor<i32>, !stablehlo.token)
    return %0#0, %0#1 : tensor<i32>, !stablehlo.token
  }
  func.func @main() {
    %x = stablehlo.constant dense<1> : tensor<i32>
    %token = stablehlo.after_all : !stablehlo.token
    %0:3 = "interpreter.run_parallel"(%x, %token, %token) {programs = [[@gives], [@takes]]} : (tensor<i32>, !stablehlo.token, !stablehlo.token) -> (!stablehlo.token, tensor<i32>, !stablehlo.token)
    func.return
  }
}
// ERROR: TK5005 at 9:12
