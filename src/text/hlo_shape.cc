#include "text/hlo_shape.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "text/hlo_cursor.h"

namespace tokamak {
namespace {

bool BadShape(HloCursor& cursor, std::string message, const char* where) {
  return cursor.Fail(ErrorCode::kHloBadShape, std::move(message), where);
}

// ---- layouts: {1,0:D(D,C)T(8,128)(2,1)L(4)#(u32)*(u32)E(4)S(1)SC(0:1,2)M(8)}

bool ReadTiles(HloCursor& cursor, Layout& layout) {
  do {
    Dims& tile = layout.tiles.emplace_back();
    if (!cursor.Expect('(')) return false;
    while (!cursor.Try(')')) {
      int64_t size = Layout::kCombined;
      if (!cursor.Try('*') && !cursor.Int(size)) return false;
      tile.push_back(size);
      if (cursor.Peek() != ')' && !cursor.Expect(',')) return false;
    }
  } while (cursor.Peek() == '(');
  return true;
}

bool ReadDimLevels(HloCursor& cursor, Layout& layout) {
  if (!cursor.Expect('(')) return false;
  while (!cursor.Try(')')) {
    std::string_view word = cursor.Word();
    if (word.size() != 1 || std::string_view("DCSH").find(word) == std::string_view::npos)
      return cursor.FailExpected("D, C, S or H");
    layout.dim_level_types.push_back(word[0]);
    (void)cursor.Try('+');  // unique or ordered entries: unused
    (void)cursor.Try('~');
    if (cursor.Peek() != ')' && !cursor.Expect(',')) return false;
  }
  return true;
}

bool ReadTypeInParens(HloCursor& cursor, std::optional<ElementType>& type) {
  if (!cursor.Expect('(')) return false;
  type = ElementTypeFromHlo(cursor.Word());
  if (!type) return cursor.FailExpected("an element type");
  return cursor.Expect(')');
}

bool ReadIntInParens(HloCursor& cursor, int64_t& value) {
  return cursor.Expect('(') && cursor.Int(value) && cursor.Expect(')');
}

bool ReadSplits(HloCursor& cursor, Layout& layout) {
  do {
    auto& [dimension, indices] = layout.split_configs.emplace_back();
    if (!cursor.Expect('(') || !cursor.Int(dimension) || !cursor.Ints(indices, ':', ')'))
      return false;
  } while (cursor.Peek() == '(');
  return true;
}

bool ReadLayoutPart(HloCursor& cursor, Layout& layout) {
  const char* start = cursor.at();
  if (cursor.Try('#')) return ReadTypeInParens(cursor, layout.index_type);
  if (cursor.Try('*')) return ReadTypeInParens(cursor, layout.pointer_type);
  std::string_view word = cursor.Word();
  if (word == "T") return ReadTiles(cursor, layout);
  if (word == "S") return ReadIntInParens(cursor, layout.memory_space);
  if (word == "E") return ReadIntInParens(cursor, layout.element_size_in_bits);
  if (word == "L") return ReadIntInParens(cursor, layout.tail_padding_alignment);
  if (word == "M") return ReadIntInParens(cursor, layout.dynamic_prefix_bytes);
  if (word == "D") return ReadDimLevels(cursor, layout);
  if (word == "SC") return ReadSplits(cursor, layout);
  if (word == "P") {  // the physical shape: implied by the rest
    std::string_view skipped;
    return cursor.Balanced(skipped);
  }
  return BadShape(cursor, "layout: unknown part '" + std::string(word) + "'", start);
}

bool ReadLayout(HloCursor& cursor, size_t rank, Layout& layout) {
  const char* start = cursor.at();
  if (!cursor.Expect('{')) return false;
  char next = cursor.Peek();
  if (next != '}' && next != ':') {
    do {
      int64_t dimension = 0;
      if (!cursor.Int(dimension)) return false;
      layout.minor_to_major.push_back(dimension);
    } while (cursor.Try(','));
  }
  if (cursor.Try(':')) {
    while (cursor.Peek() != '}')
      if (!ReadLayoutPart(cursor, layout)) return false;
  }
  if (!cursor.Expect('}')) return false;
  std::vector<bool> seen(rank, false);
  bool is_order = layout.minor_to_major.size() == rank;
  for (int64_t d : layout.minor_to_major) {
    is_order = is_order && d >= 0 && static_cast<size_t>(d) < rank && !seen[static_cast<size_t>(d)];
    if (is_order) seen[static_cast<size_t>(d)] = true;
  }
  return is_order ||
         BadShape(cursor,
                  "layout: not an order of the array's " + std::to_string(rank) + " dimensions",
                  start);
}

// ---- quantized element types: !quant(f32, -128, 127, axis=0, {0.5:3, 0.25:-1})

bool ReadQuant(HloCursor& cursor, Shape& shape) {
  const char* start = cursor.at();
  QuantType quant;
  if (!cursor.Expect('(')) return false;
  std::optional<ElementType> expressed = ElementTypeFromHlo(cursor.Word());
  if (!expressed) return BadShape(cursor, "quant: unknown expressed type", start);
  quant.expressed = *expressed;
  if (!cursor.Expect(',') || !cursor.Int(quant.storage_min) || !cursor.Expect(',') ||
      !cursor.Int(quant.storage_max) || !cursor.Expect(','))
    return false;
  if (cursor.TryText("axis=") && (!cursor.Int(quant.axis) || !cursor.Expect(','))) return false;
  if (!cursor.Expect('{')) return false;
  while (!cursor.Try('}')) {
    double scale = 0;
    int64_t zero_point = 0;
    if (!cursor.Double(scale) || !cursor.Expect(':') || !cursor.Int(zero_point)) return false;
    quant.scales.push_back(scale);
    quant.zero_points.push_back(zero_point);
    if (cursor.Peek() != '}' && !cursor.Expect(',')) return false;
  }
  if (!cursor.Expect(')')) return false;
  shape = shape.WithQuant(std::move(quant));
  return true;
}

// ---- arrays

struct DimList {
  Dims dims, bounds;
  bool is_unranked = false;
};

bool ReadDim(HloCursor& cursor, DimList& list) {
  int64_t size = kDynamic, bound = kDynamic;
  if (cursor.Try('*')) {
    list.is_unranked = true;
    return true;
  }
  if (!cursor.Try('?')) {
    const char* start = cursor.at();
    bool is_bound = cursor.TryText("<=");
    int64_t value = 0;
    if (!cursor.Int(value)) return false;
    if (value < 0) return BadShape(cursor, "a dimension of " + std::to_string(value), start);
    (is_bound ? bound : size) = value;
  }
  list.dims.push_back(size);
  list.bounds.push_back(bound);
  return true;
}

bool ReadDims(HloCursor& cursor, DimList& list) {
  const char* start = cursor.at();
  if (!cursor.Expect('[')) return false;
  if (!cursor.Try(']')) {
    do {
      if (!ReadDim(cursor, list)) return false;
    } while (cursor.Try(','));
    if (!cursor.Expect(']')) return false;
  }
  if (list.dims.size() > static_cast<size_t>(kMaxRank))
    return BadShape(cursor, "more than " + std::to_string(kMaxRank) + " dimensions", start);
  if (!CheckedElementCount(list.dims) || !CheckedElementCount(list.bounds))
    return BadShape(cursor, "an array of more than 2^58 elements", start);
  return true;
}

// "f32" from "f32[": never a name with '-' or '.'.
std::string_view TypeWord(HloCursor& cursor) {
  std::string_view word = cursor.PeekWord();
  return word.substr(0, word.find_first_of("-."));
}

bool ReadArray(HloCursor& cursor, Shape& shape) {
  const char* start = cursor.at();
  std::string_view word = TypeWord(cursor);
  std::optional<ElementType> type = ElementTypeFromHlo(word);
  bool is_token = word == "token", is_opaque = word == "opaque";
  if (!type && !is_token && !is_opaque) {
    if (word.empty()) return cursor.FailExpected("a shape");
    return BadShape(cursor, "unknown element type '" + std::string(word) + "'", start);
  }
  cursor.Advance(word.size());
  DimList list;
  if (!ReadDims(cursor, list)) return false;
  if (is_token || is_opaque) {
    shape = is_token ? Shape::Token() : Shape::Opaque();
    Layout none;
    return cursor.PeekRaw() != '{' || ReadLayout(cursor, list.dims.size(), none);
  }
  if (list.is_unranked) {
    shape = Shape::Unranked(*type);
  } else {
    size_t rank = list.dims.size();
    bool is_dynamic = std::find(list.dims.begin(), list.dims.end(), kDynamic) != list.dims.end();
    shape = Shape::Array(*type, std::move(list.dims));
    if (is_dynamic) shape = shape.WithBounds(std::move(list.bounds));
    if (cursor.PeekRaw() == '{') {
      Layout layout;
      if (!ReadLayout(cursor, rank, layout)) return false;
      shape = shape.WithLayout(std::move(layout));
    }
  }
  // Does not skip blanks: the shape must end here so that Read can find the same text in its cache.
  return cursor.PeekRaw() != '!' || !cursor.TryText("!quant") || ReadQuant(cursor, shape);
}

// Estimates the end of the shape that starts at `p` from brackets alone. A wrong guess costs a
// cache miss, never a wrong shape.
const char* GuessEnd(const char* p, const char* end) {
  int depth = 0;
  bool is_tuple = p < end && *p == '(';
  for (; p < end; ++p) {
    switch (*p) {
      case '(':
      case '{':
      case '[':
        ++depth;
        break;
      case ')':
      case '}':
      case ']':
        if (--depth < 0) return p;
        if (depth == 0 && (is_tuple || p + 1 >= end || (p[1] != '{' && p[1] != '!'))) return p + 1;
        break;
      case '\n':
      case '"':
      case '=':
        if (depth == 0 || !is_tuple) return p;
        break;
      default:
        break;
    }
  }
  return p;
}

void AppendShapeInt(std::string& out, int64_t value) {
  char buffer[24];
  out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
}

void AppendInts(std::string& out, const Dims& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ',';
    if (values[i] == Layout::kCombined) {
      out += '*';
    } else {
      AppendShapeInt(out, values[i]);
    }
  }
}

void AppendLayoutParts(std::string& out, const Layout& layout) {
  if (!layout.dim_level_types.empty()) {
    out += "D(";
    for (size_t i = 0; i < layout.dim_level_types.size(); ++i) {
      if (i > 0) out += ',';
      out += layout.dim_level_types[i];
    }
    out += ')';
  }
  if (!layout.tiles.empty()) out += 'T';
  for (const Dims& tile : layout.tiles) {
    out += '(';
    AppendInts(out, tile);
    out += ')';
  }
  auto number = [&](std::string_view letter, int64_t value) {
    out.append(letter) += '(';
    AppendShapeInt(out, value);
    out += ')';
  };
  if (layout.tail_padding_alignment != 1) number("L", layout.tail_padding_alignment);
  if (layout.index_type) out.append("#(").append(HloName(*layout.index_type)) += ')';
  if (layout.pointer_type) out.append("*(").append(HloName(*layout.pointer_type)) += ')';
  if (layout.element_size_in_bits != 0) number("E", layout.element_size_in_bits);
  if (layout.memory_space != 0) number("S", layout.memory_space);
  if (!layout.split_configs.empty()) out += "SC";
  for (const auto& [dimension, indices] : layout.split_configs) {
    out += '(';
    AppendShapeInt(out, dimension);
    out += ':';
    AppendInts(out, indices);
    out += ')';
  }
  if (layout.dynamic_prefix_bytes != 0) number("M", layout.dynamic_prefix_bytes);
}

void AppendLayout(std::string& out, const Layout& layout) {
  out += '{';
  AppendInts(out, layout.minor_to_major);
  Layout plain;
  plain.minor_to_major = layout.minor_to_major;
  if (!(layout == plain)) {
    out += ':';
    AppendLayoutParts(out, layout);
  }
  out += '}';
}

void AppendQuant(std::string& out, const QuantType& quant) {
  out.append("!quant(").append(HloName(quant.expressed)).append(", ");
  AppendShapeInt(out, quant.storage_min);
  out += ", ";
  AppendShapeInt(out, quant.storage_max);
  out += ", ";
  if (quant.axis >= 0) out += "axis=" + std::to_string(quant.axis) + ", ";
  out += '{';
  for (size_t i = 0; i < quant.scales.size(); ++i) {
    if (i > 0) out += ", ";
    char buffer[40];
    out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, quant.scales[i]).ptr);
    out += ':';
    AppendShapeInt(out, i < quant.zero_points.size() ? quant.zero_points[i] : 0);
  }
  out += "})";
}

void AppendArray(std::string& out, const Shape& shape) {
  out.append(HloName(shape.type())) += '[';
  for (size_t i = 0; i < shape.dims().size(); ++i) {
    if (i > 0) out += ',';
    if (shape.dim(i) != kDynamic) {
      AppendShapeInt(out, shape.dim(i));
    } else if (i < shape.bounds().size() && shape.bounds()[i] != kDynamic) {
      out += "<=";
      AppendShapeInt(out, shape.bounds()[i]);
    } else {
      out += '?';
    }
  }
  out += ']';
  if (shape.layout() != nullptr) AppendLayout(out, *shape.layout());
  if (shape.quant() != nullptr) AppendQuant(out, *shape.quant());
}

}  // namespace

bool HloShapeReader::IsNext(HloCursor& cursor) {
  if (cursor.Peek() == '(') return true;
  std::string_view word = cursor.PeekWord();
  char after = cursor.PeekRaw(word.size());
  return (after == '[' && !word.empty()) || (after == '(' && (word == "b" || word == "future"));
}

bool HloShapeReader::Read(HloCursor& cursor, Shape& shape) {
  (void)cursor.Peek();
  const char* start = cursor.at();
  const char* guess = GuessEnd(start, cursor.end());
  std::string_view text(start, static_cast<size_t>(guess - start));
  if (const Shape* known = cache_.Find(text)) {
    shape = *known;
    cursor.MoveTo(guess);
    return true;
  }
  if (!ReadNew(cursor, shape)) return false;
  if (cursor.at() == guess) cache_.Add(text, shape);
  return true;
}

bool HloShapeReader::ReadNew(HloCursor& cursor, Shape& shape) {
  HloCursor::Depth depth(cursor);
  if (!depth.ok) return false;
  ShapeKind kind = ShapeKind::kArray;
  const char* start = cursor.at();
  if (cursor.Try('(')) {
    kind = ShapeKind::kTuple;
  } else if (cursor.TryText("b(")) {
    kind = ShapeKind::kBuffer;
  } else if (cursor.TryText("future(")) {
    kind = ShapeKind::kFuture;
  }
  if (kind == ShapeKind::kArray) return ReadArray(cursor, shape);
  std::vector<Shape> elements;
  while (!cursor.Try(')')) {
    if (!Read(cursor, elements.emplace_back())) return false;
    if (cursor.Peek() != ')' && !cursor.Expect(',')) return false;
  }
  if (kind == ShapeKind::kTuple) {
    shape = Shape::Tuple(std::move(elements));
  } else if (kind == ShapeKind::kFuture) {
    shape = Shape::Future(std::move(elements));
  } else {
    if (elements.size() != 1) return BadShape(cursor, "a buffer must hold one array", start);
    shape = Shape::Buffer(std::move(elements[0]));
  }
  return true;
}

void AppendShape(std::string& out, const Shape& shape) {
  switch (shape.kind()) {
    case ShapeKind::kArray:
      AppendArray(out, shape);
      return;
    case ShapeKind::kToken:
      out += "token[]";
      return;
    case ShapeKind::kOpaque:
      out += "opaque[]";
      return;
    case ShapeKind::kUnranked:
      out.append(HloName(shape.type())) += "[*]";
      if (shape.quant() != nullptr) AppendQuant(out, *shape.quant());
      return;
    case ShapeKind::kTuple:
      out += '(';
      break;
    case ShapeKind::kBuffer:
      out += "b(";
      break;
    case ShapeKind::kFuture:
      out += "future(";
      break;
  }
  for (size_t i = 0; i < shape.elements().size(); ++i) {
    if (i > 0) out += ", ";
    AppendShape(out, shape.elements()[i]);
  }
  out += ')';
}

}  // namespace tokamak
