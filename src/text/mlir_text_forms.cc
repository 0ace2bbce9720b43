// Ops with a unique printed form.

#include "text/mlir_ops.h"
#include "text/mlir_text.h"

namespace tokamak {

// @target(%a, %b) {attributes} : (t, t) -> t
bool MlirTextReader::ParseCallForm(OpText& op) {
  MlirAttr& callee = op.attrs.emplace_back();
  callee.name = op.op->action == MlirAction::kCall ? "callee" : "call_target_name";
  if (!ParseSymbol(callee.value.value.emplace<std::string>())) return false;
  if (!Expect('(') || !ParseOperandList(op, ')')) return false;
  return ParseOptionalAttrDict(op.attrs) && Expect(':') && ParseFunctionalTypes(op);
}

// {attributes} dense<...> : t, or () <{value = dense<...>}> : () -> t
bool MlirTextReader::ParseConstantForm(OpText& op) {
  if (cursor_.Peek() == '(') return ParseGenericOp(op);
  if (!ParseOptionalAttrDict(op.attrs)) return false;
  AttrValue value;
  TextPos pos = cursor_.Pos();
  if (!ParseAttr(value)) return false;
  const auto* literal = value.As<Literal>();
  if (literal == nullptr)
    return FailAt(pos, ErrorCode::kMlirConstant, op.op->name + ": expected dense elements");
  op.results.push_back(literal->shape());
  op.attrs.push_back({"value", std::move(value)});
  return true;
}

// LT, %a, %b, FLOAT : (t, t) -> t
bool MlirTextReader::ParseCompareForm(OpText& op) {
  std::string_view direction = cursor_.Word();
  if (direction.empty()) return Expected("a direction of comparison");
  op.attrs.push_back({"comparison_direction", {EnumAttr{"", std::string(direction)}}});
  if (!Expect(',') || !ParseOperand(op.operands, &op.operand_pos) || !Expect(',') ||
      !ParseOperand(op.operands, &op.operand_pos))
    return false;
  if (cursor_.Eat(',')) {
    std::string_view type = cursor_.Word();
    if (type.empty()) return Expected("a type of comparison");
    op.attrs.push_back({"compare_type", {EnumAttr{"", std::string(type)}}});
  }
  return ParseOptionalAttrDict(op.attrs) && Expect(':') && ParseFunctionalTypes(op);
}

// %a [0:4, 1:9:2] : (t) -> t
bool MlirTextReader::ParseSliceForm(OpText& op) {
  DenseArrayAttr starts{"i64", {}, {}}, limits = starts, strides = starts;
  if (!ParseOperand(op.operands, &op.operand_pos) || !Expect('[')) return false;
  while (cursor_.Peek() != ']') {
    int64_t stride = 1;
    if (!ParseInt(starts.ints.emplace_back()) || !Expect(':') ||
        !ParseInt(limits.ints.emplace_back()))
      return false;
    if (cursor_.Eat(':') && !ParseInt(stride)) return false;
    strides.ints.push_back(stride);
    if (!cursor_.Eat(',')) break;
  }
  if (!Expect(']')) return false;
  op.attrs.push_back({"start_indices", {std::move(starts)}});
  op.attrs.push_back({"limit_indices", {std::move(limits)}});
  op.attrs.push_back({"strides", {std::move(strides)}});
  return ParseOptionalAttrDict(op.attrs) && Expect(':') && ParseFunctionalTypes(op);
}

// %a[1] : (tuple<t>) -> t
bool MlirTextReader::ParseTupleElementForm(OpText& op) {
  int64_t index = 0;
  if (!ParseOperand(op.operands, &op.operand_pos) || !Expect('[') || !ParseInt(index) ||
      !Expect(']'))
    return false;
  op.attrs.push_back({"index", {IntAttr{.value = index, .type = "i32"}}});
  return ParseOptionalAttrDict(op.attrs) && Expect(':') && ParseFunctionalTypes(op);
}

// (%a init: %b), (%c init: %d) applies stablehlo.add across dimensions = [0] : types
// (%a init: %b) across dimensions = [0] : types reducer(%x: t, %y: t) { ops }
bool MlirTextReader::ParseReduceForm(OpText& op) {
  std::vector<Instr*> inits;
  std::vector<TextPos> init_pos;
  do {
    if (!Expect('(') || !ParseOperand(op.operands, &op.operand_pos) || !Expect("init") ||
        !Expect(':') || !ParseOperand(inits, &init_pos) || !Expect(')'))
      return false;
  } while (cursor_.Eat(','));
  const size_t inputs = inits.size();
  op.operands.insert(op.operands.end(), inits.begin(), inits.end());
  op.operand_pos.insert(op.operand_pos.end(), init_pos.begin(), init_pos.end());
  importer_.Localize(op.operands);
  const MlirOp* applied = nullptr;
  if (cursor_.EatWord("applies")) {
    TextPos pos = cursor_.Pos();
    applied = FindOp(cursor_.Word(), pos);
    if (applied == nullptr) return false;
  }
  Dims dimensions;
  if (!Expect("across") || !Expect("dimensions") || !Expect('=') || !ParseIntList(dimensions))
    return false;
  op.attrs.push_back({"dimensions", {DenseArrayAttr{"i64", std::move(dimensions), {}}}});
  if (!ParseOptionalAttrDict(op.attrs) || !Expect(':') || !ParseFunctionalTypes(op)) return false;
  if (applied == nullptr) return ParseReducer(op, inputs);

  importer_.BeginRegions(*op.op);
  if (!Take(importer_.BeginRegion(op.pos))) return false;
  std::vector<Instr*> sides, result;
  const Shape& scalar = op.operands[inputs]->shape();
  for (size_t i = 0; i < 2; ++i) {
    Result<Instr*> side = importer_.AddArgument(scalar, {}, {}, op.pos);
    if (!side.ok()) return Take(std::move(side.error()));
    sides.push_back(side.value());
  }
  MlirOpInput body{.op = applied, .operands = sides, .results = {&scalar, 1}, .pos = op.pos};
  if (!Take(importer_.AddOp(body, result))) return false;
  MlirOpInput end{.op = FindMlirOp("stablehlo.return"), .operands = result, .pos = op.pos};
  if (!Take(importer_.AddOp(end, result))) return false;
  Result<Computation*> region = importer_.EndRegion(op.pos);
  if (!region.ok()) return Take(std::move(region.error()));
  op.regions.push_back(region.value());
  importer_.EndRegions();
  return true;
}

// The printed pairs (x0, y0) (x1, y1) are the arguments x0, x1, y0, y1.
bool MlirTextReader::ParseReducer(OpText& op, size_t inputs) {
  if (!Expect("reducer")) return false;
  std::vector<std::pair<std::string_view, Shape>> arguments(inputs * 2);
  for (size_t i = 0; i < inputs; ++i) {
    if (!Expect('(')) return false;
    for (size_t side = 0; side < 2; ++side) {
      auto& [name, shape] = arguments[side * inputs + i];
      OriginId skipped = OriginId::kNone;
      if (side == 1 && !Expect(',')) return false;
      if (!Expect('%')) return false;
      name = cursor_.Name();
      if (!Expect(':') || !ParseType(shape) || !ParseOptionalLoc(skipped)) return false;
    }
    if (!Expect(')')) return false;
  }
  importer_.BeginRegions(*op.op);
  if (!Take(importer_.BeginRegion(cursor_.Pos())) || !ParseRegion(&arguments)) return false;
  Result<Computation*> region = importer_.EndRegion(cursor_.LastPos());
  if (!region.ok()) return Take(std::move(region.error()));
  op.regions.push_back(region.value());
  importer_.EndRegions();
  return true;
}

// (%x = %a, %y = %b) : t, t attributes {...} cond { ops } do { ops }
bool MlirTextReader::ParseWhileForm(OpText& op) {
  std::vector<std::pair<std::string_view, Shape>> arguments;
  if (!Expect('(')) return false;
  if (!cursor_.Eat(')')) {
    do {
      if (!Expect('%')) return false;
      arguments.emplace_back(cursor_.Name(), Shape());
      if (!Expect('=') || !ParseOperand(op.operands, &op.operand_pos)) return false;
    } while (cursor_.Eat(','));
    if (!Expect(')')) return false;
  }
  importer_.Localize(op.operands);
  if (cursor_.Eat(':') && !ParseTypeListTo(op.operand_types)) return false;
  op.has_types = true;
  op.results = op.operand_types;
  if (op.results.size() != arguments.size())
    return FailAt(op.pos, ErrorCode::kMlirOperandTypes,
                  "stablehlo.while: " + std::to_string(arguments.size()) + " operands have " +
                      std::to_string(op.results.size()) + " types");
  for (size_t i = 0; i < arguments.size(); ++i) arguments[i].second = op.results[i];
  if (cursor_.EatWord("attributes") && !ParseAttrDict(op.attrs)) return false;
  importer_.BeginRegions(*op.op);
  for (const char* word : {"cond", "do"}) {
    if (!Expect(word) || !Take(importer_.BeginRegion(cursor_.Pos())) || !ParseRegion(&arguments))
      return false;
    Result<Computation*> region = importer_.EndRegion(cursor_.LastPos());
    if (!region.ok()) return Take(std::move(region.error()));
    op.regions.push_back(region.value());
  }
  importer_.EndRegions();
  return true;
}

// (%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {...} {attributes} : types
bool MlirTextReader::ParseConvolutionForm(OpText& op) {
  if (!Expect('(') || !ParseOperandList(op, ')')) return false;
  RecordAttr dims{"stablehlo.conv", {}};
  if (!Expect("dim_numbers") || !Expect('=') || !ParseConvDims(dims)) return false;
  op.attrs.push_back({"dimension_numbers", {std::move(dims)}});
  if (cursor_.Eat(',') && !ParseConvWindow(op)) return false;
  return ParseOptionalAttrDict(op.attrs) && Expect(':') && ParseFunctionalTypes(op);
}

bool MlirTextReader::ParseConvWindow(OpText& op) {
  if (!Expect("window") || !Expect('=') || !Expect('{')) return false;
  while (cursor_.Peek() != '}') {
    std::string_view word = cursor_.Word();
    if (!Expect('=')) return false;
    std::string_view name;
    if (word == "stride") name = "window_strides";
    if (word == "lhs_dilate") name = "lhs_dilation";
    if (word == "rhs_dilate") name = "rhs_dilation";
    if (word == "reverse") name = "window_reversal";
    if (word == "pad") {
      AttrValue rows;
      if (!ParseIntLists(rows)) return false;
      op.attrs.push_back({"padding", std::move(rows)});
    } else if (name.empty()) {
      return Expected("stride, pad, lhs_dilate, rhs_dilate or reverse");
    } else {
      Dims values;
      if (!ParseIntList(values)) return false;
      op.attrs.push_back({name, {DenseArrayAttr{"i64", std::move(values), {}}}});
    }
    if (!cursor_.Eat(',')) break;
  }
  return Expect('}');
}

// "name" %a, %b ({regions}) {attributes} : types
bool MlirTextReader::ParseCompositeForm(OpText& op) {
  MlirAttr& name = op.attrs.emplace_back();
  name.name = "name";
  if (!ParseString(name.value.value.emplace<std::string>())) return false;
  if (cursor_.Peek() == '%') {
    do {
      if (!ParseOperand(op.operands, &op.operand_pos)) return false;
    } while (cursor_.Eat(','));
  }
  importer_.Localize(op.operands);
  if (cursor_.Peek() == '(' && !ParseRegionList(op)) return false;
  if (!ParseOptionalAttrDict(op.attrs)) return false;
  if (op.regions.empty() && cursor_.Peek() == '(' && !ParseRegionList(op)) return false;
  return Expect(':') && ParseFunctionalTypes(op);
}

// (%a) inits (%b) dimension=0 attributes {...} { ops } : types
bool MlirTextReader::ParseScanForm(OpText& op) {
  if (!Expect('(') || !ParseOperandList(op, ')') || !Expect("inits") || !Expect('(')) return false;
  size_t inputs = op.operands.size();
  int64_t dimension = 0;
  if (!ParseOperandList(op, ')') || !Expect("dimension") || !Expect('=') || !ParseInt(dimension))
    return false;
  importer_.Localize(op.operands);
  op.attrs.push_back({"dimension", {IntAttr{.value = dimension}}});
  op.attrs.push_back(
      {"num_carries", {IntAttr{.value = static_cast<int64_t>(op.operands.size() - inputs)}}});
  if (cursor_.EatWord("attributes") && !ParseAttrDict(op.attrs)) return false;
  importer_.BeginRegions(*op.op);
  if (!Take(importer_.BeginRegion(cursor_.Pos())) || !ParseRegion()) return false;
  Result<Computation*> region = importer_.EndRegion(cursor_.LastPos());
  if (!region.ok()) return Take(std::move(region.error()));
  op.regions.push_back(region.value());
  importer_.EndRegions();
  return Expect(':') && ParseFunctionalTypes(op);
}

// (%a, k = 2) {attributes} : t -> (t, t)
bool MlirTextReader::ParseTopKForm(OpText& op) {
  if (!Expect('(') || !ParseOperand(op.operands, &op.operand_pos)) return false;
  while (cursor_.Eat(',')) {
    std::string_view word = cursor_.Word();
    if (word.empty()) return Expected("k");
    if (!Expect('=') || !ParseKeywordValue(op, word, word)) return false;
  }
  if (!Expect(')') || !ParseOptionalAttrDict(op.attrs) || !Expect(':')) return false;
  if (cursor_.Peek() == '(') return ParseFunctionalTypes(op);
  op.has_types = true;
  return ParseTypeListTo(op.operand_types) && Expect("->") && ParseTypeListTo(op.results);
}

// %a <@mesh, [{"x"}]> : t
bool MlirTextReader::ParseShardingForm(OpText& op) {
  if (!ParseOperand(op.operands, &op.operand_pos)) return false;
  AttrValue sharding;
  Shape type;
  if (!ParseSharding(sharding) || !ParseOptionalAttrDict(op.attrs) || !Expect(':') ||
      !ParseType(type))
    return false;
  op.attrs.push_back({"sharding", std::move(sharding)});
  op.has_types = true;
  op.operand_types = {type};
  op.results = {std::move(type)};
  return true;
}

// (%a) in_shardings=[...] out_shardings=[...] manual_axes={"x"} (%x: t) { ops } : types
bool MlirTextReader::ParseManualForm(OpText& op) {
  if (!Expect('(') || !ParseOperandList(op, ')')) return false;
  importer_.Localize(op.operands);
  while (IsMlirWordStart(cursor_.Peek())) {
    std::string_view word = cursor_.Word();
    if (!Expect('=')) return false;
    AttrValue value;
    bool ok = false;
    if (word == "in_shardings" || word == "out_shardings") ok = ParseShardingList(value);
    if (word == "manual_axes") ok = ParseManualAxes(value);
    if (!ok) return Expected("in_shardings, out_shardings or manual_axes");
    op.attrs.push_back({word, std::move(value)});
  }
  std::vector<std::pair<std::string_view, Shape>> arguments;
  if (!Expect('(')) return false;
  if (!cursor_.Eat(')')) {
    do {
      auto& [name, shape] = arguments.emplace_back();
      OriginId skipped = OriginId::kNone;
      if (!Expect('%')) return false;
      name = cursor_.Name();
      if (!Expect(':') || !ParseType(shape) || !ParseOptionalLoc(skipped)) return false;
    } while (cursor_.Eat(','));
    if (!Expect(')')) return false;
  }
  importer_.BeginRegions(*op.op);
  if (!Take(importer_.BeginRegion(cursor_.Pos())) || !ParseRegion(&arguments)) return false;
  Result<Computation*> region = importer_.EndRegion(cursor_.LastPos());
  if (!region.ok()) return Take(std::move(region.error()));
  op.regions.push_back(region.value());
  importer_.EndRegions();
  return ParseOptionalAttrDict(op.attrs) && Expect(':') && ParseFunctionalTypes(op);
}

// <"name">(%a) in_shardings=[...] (%x: t) { ops } : types
bool MlirTextReader::ParseNamedForm(OpText& op) {
  MlirAttr& name = op.attrs.emplace_back();
  name.name = "name";
  if (!Expect('<') || !ParseString(name.value.value.emplace<std::string>()) || !Expect('>'))
    return false;
  return ParseManualForm(op);
}

}  // namespace tokamak
