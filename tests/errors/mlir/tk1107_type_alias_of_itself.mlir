// !t is a tuple of !t.
// RUN: check
// ERROR: TK1107 at 4:12
!t = tuple<!t>
func.func @main(%x: !t) {
  return
}
