// bitcast and bitcast-convert: the same bits, reinterpreted.

#include "ir/bitcast.h"

#include <cstring>

#include "interp/evaluators.h"
#include "interp/results.h"
#include "interp/strided.h"

namespace tokamak {
namespace {

// Bits of an element in memory, where a pred is a byte.
int BitsInMemory(ElementType type) {
  return type == ElementType::kPred ? 8 : InfoOf(type).bits;
}

// All elements contiguously, the first in the lowest bits.
std::vector<std::byte> Pack(const Value& value, int bits) {
  Literal literal = LiteralFromValue(value);
  int64_t count = value.ElementCount();
  if (bits % 8 == 0 && !literal.is_splat()) {
    return std::vector<std::byte>(literal.data().data(),
                                  literal.data().data() + literal.data().size());
  }
  std::vector<std::byte> packed(static_cast<size_t>((count * bits + 7) / 8));
  if (bits % 8 == 0) {
    size_t width = static_cast<size_t>(bits / 8);
    for (size_t at = 0; at < packed.size(); at += width)
      std::memcpy(packed.data() + at, literal.data().data(), width);
    return packed;
  }
  for (int64_t i = 0; i < count; ++i) {
    uint64_t element = literal.BitsAt(i);
    for (int64_t b = 0; b < bits; ++b) {
      int64_t at = i * bits + b;
      if ((element >> b & 1) != 0)
        packed[static_cast<size_t>(at / 8)] |= static_cast<std::byte>(1 << (at % 8));
    }
  }
  return packed;
}

Result<Value> Unpack(std::vector<std::byte> packed, Shape shape, int bits) {
  if (shape.type() == ElementType::kPred && bits == 8)
    for (std::byte& element : packed) element = std::byte{element != std::byte{0}};
  if (bits % 8 == 0)
    return ValueFromLiteral(Literal::Array(shape, Bytes::FromVector(std::move(packed))));
  int64_t count = shape.ElementCount();
  std::vector<std::byte> elements(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t b = 0; b < bits; ++b) {
      int64_t at = i * bits + b;
      if ((packed[static_cast<size_t>(at / 8)] >> (at % 8) & std::byte{1}) != std::byte{0})
        elements[static_cast<size_t>(i)] |= static_cast<std::byte>(1 << b);
    }
  }
  return ValueFromLiteral(Literal::Array(shape, Bytes::FromVector(std::move(elements))));
}

Result<Value> Reinterpret(const Instr& instr, const Value& value, Shape shape,
                          BitcastWidths widths) {
  if (value.type() == shape.type()) {
    if (value.ElementCount() == shape.ElementCount()) return value.WithShape(std::move(shape));
  } else {
    int64_t have = value.ElementCount() * widths.from;
    int64_t want = shape.ElementCount() * widths.to;
    if (have == want) {
      if (want == 0) {
        return DispatchStorage(shape.type(), [&]<typename T>() -> Result<Value> {
          return Value::Array(shape, std::vector<T>());
        });
      }
      return Unpack(Pack(value, widths.from), std::move(shape), widths.to);
    }
  }
  return RunError(ErrorCode::kBadRunTimeShape, instr,
                  "operand " + ToString(value.shape()) + " and result " + ToString(shape) +
                      " take different numbers of bits");
}

// The permutation that lists an array's dimensions from major to minor.
Dims MajorToMinor(const Shape& shape) {
  Dims order(shape.dims().size());
  const Layout* layout = shape.layout();
  for (size_t i = 0; i < order.size(); ++i) {
    bool written = layout != nullptr && layout->minor_to_major.size() == order.size();
    order[i] = written ? layout->minor_to_major[order.size() - 1 - i] : static_cast<int64_t>(i);
  }
  return order;
}

Value Transposed(const Value& value, const Dims& permutation) {
  return DispatchStorage(value.type(), [&]<typename T>() {
    return Value::Array(Shape::Array(value.type(), Permuted(value.dims(), permutation)),
                        TransposeElements(value.Data<T>(), value.dims(), permutation));
  });
}

bool IsIdentity(const Dims& permutation) {
  for (size_t i = 0; i < permutation.size(); ++i)
    if (permutation[i] != static_cast<int64_t>(i)) return false;
  return true;
}

}  // namespace

Result<Value> EvalBitcastConvert(const Instr& instr, std::span<const Value> operands, Context&) {
  Dims dims = operands[0].dims();
  BitcastWidths widths = WidthsOfBitcast(instr.operand(0)->shape(), instr.shape());
  if (widths.to < widths.from) dims.push_back(widths.from / widths.to);
  if (widths.to > widths.from) dims.pop_back();
  return Reinterpret(instr, operands[0], ResultShape(instr, std::move(dims)), widths);
}

// Layouts determine the order of bytes in memory: the operand's elements are listed in the order of
// its layout, reinterpreted, and read back in the order of the result's layout.
Result<Value> EvalBitcast(const Instr& instr, std::span<const Value> operands, Context&) {
  if (!operands[0].shape().IsArray() || instr.shape().HasDynamicDims()) return operands[0];
  Dims from = MajorToMinor(instr.operand(0)->shape()), to = MajorToMinor(instr.shape());
  Value value = IsIdentity(from) ? operands[0] : Transposed(operands[0], from);
  Shape physical = Shape::Array(instr.shape().type(), Permuted(instr.shape().dims(), to));
  BitcastWidths widths{BitsInMemory(value.type()), BitsInMemory(physical.type())};
  TOK_TRY(Value read, Reinterpret(instr, value, std::move(physical), widths));
  if (!IsIdentity(to)) {
    Dims back(to.size());
    for (size_t i = 0; i < to.size(); ++i)
      back[static_cast<size_t>(to[i])] = static_cast<int64_t>(i);
    read = Transposed(read, back);
  }
  return read.WithShape(ResultShape(instr, instr.shape().dims()));
}

}  // namespace tokamak
