// Names and attributes of linear-algebra calls; the calls themselves are in
// lapack_factor.cc and lapack_eigen.cc.

#include "interp/lapack.h"

#include <algorithm>
#include <complex>
#include <numeric>
#include <string>

#include "interp/results.h"
#include "interp/strided.h"

namespace tokamak {
namespace {

// "lapack_sgetrf_ffi" -> "getrf"; "" if it is not such a name.
std::string LapackName(std::string_view target) {
  constexpr std::string_view kPrefix = "lapack_", kSuffix = "_ffi";
  if (!target.starts_with(kPrefix)) return "";
  target.remove_prefix(kPrefix.size());
  if (target.ends_with(kSuffix)) target.remove_suffix(kSuffix.size());
  if (target.size() < 2 || std::string_view("sdcz").find(target[0]) == std::string_view::npos)
    return "";
  std::string name(target.substr(1));
  if (name == "ungqr") return "orgqr";
  if (name == "unmqr") return "ormqr";
  if (name == "heevd") return "syevd";
  if (name == "hetrd") return "sytrd";
  return name;
}

// Converts sequential row swaps to a permutation of the rows.
Result<Value> PivotsToPermutation(const Instr& instr, const Value& pivots) {
  const Shape& shape = instr.shape().IsTuple() ? instr.shape().elements()[0] : instr.shape();
  const int64_t k = pivots.dims().empty() ? 1 : pivots.dims().back();
  const int64_t n = shape.dims().empty() ? 1 : shape.dims().back();
  const int64_t count = k == 0 ? ProductOf(pivots.dims()) : pivots.ElementCount() / k;
  std::vector<int64_t> all;
  for (int64_t item = 0; item < count; ++item) {
    std::vector<int64_t> rows(static_cast<size_t>(n));
    std::iota(rows.begin(), rows.end(), int64_t{0});
    for (int64_t i = 0; i < k && i < n; ++i) {
      int64_t pivot = pivots.IntAt(item * k + i);
      if (pivot < 0 || pivot >= n) {
        return RunError(ErrorCode::kRunIndexOutOfRange, instr,
                        "pivot " + std::to_string(i) + " is row " + std::to_string(pivot) + " of " +
                            std::to_string(n));
      }
      std::swap(rows[static_cast<size_t>(i)], rows[static_cast<size_t>(pivot)]);
    }
    all.insert(all.end(), rows.begin(), rows.end());
  }
  Value permutation = Value::Array(Shape::Array(ElementType::kS64, shape.dims()), std::move(all));
  return DispatchStorage(shape.type(), [&]<typename T>() -> Result<Value> {
    Value result = Value::Array(ResultShape(shape, shape.dims()), ElementsAs<T>(permutation));
    return instr.shape().IsTuple() ? Value::Tuple({std::move(result)}) : std::move(result);
  });
}

// LAPACK aborts the process on an unknown letter.
Status CheckLetters(const Instr& instr) {
  constexpr std::pair<std::string_view, std::string_view> kLetters[] = {
      {"uplo", "LU"},         {"side", "LR"},          {"trans_x", "NTC"},
      {"trans", "NTC"},       {"diag", "NU"},          {"mode", "NVAS"},
      {"compute_left", "NV"}, {"compute_right", "NV"}, {"sort", "NS"}};
  for (const auto& [name, allowed] : kLetters) {
    const AttrValue* value = Find(instr.attrs<CustomCallAttrs>().backend_dict, name);
    const IntAttr* letter = value == nullptr ? nullptr : value->As<IntAttr>();
    if (letter == nullptr) continue;
    if (letter->value <= 0 || letter->value > 127 ||
        allowed.find(static_cast<char>(letter->value)) == std::string_view::npos) {
      return RunError(ErrorCode::kLinearAlgebra, instr,
                      "attribute " + std::string(name) + " is " + std::to_string(letter->value) +
                          ", expected one of the letters " + std::string(allowed));
    }
  }
  return Ok();
}

}  // namespace

std::string LapackRoutineOf(std::string_view target) {
  if (target == "Qr") return "geqrf";
  if (target == "ProductOfElementaryHouseholderReflectors") return "orgqr";
  if (target == "LuDecomposition") return "lu";
  if (target == "Eigh") return "eigh";
  if (target == "tridiagonal_solve_perturbed_ffi") return "tridiagonal_solve_perturbed";
  return LapackName(target);
}

namespace {

bool TakesSquare(std::string_view name) {
  return name == "potrf" || name == "gehrd" || name == "sytrd" || name == "syevd" ||
         name == "eigh" || name == "geev" || name == "gees";
}

bool TakesDiagonals(std::string_view name) {
  return name == "gtsv" || name == "tridiagonal_solve_perturbed";
}

LapackArray::Kind NumbersOf(ElementType type) {
  if (IsComplex(type)) return LapackArray::Kind::kComplex;
  return IsReal(type) ? LapackArray::Kind::kReal : LapackArray::Kind::kInt;
}
bool IsDouble(ElementType type) {
  return type == ElementType::kF64 || type == ElementType::kC128;
}
std::vector<Shape> ResultShapesOf(const Shape& shape) {
  return shape.IsTuple() ? shape.elements() : std::vector<Shape>{shape};
}

// The routine of a call. Rejects calls for which LAPACK would abort the process. Reads no element.
Result<LapackFn> FunctionOf(const LapackCall& call) {
  const Instr& instr = call.instr;
  const std::string& target = instr.attrs<CustomCallAttrs>().target;
  for (const LapackArray& operand : call.operands) {
    for (int64_t d : *operand.dims) {
      if (d > INT32_MAX / 64) return Unsupported(instr, target + " of so large a matrix");
    }
  }
  const std::string name = LapackRoutineOf(target);
  TOK_RETURN_IF_ERROR(CheckLetters(instr));
  const Dims& dims = *call.operands[0].dims;
  bool square = dims.size() >= 2 && dims[dims.size() - 1] == dims[dims.size() - 2];
  if ((dims.size() < 2 && !TakesDiagonals(name)) || (TakesSquare(name) && !square)) {
    return RunError(ErrorCode::kLinearAlgebra, instr,
                    target + " of " + ToString(instr.operand(0)->shape()) +
                        ", which is not a valid matrix for it");
  }
  LapackFn fn = FindFactorization(name);
  if (fn == nullptr) fn = FindDecomposition(name);
  if (fn == nullptr) return Unsupported(instr, "unknown linear-algebra call " + target);
  return fn;
}

// The bytes of one array in LAPACK's element type, of precision R.
template <typename R, typename Fn>
decltype(auto) InNumbers(LapackArray::Kind kind, Fn&& fn) {
  if (kind == LapackArray::Kind::kInt) return fn.template operator()<int, int64_t>();
  if (kind == LapackArray::Kind::kReal) return fn.template operator()<R, double>();
  return fn.template operator()<std::complex<R>, Complex>();
}
using LapackBytes = std::vector<std::byte>;

template <typename R>
LapackBytes FromValue(const Value& value) {
  return InNumbers<R>(NumbersOf(value.type()), [&]<typename T, typename Wide>() {
    const std::vector<Wide> wide = ElementsAs<Wide>(value);
    LapackBytes bytes(wide.size() * sizeof(T));
    std::transform(wide.begin(), wide.end(), reinterpret_cast<T*>(bytes.data()),
                   [](const Wide& x) { return static_cast<T>(x); });
    return bytes;
  });
}
template <typename R>
Value ToValue(const Shape& shape, const LapackBytes& bytes, const Context& context) {
  return DispatchStorage(shape.type(), [&]<typename U>() {
    std::vector<U> elements(static_cast<size_t>(shape.ElementCount()));
    InNumbers<R>(NumbersOf(shape.type()), [&]<typename T, typename Wide>() {
      const T* from = reinterpret_cast<const T*>(bytes.data());
      for (size_t i = 0; i < elements.size(); ++i) {
        if constexpr (std::is_same_v<U, Complex> == std::is_same_v<Wide, Complex>)
          elements[i] = context.Round(shape.type(), static_cast<U>(from[i]));
      }
    });
    return Value::Array(ResultShape(shape, shape.dims()), std::move(elements));
  });
}

// Runs the call on interpreter values, computed in precision R.
template <typename R>
Result<Value> Evaluate(const Instr& instr, std::span<const Value> operands,
                       const Context& context) {
  std::vector<LapackBytes> bytes;
  std::vector<LapackArray> given, made;
  auto keep = [&](std::vector<LapackArray>& arrays, const Dims& dims, ElementType type,
                  LapackBytes all) {
    bytes.push_back(std::move(all));  // moving a vector does not move its elements
    arrays.push_back({&dims, NumbersOf(type), bytes.back().data()});
  };
  for (const Value& operand : operands)
    keep(given, operand.dims(), operand.type(), FromValue<R>(operand));
  const std::vector<Shape> parts = ResultShapesOf(instr.shape());
  for (const Shape& part : parts) {
    const size_t size =
        InNumbers<R>(NumbersOf(part.type()), []<typename T, typename>() { return sizeof(T); });
    keep(made, part.dims(), part.type(),
         LapackBytes(static_cast<size_t>(part.ElementCount()) * size));
  }
  LapackCall call{instr, given, made, std::is_same_v<R, double>, {}};
  TOK_TRY(LapackFn fn, FunctionOf(call));
  TOK_RETURN_IF_ERROR(fn(call));
  std::vector<Value> values;
  for (size_t i = 0; i < parts.size(); ++i)
    values.push_back(ToValue<R>(parts[i], bytes[operands.size() + i], context));
  return instr.shape().IsTuple() ? Value::Tuple(std::move(values)) : std::move(values[0]);
}

}  // namespace

int64_t LapackCall::Attr(std::string_view name, int64_t otherwise) const {
  const AttrValue* value = Find(instr.attrs<CustomCallAttrs>().backend_dict, name);
  if (value == nullptr) return otherwise;
  if (const IntAttr* number = value->As<IntAttr>()) return number->value;
  if (const bool* flag = value->As<bool>()) return *flag ? 1 : 0;
  return otherwise;
}

char LapackCall::Letter(std::string_view name, char otherwise) const {
  const AttrValue* value = Find(instr.attrs<CustomCallAttrs>().backend_dict, name);
  const IntAttr* letter = value == nullptr ? nullptr : value->As<IntAttr>();
  return letter == nullptr ? otherwise : static_cast<char>(letter->value);
}

bool IsLinearAlgebraCall(std::string_view target) {
  return target == "cu_lu_pivots_to_permutation" || target == "hip_lu_pivots_to_permutation" ||
         !LapackRoutineOf(target).empty();
}

Result<Value> EvalLinearAlgebraCall(const Instr& instr, std::span<const Value> operands,
                                    Context& context) {
  const std::string& target = instr.attrs<CustomCallAttrs>().target;
  if (operands.empty() || !operands[0].shape().IsArray() || instr.shape().HasDynamicDims())
    return Unsupported(instr, target + ": expected an array operand and results of static shape");
  if (target.ends_with("lu_pivots_to_permutation")) return PivotsToPermutation(instr, operands[0]);
  const ElementType type = operands[0].type();
  const bool is_single = context.mode() == NumericMode::kReference &&
                         (type == ElementType::kF32 || type == ElementType::kC64);
  return is_single ? Evaluate<float>(instr, operands, context)
                   : Evaluate<double>(instr, operands, context);
}

bool IsOfLapackArrays(const Instr& instr) {
  const std::string& target = instr.attrs<CustomCallAttrs>().target;
  if (instr.operand_count() == 0 || target.ends_with("lu_pivots_to_permutation")) return false;
  const Shape& first = instr.operand(0)->shape();
  if (!first.IsArray()) return false;
  const bool is_double = IsDouble(first.type());
  auto fits = [&](const Shape& shape) {
    if (!shape.IsStaticArray()) return false;
    const ElementType type = shape.type();
    if (type == ElementType::kS32) return true;
    const bool is_single = type == ElementType::kF32 || type == ElementType::kC64;
    return is_double ? IsDouble(type) : is_single;
  };
  bool all = first.type() != ElementType::kS32;
  for (const Instr* operand : instr.operands()) all = all && fits(operand->shape());
  for (const Shape& result : ResultShapesOf(instr.shape())) all = all && fits(result);
  return all;
}

bool IsLapackStep(const Instr& instr) {
  return instr.op() == Op::kCustomCall &&
         IsLinearAlgebraCall(instr.attrs<CustomCallAttrs>().target) && IsOfLapackArrays(instr);
}

std::vector<bool> WantedResults(const Instr& instr) {
  const bool all = !instr.shape().IsTuple() || instr.parent()->root() == &instr;
  std::vector<bool> wanted(instr.shape().IsTuple() ? instr.shape().elements().size() : 1, all);
  for (const Instr* user : instr.users()) {
    if (user->op() == Op::kGetTupleElement) {
      wanted[static_cast<size_t>(user->attrs<TupleIndexAttrs>().index)] = true;
    } else {
      wanted.assign(wanted.size(), true);
    }
  }
  return wanted;
}

LapackBatch BatchOf(const Instr& instr) {
  const Dims& dims = instr.operand(0)->shape().dims();
  const size_t rank =
      TakesDiagonals(LapackRoutineOf(instr.attrs<CustomCallAttrs>().target)) ? 1 : 2;
  LapackBatch batch{1, 1};
  int64_t least = INT64_MAX;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (d + rank < dims.size()) {
      batch.items *= dims[d];
    } else {
      batch.products *= static_cast<double>(dims[d]);
      least = std::min(least, dims[d]);
    }
  }
  if (rank == 2) batch.products *= static_cast<double>(least);
  return batch;
}

LapackRoutine::LapackRoutine(const Instr& instr) : instr_(instr), fn_(LapackFn{}) {
  auto add = [&](const Shape& shape) {
    arrays_.push_back({&shape.dims(), NumbersOf(shape.type()), nullptr});
  };
  for (const Instr* operand : instr.operands()) add(operand->shape());
  if (instr.shape().IsTuple())
    std::ranges::for_each(instr.shape().elements(), add);
  else
    add(instr.shape());
  fn_ = FunctionOf(CallOf(arrays_, {}));
}

LapackCall LapackRoutine::CallOf(std::span<const LapackArray> arrays, LapackRange items) const {
  const size_t given = instr_.operand_count();
  return {instr_, arrays.first(given), arrays.subspan(given),
          IsDouble(instr_.operand(0)->shape().type()), items};
}

Status LapackRoutine::Run(std::span<void* const> operands, std::span<void* const> results,
                          LapackRange items) const {
  if (!fn_.ok()) return fn_.error();
  std::vector<LapackArray> arrays = arrays_;
  for (size_t i = 0; i < operands.size(); ++i) arrays[i].data = operands[i];
  for (size_t i = 0; i < results.size(); ++i) arrays[operands.size() + i].data = results[i];
  return fn_.value()(CallOf(arrays, items));
}

}  // namespace tokamak
