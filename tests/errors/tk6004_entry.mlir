func.func @f() {
  return
}
func.func @g() {
  return
}
// Two functions and no main.
// RUN: run
// ERROR: TK6004 at 0:0
