#include <cmath>

#include "kernel/sim_multiply.h"

namespace tokamak {
namespace {

class WarpgroupMultiplier {
 public:
  WarpgroupMultiplier(const Kernel& kernel, const WarpgroupMultiply& multiply,
                      std::span<const uint32_t> arrays, SimMemory& memory)
      : kernel_(kernel),
        multiply_(multiply),
        product_(*multiply.product),
        arrays_(arrays),
        memory_(memory),
        type_(kernel.array(product_.lhs).type),
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
    int64_t bytes = BytesOf(type_), width = MatrixMultiply::kPanelBytes / bytes;
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
    std::vector<float> lhs = Floats(lhs_), rhs = Floats(rhs_);
    for (uint32_t t = 0; t < kSimWarpgroup; ++t) {
      const SimAgent& agent = multiply_.of_threads[t];
      for (int64_t s = 0; s < product_.AccumulatorsPerThread(); ++s) {
        AccumulatorPosition<int64_t> at(product_, int64_t{t}, s, Same());
        Bits sum = 0;
        if (!product_.overwrite && !Read(agent, multiply_.to, multiply_.to_at + s, sum))
          return false;
        auto row = static_cast<size_t>(at.row * multiply_.depth),
             column = static_cast<size_t>(at.column * multiply_.depth);
        sum = sum_type_ == ScalarType::kF32
                  ? FloatSum(std::span(lhs).subspan(row), std::span(rhs).subspan(column), sum)
                  : AnySum(row, column, sum);
        if (!memory_.Store(agent, arrays_[static_cast<size_t>(multiply_.to)], multiply_.to_at + s,
                           sum))
          return false;
      }
    }
    return true;
  }

  // Exact: the types of at most 32 bits that accumulate in f32.
  std::vector<float> Floats(const Lines& lines) const {
    std::vector<float> floats;
    if (sum_type_ != ScalarType::kF32) return floats;
    floats.reserve(lines.size());
    for (Bits bits : lines) floats.push_back(static_cast<float>(DoubleOfBits(type_, bits)));
    return floats;
  }
  Bits FloatSum(std::span<const float> row, std::span<const float> column, Bits bits) const {
    auto sum = static_cast<float>(DoubleOfBits(sum_type_, bits));
    for (size_t p = 0; p < static_cast<size_t>(multiply_.depth); ++p)
      sum = std::fma(row[p], column[p], sum);
    return BitsOfDouble(sum_type_, sum);
  }
  Bits AnySum(size_t row, size_t column, Bits sum) const {
    for (size_t p = 0; p < static_cast<size_t>(multiply_.depth); ++p)
      sum = MultipliedAndAdded(type_, sum_type_, lhs_[row + p], rhs_[column + p], sum);
    return sum;
  }

  bool Read(const SimAgent& agent, ArrayId array, int64_t index, Bits& bits) {
    return memory_.Read(agent, arrays_[static_cast<size_t>(array)], index, bits);
  }

  const Kernel& kernel_;
  const WarpgroupMultiply& multiply_;
  MatrixMultiply product_;  // with the layout of the accumulators
  std::span<const uint32_t> arrays_;
  SimMemory& memory_;
  ScalarType type_, sum_type_;
  Lines lhs_, rhs_;
};

}  // namespace

bool MultiplyOfWarpgroup(const Kernel& kernel, const WarpgroupMultiply& multiply,
                         std::span<const uint32_t> arrays, SimMemory& memory) {
  return WarpgroupMultiplier(kernel, multiply, arrays, memory).Run();
}

}  // namespace tokamak
