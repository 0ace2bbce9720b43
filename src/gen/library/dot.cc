#include "gen/library/dot.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "analysis/dot_chains.h"
#include "gen/contract.h"
#include "gen/dot_dimensions.h"
#include "gen/element.h"
#include "gen/gpu/k_major.h"
#include "gen/gpu/tensor_tiling.h"
#include "gen/library/convolution.h"

namespace tokamak {
namespace {

// Multiplications per product below which a kernel is faster, since it avoids the call and can
// store the consumer instead of the product; for one product, and for several. Measured (16 x 16 x
// 16, kernel against call): one product 0.16 us against 0.19, 64 products 14 us against 12.
constexpr int64_t kContractionLeastWork = 1024, kMinWorkOfMany = 4096;
// GPU: multiplications of all products of a batch. Chosen: below it a call takes longer than the
// computation (not measured).
constexpr int64_t kMinWorkOfGpu = int64_t{1} << 20;

bool IsLibraryType(ElementType type) {
  return type == ElementType::kF32 || type == ElementType::kF64 || type == ElementType::kC64 ||
         type == ElementType::kC128;
}

// Library sizes are 32-bit.
bool Fits(const LibraryDot& c) {
  auto fits = [](int64_t x) { return x <= INT32_MAX; };
  return fits(c.m) && fits(c.n) && fits(c.k) && fits(c.lhs.row) && fits(c.lhs.column) &&
         fits(c.rhs.row) && fits(c.rhs.column);
}

}  // namespace

std::vector<std::pair<Dims, Dims>> ContractingOrders(const DotAttrs& attrs) {
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

std::optional<LibraryDot::MatrixStrides> MatrixOf(const Dims& dims, const Dims& free,
                                                  const Dims& contracting, bool is_vector) {
  std::optional<int64_t> row = LinearizedStride(dims, free),
                         column = LinearizedStride(dims, contracting);
  if (!row || !column) return std::nullopt;
  int64_t rows = SizeAlong(dims, free), columns = SizeAlong(dims, contracting);
  // A dimension of size 1 has no stride of its own: derive it from the other one.
  if (rows == 1 && columns > 1 && *column == 1) *row = columns;
  if (columns == 1 && rows > 1 && *row == 1) *column = rows;
  if (columns == 1 && rows > 1 && *row != 1 && !is_vector)
    return LibraryDot::MatrixStrides{*row, 1};
  if (!is_vector && *row != 1 && *column != 1) return std::nullopt;
  return LibraryDot::MatrixStrides{*row, *column};
}

std::optional<ElementType> LibraryTypeOf(const Instr& dot) {
  if (dot.op() != Op::kDot || !IsPlainArray(dot.shape())) return std::nullopt;
  ElementType type = AccumulatorElementType(dot.shape().type());
  if (!IsLibraryType(type)) return std::nullopt;
  for (const Instr* operand : dot.operands())
    if (!IsPlainArray(operand->shape()) || (IsComplex(operand->shape().type()) && !IsComplex(type)))
      return std::nullopt;
  return type;
}

bool SupportsNarrowFloats(const Instr& dot, const Machine& machine) {
  if (!machine.is_gpu()) return false;
  ElementType factors = dot.operand(0)->shape().type(), result = dot.shape().type();
  return dot.operand(1)->shape().type() == factors &&
         (factors == ElementType::kBF16 || factors == ElementType::kF16) &&
         (result == factors || result == ElementType::kF32);
}

bool AmortizesLibraryCall(const Instr& dot, const Machine& machine) {
  DotDimensions dot_dims(dot);
  if (machine.is_gpu())
    return !dot_dims.IsEmpty() &&
           static_cast<double>(dot_dims.batch) * static_cast<double>(dot_dims.m) *
                   static_cast<double>(dot_dims.n) * static_cast<double>(dot_dims.k) >=
               static_cast<double>(kMinWorkOfGpu);
  int64_t least = dot_dims.batch == 1 ? kContractionLeastWork : kMinWorkOfMany;
  return !dot_dims.IsEmpty() && dot_dims.m * dot_dims.n >= (least + dot_dims.k - 1) / dot_dims.k;
}

namespace {

bool PrefersKernelInLoop(const Instr& dot, const Machine& machine) {
  if (!machine.is_gpu()) return false;
  DotDimensions dot_dims(dot);
  return PrefersKernelInLoop(dot,
                             static_cast<double>(dot_dims.batch) * static_cast<double>(dot_dims.m) *
                                 static_cast<double>(dot_dims.n) * static_cast<double>(dot_dims.k));
}

// Whether the depth of a first dot, or the columns of a second one, may fit a tile of a chain.
bool MayFitChain(const Instr& dot) {
  DotDimensions dims(dot);
  return std::min({dims.m, dims.n, dims.k}) <= TileCopy::kMaxBox;
}

// Whether a factor is a bf16 or f16, perhaps converted to a wider type.
bool HasNarrowFactor(const Instr& dot) {
  return std::ranges::any_of(dot.operands(), [](const Instr* operand) {
    while (gpu::IsView(*operand) || operand->op() == Op::kConvert) {
      if (operand->op() == Op::kConvert && InfoOf(operand->shape().type()).bits <= 16) break;
      operand = operand->operand(0);
    }
    ElementType type = operand->shape().type();
    return type == ElementType::kBF16 || type == ElementType::kF16;
  });
}

}  // namespace

// Whether asynchronous multiplies of our own are as fast as a library's. They fuse what is around
// the dot and need no transposes. Libraries split K between SMs if there are few tiles.
bool PrefersTensorContract(const Instr& dot, const Machine& machine) {
  // Tiles per SM below which K of at least this size should be split. Chosen: with half of the SMs
  // idle, the partial sums of a split cost less than the wait for the others.
  constexpr double kMinTilesPerSm = 0.5;
  constexpr int64_t kDeep = 1024;
  DotDimensions dot_dims(dot);
  gpu::TensorTiling tiling;
  // A library would need the windows of a convolution as an array, larger than the image, or
  // elements with strides as one without.
  bool has_windows = false;
  if (machine.async_multiply &&
      (SupportsNarrowFloats(dot, machine) || MultipliesTf32(dot, machine)))
    for (const Instr* operand : dot.operands()) {
      if (!gpu::IsWindowed(*operand)) continue;
      int64_t elements = gpu::AffineViewOf(*operand).array->shape().ElementCount();
      if (elements < operand->shape().ElementCount()) return true;
      has_windows = true;
    }
  gpu::TensorDot tensor{dot, dot_dims, {true, true}};
  std::vector<Schedule> schedules = gpu::TensorSchedules(tensor, machine);
  if (schedules.empty() ||
      !gpu::ExpandTensorSchedule(tensor, schedules[0], machine, tiling).empty())
    return false;
  // A kernel of our own may be slower by this factor. Measured on H200: what the prediction of a
  // library call misses, 8192 x 3072 x 768 with K across in one operand.
  constexpr double kMaxSlower = 1.1;
  if (gpu::KMajorCopies choice; !has_windows && gpu::KMajorFormOf(dot, machine) &&
                                gpu::ChooseKMajorCopies(dot, machine, choice) &&
                                choice.after_us > kMaxSlower * choice.library_us)
    return false;
  auto per_sm = static_cast<double>(tiling.tiles()) / static_cast<double>(machine.cores);
  return dot_dims.k < kDeep || per_sm >= kMinTilesPerSm;
}

// Whether the contract generator computes a dot although a library supports its type. The GPU
// library is three times as fast (4096 x 4096 x 4096 bf16: 0.18 ms against 0.59), but for a shallow
// product moving the result dominates: 96 masked products of 1024 x 1024 x 64 take 0.17 ms as one
// kernel, while the mask alone would move 0.8 GB in 0.2 ms.
bool PrefersGenerator(const Instr& dot, const Machine& machine) {
  if (!CanUseContract(dot, machine)) return false;
  if (!machine.is_gpu()) return true;
  std::optional<ElementType> type = LibraryTypeOf(dot);
  bool accepted =
      type && AmortizesLibraryCall(dot, machine) &&
      (SupportsNarrowFloats(dot, machine) ||
       std::all_of(dot.operands().begin(), dot.operands().end(),
                   [&](const Instr* operand) { return operand->shape().type() == *type; }));
  if (!accepted || PrefersKernelInLoop(dot, machine)) return true;
  if (PrefersTensorContract(dot, machine)) return true;
  if (machine.async_multiply && HasNarrowFactor(dot) && MayFitChain(dot) && IsInDotChain(dot))
    return true;
  bool followed = dot.users().size() == 1 && (*dot.users().begin())->info().Is(kElementwise);
  return followed && DotDimensions(dot).k <= kShallowDepth;
}

std::optional<LibraryDot> LibraryDotOf(const Instr& dot, const Machine& machine) {
  std::optional<ElementType> type = LibraryTypeOf(dot);
  if (!type) return std::nullopt;
  if (!SupportsNarrowFloats(dot, machine)) {
    if (dot.shape().type() != *type) return std::nullopt;
    for (const Instr* operand : dot.operands())
      if (operand->shape().type() != *type) return std::nullopt;
  }
  const DotAttrs& attrs = dot.attrs<DotAttrs>();
  DotDimensions dot_dims(dot);
  LibraryDot result;
  result.type = *type;
  std::tie(result.m, result.n, result.k) = std::tie(dot_dims.m, dot_dims.n, dot_dims.k);
  Dims lhs_strides = RowMajorStrides(dot_dims.lhs_dims),
       rhs_strides = RowMajorStrides(dot_dims.rhs_dims);
  for (size_t i = 0; i < attrs.lhs_batch.size(); ++i) {
    auto l = static_cast<size_t>(attrs.lhs_batch[i]), r = static_cast<size_t>(attrs.rhs_batch[i]);
    result.batch.push_back({dot_dims.lhs_dims[l], lhs_strides[l], rhs_strides[r]});
  }
  for (const auto& [left, right] : ContractingOrders(attrs)) {
    auto lhs = MatrixOf(dot_dims.lhs_dims, dot_dims.lhs_free, left, dot_dims.m == 1);
    auto rhs = MatrixOf(dot_dims.rhs_dims, dot_dims.rhs_free, right, dot_dims.n == 1);
    if (!lhs || !rhs) continue;
    result.lhs = *lhs;
    result.rhs = {rhs->column, rhs->row};  // k rows, n columns
    if (!Fits(result)) return std::nullopt;
    return result;
  }
  return std::nullopt;
}

bool PrefersKernelInLoop(const Instr& instr, double multiplications) {
  // Multiplications up to which a kernel in the loop is preferred. Chosen: up to here, a call in
  // each iteration costs more than the faster product of a library saves.
  constexpr double kMaxWork = 1 << 25;
  if (multiplications > kMaxWork) return false;
  const Computation* body = instr.parent();
  for (const auto& other : body->module()->computations())
    for (const Instr* caller : other->Callers())
      if (caller->op() == Op::kWhile && caller->called(1) == body) return true;
  return false;
}

bool UsesLibrary(const Instr& instr, const Machine& machine) {
  if (instr.op() == Op::kConvolution) return UsesConvolutionLibrary(instr, machine);
  return machine.uses_library && instr.op() == Op::kDot && !PrefersGenerator(instr, machine) &&
         LibraryTypeOf(instr) && AmortizesLibraryCall(instr, machine) &&
         LibraryDotOf(instr, machine);
}

bool NeedsBlas(const Module& module, const Machine& machine) {
  for (const auto& computation : module.computations())
    for (const Instr* instr : computation->Instrs())
      // A dot in a loop may be hoisted out of it (HoistGemms).
      if (instr->op() == Op::kDot && LibraryTypeOf(*instr) &&
          AmortizesLibraryCall(*instr, machine) &&
          (!PrefersGenerator(*instr, machine) || PrefersKernelInLoop(*instr, machine)))
        return true;
  return false;
}

}  // namespace tokamak
