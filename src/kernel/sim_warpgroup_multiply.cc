// Sums of f8 lose what an H200 loses. Its tensor cores add the products of 32 bytes along the depth
// to a sum as fixed-point numbers of 14 bits. Their exponent is that of the largest of them
// (DeepSeek-V3 Technical Report, arXiv:2412.19437, section 3.5.2; not measured here).

#include <algorithm>
#include <cmath>

#include "ir/element_type.h"
#include "kernel/sim_multiply.h"

namespace tokamak {
namespace {

// Products of f8 in the sum of one instruction (PTX ISA: k32), and the bits that it keeps behind
// the first one of the largest of them.
constexpr size_t kFloat8Depth = 32;
constexpr int kFloat8FractionBits = 13;

float TruncatedTo(float x, float unit) {
  return std::trunc(x / unit) * unit;
}

// sum + the products of x and y, as the tensor cores of an H200 add products of f8.
float AddedFloat8(std::span<const float> x, std::span<const float> y, float sum) {
  float largest = std::abs(sum);
  bool is_finite = std::isfinite(sum);
  std::array<float, kFloat8Depth> products{};
  for (size_t p = 0; p < x.size(); ++p) {
    products[p] = x[p] * y[p];  // exact
    largest = std::max(largest, std::abs(products[p]));
    is_finite = is_finite && std::isfinite(products[p]);
  }
  if (!is_finite) {
    for (float product : products) sum += product;
    return sum;
  }
  if (largest == 0) return sum;
  float unit = std::ldexp(1.0f, std::ilogb(largest) - kFloat8FractionBits);
  sum = TruncatedTo(sum, unit);
  for (float product : products) sum += TruncatedTo(product, unit);  // exact
  if (sum == 0) return sum;
  return TruncatedTo(sum, std::ldexp(1.0f, std::ilogb(sum) - kFloat8FractionBits));
}

ElementType ElementTypeOf(Float8 format) {
  return format == Float8::kE5M2 ? ElementType::kF8E5M2 : ElementType::kF8E4M3FN;
}

class WarpgroupMultiplier {
 public:
  WarpgroupMultiplier(const Kernel& kernel, const WarpgroupMultiply& multiply,
                      std::span<const uint32_t> arrays, SimMemory& memory)
      : kernel_(kernel),
        multiply_(multiply),
        product_(*multiply.product),
        arrays_(arrays),
        memory_(memory),
        types_{kernel.array(product_.lhs).type, kernel.array(product_.rhs).type},
        sum_type_(kernel.array(multiply.to).type) {
    product_.warp_rows = product_.rows / kSimWarpgroupWarps;
    product_.warp_columns = product_.columns;
  }

  bool Run() {
    const MatrixMultiply& product = *multiply_.product;
    bool in_registers = kernel_.array(product.lhs).space == Space::kRegisters;
    Panels lhs{product.lhs, multiply_.lhs_at, product.lhs_panel, product.LhsIsKMajor()},
        rhs{product.rhs, multiply_.rhs_at, product.rhs_panel, product.RhsIsKMajor()};
    return (in_registers ? ReadRegisters() : ReadPanels(lhs, product.rows, lhs_)) &&
           ReadPanels(rhs, product.columns, rhs_) && Accumulate();
  }

 private:
  struct Panels {
    ArrayId array;
    int64_t at, panel;
    bool is_k_major;
  };
  // Lines of `depth` elements: rows of the lhs, columns of the rhs.
  using Lines = std::vector<Bits>;

  static auto Same() {
    return [](int64_t x) { return x; };
  }
  Bits Masked(Bits bits) const { return product_.tf32 ? bits & MatrixMultiply::kTf32Mask : bits; }

  bool ReadPanels(const Panels& panels, int64_t count, Lines& lines) {
    int64_t bytes = BytesOf(types_[0]), width = MatrixMultiply::kPanelBytes / bytes;
    lines.resize(static_cast<size_t>(count * multiply_.depth));
    for (int64_t line = 0; line < count; ++line) {
      for (int64_t p = 0; p < multiply_.depth; ++p) {
        // A row of a panel, and the element of the row.
        int64_t row = panels.is_k_major ? line : p, across = panels.is_k_major ? p : line;
        int64_t index = panels.at + across / width * panels.panel + row * width + across % width;
        index = SwizzledByte(index * bytes) / bytes;
        Bits& bits = lines[static_cast<size_t>(line * multiply_.depth + p)];
        if (!Read(multiply_.of_operands, panels.array, index, bits)) return false;
        bits = Masked(bits);
      }
    }
    return true;
  }

  bool ReadRegisters() {
    MatrixMultiply layout = product_;
    layout.columns = layout.warp_columns = multiply_.depth;
    lhs_.resize(static_cast<size_t>(layout.rows * multiply_.depth));
    for (uint32_t t = 0; t < kSimWarpgroup; ++t) {
      for (int64_t s = 0; s < layout.AccumulatorsPerThread(); ++s) {
        AccumulatorPosition<int64_t> at(layout, int64_t{t}, s, Same());
        Bits& bits = lhs_[static_cast<size_t>(at.row * multiply_.depth + at.column)];
        if (!Read(multiply_.of_threads[t], product_.lhs, multiply_.lhs_at + s, bits)) return false;
        bits = Masked(bits);
      }
    }
    return true;
  }

  bool Accumulate() {
    bool is_float = sum_type_ == ScalarType::kF32;
    std::vector<float> lhs, rhs;
    if (is_float) lhs = Floats(0, lhs_), rhs = Floats(1, rhs_);
    std::vector<int64_t> lhs_integers, rhs_integers;
    if (!is_float) lhs_integers = Integers(0, lhs_), rhs_integers = Integers(1, rhs_);
    for (uint32_t t = 0; t < kSimWarpgroup; ++t) {
      const SimAgent& agent = multiply_.of_threads[t];
      for (int64_t s = 0; s < product_.AccumulatorsPerThread(); ++s) {
        AccumulatorPosition<int64_t> at(product_, int64_t{t}, s, Same());
        Bits sum = 0;
        if (!product_.overwrite && !Read(agent, multiply_.to, multiply_.to_at + s, sum))
          return false;
        auto row = static_cast<size_t>(at.row * multiply_.depth),
             column = static_cast<size_t>(at.column * multiply_.depth);
        sum = is_float ? FloatSum(std::span(lhs).subspan(row), std::span(rhs).subspan(column), sum)
                       : IntegerSum(std::span(lhs_integers).subspan(row),
                                    std::span(rhs_integers).subspan(column), sum);
        if (!memory_.Store(agent, arrays_[static_cast<size_t>(multiply_.to)], multiply_.to_at + s,
                           sum))
          return false;
      }
    }
    return true;
  }

  // Exact: the types of at most 32 bits that accumulate in f32.
  std::vector<float> Floats(size_t operand, const Lines& lines) const {
    std::vector<float> floats;
    floats.reserve(lines.size());
    Float8 format = product_.float8[operand];
    for (Bits bits : lines)
      floats.push_back(static_cast<float>(format == Float8::kNone
                                              ? DoubleOfBits(types_[operand], bits)
                                              : DecodeFloat(ElementTypeOf(format), bits)));
    return floats;
  }
  std::vector<int64_t> Integers(size_t operand, const Lines& lines) const {
    std::vector<int64_t> integers;
    integers.reserve(lines.size());
    for (Bits bits : lines) integers.push_back(IntOfBits(types_[operand], bits));
    return integers;
  }
  Bits FloatSum(std::span<const float> row, std::span<const float> column, Bits bits) const {
    auto sum = static_cast<float>(DoubleOfBits(sum_type_, bits));
    auto depth = static_cast<size_t>(multiply_.depth);
    if (product_.IsFloat8()) {
      for (size_t p = 0; p < depth; p += kFloat8Depth)
        sum = AddedFloat8(row.subspan(p, kFloat8Depth), column.subspan(p, kFloat8Depth), sum);
    } else {
      for (size_t p = 0; p < depth; ++p) sum = std::fma(row[p], column[p], sum);
    }
    return BitsOfDouble(sum_type_, sum);
  }
  // Modulo 2^32.
  Bits IntegerSum(std::span<const int64_t> row, std::span<const int64_t> column, Bits bits) const {
    int64_t sum = IntOfBits(sum_type_, bits);
    for (size_t p = 0; p < static_cast<size_t>(multiply_.depth); ++p) sum += row[p] * column[p];
    return BitsOfInt(sum_type_, static_cast<int32_t>(sum));
  }

  bool Read(const SimAgent& agent, ArrayId array, int64_t index, Bits& bits) {
    return memory_.Read(agent, arrays_[static_cast<size_t>(array)], index, bits);
  }

  const Kernel& kernel_;
  const WarpgroupMultiply& multiply_;
  MatrixMultiply product_;  // with the layout of the accumulators
  std::span<const uint32_t> arrays_;
  SimMemory& memory_;
  std::array<ScalarType, 2> types_;  // of lhs and rhs
  ScalarType sum_type_;
  Lines lhs_, rhs_;
};

}  // namespace

bool MultiplyOfWarpgroup(const Kernel& kernel, const WarpgroupMultiply& multiply,
                         std::span<const uint32_t> arrays, SimMemory& memory) {
  return WarpgroupMultiplier(kernel, multiply, arrays, memory).Run();
}

}  // namespace tokamak
