// One duplicate among many attributes.
// RUN: check
// ERROR: TK1104 at 4:153
module attributes {a = 1, b = 1, c = 1, d = 1, e = 1, f = 1, g = 1, h = 1, i = 1, j = 1, k = 1, l = 1, m = 1, n = 1, o = 1, p = 1, q = 1, r = 1, s = 1, c = 1} {}
