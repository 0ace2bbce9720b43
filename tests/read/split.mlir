// A line that ends in the mark splits, whatever stands before it; an empty piece is a program too.
// RUN: check
// OUT: program 3 of 3
func.func @a() {
  return
}

// // -----

// Nothing here.

// -----

func.func @b() {
  return
}
