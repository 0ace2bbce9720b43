// A file of comments only is not a program.
// RUN: check
// ERROR: TK1002 at 1:1
