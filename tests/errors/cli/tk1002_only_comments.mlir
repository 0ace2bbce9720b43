// Comments are no program: what this file holds is nothing else.
// RUN: check
// ERROR: TK1002 at 1:1
