// A line that ends in the mark splits, whatever precedes it; an empty section is a program too.
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
