// A module in a module has no meaning here.
// RUN: check
// ERROR: TK1507 at 5:3
module {
  module {
  }
}
