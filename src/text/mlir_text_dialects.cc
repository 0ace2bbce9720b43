// Attributes of the stablehlo and sdy dialects.

#include "text/mlir_sdy.h"
#include "text/mlir_text.h"

namespace tokamak {

// At '<'. `kind` is "stablehlo.gather", for example.
bool MlirTextReader::ParseDialectAttr(std::string_view kind, AttrValue& value) {
  if (kind.starts_with("sdy.")) return ParseSdyAttr(kind, value);
  bool known = kind.starts_with("stablehlo.") || kind.starts_with("mhlo.") ||
               kind.starts_with("chlo.") || kind.starts_with("vhlo.");
  if (known) return ParseRecord(kind, value);
  // An attribute of another dialect is kept verbatim.
  std::string_view text;
  if (!SkipBalanced('<', '>', text)) return false;
  value.value = EnumAttr{std::string(kind), std::string(text)};
  return true;
}

bool MlirTextReader::ParseRecord(std::string_view kind, AttrValue& value) {
  if (!Enter() || !Expect('<')) return false;
  RecordAttr record{std::string(kind), {}};
  std::string_view name = kind.substr(kind.find('.') + 1);
  bool ok = true;
  if (name == "bounds") {
    DenseArrayAttr bounds{"i64", {}, {}};
    while (ok && cursor_.Peek() != '>') {
      if (cursor_.Eat('?')) {
        bounds.ints.push_back(kDynamic);
      } else {
        ok = ParseInt(bounds.ints.emplace_back());
      }
      if (!cursor_.Eat(',')) break;
    }
    Set(record.fields, "bounds", {std::move(bounds)});
    value.value = std::move(record);
  } else if (name == "conv" && cursor_.Peek() == '[') {
    ok = ParseConvDims(record);
    value.value = std::move(record);
  } else if (IsMlirWordStart(cursor_.Peek()) && [&] {
               MlirCursor::Mark mark = cursor_.Save();
               cursor_.Word();
               bool alone = cursor_.Peek() == '>';
               cursor_.Restore(mark);
               return alone;
             }()) {
    // #stablehlo.result_accuracy_mode<HIGHEST>
    value.value = EnumAttr{std::string(kind), std::string(cursor_.Word())};
  } else {
    cursor_.EatWord("raw");
    while (ok && cursor_.Peek() != '>') {
      ok = ParseRecordField(record);
      if (!cursor_.Eat(',')) break;
    }
    value.value = std::move(record);
  }
  Leave();
  return ok && Expect('>');
}

bool MlirTextReader::ParseRecordField(RecordAttr& record) {
  std::string_view name = cursor_.Word();
  if (name.empty()) return Expected("the name of a field");
  AttrValue value{true};  // a name alone is a flag
  if (cursor_.Eat('=') && !ParseRecordValue(value)) return false;
  Set(record.fields, std::string(name), std::move(value));
  return true;
}

bool MlirTextReader::ParseRecordValue(AttrValue& value) {
  char c = cursor_.Peek();
  if (c == '[') {
    // A list of integers (and '?'), or of anything.
    MlirCursor::Mark mark = cursor_.Save();
    cursor_.Advance();
    char next = cursor_.Peek();
    cursor_.Restore(mark);
    if (next == ']' || next == '?' || next == '-' || IsMlirDigit(next))
      return ParseIntList(value.value.emplace<DenseArrayAttr>(DenseArrayAttr{"i64", {}, {}}).ints);
    return ParseAttr(value);
  }
  if (c == '<') return ParseRecord("stablehlo.record", value);
  return ParseAttr(value);
}

// One side of dim_numbers: letters give the role of a dimension, digits are spatial dimensions.
bool MlirTextReader::ParseConvSide(RecordAttr& record, int side) {
  static constexpr const char* kSides[] = {"input", "kernel", "output"};
  std::string prefix = kSides[side];
  Dims spatial;
  if (!Expect('[')) return false;
  for (int64_t position = 0; cursor_.Peek() != ']'; ++position) {
    char c = cursor_.Peek();
    if (IsMlirDigit(c) || c == '?') {
      int64_t number = static_cast<int64_t>(spatial.size());
      if (c == '?') {
        cursor_.Advance();
      } else if (!ParseInt(number)) {
        return false;
      }
      if (number < 0 || number > 64)
        return Fail(ErrorCode::kMlirAttribute,
                    "dim_numbers: spatial dimension " + std::to_string(number));
      if (spatial.size() <= static_cast<size_t>(number))
        spatial.resize(static_cast<size_t>(number) + 1, -1);
      spatial[static_cast<size_t>(number)] = position;
    } else {
      std::string field = prefix;
      if (side == 1 && (c == 'i' || c == 'o')) {
        field += c == 'i' ? "_input_feature_dimension" : "_output_feature_dimension";
      } else if (side != 1 && (c == 'b' || c == 'f')) {
        field += c == 'b' ? "_batch_dimension" : "_feature_dimension";
      } else {
        return Expected("a dimension of dim_numbers");
      }
      cursor_.Advance();
      Set(record.fields, std::move(field), {IntAttr{.value = position}});
    }
    if (!cursor_.Eat(',')) break;
  }
  Set(record.fields, prefix + "_spatial_dimensions",
      {DenseArrayAttr{"i64", std::move(spatial), {}}});
  return Expect(']');
}

bool MlirTextReader::ParseConvDims(RecordAttr& record) {
  return ParseConvSide(record, 0) && Expect('x') && ParseConvSide(record, 1) && Expect("->") &&
         ParseConvSide(record, 2);
}

// ---- sdy

bool MlirTextReader::ParseSdyAttr(std::string_view kind, AttrValue& value) {
  if (kind == "sdy.sharding") return ParseSharding(value);
  if (kind == "sdy.sharding_per_value")
    return Expect('<') && ParseShardingList(value) && Expect('>');
  if (kind == "sdy.mesh") {
    Mesh mesh;
    if (!ParseMeshBody(mesh)) return false;
    value = ToAttr(mesh);
    return true;
  }
  if (kind == "sdy.manual_axes") return Expect('<') && ParseManualAxes(value) && Expect('>');
  if (kind == "sdy.op_sharding_rule") return ParseShardingRule(value);
  std::string_view text;
  if (!SkipBalanced('<', '>', text)) return false;
  text.remove_prefix(1);
  text.remove_suffix(1);
  value.value = EnumAttr{std::string(kind), std::string(text)};
  return true;
}

// <@mesh, [{"x", ?}p1, {}], replicated={"y"}, unreduced={"z"}>
bool MlirTextReader::ParseSharding(AttrValue& value) {
  Sharding sharding;
  sharding.kind = ShardingKind::kMesh;
  if (!Expect('<') || !ParseShardingMesh(sharding) || !Expect(',') || !Expect('[')) return false;
  if (cursor_.Peek() != ']') {
    do {
      if (!ParseDimSharding(sharding.dims.emplace_back())) return false;
    } while (cursor_.Eat(','));
  }
  if (!Expect(']')) return false;
  while (cursor_.Eat(',')) {
    std::string_view word = cursor_.Word();
    if (!Expect('=')) return false;
    if (word == "reduction" || word == "reduction_op") {
      sharding.reduction = cursor_.Word();
      continue;
    }
    if (word != "replicated" && word != "unreduced") return Expected("replicated or unreduced");
    if (!Expect('{') ||
        !ParseAxisList(word == "replicated" ? sharding.replicated : sharding.unreduced, '}'))
      return false;
  }
  value = ToAttr(sharding);
  return Expect('>');
}

bool MlirTextReader::ParseShardingMesh(Sharding& sharding) {
  if (cursor_.Peek() == '@') return ParseSymbol(sharding.mesh);
  if (cursor_.Peek() == '#') cursor_.Eat("#sdy.");
  if (!Expect("mesh")) return false;
  Mesh mesh;
  if (!ParseMeshBody(mesh)) return false;
  sharding.mesh = importer_.InternMesh(std::move(mesh));
  return true;
}

bool MlirTextReader::ParseDimSharding(DimSharding& dim) {
  if (!Expect('{')) return false;
  while (cursor_.Peek() != '}') {
    if (cursor_.Eat('?')) {
      dim.is_closed = false;
    } else if (!ParseAxis(dim.axes.emplace_back())) {
      return false;
    }
    if (!cursor_.Eat(',')) break;
  }
  if (!Expect('}')) return false;
  if (cursor_.Here() == 'p') {
    cursor_.Advance();
    return ParseInt(dim.priority);
  }
  return true;
}

bool MlirTextReader::ParseAxis(AxisRef& axis) {
  if (!ParseString(axis.name)) return false;
  if (!cursor_.Eat(':')) return true;
  TextPos pos = cursor_.Pos();
  if (!Expect('(') || !ParseInt(axis.pre_size) || !Expect(')') || !ParseInt(axis.size))
    return false;
  return (axis.pre_size >= 1 && axis.size >= 1) ||
         FailAt(pos, ErrorCode::kMlirSharding,
                "sdy: a part of axis " + axis.name + " with a size below 1");
}

bool MlirTextReader::ParseAxisList(std::vector<AxisRef>& axes, char close) {
  if (cursor_.Eat(close)) return true;
  do {
    if (!ParseAxis(axes.emplace_back())) return false;
  } while (cursor_.Eat(','));
  return Expect(close);
}

// [<@mesh, [{}]>, <@mesh, []>]
bool MlirTextReader::ParseShardingList(AttrValue& value) {
  RecordAttr record{"sdy.sharding_per_value", {}};
  AttrList list;
  if (!Expect('[')) return false;
  if (cursor_.Peek() != ']') {
    do {
      if (cursor_.Peek() == '#') cursor_.Eat("#sdy.sharding");
      if (!ParseSharding(list.emplace_back())) return false;
    } while (cursor_.Eat(','));
  }
  Set(record.fields, "values", {std::move(list)});
  value.value = std::move(record);
  return Expect(']');
}

// <["x"=2, "y"=4], device_ids=[0, 1]>
bool MlirTextReader::ParseMeshBody(Mesh& mesh) {
  if (!Expect('<') || !Expect('[')) return false;
  if (cursor_.Peek() != ']') {
    do {
      MeshAxis& axis = mesh.axes.emplace_back();
      TextPos pos = cursor_.Pos();
      if (!ParseString(axis.name) || !Expect('=') || !ParseInt(axis.size)) return false;
      if (axis.size < 1)
        return FailAt(pos, ErrorCode::kMlirSharding,
                      "sdy.mesh: axis " + axis.name + " has a size below 1");
    } while (cursor_.Eat(','));
  }
  if (!Expect(']')) return false;
  if (cursor_.Eat(',')) {
    if (!Expect("device_ids") || !Expect('=') || !ParseIntList(mesh.device_ids)) return false;
  }
  return Expect('>');
}

// {"x", "y"}
bool MlirTextReader::ParseManualAxes(AttrValue& value) {
  RecordAttr record{"sdy.manual_axes", {}};
  AttrList names;
  if (!Expect('{')) return false;
  if (cursor_.Peek() != '}') {
    do {
      if (!ParseString(names.emplace_back().value.emplace<std::string>())) return false;
    } while (cursor_.Eat(','));
  }
  Set(record.fields, "names", {std::move(names)});
  value.value = std::move(record);
  return Expect('}');
}

// Factors are written i, j, ... z, then z_1 and so on.
bool MlirTextReader::ParseFactors(Dims& factors) {
  while (cursor_.Here() >= 'i' && cursor_.Here() <= 'z') {
    int64_t factor = cursor_.Here() - 'i';
    cursor_.Advance();
    if (cursor_.Here() == '_') {
      cursor_.Advance();
      int64_t more = 0;
      if (!ParseInt(more)) return false;
      if (more < 0 || more > (1 << 20))
        return Fail(ErrorCode::kMlirSharding,
                    "sdy.sharding_rule: factor z_" + std::to_string(more));
      factor += more;
    }
    factors.push_back(factor);
  }
  return true;
}

// ([i, jk], [j]): per value, per dimension
bool MlirTextReader::ParseMappings(std::vector<std::vector<Dims>>& mappings) {
  if (!Expect('(')) return false;
  if (cursor_.Eat(')')) return true;
  do {
    std::vector<Dims>& value = mappings.emplace_back();
    if (!Expect('[')) return false;
    if (cursor_.Eat(']')) continue;
    do {
      cursor_.Peek();
      Dims& factors = value.emplace_back();
      if (!ParseFactors(factors)) return false;
      if (factors.empty()) return Expected("a factor");
    } while (cursor_.Eat(','));
    if (!Expect(']')) return false;
  } while (cursor_.Eat(','));
  return Expect(')');
}

// <([i, j])->([i]) {i=2, j=3} reduction={j} need_replication={i}, custom>
bool MlirTextReader::ParseShardingRule(AttrValue& value) {
  ShardingRule rule;
  if (!Expect('<') || !ParseMappings(rule.operands) || !Expect("->") ||
      !ParseMappings(rule.results) || !Expect('{'))
    return false;
  while (cursor_.Peek() != '}') {
    Dims name;
    int64_t size = 0;
    if (!ParseFactors(name) || !Expect('=') || !ParseInt(size)) return false;
    rule.factor_sizes.push_back(size);
    if (!cursor_.Eat(',')) break;
  }
  if (!Expect('}')) return false;
  while (cursor_.Peek() != '>') {
    if (cursor_.Eat(',')) continue;
    std::string_view word = cursor_.Word();
    if (word == "custom") {
      rule.is_custom = true;
      continue;
    }
    Dims* list = nullptr;
    if (word == "reduction") list = &rule.reduction;
    if (word == "need_replication") list = &rule.need_replication;
    if (word == "permutation") list = &rule.permutation;
    if (word == "blocked_propagation") list = &rule.blocked_propagation;
    if (list == nullptr) return Expected("a kind of factor");
    if (!Expect('=') || !Expect('{')) return false;
    while (cursor_.Peek() != '}') {
      if (!ParseFactors(*list)) return false;
      if (!cursor_.Eat(',')) break;
    }
    if (!Expect('}')) return false;
  }
  value = ToAttr(rule);
  return Expect('>');
}

}  // namespace tokamak
