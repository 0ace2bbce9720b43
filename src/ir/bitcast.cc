#include "ir/bitcast.h"

#include "ir/element_type.h"

namespace tokamak {
namespace {

bool IsOfBytes(const Shape& pred, const Shape& other) {
  if (pred.rank() <= other.rank()) return true;
  int bits = InfoOf(other.type()).bits;
  return bits >= 8 && pred.dims().back() == bits / 8;
}

}  // namespace

BitcastWidths WidthsOfBitcast(const Shape& from, const Shape& to) {
  BitcastWidths widths{InfoOf(from.type()).bits, InfoOf(to.type()).bits};
  bool from_pred = from.type() == ElementType::kPred, to_pred = to.type() == ElementType::kPred;
  if (from_pred && !to_pred && IsOfBytes(from, to)) widths.from = 8;
  if (to_pred && !from_pred && IsOfBytes(to, from)) widths.to = 8;
  return widths;
}

}  // namespace tokamak
