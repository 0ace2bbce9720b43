#include "text/mlir_print.h"

#include <charconv>
#include <cmath>

#include "text/mlir_cursor.h"
#include "text/mlir_sdy.h"

namespace tokamak {
namespace {

// Constants with more elements are printed as hexadecimal bytes (chosen for readable output).
constexpr int64_t kMaxPrintedElements = 64;

constexpr char kHex[] = "0123456789ABCDEF";

void PrintDims(std::string& out, const Shape& shape) {
  for (int64_t size : shape.dims()) {
    out += size == kDynamic ? "?" : std::to_string(size);
    out += 'x';
  }
}

// MLIR wants a point in every float.
void PrintDouble(std::string& out, double value) {
  char buffer[40];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  std::string_view text(buffer, static_cast<size_t>(end.ptr - buffer));
  size_t exponent = text.find('e');
  out += text.substr(0, exponent);
  if (text.substr(0, exponent).find('.') == std::string_view::npos) out += ".0";
  out += text.substr(exponent);
}

void PrintBits(std::string& out, uint64_t bits, int width) {
  out += "0x";
  for (int shift = (width + 3) / 4 * 4 - 4; shift >= 0; shift -= 4) out += kHex[bits >> shift & 15];
}

void PrintReal(std::string& out, ElementType type, uint64_t bits) {
  double value = DecodeFloat(type, bits);
  if (std::isfinite(value)) return PrintDouble(out, value);
  PrintBits(out, bits, InfoOf(type).bits);
}

void PrintQuant(std::string& out, ElementType storage, const QuantType& quant) {
  out += "!quant.uniform<";
  if (IsUnsigned(storage)) out += 'u';  // quantized storage is spelled u8, not ui8
  out += InfoOf(storage).mlir.substr(IsUnsigned(storage) ? 2 : 0);
  out += '<' + std::to_string(quant.storage_min) + ':' + std::to_string(quant.storage_max) + ">:";
  out += InfoOf(quant.expressed).mlir;
  if (quant.axis >= 0) out += ':' + std::to_string(quant.axis);
  out += quant.axis >= 0 ? ", {" : ", ";
  for (size_t i = 0; i < quant.scales.size(); ++i) {
    if (i > 0) out += ',';
    PrintDouble(out, quant.scales[i]);
    if (i < quant.zero_points.size()) out += ':' + std::to_string(quant.zero_points[i]);
  }
  out += quant.axis >= 0 ? "}>" : ">";
}

void PrintElementType(std::string& out, const Shape& shape) {
  if (shape.quant() != nullptr) return PrintQuant(out, shape.type(), *shape.quant());
  out += InfoOf(shape.type()).mlir;
}

void PrintElement(std::string& out, const Literal& literal, int64_t i) {
  ElementType type = literal.type();
  if (type == ElementType::kPred) {
    out += literal.BitsAt(i) != 0 ? "true" : "false";
  } else if (IsReal(type)) {
    PrintReal(out, type, literal.BitsAt(i));
  } else if (IsUnsigned(type)) {
    out += std::to_string(literal.BitsAt(i));
  } else if (IsInteger(type)) {
    out += std::to_string(literal.IntAt(i));
  } else {
    // Printed as bytes, so that a NaN keeps its sign and payload.
    size_t width = static_cast<size_t>(BytesOf(type)) / 2;
    const std::byte* at =
        literal.data().data() + (literal.is_splat() ? 0 : static_cast<size_t>(i) * width * 2);
    uint64_t parts[2] = {0, 0};
    std::memcpy(&parts[0], at, width);
    std::memcpy(&parts[1], at + width, width);
    out += '(';
    PrintReal(out, RealPartOf(type), parts[0]);
    out += ", ";
    PrintReal(out, RealPartOf(type), parts[1]);
    out += ')';
  }
}

int64_t PrintNested(std::string& out, const Literal& literal, size_t depth, int64_t next) {
  const Dims& dims = literal.shape().dims();
  if (depth == dims.size()) {
    PrintElement(out, literal, next);
    return next + 1;
  }
  out += '[';
  for (int64_t i = 0; i < dims[depth]; ++i) {
    if (i > 0) out += ", ";
    next = PrintNested(out, literal, depth + 1, next);
  }
  out += ']';
  return next;
}

void PrintRawBytes(std::string& out, const Literal& literal) {
  out += "\"0x";
  auto put = [&](unsigned value) {
    out += kHex[value >> 4];
    out += kHex[value & 15];
  };
  const Bytes& data = literal.data();
  if (literal.type() == ElementType::kPred) {
    for (size_t i = 0; i < data.size(); i += 8) {
      unsigned packed = 0;
      for (size_t k = i; k < std::min(i + 8, data.size()); ++k)
        packed |= static_cast<unsigned>(data.data()[k]) << (k - i);
      put(packed);
    }
  } else {
    out.reserve(out.size() + data.size() * 2);
    for (std::byte b : data.span()) put(static_cast<unsigned>(b));
  }
  out += '"';
}

template <typename T, typename Fn>
void Separated(std::string& out, const std::vector<T>& items, Fn print) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += ", ";
    print(items[i]);
  }
}

void PrintInts(std::string& out, const Dims& values) {
  out += '[';
  Separated(out, values,
            [&](int64_t v) { out += v == kDynamic ? std::string("?") : std::to_string(v); });
  out += ']';
}

void PrintAxis(std::string& out, const AxisRef& axis) {
  PrintString(out, axis.name);
  if (axis.pre_size != 0)
    out += ":(" + std::to_string(axis.pre_size) + ")" + std::to_string(axis.size);
}

void PrintFactors(std::string& out, const Dims& factors) {
  for (int64_t factor : factors) {
    out += static_cast<char>('i' + std::min<int64_t>(factor, 17));
    if (factor > 17) out += "_" + std::to_string(factor - 17);
  }
}

void PrintMappings(std::string& out, const std::vector<std::vector<Dims>>& mappings) {
  out += '(';
  Separated(out, mappings, [&](const std::vector<Dims>& value) {
    out += '[';
    Separated(out, value, [&](const Dims& factors) { PrintFactors(out, factors); });
    out += ']';
  });
  out += ')';
}

void PrintRule(std::string& out, const ShardingRule& rule) {
  out += "#sdy.op_sharding_rule<";
  PrintMappings(out, rule.operands);
  out += "->";
  PrintMappings(out, rule.results);
  out += " {";
  for (size_t i = 0; i < rule.factor_sizes.size(); ++i) {
    if (i > 0) out += ", ";
    PrintFactors(out, {static_cast<int64_t>(i)});
    out += '=' + std::to_string(rule.factor_sizes[i]);
  }
  out += '}';
  auto list = [&](const char* name, const Dims& factors) {
    if (factors.empty()) return;
    out += std::string(" ") + name + "={";
    Separated(out, factors, [&](int64_t factor) { PrintFactors(out, {factor}); });
    out += '}';
  };
  list("reduction", rule.reduction);
  list("need_replication", rule.need_replication);
  list("permutation", rule.permutation);
  list("blocked_propagation", rule.blocked_propagation);
  out += rule.is_custom ? ", custom>" : ">";
}

// A value inside a record: plain numbers, lists in brackets.
void PrintField(std::string& out, const AttrValue& value) {
  if (const auto* array = value.As<DenseArrayAttr>(); array != nullptr && array->floats.empty())
    return PrintInts(out, array->ints);
  if (const auto* number = value.As<IntAttr>()) {
    out += std::to_string(number->value);
    return;
  }
  if (const auto* number = value.As<FloatAttr>()) return PrintDouble(out, number->value);
  PrintAttr(out, value);
}

void PrintRecord(std::string& out, const RecordAttr& record) {
  AttrValue value{record};
  if (record.kind == "sdy.sharding_per_value") {
    if (auto list = ShardingsFromAttr(value)) {
      out += "#sdy.sharding_per_value<[";
      Separated(out, *list, [&](const Sharding& sharding) { PrintSharding(out, sharding); });
      out += "]>";
      return;
    }
  } else if (record.kind == "sdy.op_sharding_rule") {
    if (auto rule = RuleFromAttr(value)) return PrintRule(out, *rule);
  } else if (record.kind == "sdy.sharding") {
    if (auto sharding = ShardingFromAttr(value)) {
      out += "#sdy.sharding";
      return PrintSharding(out, *sharding);
    }
  } else if (record.kind == "sdy.mesh") {
    if (auto mesh = MeshFromAttr(value)) {
      out += "#sdy.mesh";
      return PrintMesh(out, *mesh);
    }
  } else if (record.kind == "sdy.manual_axes") {
    if (auto names = NamesFromAttr(value)) {
      out += "#sdy.manual_axes<{";
      Separated(out, *names, [&](const std::string& name) { PrintString(out, name); });
      out += "}>";
      return;
    }
  }
  out += '#' + record.kind + '<';
  if (record.kind == "stablehlo.conv") out += "raw ";
  Separated(out, record.fields, [&](const AttrEntry& field) {
    out += field.name + " = ";
    PrintField(out, field.value);
  });
  out += '>';
}

void PrintEnum(std::string& out, const EnumAttr& word) {
  size_t dot = word.kind.find('.');
  if (dot == std::string::npos) {
    out += word.value;  // a type
  } else if (word.value.starts_with("<")) {
    out += '#' + word.kind + word.value;
  } else if (word.value.empty()) {
    out += '#' + word.kind;
  } else {
    out +=
        '#' + word.kind.substr(0, dot) + '<' + word.kind.substr(dot + 1) + ' ' + word.value + '>';
  }
}

bool IsPlainName(std::string_view name) {
  if (name.empty() || !IsMlirWordStart(name[0])) return false;
  for (char c : name)
    if (!IsMlirWordChar(c)) return false;
  return true;
}

void PrintArray(std::string& out, const DenseArrayAttr& array) {
  out += "array<" + array.type;
  bool empty = array.ints.empty() && array.floats.empty();
  if (!empty) out += ": ";
  if (array.floats.empty()) {
    Separated(out, array.ints, [&](int64_t v) {
      out += array.type != "i1" ? std::to_string(v) : v != 0 ? "true" : "false";
    });
  } else {
    std::optional<ElementType> type = ElementTypeFromMlir(array.type);
    Separated(out, array.floats, [&](double v) {
      PrintReal(out, type.value_or(ElementType::kF64),
                EncodeFloat(type.value_or(ElementType::kF64), v));
    });
  }
  out += '>';
}

}  // namespace

void PrintType(std::string& out, const Shape& shape) {
  switch (shape.kind()) {
    case ShapeKind::kArray:
      out += "tensor<";
      PrintDims(out, shape);
      PrintElementType(out, shape);
      if (!shape.bounds().empty()) {
        out += ", #stablehlo.bounds<";
        Separated(out, shape.bounds(), [&](int64_t bound) {
          out += bound == kDynamic ? std::string("?") : std::to_string(bound);
        });
        out += '>';
      }
      out += '>';
      return;
    case ShapeKind::kTuple:
      out += "tuple<";
      Separated(out, shape.elements(), [&](const Shape& element) { PrintType(out, element); });
      out += '>';
      return;
    case ShapeKind::kToken:
      out += "!stablehlo.token";
      return;
    case ShapeKind::kOpaque:
      out += "!tokamak.opaque";
      return;
    case ShapeKind::kBuffer:
      out += "memref<";
      PrintDims(out, shape.elements()[0]);
      PrintElementType(out, shape.elements()[0]);
      out += '>';
      return;
    case ShapeKind::kFuture:
      out += "!stablehlo.future<";
      Separated(out, shape.elements(), [&](const Shape& element) { PrintType(out, element); });
      out += '>';
      return;
    case ShapeKind::kUnranked:
      out += "tensor<*x";
      out += InfoOf(shape.type()).mlir;
      out += '>';
      return;
  }
}

void PrintDense(std::string& out, const Literal& literal) {
  if (literal.shape().IsTuple()) {
    out += '[';
    Separated(out, literal.elements(), [&](const Literal& element) { PrintDense(out, element); });
    out += ']';
    return;
  }
  out += "dense<";
  int64_t count = literal.shape().ElementCount();
  if (count > 0 && (literal.is_splat() || count == 1)) {
    PrintElement(out, literal, 0);
  } else if (count > kMaxPrintedElements) {
    PrintRawBytes(out, literal);
  } else if (count > 0) {
    PrintNested(out, literal, 0, 0);
  }
  out += "> : ";
  PrintType(out, literal.shape());
}

void PrintString(std::string& out, std::string_view text) {
  out += '"';
  for (char c : text) {
    unsigned char u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (u >= 32 && u < 127) {
      out += c;
    } else {
      out += '\\';
      out += kHex[u >> 4];
      out += kHex[u & 15];
    }
  }
  out += '"';
}

void PrintSymbol(std::string& out, std::string_view name) {
  out += '@';
  if (IsPlainName(name)) {
    out += name;
  } else {
    PrintString(out, name);
  }
}

void PrintSharding(std::string& out, const Sharding& sharding) {
  out += '<';
  PrintSymbol(out, sharding.mesh);
  out += ", [";
  Separated(out, sharding.dims, [&](const DimSharding& dim) {
    out += '{';
    Separated(out, dim.axes, [&](const AxisRef& axis) { PrintAxis(out, axis); });
    if (!dim.is_closed) out += dim.axes.empty() ? "?" : ", ?";
    out += '}';
    if (dim.priority >= 0) out += 'p' + std::to_string(dim.priority);
  });
  out += ']';
  auto axes = [&](const char* name, const std::vector<AxisRef>& list) {
    if (list.empty()) return;
    out += std::string(", ") + name + "={";
    Separated(out, list, [&](const AxisRef& axis) { PrintAxis(out, axis); });
    out += '}';
  };
  axes("replicated", sharding.replicated);
  axes("unreduced", sharding.unreduced);
  if (!sharding.reduction.empty()) out += ", reduction=" + sharding.reduction;
  out += '>';
}

void PrintMesh(std::string& out, const Mesh& mesh) {
  out += "<[";
  Separated(out, mesh.axes, [&](const MeshAxis& axis) {
    PrintString(out, axis.name);
    out += '=' + std::to_string(axis.size);
  });
  out += ']';
  if (!mesh.device_ids.empty()) {
    out += ", device_ids=";
    PrintInts(out, mesh.device_ids);
  }
  out += '>';
}

void PrintDict(std::string& out, const AttrDict& dict) {
  out += '{';
  Separated(out, dict, [&](const AttrEntry& entry) {
    if (IsPlainName(entry.name)) {
      out += entry.name;
    } else {
      PrintString(out, entry.name);
    }
    if (entry.value.As<UnitAttr>() != nullptr) return;
    out += " = ";
    PrintAttr(out, entry.value);
  });
  out += '}';
}

void PrintAttr(std::string& out, const AttrValue& value) {
  if (value.As<UnitAttr>() != nullptr) {
    out += "unit";
  } else if (const auto* flag = value.As<bool>()) {
    out += *flag ? "true" : "false";
  } else if (const auto* number = value.As<IntAttr>()) {
    out += std::to_string(number->value) + " : " + number->type;
  } else if (const auto* real = value.As<FloatAttr>()) {
    PrintReal(out, real->type, EncodeFloat(real->type, real->value));
    out += " : " + std::string(InfoOf(real->type).mlir);
  } else if (const auto* text = value.As<std::string>()) {
    PrintString(out, *text);
  } else if (const auto* symbol = value.As<SymbolAttr>()) {
    PrintSymbol(out, symbol->name);
  } else if (const auto* shape = value.As<Shape>()) {
    PrintType(out, *shape);
  } else if (const auto* literal = value.As<Literal>()) {
    PrintDense(out, *literal);
  } else if (const auto* list = value.As<AttrList>()) {
    out += '[';
    Separated(out, *list, [&](const AttrValue& item) { PrintAttr(out, item); });
    out += ']';
  } else if (const auto* dict = value.As<AttrDict>()) {
    PrintDict(out, *dict);
  } else if (const auto* array = value.As<DenseArrayAttr>()) {
    PrintArray(out, *array);
  } else if (const auto* word = value.As<EnumAttr>()) {
    PrintEnum(out, *word);
  } else if (const auto* record = value.As<RecordAttr>()) {
    PrintRecord(out, *record);
  }
}

}  // namespace tokamak
