// Builds programs by hand, for <tokamak/tokamak.h>.
//
//   tokamak::Builder b("scaled");
//   tokamak::Value x = b.Parameter({tokamak::Type::kF32, {2, 3}});
//   tokamak::Value y = b.Multiply(x, b.Tanh(x));
//   tokamak::Result<tokamak::Module> module = b.Build({y});
//
// The builder emits HLO text, which Build parses: shapes are inferred there, and the first error is
// Build's error, with the line of the calling program that created the op. Any HLO op can be
// created by name (docs/ops.md), with attributes in HLO syntax:
//
//   b.Op("sort", {x}, "dimensions={0}, is_stable=true, to_apply=" + less.name());
#pragma once

#include <charconv>
#include <cmath>
#include <deque>

#include <tokamak/program.h>

namespace tokamak {

// A value of the computation under construction.
class Value {
 public:
  Value() = default;

 private:
  friend class Body;
  explicit Value(int64_t id) : id_(id) {}
  int64_t id_ = -1;
};

// A line of the calling program, quoted in errors and explanations.
struct Where {
  const char* file = "";
  int64_t line = 0;
  static constexpr Where Here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

// One computation.
class Body {
 public:
  const std::string& name() const { return name_; }

  Value Parameter(const Shape& shape, Where where = Where::Here()) {
    return Line(ToString(shape) + " parameter(" + std::to_string(parameters_++) + ")", where);
  }
  // T is float, double, an integer or bool.
  template <typename T>
  Value Constant(std::span<const T> elements, const std::vector<int64_t>& dims,
                 Where where = Where::Here()) {
    size_t next = 0;
    std::string text = Nested<T>(elements, dims, 0, next);
    return Line(ToString({TypeOf<T>(), dims}) + " constant(" + text + ")", where);
  }
  template <typename T>
  Value Scalar(T value, Where where = Where::Here()) {
    return Constant<T>(std::span<const T>(&value, 1), {}, where);
  }

  // Any HLO op. A shape is required if it does not follow from the operands and attributes.
  Value Op(std::string_view op, const std::vector<Value>& operands,
           const std::string& attributes = "", const Shape* shape = nullptr,
           Where where = Where::Here()) {
    std::string text = shape == nullptr ? "" : ToString(*shape) + " ";
    text += std::string(op) + "(";
    for (size_t i = 0; i < operands.size(); ++i) text += (i == 0 ? "" : ", ") + NameOf(operands[i]);
    text += ")";
    return Line(text + (attributes.empty() ? "" : ", " + attributes), where);
  }

#define TOK_UNARY(Name, op)                          \
  Value Name(Value x, Where where = Where::Here()) { \
    return Op(op, {x}, "", nullptr, where);          \
  }
  TOK_UNARY(Abs, "abs")
  TOK_UNARY(Cosine, "cosine")
  TOK_UNARY(Exp, "exponential")
  TOK_UNARY(Floor, "floor")
  TOK_UNARY(Log, "log")
  TOK_UNARY(Logistic, "logistic")
  TOK_UNARY(Negate, "negate")
  TOK_UNARY(Not, "not")
  TOK_UNARY(Rsqrt, "rsqrt")
  TOK_UNARY(Sign, "sign")
  TOK_UNARY(Sine, "sine")
  TOK_UNARY(Sqrt, "sqrt")
  TOK_UNARY(Tanh, "tanh")
#undef TOK_UNARY
#define TOK_BINARY(Name, op)                                  \
  Value Name(Value x, Value y, Where where = Where::Here()) { \
    return Op(op, {x, y}, "", nullptr, where);                \
  }
  TOK_BINARY(Add, "add")
  TOK_BINARY(And, "and")
  TOK_BINARY(Divide, "divide")
  TOK_BINARY(Maximum, "maximum")
  TOK_BINARY(Minimum, "minimum")
  TOK_BINARY(Multiply, "multiply")
  TOK_BINARY(Or, "or")
  TOK_BINARY(Power, "power")
  TOK_BINARY(Remainder, "remainder")
  TOK_BINARY(Subtract, "subtract")
  TOK_BINARY(Xor, "xor")
#undef TOK_BINARY

  // direction: EQ, NE, LT, LE, GT, GE.
  Value Compare(Value x, Value y, const std::string& direction, Where where = Where::Here()) {
    return Op("compare", {x, y}, "direction=" + direction, nullptr, where);
  }
  Value Select(Value condition, Value x, Value y, Where where = Where::Here()) {
    return Op("select", {condition, x, y}, "", nullptr, where);
  }
  Value Convert(Value x, const Shape& shape, Where where = Where::Here()) {
    return Op("convert", {x}, "", &shape, where);
  }
  // Dimension i of x becomes dimension `dimensions[i]` of the result.
  Value Broadcast(Value x, const Shape& shape, const std::vector<int64_t>& dimensions,
                  Where where = Where::Here()) {
    return Op("broadcast", {x}, "dimensions=" + List(dimensions), &shape, where);
  }
  Value Reshape(Value x, const Shape& shape, Where where = Where::Here()) {
    return Op("reshape", {x}, "", &shape, where);
  }
  Value Transpose(Value x, const std::vector<int64_t>& permutation, Where where = Where::Here()) {
    return Op("transpose", {x}, "dimensions=" + List(permutation), nullptr, where);
  }
  Value Iota(const Shape& shape, int64_t dimension, Where where = Where::Here()) {
    return Op("iota", {}, "iota_dimension=" + std::to_string(dimension), &shape, where);
  }
  // `body` takes two scalars and returns one.
  Value Reduce(Value x, Value init, const std::vector<int64_t>& dimensions, const Body& body,
               Where where = Where::Here()) {
    return Op("reduce", {x, init}, "dimensions=" + List(dimensions) + ", to_apply=" + body.name(),
              nullptr, where);
  }
  // The product of two matrices.
  Value Dot(Value x, Value y, Where where = Where::Here()) {
    return Op("dot", {x, y}, "lhs_contracting_dims={1}, rhs_contracting_dims={0}", nullptr, where);
  }
  // condition and body take the state, a value or a tuple; they return a pred and the next state.
  Value While(Value state, const Body& condition, const Body& body, Where where = Where::Here()) {
    return Op("while", {state}, "condition=" + condition.name() + ", body=" + body.name(), nullptr,
              where);
  }
  Value Tuple(const std::vector<Value>& elements, Where where = Where::Here()) {
    return Op("tuple", elements, "", nullptr, where);
  }
  Value Element(Value tuple, int64_t index, Where where = Where::Here()) {
    return Op("get-tuple-element", {tuple}, "index=" + std::to_string(index), nullptr, where);
  }
  // Sets the results of the computation.
  void Return(Value root) {
    root_ = root.id_;
  }

  // "{1,0}": a list in attribute syntax.
  static std::string List(const std::vector<int64_t>& numbers) {
    std::string text;
    for (int64_t number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
    return "{" + text + "}";
  }

 protected:
  explicit Body(std::string name) : name_(std::move(name)) {}

  // Appends the text of the computation, and to `locations` one location per line.
  void Write(std::string& text, std::vector<Where>& locations, bool is_entry) const {
    text += std::string(is_entry ? "ENTRY " : "") + name_ + " {\n";
    locations.push_back(Where());
    for (size_t i = 0; i < lines_.size(); ++i) {
      bool is_root = root_ == static_cast<int64_t>(i);
      text += std::string(is_root ? "  ROOT " : "  ") + NameOf(Value(static_cast<int64_t>(i))) +
              " = " + lines_[i] + "\n";
      locations.push_back(locations_[i]);
    }
    text += "}\n";
    locations.push_back(Where());
  }

 private:
  std::string NameOf(Value value) const {
    return name_ + ".v" + std::to_string(value.id_);
  }

  Value Line(const std::string& text, const Where& where) {
    std::string file;
    for (const char* c = where.file; *c != '\0'; ++c) {
      if (*c == '"' || *c == '\\') file += '\\';
      file += *c;
    }
    lines_.push_back(text + ", metadata={source_file=\"" + file +
                     "\" source_line=" + std::to_string(where.line) + "}");
    locations_.push_back(where);
    return Value(static_cast<int64_t>(lines_.size()) - 1);
  }

  template <typename T>
  static std::string Number(T value) {
    if constexpr (std::is_same_v<T, bool>) {
      return value ? "true" : "false";
    } else {
      if constexpr (std::is_floating_point_v<T>) {
        if (std::isnan(value)) return "nan";
        if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
      }
      char digits[40];
      return std::string(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
    }
  }

  template <typename T>
  static std::string Nested(std::span<const T> elements, const std::vector<int64_t>& dims,
                            size_t depth, size_t& next) {
    if (depth == dims.size()) return next < elements.size() ? Number(elements[next++]) : "";
    std::string text = "{";
    for (int64_t i = 0; i < dims[depth]; ++i)
      text += (i == 0 ? "" : ",") + Nested(elements, dims, depth + 1, next);
    return text + "}";
  }

  std::string name_;
  std::vector<std::string> lines_;
  std::vector<Where> locations_;
  int64_t root_ = -1, parameters_ = 0;
};

// A module builder; the builder itself builds the entry computation.
class Builder : public Body {
 public:
  explicit Builder(std::string name) : Body(std::move(name)) {}

  // Adds a computation for reduce, while, sort ... to call. It lives as long as the builder.
  Body& AddBody(const std::string& name) { return bodies_.emplace_back(name); }

  // HLO text of the module. Several results become a tuple.
  std::string Text() const {
    std::vector<Where> locations;
    return Text(locations);
  }
  // The module whose entry returns these values.
  Result<Module> Build(const std::vector<Value>& results, Where where = Where::Here()) {
    Return(results.size() == 1 ? results[0] : Tuple(results, where));
    std::vector<Where> locations;
    Result<Module> module = Module::FromBytes(Text(locations), name());
    if (module.ok()) return module;
    Error error = module.error();
    auto line = static_cast<size_t>(error.line());
    if (line >= 1 && line <= locations.size() && locations[line - 1].line > 0)
      error.AddNote(std::string("from ") + locations[line - 1].file + ":" +
                    std::to_string(locations[line - 1].line));
    return error;
  }

 private:
  struct Named : Body {
    explicit Named(std::string name) : Body(std::move(name)) {}
    using Body::Write;
  };

  std::string Text(std::vector<Where>& locations) const {
    std::string text = "HloModule " + name() + "\n\n";
    locations.assign(2, Where());
    for (const Named& body : bodies_) body.Write(text, locations, false);
    Write(text, locations, true);
    return text;
  }

  std::deque<Named> bodies_;
};

}  // namespace tokamak
