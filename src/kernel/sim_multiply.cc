#include "kernel/sim_multiply.h"

namespace tokamak {

Bits MultipliedAndAdded(ScalarType from, ScalarType to, Bits x, Bits y, Bits sum) {
  if (IsInteger(to)) {
    int64_t product = IntOfBits(from, x) * IntOfBits(from, y);
    return BitsOfInt(to, static_cast<int32_t>(product + IntOfBits(to, sum)));
  }
  Bits terms[] = {BitsOfDouble(to, DoubleOfBits(from, x)), BitsOfDouble(to, DoubleOfBits(from, y)),
                  sum};
  return EvaluatePrim(Prim::kFma, to, to, terms).value_or(0);
}

namespace {

Bits Added(ScalarType type, Bits x, Bits y) {
  Bits terms[] = {x, y};
  return EvaluatePrim(Prim::kAdd, type, type, terms).value_or(0);
}

class Multiplier {
 public:
  Multiplier(const Kernel& kernel, const SimOp& op, const SimAgent& agent,
             std::span<const Bits> slots, std::span<const uint32_t> arrays, SimMemory& memory)
      : op_(op),
        product_(*op.product),
        agent_(agent),
        arrays_(arrays),
        memory_(memory),
        type_(kernel.array(product_.lhs).type),
        sum_type_(kernel.array(ArrayId{op.array}).type),
        depth_(static_cast<int64_t>(slots[op.to])),
        to_at_(static_cast<int64_t>(slots[op.a.at])),
        lhs_at_(static_cast<int64_t>(slots[op.b.at])),
        rhs_at_(static_cast<int64_t>(slots[op.c.at])) {}

  bool OfOne() {
    int64_t group = VnniGroupSize(type_);
    for (int64_t i = 0; i < product_.rows; ++i) {
      for (int64_t j = 0; j < product_.columns; ++j) {
        int64_t element = to_at_ + i * product_.result_row_stride + j;
        Bits sum = 0, before = 0, x = 0, y = 0;
        bool ok = product_.overwrite || Read(ArrayId{op_.array}, element, before);
        for (int64_t p = 0; ok && p < depth_; ++p) {
          ok = Read(product_.lhs,
                    lhs_at_ + i * product_.lhs_row_stride + p * product_.lhs_column_stride, x) &&
               Read(product_.rhs,
                    rhs_at_ + p / group * product_.rhs_row_stride + j * group + p % group, y);
          if (ok) sum = MultipliedAndAdded(type_, sum_type_, x, y, sum);
        }
        if (!product_.overwrite) sum = Added(sum_type_, before, sum);
        if (!ok || !memory_.Store(agent_, arrays_[op_.array], element, sum)) return false;
      }
    }
    return true;
  }

  // Block-wide: reads each row and column of the thread once, then accumulates.
  bool OfBlock() {
    auto same = [](int64_t x) { return x; };
    std::vector<std::vector<Bits>> rows(static_cast<size_t>(product_.rows)),
        columns(static_cast<size_t>(product_.columns));
    for (int64_t s = 0; s < product_.AccumulatorsPerThread(); ++s) {
      AccumulatorPosition<int64_t> at(product_, int64_t{agent_.thread}, s, same);
      std::vector<Bits>& x = rows[static_cast<size_t>(at.row)];
      std::vector<Bits>& y = columns[static_cast<size_t>(at.column)];
      Bits sum = 0;
      if (!ReadLine(product_.lhs, lhs_at_ + at.row * product_.lhs_row_stride,
                    product_.lhs_column_stride, x) ||
          !ReadLine(product_.rhs, rhs_at_ + at.column * product_.rhs_column_stride,
                    product_.rhs_row_stride, y) ||
          !Read(ArrayId{op_.array}, to_at_ + s, sum))
        return false;
      for (size_t p = 0; p < x.size(); ++p)
        sum = MultipliedAndAdded(type_, sum_type_, x[p], y[p], sum);
      if (!memory_.Store(agent_, arrays_[op_.array], to_at_ + s, sum)) return false;
    }
    return true;
  }

 private:
  bool Read(ArrayId array, int64_t index, Bits& bits) {
    return memory_.Read(agent_, arrays_[static_cast<size_t>(array)], index, bits);
  }
  bool ReadLine(ArrayId array, int64_t begin, int64_t distance, std::vector<Bits>& line) {
    if (!line.empty()) return true;
    line.resize(static_cast<size_t>(depth_));
    for (size_t p = 0; p < line.size(); ++p) {
      if (!Read(array, begin + static_cast<int64_t>(p) * distance, line[p])) return false;
      if (product_.tf32) line[p] &= MatrixMultiply::kTf32Mask;
    }
    return true;
  }

  const SimOp& op_;
  const MatrixMultiply& product_;
  const SimAgent& agent_;
  std::span<const uint32_t> arrays_;
  SimMemory& memory_;
  ScalarType type_, sum_type_;
  int64_t depth_, to_at_, lhs_at_, rhs_at_;
};

}  // namespace

bool MultiplyMatrices(const Kernel& kernel, const SimOp& op, const SimAgent& agent,
                      std::span<const Bits> slots, std::span<const uint32_t> arrays,
                      SimMemory& memory) {
  Multiplier multiplier(kernel, op, agent, slots, arrays, memory);
  return op.product->IsBlockWide() ? multiplier.OfBlock() : multiplier.OfOne();
}

int64_t MultiplicationsOf(const SimOp& op, std::span<const Bits> slots) {
  const MatrixMultiply& product = *op.product;
  auto depth = static_cast<int64_t>(slots[op.to]);
  return depth *
         (product.IsBlockWide() ? product.AccumulatorsPerThread() : product.rows * product.columns);
}

}  // namespace tokamak
