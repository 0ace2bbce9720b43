#include "fusion/contraction.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "fusion/library_convolutions.h"
#include "gen/contract.h"
#include "gen/dot_sides.h"
#include "gen/element.h"

namespace tokamak {
namespace {

// Fewer multiplications than this in one product are done sooner by a kernel, which does not call
// and stores what follows instead of the product. 16 x 16 x 16, one product: 0.16 us against 0.19;
// 64 of them: 14 us against 12.
constexpr int64_t kContractionLeastWork = 1024, kLeastWorkOfMany = 4096;
// Of a GPU, in all products of a batch together. Not measured yet: below it a call takes longer
// than what it computes.
constexpr int64_t kLeastWorkOfGpu = int64_t{1} << 20;

// The order of contracting dimensions is free, as long as both sides have the same. Tries that of
// each side, ascending.
std::vector<std::pair<Dims, Dims>> Orders(const DotAttrs& attrs) {
  std::vector<std::pair<Dims, Dims>> orders;
  for (const Dims* by : {&attrs.lhs_contracting, &attrs.rhs_contracting}) {
    std::vector<size_t> order(by->size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(), [&](size_t x, size_t y) { return (*by)[x] < (*by)[y]; });
    std::pair<Dims, Dims> both;
    for (size_t i : order) {
      both.first.push_back(attrs.lhs_contracting[i]);
      both.second.push_back(attrs.rhs_contracting[i]);
    }
    orders.push_back(std::move(both));
  }
  return orders;
}

// One operand: `free` rows and `contracting` columns.
std::optional<Contraction::Matrix> MatrixOf(const Dims& dims, const Dims& free,
                                            const Dims& contracting, bool is_vector) {
  std::optional<int64_t> row = DistanceAlong(dims, free), column = DistanceAlong(dims, contracting);
  if (!row || !column) return std::nullopt;
  int64_t rows = SizeOf(dims, free), columns = SizeOf(dims, contracting);
  // A side of one has no neighbours: its distance is what the other makes of it.
  if (rows == 1 && columns > 1 && *column == 1) *row = columns;
  if (columns == 1 && rows > 1 && *row == 1) *column = rows;
  if (columns == 1 && rows > 1 && *row != 1 && !is_vector) return Contraction::Matrix{*row, 1};
  if (!is_vector && *row != 1 && *column != 1) return std::nullopt;
  return Contraction::Matrix{*row, *column};
}

bool IsLibraryType(ElementType type) {
  return type == ElementType::kF32 || type == ElementType::kF64 || type == ElementType::kC64 ||
         type == ElementType::kC128;
}

// Libraries count in 32 bits.
bool Fits(const Contraction& c) {
  auto fits = [](int64_t x) { return x <= INT32_MAX; };
  return fits(c.m) && fits(c.n) && fits(c.k) && fits(c.lhs.row) && fits(c.lhs.column) &&
         fits(c.rhs.row) && fits(c.rhs.column);
}

// In what the library computes it; nothing when in nothing.
std::optional<ElementType> TypeForLibrary(const Instr& dot) {
  if (dot.op() != Op::kDot || !IsPlainArray(dot.shape())) return std::nullopt;
  ElementType type = WideType(dot.shape().type());
  if (!IsLibraryType(type)) return std::nullopt;
  for (const Instr* operand : dot.operands())
    if (!IsPlainArray(operand->shape()) || (IsComplex(operand->shape().type()) && !IsComplex(type)))
      return std::nullopt;
  return type;
}

// Narrow factors that the library multiplies as they are, and adds up in f32.
bool TakesNarrow(const Instr& dot, const Machine& machine) {
  if (!machine.is_gpu()) return false;
  ElementType factors = dot.operand(0)->shape().type(), result = dot.shape().type();
  return dot.operand(1)->shape().type() == factors &&
         (factors == ElementType::kBF16 || factors == ElementType::kF16) &&
         (result == factors || result == ElementType::kF32);
}

bool IsLargeEnough(const Instr& dot, const Machine& machine) {
  DotSides sides(dot);
  if (machine.is_gpu())
    return !sides.IsEmpty() && static_cast<double>(sides.batch) * static_cast<double>(sides.m) *
                                       static_cast<double>(sides.n) *
                                       static_cast<double>(sides.k) >=
                                   static_cast<double>(kLeastWorkOfGpu);
  int64_t least = sides.batch == 1 ? kContractionLeastWork : kLeastWorkOfMany;
  return !sides.IsEmpty() && sides.m * sides.n >= (least + sides.k - 1) / sides.k;
}

bool IsSmallInLoop(const Instr& dot, const Machine& machine) {
  if (!machine.is_gpu()) return false;
  DotSides sides(dot);
  return IsSmallInLoop(dot, static_cast<double>(sides.batch) * static_cast<double>(sides.m) *
                                static_cast<double>(sides.n) * static_cast<double>(sides.k));
}

// Whether a dot is the generator's of contractions although a library computes its type. On a GPU
// the library is three times as fast (4096 x 4096 x 4096 of bf16: 0.18 ms against 0.59), but what
// follows from a shallow product takes longer to move than the product to make: 96 of 1024 x 1024 x
// 64, masked, are 0.17 ms as one kernel, and the mask alone moves 0.8 GB, 0.2 ms.
bool IsForGenerator(const Instr& dot, const Machine& machine) {
  constexpr int64_t kShallow = 128;
  if (!IsForContract(dot, machine)) return false;
  if (!machine.is_gpu()) return true;
  std::optional<ElementType> type = TypeForLibrary(dot);
  bool taken =
      type && IsLargeEnough(dot, machine) &&
      (TakesNarrow(dot, machine) ||
       std::all_of(dot.operands().begin(), dot.operands().end(),
                   [&](const Instr* operand) { return operand->shape().type() == *type; }));
  if (!taken || IsSmallInLoop(dot, machine)) return true;
  bool followed = dot.users().size() == 1 && (*dot.users().begin())->info().Is(kElementwise);
  return followed && DotSides(dot).k <= kShallow;
}

class ContractionPreparer {
 public:
  ContractionPreparer(Computation& computation, const Machine& machine, DecisionLog& log)
      : computation_(computation), machine_(machine), log_(log) {}

  bool Prepare(Instr& dot) {
    std::optional<ElementType> type = TypeForLibrary(dot);
    if (!type || !IsLargeEnough(dot, machine_) || ContractionOf(dot, machine_)) return false;
    DotAttrs attrs = dot.attrs<DotAttrs>();
    DotSides sides(dot);
    Side lhs{sides.lhs_free, {}, false}, rhs{sides.rhs_free, {}, false};
    // An order in which neither has to be moved, or else the first.
    for (const auto& [left, right] : Orders(attrs)) {
      bool lhs_laid = MatrixOf(sides.lhs, sides.lhs_free, left, sides.m == 1).has_value();
      bool rhs_laid = MatrixOf(sides.rhs, sides.rhs_free, right, sides.n == 1).has_value();
      if (!lhs.contracting.empty() && !(lhs_laid && rhs_laid)) continue;
      lhs = {sides.lhs_free, left, lhs_laid};
      rhs = {sides.rhs_free, right, rhs_laid};
    }
    if ((sides.m == 1 && !rhs.laid && IsReadAlongRows(sides.rhs, rhs)) ||
        (sides.n == 1 && !lhs.laid && IsReadAlongRows(sides.lhs, lhs)))
      return false;
    attrs.lhs_contracting = lhs.contracting;
    attrs.rhs_contracting = rhs.contracting;
    bool narrow = TakesNarrow(dot, machine_);
    if (narrow) type = dot.operand(0)->shape().type();
    std::string what = Pack(dot, 0, *type, lhs, attrs.lhs_batch, attrs.lhs_contracting) +
                       Pack(dot, 1, *type, rhs, attrs.rhs_batch, attrs.rhs_contracting);
    dot.set_attrs(std::move(attrs));
    if (!narrow && dot.shape().type() != *type) Narrow(dot, *type);
    log_.Add({.pass = "fuse",
              .rule = "library.prepare",
              .subject = LabelOf(dot),
              .origins = dot.origins(),
              .because = what.empty() ? "its result is rounded" : what});
    return true;
  }

 private:
  struct Side {
    Dims free, contracting;
    bool laid = false;
  };

  // Whether a kernel of a processor reads this matrix, which would be moved to be multiplied by a
  // vector, as well as it stands: it is read once, vectors of neighbours at a time. (7) times
  // (4000, 7, 100): 1.8 ms against 15.5 of moving and calling.
  bool IsReadAlongRows(const Dims& dims, const Side& side) const {
    constexpr int64_t kNeighbours = 16;
    auto last = static_cast<int64_t>(dims.size()) - 1;
    return !machine_.is_gpu() && std::ranges::find(side.free, last) != side.free.end() &&
           dims.back() >= kNeighbours;
  }

  Instr* Add(Op op, Shape shape, Instr* operand, Attrs attrs, const Instr& dot) {
    Instr* made = computation_.Append(op, std::move(shape), {operand}, std::move(attrs));
    made->set_origins(dot.origins());
    made->set_pos(dot.pos());
    return made;
  }

  // One operand, in the library's type, and moved to batch, free, contracting unless it is `laid`.
  std::string Pack(Instr& dot, size_t i, ElementType type, const Side& side, Dims& batch,
                   Dims& contracting) {
    Instr* operand = dot.operand(i);
    const Shape before = operand->shape();
    std::string text;
    if (before.type() != type) {
      operand = Add(Op::kConvert, Shape::Array(type, before.dims()), operand, {}, dot);
      text = " is converted";
    }
    if (!side.laid) {
      Dims order = batch, dims;
      order.insert(order.end(), side.free.begin(), side.free.end());
      order.insert(order.end(), contracting.begin(), contracting.end());
      for (int64_t d : order) dims.push_back(before.dim(static_cast<size_t>(d)));
      operand = Add(Op::kTranspose, Shape::Array(type, dims), operand, DimensionsAttrs{order}, dot);
      std::iota(batch.begin(), batch.end(), int64_t{0});
      std::iota(contracting.begin(), contracting.end(),
                static_cast<int64_t>(batch.size() + side.free.size()));
      text += text.empty() ? " is transposed" : " and transposed";
    }
    if (text.empty()) return "";
    dot.set_operand(i, operand);
    return (i == 0 ? "lhs" : "; rhs") + text;
  }

  void Narrow(Instr& dot, ElementType type) {
    Instr* rounded = Add(Op::kConvert, dot.shape().WithoutLayout(), dot.operand(0), {}, dot);
    if (computation_.root() == &dot) computation_.set_root(rounded);
    computation_.ReplaceUses(&dot, rounded);
    rounded->set_operand(0, &dot);
    dot.set_shape(Shape::Array(type, dot.shape().dims()));
  }

  Computation& computation_;
  const Machine& machine_;
  DecisionLog& log_;
};

}  // namespace

std::optional<Contraction> ContractionOf(const Instr& dot, const Machine& machine) {
  std::optional<ElementType> type = TypeForLibrary(dot);
  if (!type) return std::nullopt;
  if (!TakesNarrow(dot, machine)) {
    if (dot.shape().type() != *type) return std::nullopt;
    for (const Instr* operand : dot.operands())
      if (operand->shape().type() != *type) return std::nullopt;
  }
  const DotAttrs& attrs = dot.attrs<DotAttrs>();
  DotSides sides(dot);
  Contraction result;
  result.type = *type;
  std::tie(result.m, result.n, result.k) = std::tie(sides.m, sides.n, sides.k);
  Dims lhs_strides = RowMajorStrides(sides.lhs), rhs_strides = RowMajorStrides(sides.rhs);
  for (size_t i = 0; i < attrs.lhs_batch.size(); ++i) {
    auto l = static_cast<size_t>(attrs.lhs_batch[i]), r = static_cast<size_t>(attrs.rhs_batch[i]);
    result.batch.push_back({sides.lhs[l], lhs_strides[l], rhs_strides[r]});
  }
  for (const auto& [left, right] : Orders(attrs)) {
    auto lhs = MatrixOf(sides.lhs, sides.lhs_free, left, sides.m == 1);
    auto rhs = MatrixOf(sides.rhs, sides.rhs_free, right, sides.n == 1);
    if (!lhs || !rhs) continue;
    result.lhs = *lhs;
    result.rhs = {rhs->column, rhs->row};  // k rows, n columns
    if (!Fits(result)) return std::nullopt;
    return result;
  }
  return std::nullopt;
}

bool IsSmallInLoop(const Instr& instr, double multiplications) {
  constexpr double kMostWork = 1 << 25;
  if (multiplications > kMostWork) return false;
  const Computation* body = instr.parent();
  for (const auto& other : body->module()->computations())
    for (const Instr* caller : other->Callers())
      if (caller->op() == Op::kWhile && caller->called(1) == body) return true;
  return false;
}

bool IsForLibrary(const Instr& instr, const Machine& machine) {
  if (instr.op() == Op::kConvolution) return IsForConvolutionLibrary(instr, machine);
  return machine.matrix_library && instr.op() == Op::kDot && !IsForGenerator(instr, machine) &&
         TypeForLibrary(instr) && IsLargeEnough(instr, machine) && ContractionOf(instr, machine);
}

bool HasContractions(const Module& module, const Machine& machine) {
  for (const auto& computation : module.computations())
    for (const Instr* instr : computation->Instrs())
      // That of a loop may leave it (HoistProducts).
      if (instr->op() == Op::kDot && TypeForLibrary(*instr) && IsLargeEnough(*instr, machine) &&
          (!IsForGenerator(*instr, machine) || IsSmallInLoop(*instr, machine)))
        return true;
  return false;
}

namespace {

// A dot whose results are all transposed so that dimensions of lhs come last: with its sides
// swapped, rows are written as they are made. Says whether it was.
bool SwapSides(Instr& dot, DecisionLog& log) {
  if (dot.users().size() != 1 || dot.parent()->root() == &dot) return false;
  Instr& transpose = **dot.users().begin();
  if (transpose.op() != Op::kTranspose) return false;
  DotAttrs attrs = dot.attrs<DotAttrs>();
  DotSides sides(dot);
  auto batch = static_cast<int64_t>(attrs.lhs_batch.size());
  auto left = static_cast<int64_t>(sides.lhs_free.size());
  auto right = static_cast<int64_t>(sides.rhs_free.size());
  Dims order = transpose.attrs<DimensionsAttrs>().dimensions, dims;
  if (order.back() < batch || order.back() >= batch + left) return false;
  for (int64_t d = 0; d < batch + right + left; ++d)
    dims.push_back(dot.shape().dim(static_cast<size_t>(d < batch           ? d
                                                       : d < batch + right ? d + left
                                                                           : d - right)));
  for (int64_t& d : order) d = d < batch ? d : d < batch + left ? d + right : d - left;
  std::swap(attrs.lhs_batch, attrs.rhs_batch);
  std::swap(attrs.lhs_contracting, attrs.rhs_contracting);
  Instr *lhs = dot.operand(0), *rhs = dot.operand(1);
  dot.set_operand(0, rhs);
  dot.set_operand(1, lhs);
  dot.set_attrs(std::move(attrs));
  dot.set_shape(Shape::Array(dot.shape().type(), std::move(dims)));
  transpose.set_attrs(DimensionsAttrs{std::move(order)});
  log.Add({.pass = "fuse",
           .rule = "contraction.swap-sides",
           .subject = LabelOf(dot),
           .origins = dot.origins(),
           .because = "its results are transposed"});
  return true;
}

}  // namespace

void PrepareContractions(Module& module, const Machine& machine, DecisionLog& log) {
  for (const auto& computation : module.computations()) {
    bool changed = false;
    ContractionPreparer preparer(*computation, machine, log);
    for (Instr* instr : computation->Instrs()) {
      if (instr->op() != Op::kDot) continue;
      bool to_library = machine.matrix_library && !IsForGenerator(*instr, machine);
      if (IsForContract(*instr, machine) && !to_library) {
        SwapSides(*instr, log);
      } else if (machine.matrix_library && preparer.Prepare(*instr)) {
        changed = true;
      }
    }
    if (changed) computation->PutInOrder();
  }
}

}  // namespace tokamak
