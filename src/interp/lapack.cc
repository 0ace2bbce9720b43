// Names and attributes of linear-algebra calls; the calls themselves are in
// lapack_factor.cc and lapack_eigen.cc.

#include "interp/lapack.h"

#include <numeric>
#include <string>

#include "interp/results.h"
#include "interp/strided.h"

namespace tokamak {
namespace {

// "lapack_sgetrf_ffi" -> "getrf"; "" when it is not such a name.
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

// Row swaps one after the other, as a permutation of the rows.
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

// LAPACK stops the process at a letter that it does not know.
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
                          ", allowed are the letters " + std::string(allowed));
    }
  }
  return Ok();
}

bool TakesSquare(std::string_view name) {
  return name == "potrf" || name == "gehrd" || name == "sytrd" || name == "syevd" ||
         name == "eigh" || name == "geev" || name == "gees";
}

std::string NameOf(std::string_view target) {
  if (target == "Qr") return "geqrf";
  if (target == "ProductOfElementaryHouseholderReflectors") return "orgqr";
  if (target == "LuDecomposition") return "lu";
  if (target == "Eigh") return "eigh";
  if (target == "tridiagonal_solve_perturbed_ffi") return "tridiagonal_solve_perturbed";
  return LapackName(target);
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
         !NameOf(target).empty();
}

Result<Value> EvalLinearAlgebraCall(const Instr& instr, std::span<const Value> operands,
                                    Context& context) {
  const std::string& target = instr.attrs<CustomCallAttrs>().target;
  if (operands.empty() || !operands[0].shape().IsArray() || instr.shape().HasDynamicDims())
    return Unsupported(instr, target + " is given no array, or results of unknown size");
  if (target.ends_with("lu_pivots_to_permutation")) return PivotsToPermutation(instr, operands[0]);
  for (const Value& operand : operands) {
    for (int64_t d : operand.dims()) {
      if (d > INT32_MAX / 64) return Unsupported(instr, target + " of so large a matrix");
    }
  }
  std::string name = NameOf(target);
  TOK_RETURN_IF_ERROR(CheckLetters(instr));
  const Dims& dims = operands[0].dims();
  bool square = dims.size() >= 2 && dims[dims.size() - 1] == dims[dims.size() - 2];
  if ((dims.size() < 2 && name != "gtsv" && name != "tridiagonal_solve_perturbed") ||
      (TakesSquare(name) && !square)) {
    return RunError(
        ErrorCode::kLinearAlgebra, instr,
        target + " of " + ToString(operands[0].shape()) + ", which is no matrix for it");
  }
  LapackFn fn = FindFactorization(name);
  if (fn == nullptr) fn = FindDecomposition(name);
  if (fn == nullptr) {
    return Unsupported(instr, "no linear-algebra call is named " + target);
  }
  return fn(LapackCall{instr, operands, context, IsComplex(operands[0].type())});
}

}  // namespace tokamak
