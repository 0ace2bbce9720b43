// Nested modules are not supported.
// RUN: check
// ERROR: TK1507 at 5:3
module {
  module {
  }
}
