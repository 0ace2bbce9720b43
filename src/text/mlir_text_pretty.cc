// Ops as StableHLO prints them, if the form is a list of operands and keywords:
//   stablehlo.pad %a, %b, low = [0], high = [1], interior = [0] {attributes} : (t, t) -> t

#include "text/mlir_ops.h"
#include "text/mlir_pretty.h"
#include "text/mlir_text.h"

namespace tokamak {
namespace {

AttrValue IntList(Dims values) {
  return {DenseArrayAttr{"i64", std::move(values), {}}};
}

}  // namespace

bool MlirTextReader::ParsePrettyOp(OpText& op, std::string_view name) {
  op.op = FindOp(name, op.pos);
  if (op.op == nullptr) return false;
  const MlirPretty& form = *op.op->form;
  switch (form.form) {
    case MlirForm::kItems:
      return ParseItems(op, form) && ParseOptionalAttrDict(op.attrs) && ParsePrettyTypes(op, form);
    case MlirForm::kCall:
      return ParseCallForm(op);
    case MlirForm::kConstant:
      return ParseConstantForm(op);
    case MlirForm::kCompare:
      return ParseCompareForm(op);
    case MlirForm::kSlice:
      return ParseSliceForm(op);
    case MlirForm::kTupleElement:
      return ParseTupleElementForm(op);
    case MlirForm::kReduce:
      return ParseReduceForm(op);
    case MlirForm::kWhile:
      return ParseWhileForm(op);
    case MlirForm::kConvolution:
      return ParseConvolutionForm(op);
    case MlirForm::kComposite:
      return ParseCompositeForm(op);
    case MlirForm::kScan:
      return ParseScanForm(op);
    case MlirForm::kTopK:
      return ParseTopKForm(op);
    case MlirForm::kSharding:
      return ParseShardingForm(op);
    case MlirForm::kManual:
      return ParseManualForm(op);
    case MlirForm::kNamed:
      return ParseNamedForm(op);
  }
  return false;
}

bool MlirTextReader::ParseItems(OpText& op, const MlirPretty& form) {
  bool parens = cursor_.Eat('(');
  if (parens && cursor_.Eat(')')) return true;
  for (bool first = true;; first = false) {
    char c = cursor_.Peek();
    if (c == '%') {
      if (!ParseOperand(op.operands, &op.operand_pos)) return false;
    } else if (cursor_.StartsWith("dense<") || cursor_.StartsWith("dense_resource<")) {
      MlirAttr& attr = op.attrs.emplace_back();
      attr.name = "value";
      AttrValue value;
      if (!ParseAttr(value)) return false;
      op.attrs.back().value = std::move(value);
    } else if (IsMlirWordStart(c)) {
      if (first && !parens && cursor_.StartsWith("loc(")) return true;  // return loc(...)
      // "attributes {...}" and the body of an op are parsed elsewhere.
      if (first && form.types != MlirTypes::kResult && op.operands.empty())
        return Expected("a value");
      if (!ParseKeyword(op)) return false;
    } else if (first) {
      return true;
    } else {
      return Expected("an operand or a keyword");
    }
    // sdy writes "%0 group_id=0" without a comma.
    if (cursor_.Eat(',')) continue;
    if (IsMlirWordStart(cursor_.Peek()) && op.op->name.starts_with("sdy.")) continue;
    break;
  }
  return !parens || Expect(')');
}

// name = value, or name = [0] x [1] for two attributes
bool MlirTextReader::ParseKeyword(OpText& op) {
  std::string_view keyword = cursor_.Word();
  std::string_view first, second;
  for (const auto& [printed, name] : op.op->keywords)
    if (printed == keyword) (first.empty() ? first : second) = name;
  if (!Expect('=')) return false;
  if (!second.empty()) return ParsePair(op, first, second);
  return ParseKeywordValue(op, first.empty() ? keyword : first, keyword);
}

bool MlirTextReader::ParsePair(OpText& op, std::string_view lhs, std::string_view rhs) {
  Dims left, right;
  if (!ParseIntList(left) || !Expect('x') || !ParseIntList(right)) return false;
  op.attrs.push_back({lhs, IntList(std::move(left))});
  op.attrs.push_back({rhs, IntList(std::move(right))});
  return true;
}

bool MlirTextReader::ParseKeywordValue(OpText& op, std::string_view attr,
                                       std::string_view keyword) {
  char c = cursor_.Peek();
  AttrValue value;
  if (c == '[') {
    MlirCursor::Mark mark = cursor_.Save();
    cursor_.Advance();
    char next = cursor_.Peek();
    cursor_.Restore(mark);
    if (IsMlirDigit(next) || next == '-' || next == ']') {
      Dims values;
      if (!ParseIntList(values)) return false;
      value = IntList(std::move(values));
    } else if (!ParseAttr(value)) {
      return false;
    }
  } else if (c == '<') {
    if (!ParseRecord("stablehlo.record", value)) return false;
  } else if (keyword == "format") {
    // e5m10
    int64_t exponent = 0, mantissa = 0;
    if (!Expect('e') || !ParseInt(exponent) || !Expect('m') || !ParseInt(mantissa)) return false;
    op.attrs.push_back({"exponent_bits", {IntAttr{.value = exponent}}});
    op.attrs.push_back({"mantissa_bits", {IntAttr{.value = mantissa}}});
    return true;
  } else if (IsMlirDigit(c) || c == '-') {
    // Not ParseNumber: the ':' that may follow begins the op's types.
    int64_t whole = 0;
    const char* at = cursor_.at() + 1;
    while (at < cursor_.end() && IsMlirDigit(*at)) ++at;
    bool real = at < cursor_.end() && (*at == '.' || *at == 'e');
    if (real) {
      double number = 0;
      auto read = std::from_chars(cursor_.at(), cursor_.end(), number);
      if (read.ec != std::errc{}) return Fail(ErrorCode::kMlirNumber, "a number is malformed");
      cursor_.Advance(static_cast<size_t>(read.ptr - cursor_.at()));
      value.value = FloatAttr{number, ElementType::kF64};
    } else {
      if (!ParseInt(whole)) return false;
      value.value = IntAttr{.value = whole};
    }
  } else if (c == '"') {
    if (!ParseString(value.value.emplace<std::string>())) return false;
  } else if (IsMlirWordStart(c)) {
    std::string_view word = cursor_.Word();
    if (word == "true" || word == "false") {
      value.value = word == "true";
    } else {
      value.value = EnumAttr{std::string(keyword), std::string(word)};
    }
  } else if (!ParseAttr(value)) {
    return false;
  }
  op.attrs.push_back({attr, std::move(value)});
  return true;
}

// "(t, t)", "()", or "t, t" without parentheses.
bool MlirTextReader::ParseTypeListTo(std::vector<Shape>& types) {
  bool parens = cursor_.Eat('(');
  if (parens && cursor_.Eat(')')) return true;
  do {
    if (!ParseType(types.emplace_back())) return false;
  } while (cursor_.Eat(','));
  return !parens || Expect(')');
}

// (t, t) -> t or (t, t) -> (t, t)
bool MlirTextReader::ParseFunctionalTypes(OpText& op) {
  op.has_types = true;
  if (cursor_.Peek() != '(') return Expected("'(' of the operands' types");
  if (!ParseTypeListTo(op.operand_types) || !Expect("->")) return false;
  if (cursor_.Peek() == '(') return ParseTypeListTo(op.results);
  return ParseType(op.results.emplace_back());
}

bool MlirTextReader::ParsePrettyTypes(OpText& op, const MlirPretty& form) {
  // A literal among the items already specified the type.
  bool has_literal =
      form.types == MlirTypes::kEach && !op.attrs.empty() && op.attrs.front().name == "value";
  if (!cursor_.Eat(':')) {
    bool fine = has_literal || (op.operands.empty() && form.types == MlirTypes::kOperands) ||
                (op.operands.empty() && form.types == MlirTypes::kPairwise);
    return fine || Expected("':'");
  }
  if (cursor_.Peek() == '(') return ParseFunctionalTypes(op);
  if (!ParseTypeListTo(op.operand_types)) return false;
  bool has_arrow = cursor_.Eat("->");
  if (has_arrow) {
    op.has_types = true;
    return ParseTypeListTo(op.results);
  }
  return AssignTypes(op, form, has_arrow);
}

bool MlirTextReader::AssignTypes(OpText& op, const MlirPretty& form, bool) {
  std::vector<Shape>& types = op.operand_types;
  const size_t count = op.operands.size();
  auto wrong = [&] {
    return FailAt(op.pos, ErrorCode::kMlirOperandTypes,
                  op.op->name + ": " + std::to_string(types.size()) + " types written for " +
                      std::to_string(count) + " operands");
  };
  op.has_types = true;
  switch (form.types) {
    case MlirTypes::kSame:
      if (types.size() != 1) return wrong();
      op.results.swap(types);
      op.same_types = true;
      return true;
    case MlirTypes::kSelect:
      if (types.size() != 2 || count != 3) return wrong();
      op.results = {types[1]};
      types.push_back(types[1]);
      return true;
    case MlirTypes::kComplex:
      if (types.size() != 1 || count != 2 || !types[0].IsArray() || !IsComplex(types[0].type()))
        return wrong();
      op.results = types;
      types.assign(2, types[0].WithType(RealPartOf(types[0].type())));
      return true;
    case MlirTypes::kPairwise:
      op.results = types;
      return true;
    case MlirTypes::kTuple: {
      if (types.size() != 1 || !types[0].IsTuple()) return wrong();
      op.results = types;
      std::vector<Shape> elements = op.results[0].elements();
      types = std::move(elements);
      return true;
    }
    case MlirTypes::kResult:
      op.results = std::move(types);
      types.clear();
      return true;
    case MlirTypes::kOperands:
      return true;
    case MlirTypes::kEach:
      if (types.empty()) return wrong();
      while (types.size() < count) types.push_back(types.back());
      types.resize(count, types[0]);
      return true;
  }
  return false;
}

}  // namespace tokamak
