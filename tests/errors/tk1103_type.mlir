func.func @main(%x: tensor<2xf33>) {
  return
}
// A type that does not exist.
// RUN: check
// ERROR: TK1103 at 0:0
