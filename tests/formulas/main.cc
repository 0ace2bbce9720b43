// tok_formula_tests: the scalar formulas of src/kernel/formulas against the interpreter.
//
//   tok_formula_tests [OP]...      edges, all exponents and random numbers, of every type
//   tok_formula_tests --gpu [OP].. as a GPU computes them
//   tok_formula_tests --every N    also every N-th f32 number, for functions of one operand
//   tok_formula_tests --worst      prints the largest error of each function
//
// Integers, conversions and operations that IEEE 754 rounds must have the bits of the reference
// interpreter. Functions must have the accuracy of docs/numerics.md: f32 2 ulp, f64 4, complex 8 of
// the modulus, gamma-like 8 of max(|f|, 1); narrow types 1. The last line is a tally.

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "formulas/columns.h"
#include "formulas/reference.h"
#include "interp/interp.h"
#include "ir/builder.h"
#include "kernel/formulas.h"
#include "support/splitmix.h"

namespace tokamak {
namespace {

struct Options {
  bool worst = false;
  Dialect dialect = Dialect::kCpu;
  uint64_t every = 0;  // n: every n-th f32 number
  std::vector<std::string> ops;
};

// One op on operands of some types.
struct Case {
  Op op{};
  ElementType type{};  // of the result
  std::vector<ElementType> operands;
  Attrs attrs = {};
  std::string more = {};  // description of the attributes

  std::string Name() const {
    std::string name = fmt::format("{} {}", InfoOf(op).name, more);
    for (ElementType operand : operands) name += fmt::format(" {}", HloName(operand));
    return fmt::format("{} -> {}", name, HloName(type));
  }
};

int ComponentCountOf(ElementType type) {
  return IsComplex(type) ? 2 : 1;
}

// The formula of a case as kernel values: maps columns of operand bits to those of the result.
class Formula {
 public:
  Formula(const Case& of, Dialect dialect) : builder_("formula", dialect) {
    std::vector<Element> operands;
    std::vector<std::pair<ElementType, std::vector<ArrayId>>> arrays;
    for (ElementType type : of.operands) {
      std::vector<ArrayId> parts;
      for (int part = 0; part < ComponentCountOf(type); ++part)
        parts.push_back(builder_.Argument(
            {.name = "x", .type = StorageType(type), .access = Access::kRead, .size = 1}));
      arrays.emplace_back(type, parts);
    }
    for (const auto& [type, parts] : arrays) {
      Element loaded;
      for (size_t part = 0; part < parts.size(); ++part)
        loaded[part] = builder_.Load(parts[part], builder_.Index(0));
      operands.push_back(FromStorage(builder_, type, loaded));
    }
    ElementType from = of.op == Op::kSelect ? of.operands.back() : of.operands[0];
    std::optional<Element> result = ApplyOp(builder_, {of.op, of.type, from, operands, &of.attrs});
    if (!result) return;
    has_ = true;
    Element stored = ToStorage(builder_, of.type, *result);
    for (int part = 0; part < ComponentCountOf(of.type); ++part)
      roots_.push_back(stored[static_cast<size_t>(part)].id());
  }
  bool has() const { return has_; }
  ColumnEvaluator Evaluator() const { return {builder_.kernel(), roots_}; }

 private:
  KernelBuilder builder_;
  std::vector<ValueId> roots_;
  bool has_ = false;
};

// ---- reference semantics ------------------------------------------------------------------------

Value ValueOf(ElementType type, const Column* parts, size_t rows) {
  size_t width = static_cast<size_t>(BytesOf(RealPartOf(type)));
  size_t count = static_cast<size_t>(ComponentCountOf(type));
  std::vector<std::byte> bytes(rows * width * count);
  for (size_t i = 0; i < rows; ++i)
    for (size_t part = 0; part < count; ++part)
      std::memcpy(bytes.data() + (i * count + part) * width, &parts[part][i], width);
  Shape shape = Shape::Array(type, {static_cast<int64_t>(rows)});
  return ValueFromLiteral(Literal::Array(shape, Bytes::FromVector(std::move(bytes)))).value();
}

std::optional<Value> RunReference(const Case& of, std::span<const Column> columns,
                                  NumericMode mode) {
  Module module("m");
  Builder b(module, "main");
  size_t rows = columns[0].size(), next = 0;
  std::vector<Instr*> parameters;
  std::vector<Value> values;
  for (ElementType type : of.operands) {
    parameters.push_back(b.Parameter(Shape::Array(type, {static_cast<int64_t>(rows)})));
    values.push_back(ValueOf(type, &columns[next], rows));
    next += static_cast<size_t>(ComponentCountOf(type));
  }
  Builder::Extra extra;
  if (InfoOf(of.op).shape_rule == ShapeRule::kExplicit)
    extra.shape = Shape::Array(of.type, {static_cast<int64_t>(rows)});
  Instr* root = b.Append(of.op, parameters, of.attrs, extra);
  Result<Computation*> made = b.Finish(root);
  if (!made.ok()) return std::nullopt;
  Result<Value> result = InterpretComputation(*made.value(), values, mode);
  if (!result.ok()) return std::nullopt;
  return std::move(result.value());
}

// ---- inputs -------------------------------------------------------------------------------------

Bits MaskOf(ElementType part) {
  int bits = InfoOf(part).bits;
  return bits == 64 ? ~Bits{0} : (Bits{1} << bits) - 1;
}

std::vector<Bits> EdgesOf(ElementType part) {
  std::vector<Bits> edges;
  Bits mask = MaskOf(part);
  if (part == ElementType::kPred) return {0, 1};
  if (!IsReal(part)) {
    for (Bits x : {0, 1, 2, 3, 5, 7, 8, 31, 32, 63, 64, 127, 128, 255})
      edges.insert(edges.end(),
                   {x & mask, (~x) & mask, ((mask >> 1) - x) & mask, ((mask >> 1) + 1 + x) & mask});
    return edges;
  }
  const FloatFormat& format = FormatOf(part);
  Bits exponents = (Bits{1} << format.exponent_bits) - 1;
  int m = format.mantissa_bits;
  for (Bits exponent = 0; exponent <= exponents; exponent += exponents > 300 ? 9 : 1)
    for (Bits mantissa : {Bits{0}, Bits{1}, (Bits{1} << m) - 1, (Bits{1} << m) / 2})
      for (Bits sign : {Bits{0}, Bits{1}})
        edges.push_back(((sign << (m + format.exponent_bits)) | (exponent << m) |
                         (mantissa & ((Bits{1} << m) - 1))) &
                        mask);
  for (double x : {0.0,
                   0.5,
                   1.0,
                   1.5,
                   2.0,
                   2.5,
                   3.0,
                   4.0,
                   10.0,
                   88.7,
                   88.8,
                   89.5,
                   103.9,
                   127.5,
                   709.7,
                   745.2,
                   0.7853981633974483,
                   1.5707963267948966,
                   3.141592653589793,
                   2147483648.0,
                   4294967296.0,
                   0x1p63,
                   0x1p64,
                   32767.5,
                   65504.0,
                   255.5,
                   HUGE_VAL,
                   5.319372648326541e+255,
                   6381956970095103.0 * 0x1p797,
                   16367173.0 * 0x1p72}) {
    edges.push_back(EncodeFloat(part, x));
    edges.push_back(EncodeFloat(part, -x));
    edges.push_back(EncodeFloat(part, std::nextafter(static_cast<float>(x), 0.0f)));
  }
  edges.push_back(EncodeFloat(part, std::nan("")));
  return edges;
}

class Inputs {
 public:
  explicit Inputs(uint64_t seed) : random_(seed) {}

  Bits Random(ElementType part) {
    Bits raw = random_.Next();
    if (part == ElementType::kPred) return raw & 1;
    if (!IsReal(part) || raw % 2 == 0) return random_.Next() & MaskOf(part);
    static constexpr double kScales[] = {1, 1, 0.01, 4, 12, 100, 800, 1e4};
    double unit = static_cast<double>(static_cast<int64_t>(random_.Next())) * 0x1p-63;
    double x = unit * kScales[raw / 2 % 8];
    if (raw / 16 % 4 == 0) x = 1 + x * 0.1;
    return EncodeFloat(part, x);
  }

  // All pairs of edge values, then random rows.
  std::vector<Column> Make(const Case& of, size_t count) {
    std::vector<ElementType> parts;
    for (ElementType type : of.operands)
      for (int part = 0; part < ComponentCountOf(type); ++part) parts.push_back(RealPartOf(type));
    std::vector<Column> columns(parts.size());
    std::vector<std::vector<Bits>> edges;
    for (ElementType part : parts) edges.push_back(EdgesOf(part));
    size_t all = edges[0].size();
    size_t rows = parts.size() == 1 ? all : std::max<size_t>(all, 6000);
    for (size_t i = 0; i < rows; ++i)
      for (size_t p = 0; p < parts.size(); ++p)
        columns[p].push_back(parts.size() == 1 ? edges[p][i]
                                               : edges[p][random_.Next() % edges[p].size()]);
    for (size_t i = 0; i < count; ++i)
      for (size_t p = 0; p < parts.size(); ++p) columns[p].push_back(Random(parts[p]));
    return columns;
  }

 private:
  SplitMix64 random_;
};

// ---- checking -----------------------------------------------------------------------------------

class FormulaChecker {
 public:
  explicit FormulaChecker(const Options& options) : options_(options) {}

  void Run(const Case& of, std::span<const Column> columns) {
    Formula formula(of, options_.dialect);
    if (!formula.has()) {
      missing_.push_back(of.Name());
      return;
    }
    ColumnEvaluator evaluator = formula.Evaluator();
    std::vector<Column> results = evaluator.Run(columns);
    Compare(of, columns, results);
    for (const ColumnEvaluator::Open& open : evaluator.open()) {
      Fail(of, columns, open.row, fmt::format("meets an open {}", InfoOf(open.prim).text));
      break;
    }
    ++cases_;
    if (options_.worst && worst_ > 0)
      fmt::print("{:60} {:8.3f} ulp  ({} nodes)\n", of.Name(), worst_, evaluator.node_count());
    CompareEvaluators(of, formula, columns);
  }

  // A function of one f32 operand: checks every number.
  void RunAll(const Case& of) {
    Formula formula(of, options_.dialect);
    if (!formula.has()) return;
    ColumnEvaluator evaluator = formula.Evaluator();
    constexpr uint64_t kRows = 1 << 14;  // rows per batch (chosen: columns stay in the cache)
    double worst = 0;
    uint64_t every = options_.every;
    for (uint64_t first = 0; first < uint64_t{1} << 32; first += kRows * every) {
      Column column(kRows);
      for (uint64_t i = 0; i < kRows; ++i) column[i] = (first + i * every) & 0xffffffff;
      std::vector<Column> columns{column}, results = evaluator.Run(columns);
      Compare(of, columns, results);
      worst = std::max(worst, worst_);
    }
    fmt::print("{:60} {:8.3f} ulp  of every {}. f32\n", of.Name(), worst, every);
    std::fflush(stdout);
    ++cases_;
  }

  int Finish() const {
    for (const std::string& name : missing_) fmt::print("no formula: {}\n", name);
    fmt::print("formulas: {} cases, {} failed, {} without a formula\n", cases_, failed_,
               missing_.size());
    return failed_ == 0 ? 0 : 1;
  }

 private:
  void Compare(const Case& of, std::span<const Column> columns,
               const std::vector<Column>& results) {
    worst_ = 0;
    Tolerance tolerance = ToleranceOf(of.op, of.type, of.operands[0]);
    bool has_failed = false;
    if (tolerance.exact) {
      std::optional<Value> reference = RunReference(of, columns, NumericMode::kReference);
      if (!reference) return;
      Literal literal = LiteralFromValue(*reference);
      for (size_t i = 0; i < columns[0].size() && !has_failed; ++i)
        has_failed = !SameBits(of, columns, results, literal, i);
      return;
    }
    std::vector<Column> in(columns.begin(), columns.end());
    std::optional<Value> reference = RunReference(of, columns, NumericMode::kOracle);
    if (!reference) return;
    for (size_t i = 0; i < columns[0].size() && !has_failed; ++i) {
      Exact exact = IsComplex(of.type) ? ExactOf(reference->Data<Complex>()[i])
                                       : ExactOf(reference->Data<double>()[i]);
      if (IsBeyondSense(of.op, of.operands, in, i, exact)) continue;
      Refine(of.op, of.operands, in, i, exact);
      has_failed = !IsNear(of, columns, results, exact, tolerance, i);
    }
  }

  bool SameBits(const Case& of, std::span<const Column> columns, const std::vector<Column>& results,
                const Literal& reference, size_t row) {
    ElementType part = RealPartOf(of.type);
    size_t width = static_cast<size_t>(BytesOf(part)), count = results.size();
    for (size_t p = 0; p < count; ++p) {
      Bits expected = 0, got = results[p][row];
      size_t at = reference.is_splat() ? 0 : row;
      std::memcpy(&expected, reference.data().data() + (at * count + p) * width, width);
      if (got == expected || IsNanOperand(of, columns, row)) continue;
      if (IsReal(part) && std::isnan(DecodeFloat(part, got)) &&
          std::isnan(DecodeFloat(part, expected)))
        continue;
      Fail(of, columns, row, fmt::format("gives {:#x}, the reference {:#x}", got, expected));
      return false;
    }
    return true;
  }

  // NaN payloads are not preserved, so the bits of a NaN operand are unspecified.
  static bool IsNanOperand(const Case& of, std::span<const Column> columns, size_t row) {
    return of.op == Op::kBitcastConvert && IsReal(of.operands[0]) &&
           std::isnan(DecodeFloat(of.operands[0], columns[0][row]));
  }

  bool IsNear(const Case& of, std::span<const Column> columns, const std::vector<Column>& results,
              const Exact& exact, const Tolerance& tolerance, size_t row) {
    ElementType part = RealPartOf(of.type);
    double got[2] = {DecodeFloat(part, results[0][row]),
                     results.size() > 1 ? DecodeFloat(part, results[1][row]) : 0};
    double off = UlpsOff(part, got, exact, tolerance);
    if (off <= tolerance.ulps) {
      worst_ = std::max(worst_, off);
      return true;
    }
    std::string text =
        results.size() > 1
            ? fmt::format("gives ({}, {}), exactly ({}, {})", got[0], got[1],
                          static_cast<double>(exact.part[0]), static_cast<double>(exact.part[1]))
            : fmt::format("gives {}, exactly {}", got[0], static_cast<double>(exact.part[0]));
    Fail(of, columns, row, fmt::format("{}: {:.3g} ulp, allowed {}", text, off, tolerance.ulps));
    return false;
  }

  // Checks the fast evaluator of this test against EvaluatePrim.
  void CompareEvaluators(const Case& of, const Formula& formula, std::span<const Column> columns) {
    std::vector<Column> few;
    for (const Column& column : columns) {
      few.emplace_back();
      for (size_t i = 0; i < column.size(); i += 97) few.back().push_back(column[i]);
    }
    ColumnEvaluator fast = formula.Evaluator(), slow = formula.Evaluator();
    slow.set_slow(true);
    std::vector<Column> a = fast.Run(few), b = slow.Run(few);
    ElementType part = RealPartOf(of.type);
    for (size_t p = 0; p < a.size(); ++p)
      for (size_t i = 0; i < a[p].size(); ++i) {
        bool nans = IsReal(part) && std::isnan(DecodeFloat(part, a[p][i])) &&
                    std::isnan(DecodeFloat(part, b[p][i]));
        if (a[p][i] != b[p][i] && !nans)
          return Fail(of, few, i,
                      fmt::format("{:#x} by columns, {:#x} by primitives", a[p][i], b[p][i]));
      }
  }

  void Fail(const Case& of, std::span<const Column> columns, size_t row, const std::string& text) {
    ++failed_;
    std::string operands;
    size_t next = 0;
    for (ElementType type : of.operands)
      for (int part = 0; part < ComponentCountOf(type); ++part) {
        Bits bits = columns[next++][row];
        operands += IsReal(RealPartOf(type))
                        ? fmt::format(" {} ({:#x})", DecodeFloat(RealPartOf(type), bits), bits)
                        : fmt::format(" {:#x}", bits);
      }
    fmt::print("FAILED {}: of{} {}\n", of.Name(), operands, text);
    std::fflush(stdout);
  }

  const Options& options_;
  double worst_ = 0;
  int cases_ = 0, failed_ = 0;
  std::vector<std::string> missing_;
};

// ---- cases --------------------------------------------------------------------------------------

std::vector<ElementType> AllTypes() {
  return {
#define TOK_TYPE(id, ...) ElementType::k##id,
#include "ir/element_types.def"
  };
}

ElementType ResultOf(Op op, ElementType type) {
  switch (op) {
    case Op::kIsFinite:
    case Op::kIsInf:
    case Op::kIsPosInf:
    case Op::kIsNegInf:
    case Op::kCompare:
      return ElementType::kPred;
    case Op::kAbs:
    case Op::kReal:
    case Op::kImag:
      return RealPartOf(type);
    case Op::kComplex:
      return type == ElementType::kF64 ? ElementType::kC128 : ElementType::kC64;
    default:
      return type;
  }
}

void AddWithAttrs(std::vector<Case>& cases, Op op, ElementType type) {
  auto add = [&](ElementType result, std::vector<ElementType> operands, Attrs attrs,
                 std::string more) {
    cases.push_back({op, result, std::move(operands), std::move(attrs), std::move(more)});
  };
  if (op == Op::kCompare) {
    for (int direction = 0; direction < 6; ++direction) {
      auto way = static_cast<CompareDirection>(direction);
      bool has_order =
          !IsComplex(type) || way == CompareDirection::kEq || way == CompareDirection::kNe;
      if (has_order)
        add(ElementType::kPred, {type, type}, CompareAttrs{way, CompareType::kNone},
            fmt::format("{}", direction));
      if (IsReal(type))
        add(ElementType::kPred, {type, type}, CompareAttrs{way, CompareType::kTotalOrder},
            fmt::format("total {}", direction));
    }
  }
  if (op == Op::kReducePrecision)
    for (auto [exponent, mantissa] :
         {std::pair{8, 7}, {5, 10}, {4, 3}, {5, 2}, {8, 23}, {2, 1}, {11, 20}})
      add(type, {type}, ReducePrecisionAttrs{exponent, mantissa},
          fmt::format("e{}m{}", exponent, mantissa));
  if (op == Op::kConvert || op == Op::kBitcastConvert)
    for (ElementType to : AllTypes()) {
      auto bits = [](ElementType t) { return t == ElementType::kPred ? 8 : InfoOf(t).bits; };
      if (op == Op::kBitcastConvert &&
          (bits(to) != bits(type) || IsComplex(to) || IsComplex(type) || to == ElementType::kPred))
        continue;
      add(to, {type}, {}, "");
    }
  if (op == Op::kStochasticConvert && IsReal(type) && InfoOf(type).bits >= 16)
    for (ElementType to :
         {ElementType::kS8, ElementType::kU16, ElementType::kS32, ElementType::kU64}) {
      ElementType random = InfoOf(type).bits == 64   ? ElementType::kU64
                           : InfoOf(type).bits == 32 ? ElementType::kU32
                                                     : ElementType::kU16;
      add(to, {type, random}, {}, "");
    }
}

std::vector<Case> AllCases(const Options& options) {
  std::vector<Case> cases;
  for (const OpInfo& info : AllOps()) {
    bool is_covered = info.Is(kElementwise) || info.op == Op::kBitcastConvert;
    if (!is_covered || info.op == Op::kMap || info.op == Op::kUniformQuantize ||
        info.op == Op::kUniformDequantize)
      continue;
    bool is_asked = options.ops.empty();
    for (const std::string& name : options.ops) is_asked |= name == info.name;
    if (!is_asked) continue;
    if (info.op == Op::kThreefry2x32) {
      cases.push_back({info.op, ElementType::kU64, std::vector(4, ElementType::kU32)});
      continue;
    }
    for (ElementType type : AllTypes()) {
      if (!info.Takes(type)) continue;
      size_t before = cases.size();
      AddWithAttrs(cases, info.op, type);
      bool has_attrs = info.op == Op::kCompare || info.op == Op::kReducePrecision ||
                       info.op == Op::kConvert || info.op == Op::kBitcastConvert ||
                       info.op == Op::kStochasticConvert;
      if (has_attrs || cases.size() > before) continue;
      std::vector<ElementType> operands(static_cast<size_t>(info.arity), type);
      if (info.op == Op::kSelect) operands[0] = ElementType::kPred;
      cases.push_back({info.op, ResultOf(info.op, type), std::move(operands)});
    }
  }
  return cases;
}

// An op that the reference interpreter does not support for these types is not a case.
bool HasReference(const Case& of) {
  size_t parts = 0;
  for (ElementType type : of.operands) parts += static_cast<size_t>(ComponentCountOf(type));
  std::vector<Column> one(parts, Column{1});
  return RunReference(of, one, NumericMode::kReference).has_value();
}

int Main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word == "--every" && i + 1 < argc)
      options.every = std::strtoull(argv[++i], nullptr, 10);
    else if (word == "--gpu")
      options.dialect = Dialect::kGpu;
    else if (word == "--worst")
      options.worst = true;
    else
      options.ops.push_back(word);
  }
  FormulaChecker checker(options);
  Inputs inputs(17);
  for (const Case& of : AllCases(options)) {
    if (!HasReference(of)) continue;
    bool is_narrow = InfoOf(of.operands[0]).bits <= 16 && of.operands.size() == 1;
    std::vector<Column> columns = inputs.Make(of, CountFor(of.op, of.operands[0]));
    if (is_narrow) {  // all values
      columns[0].clear();
      for (Bits bits = 0;
           bits <= (of.operands[0] == ElementType::kPred ? 1 : MaskOf(of.operands[0])); ++bits)
        columns[0].push_back(bits);
    }
    checker.Run(of, columns);
    bool is_function = !ToleranceOf(of.op, of.type, of.operands[0]).exact;
    if (options.every > 0 && is_function && of.operands == std::vector{ElementType::kF32})
      checker.RunAll(of);
  }
  return checker.Finish();
}

}  // namespace
}  // namespace tokamak

int main(int argc, char** argv) {
  return tokamak::Main(argc, argv);
}
