// The check and interpreter dialects of StableHLO: expectations inside a program, probes, prints.

#include "interp/checks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "interp/evaluators.h"
#include "interp/host.h"

namespace tokamak {
namespace {

constexpr int64_t kDefaultUlps = 3;  // expect_close: the default of StableHLO's check dialect
// expect_almost_eq and expect_almost_eq_const: the defaults of StableHLO's check dialect.
constexpr double kDefaultTolerance = 1e-3, kDefaultConstTolerance = 1e-4;

std::string NumberText(double x) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.9g", x);
  return text.data();
}

bool Same(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

bool AlmostSame(const CheckAttrs& check, double a, double b) {
  if (Same(a, b)) return true;
  if (!std::isfinite(a) || !std::isfinite(b)) return false;
  double tolerance = check.tolerance >= 0         ? check.tolerance
                     : check.expected.has_value() ? kDefaultConstTolerance
                                                  : kDefaultTolerance;
  // Tolerances are decimal: 5 and 5.0001 differ by 1e-4 even if their doubles differ by slightly
  // more.
  constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
  double slack = 2 * kEpsilon * std::max(std::fabs(a), std::fabs(b));
  return std::fabs(a - b) <= tolerance + slack;
}

bool PassesReal(const CheckAttrs& check, ElementType type, double a, double b) {
  switch (check.kind) {
    case CheckKind::kEqual:
    case CheckKind::kSerializedEqual:
      return Same(a, b);
    case CheckKind::kAlmostEqual:
      return AlmostSame(check, a, b);
    case CheckKind::kClose: {
      if (std::isnan(a) != std::isnan(b)) return false;
      uint64_t ulps = UlpDistance(type, a, b);
      return ulps >= static_cast<uint64_t>(check.min_ulps.value_or(0)) &&
             ulps <= static_cast<uint64_t>(check.max_ulps.value_or(kDefaultUlps));
    }
  }
  return false;
}

template <typename T>
bool Passes(const CheckAttrs& check, ElementType type, T a, T b) {
  if constexpr (std::is_same_v<T, double>) {
    return PassesReal(check, type, a, b);
  } else if constexpr (std::is_same_v<T, Complex>) {
    ElementType part = RealPartOf(type);
    return PassesReal(check, part, a.real(), b.real()) &&
           PassesReal(check, part, a.imag(), b.imag());
  } else {
    return a == b;
  }
}

std::string IndexText(const Dims& dims, int64_t i) {
  std::string text;
  for (size_t d = dims.size(); d-- > 0;) {
    text = std::to_string(i % dims[d]) + (text.empty() ? "" : ",") + text;
    i /= dims[d];
  }
  return "[" + text + "]";
}

std::string CompareTuples(const CheckAttrs& check, const Value& got, const Value& expected) {
  if (!expected.shape().IsTuple() || got.elements().size() != expected.elements().size())
    return "got " + ToString(got.shape()) + ", expected " + ToString(expected.shape());
  for (size_t i = 0; i < got.elements().size(); ++i) {
    std::string text = CompareForCheck(check, got.elements()[i], expected.elements()[i]);
    if (!text.empty()) return "element " + std::to_string(i) + " of a tuple: " + text;
  }
  return {};
}

// The rows of an array as the StableHLO interpreter prints them.
std::string RowsText(const Value& value, size_t dimension, int64_t first, int64_t count) {
  const Dims& dims = value.dims();
  std::string indent(2 * (dimension + 1), ' '), text = indent + "[";
  bool last = dimension + 1 == dims.size();
  int64_t size = dims[dimension], inner = size == 0 ? 0 : count / size;
  for (int64_t i = 0; i < size; ++i) {
    if (last) {
      text += (i > 0 ? ", " : "") + ElementText(value, first + i);
    } else {
      text += (i > 0 ? ",\n" : "\n") + RowsText(value, dimension + 1, first + i * inner, inner);
    }
  }
  return text + (last || size == 0 ? "]" : "\n" + indent + "]");
}

std::string PrintText(const Value& value) {
  if (!value.shape().IsArray()) return ToString(value.shape());
  std::string type = "tensor<";
  for (int64_t dim : value.dims()) type += std::to_string(dim) + "x";
  type += std::string(InfoOf(value.type()).mlir) + ">";
  if (value.dims().empty()) return type + " {" + ElementText(value, 0) + "}";
  return type + " {\n" + RowsText(value, 0, 0, value.ElementCount()) + "\n}";
}

Value ResultOf(const Instr& instr, bool passed) {
  if (instr.shape().IsArray())
    return Value::Array(instr.shape(), std::vector<uint8_t>{static_cast<uint8_t>(passed)});
  return Value();
}

// Whether each element passes.
Value ElementsThatPass(const Value& got, const Value& expected) {
  std::vector<uint8_t> passed(static_cast<size_t>(got.ElementCount()));
  DispatchStorage(got.type(), [&]<typename T>() {
    auto a = got.Data<T>(), b = expected.Data<T>();
    for (size_t i = 0; i < passed.size(); ++i) passed[i] = Passes<T>({}, got.type(), a[i], b[i]);
    return 0;
  });
  return Value::Array(Shape::Array(ElementType::kPred, got.dims()), std::move(passed));
}

// `text` describes the difference; nullopt if the check holds.
std::optional<Error> CheckFailure(const Instr& instr, const std::string& name,
                                  const std::string& text) {
  if (text.empty()) return std::nullopt;
  return MakeError(ErrorCode::kCheckFailed, name + ": " + text, SpanOf(instr));
}

}  // namespace

uint64_t UlpDistance(ElementType type, double a, double b) {
  if (Same(a, b)) return 0;
  const FloatFormat& format = FormatOf(type);
  uint64_t sign = uint64_t{1} << (format.exponent_bits + format.mantissa_bits);
  auto bits = [&](double x) { return EncodeFloat(type, std::fabs(x)) & ~sign; };
  uint64_t x = bits(a), y = bits(b);
  if (std::signbit(a) != std::signbit(b)) return x + y;
  return x > y ? x - y : y - x;
}

std::string ElementText(const Value& value, int64_t i) {
  switch (KindOf(value.type())) {
    case TypeKind::kBool:
      return value.IntAt(i) != 0 ? "true" : "false";
    case TypeKind::kSigned:
      return std::to_string(value.IntAt(i));
    case TypeKind::kUnsigned:
      return std::to_string(static_cast<uint64_t>(value.IntAt(i)));
    case TypeKind::kReal:
      return NumberText(value.DoubleAt(i));
    case TypeKind::kComplex: {
      Complex z = value.Data<Complex>()[static_cast<size_t>(i)];
      return "(" + NumberText(z.real()) + ", " + NumberText(z.imag()) + ")";
    }
  }
  return {};
}

std::string CompareForCheck(const CheckAttrs& check, const Value& got, const Value& expected) {
  if (got.shape().IsTuple()) return CompareTuples(check, got, expected);
  if (!got.shape().IsArray() && !expected.shape().IsArray()) return {};
  if (!got.shape().IsArray() || !expected.shape().IsArray() || got.type() != expected.type() ||
      got.dims() != expected.dims())
    return "got " + ToString(got.shape()) + ", expected " + ToString(expected.shape());
  return DispatchStorage(got.type(), [&]<typename T>() -> std::string {
    std::span<const T> a = got.Data<T>(), b = expected.Data<T>();
    int64_t misses = 0, first = -1;
    for (size_t i = 0; i < a.size(); ++i) {
      if (Passes(check, got.type(), a[i], b[i])) continue;
      if (misses++ == 0) first = static_cast<int64_t>(i);
    }
    if (misses == 0) return {};
    return std::to_string(misses) + " of " + std::to_string(a.size()) + " elements differ, first " +
           IndexText(got.dims(), first) + ": got " + ElementText(got, first) + ", expected " +
           ElementText(expected, first);
  });
}

Result<Value> EvalCheck(const Instr& instr, std::span<const Value> operands, Context& context) {
  const CheckAttrs& attrs = instr.attrs<CheckAttrs>();
  Value expected;
  if (attrs.kind == CheckKind::kSerializedEqual) {
    if (context.host == nullptr) return Unsupported(instr, "needs a host");
    TOK_TRY(expected,
            context.host->ReadProbe(attrs.probe_id, attrs.iteration, operands[0].shape()));
  } else if (attrs.expected.has_value()) {
    TOK_TRY(expected, ValueFromLiteral(*attrs.expected));
  } else {
    expected = operands[1];
  }
  // Both argument orders, (expected, got) and (got, expected), occur: the message prints both
  // values.
  std::string text = CompareForCheck(attrs, operands[0], expected);
  context.ReportCheck(CheckFailure(instr, "check." + std::string(TextOf(attrs.kind)), text));
  return ResultOf(instr, text.empty());
}

Result<Value> EvalCheckEq(const Instr& instr, std::span<const Value> operands, Context& context) {
  std::string text = CompareForCheck({}, operands[0], operands[1]);
  context.ReportCheck(CheckFailure(instr, "check.eq", text));
  bool by_element = instr.shape().IsArray() && instr.shape().rank() > 0;
  if (by_element && operands[0].dims() == operands[1].dims())
    return ElementsThatPass(operands[0], operands[1]);
  return ResultOf(instr, text.empty());
}

Result<Value> EvalProbe(const Instr& instr, std::span<const Value> operands, Context& context) {
  if (context.host == nullptr) return Unsupported(instr, "needs a host");
  TOK_RETURN_IF_ERROR(context.host->WriteProbe(instr.attrs<ProbeAttrs>().id, operands[0]));
  return TakeOperand(operands, 0);
}

Result<Value> EvalPrint(const Instr& instr, std::span<const Value> operands, Context& context) {
  if (context.host == nullptr) return Unsupported(instr, "needs a host");
  std::string name = instr.operand(0)->name();
  context.host->Print("%" + (name.empty() ? "value" : name) + " = " + PrintText(operands[0]) +
                      "\n");
  return Value();
}

}  // namespace tokamak
