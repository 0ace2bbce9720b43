// Double-double arithmetic: an unevaluated sum of two f64 with twice the precision.

#include "kernel/formulas/functions.h"

namespace tokamak::formulas {

Double TimesExactly(Scalar x, Scalar y) {
  Scalar product = x * y;
  return {product, Fma(x, y, -product)};
}
Double AddExactly(Scalar x, Scalar y) {
  Scalar sum = x + y, part = sum - x;
  return {sum, (x - (sum - part)) + (y - part)};
}
Double Renormalized(Scalar high, Scalar low) {
  Scalar sum = high + low;
  return {sum, low - (sum - high)};
}
Double Times(Double x, Double y) {
  Double product = TimesExactly(x.high, y.high);
  product.low = product.low + Fma(x.high, y.low, x.low * y.high);
  return Renormalized(product.high, product.low);
}
Double Plus(Double x, Double y) {
  Double sum = AddExactly(x.high, y.high);
  return Renormalized(sum.high, sum.low + (x.low + y.low));
}
Double PlusOrdered(Double x, Double y) {
  Double sum = Renormalized(x.high, y.high);
  return Renormalized(sum.high, sum.low + (x.low + y.low));
}

}  // namespace tokamak::formulas
