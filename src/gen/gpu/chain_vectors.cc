#include "gen/gpu/chain_vectors.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "analysis/product_factors.h"
#include "gen/gpu/gpu.h"

namespace tokamak::gpu {
namespace {

class VectorFinder {
 public:
  VectorFinder(const FusedRegion& region, const ChainRegion& found)
      : region_(region), found_(found), chain_(found.chain) {}

  std::vector<ChainVector> Run() {
    auto visit = [&](const Instr& value) { Visit({&value, *found_.along->Of(value)}); };
    for (const DotChain::Second& second : chain_.seconds) visit(second.weights());
    for (const Instr* reduce : found_.running.plain) visit(*reduce->operand(0));
    return std::move(vectors_);
  }

 private:
  static bool Has(const Dims& along, std::optional<int64_t> dim) {
    return dim && std::ranges::count(along, *dim) > 0;
  }

  // Elements of rows and columns are followed back to values that are less.
  void Visit(const ValueAlong& value) {
    const Instr& instr = *value.instr;
    if (chain_.IsFirst(instr) || !seen_.insert(&instr).second) return;
    if (AddVector(value, nullptr)) return;
    if (!std::ranges::count(region_.instrs, &instr)) return;
    if (std::optional<ValueAlong> from = Moved(value)) return Visit(*from);
    if (!instr.info().Is(kElementwise)) return;
    bool is_quotient = instr.op() == Op::kDivide && found_.along->Of(instr) != nullptr;
    for (size_t i = 0; i < instr.operand_count(); ++i) {
      const Instr& operand = *instr.operand(i);
      if (operand.shape().dims() != instr.shape().dims()) continue;
      if (is_quotient && i == 1 && AddVector(WithoutMoves({&operand, value.along}), &instr))
        continue;
      Visit({&operand, value.along});
    }
  }

  ValueAlong WithoutMoves(ValueAlong value) const {
    while (std::optional<ValueAlong> from = Moved(value)) value = std::move(*from);
    return value;
  }

  // The operand of an op of the region that only repeats or moves elements.
  std::optional<ValueAlong> Moved(const ValueAlong& value) const {
    const Instr& instr = *value.instr;
    if (!std::ranges::count(region_.instrs, &instr)) return std::nullopt;
    if (found_.along->IsUnpadded(instr))
      return ValueAlong{instr.operand(0)->operand(0), value.along};
    return BeforeMove(value);
  }

  // `divide`: of which it is the divisor; may be null.
  bool AddVector(const ValueAlong& value, const Instr* divide) {
    bool of_rows = Has(value.along, chain_.row), of_columns = !chain_.IsOfRows(value.along);
    if ((of_rows && of_columns) || found_.along->Of(*value.instr) != nullptr) return false;
    bool is_f32 = ComputeType(value.instr->shape().type()) == ScalarType::kF32;
    if (!is_f32 || !ReadsInput(*value.instr)) return false;
    for (ChainVector& known : vectors_) {
      if (known.value != value.instr || known.divides.empty() != (divide == nullptr)) continue;
      if (divide != nullptr) known.divides.push_back(divide);
      return true;
    }
    vectors_.push_back({value.instr, value.along, of_columns, {}});
    if (divide != nullptr) vectors_.back().divides.push_back(divide);
    return true;
  }

  // Others are immediates, or cheap: indices.
  bool ReadsInput(const Instr& value) const {
    std::vector<const Instr*> open = {&value};
    for (size_t i = 0; i < open.size(); ++i) {
      if (std::ranges::count(region_.inputs, open[i]) > 0) return true;
      if (std::ranges::count(region_.instrs, open[i]) == 0) continue;
      for (const Instr* operand : open[i]->operands())
        if (std::ranges::count(open, operand) == 0) open.push_back(operand);
    }
    return false;
  }

  const FusedRegion& region_;
  const ChainRegion& found_;
  const DotChain& chain_;
  std::vector<ChainVector> vectors_;
  std::unordered_set<const Instr*> seen_;
};

}  // namespace

std::vector<ChainVector> VectorsOf(const FusedRegion& region, const ChainRegion& found) {
  return VectorFinder(region, found).Run();
}

ChainVectors::ChainVectors(KernelBuilder& b, ElementEmitter& emitter, const ChainRegion& found,
                           const ChainTiling& tiling)
    : b_(b),
      emitter_(emitter),
      vectors_(found.vectors),
      columns_(tiling.columns),
      stages_(tiling.stages),
      consumers_(tiling.consumers()) {}

void ChainVectors::Declare(int64_t halves) {
  for (const ChainVector& vector : vectors_) {
    places_.push_back(column_count_);
    rows_.emplace_back();
    if (vector.is_of_columns) {
      ++column_count_;
    } else {
      rows_.back() = b_.Local("row_value", ScalarType::kF32, Space::kRegisters, halves);
    }
  }
  if (!HasColumns()) return;
  shared_ = b_.Local("column_values", ScalarType::kF32, Space::kShared,
                     stages_ * column_count_ * columns_);
  full_ = b_.Mbarriers("column_values_full", stages_, kThreads / kWarpSize);
  empty_ = b_.Mbarriers("column_values_empty", stages_, consumers_ / kWarpSize);
}

void ChainVectors::WaitColumns(Scalar number) {
  if (!HasColumns()) return;
  PipelineStage stage = StageOf(b_, number, stages_);
  b_.Wait(full_, stage.index, stage.parity);
}

void ChainVectors::ReleaseColumns(Scalar thread, Scalar number) {
  if (!HasColumns()) return;
  b_.Barrier(BarrierScope::kWarp);
  b_.If(thread % b_.Index(kWarpSize) == b_.Index(0),
        [&] { b_.Arrive(empty_, StageOf(b_, number, stages_).index); });
}

Coordinates ChainVectors::AtOf(const ChainVector& vector, const Coordinates& at) {
  Coordinates own;
  for (int64_t dim : vector.along)
    own.push_back(dim < 0 ? b_.Index(0) : at[static_cast<size_t>(dim)]);
  return own;
}

Element ChainVectors::ElementOf(const ChainVector& vector, const Coordinates& at) {
  Scalar value = emitter_.At(*vector.value, AtOf(vector, at))[0];
  if (!emitter_.failure().empty()) return {b_.Constant(ScalarType::kF32, 0), {}};
  return {vector.divides.empty() ? value : 1 / value, {}};
}

Scalar ChainVectors::SharedIndex(size_t i, Scalar number, Scalar index) {
  Scalar stage = StageOf(b_, number, stages_).index;
  Scalar vector = stage * b_.Index(column_count_) + b_.Index(places_[i]);
  return vector * b_.Index(columns_) + index;
}

void ChainVectors::StoreRow(Scalar half, const Coordinates& at) {
  for (size_t i = 0; i < vectors_.size(); ++i)
    if (!vectors_[i].is_of_columns) b_.Store(rows_[i], half, ElementOf(vectors_[i], at)[0]);
}

std::vector<Scalar> ChainVectors::ReadColumn(Scalar number, Scalar index) {
  std::vector<Scalar> values;
  for (size_t i = 0; i < vectors_.size(); ++i)
    if (vectors_[i].is_of_columns)
      values.push_back(b_.Read(shared_, SharedIndex(i, number, index)));
  return values;
}

void ChainVectors::Memoize(Scalar half, const std::vector<Scalar>& column, const Coordinates& at) {
  for (size_t i = 0; i < vectors_.size(); ++i) {
    const ChainVector& vector = vectors_[i];
    Scalar value =
        vector.is_of_columns ? column[static_cast<size_t>(places_[i])] : b_.Read(rows_[i], half);
    for (const Instr* divide : vector.divides) reciprocals_.insert_or_assign(divide, value);
    if (vector.divides.empty()) emitter_.Memoize(*vector.value, AtOf(vector, at), {value, {}});
  }
}

}  // namespace tokamak::gpu
