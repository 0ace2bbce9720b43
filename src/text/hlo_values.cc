#include "text/hlo_values.h"

#include <charconv>
#include <cmath>

#include "text/hlo_attr_value.h"
#include "text/hlo_literal.h"
#include "text/hlo_sharding.h"

namespace tokamak {
namespace {

bool BadValue(HloCursor& cursor, std::string message, const char* where = nullptr) {
  return cursor.Fail(ErrorCode::kHloBadAttribute, std::move(message), where);
}

// Splits "3x4" at 'x' or "1_2" at '_'; every component must be an integer.
bool Split(std::string_view text, char separator, Dims& numbers) {
  numbers.clear();
  const char *at = text.data(), *end = text.data() + text.size();
  for (;;) {
    int64_t number = 0;
    auto [stop, conversion_error] = std::from_chars(at, end, number);
    if (conversion_error != std::errc()) return false;
    numbers.push_back(number);
    if (stop == end) return true;
    if (*stop != separator) return false;
    at = stop + 1;
  }
}

// Splits "0_0x1_1_2" at 'x' into entries of 2 to `most` numbers.
bool SplitPads(std::string_view text, size_t most, std::vector<Dims>& pads) {
  pads.clear();
  for (;;) {
    size_t x = text.find('x');
    Dims& pad = pads.emplace_back();
    if (!Split(text.substr(0, x), '_', pad) || pad.size() < 2 || pad.size() > most) return false;
    if (x == std::string_view::npos) return true;
    text.remove_prefix(x + 1);
  }
}

struct Algorithm {
  std::string_view name, lhs, rhs, accumulation;
  int64_t primitives;
  bool imprecise;
};
// XLA's names. "Any f8" is spelled f8E5M2, as in XLA's own converter.
constexpr Algorithm kAlgorithms[] = {
    {"dot_any_f8_any_f8_f32", "f8E5M2", "f8E5M2", "f32", 1, false},
    {"dot_any_f8_any_f8_f32_fast_accum", "f8E5M2", "f8E5M2", "f32", 1, true},
    {"dot_any_f8_any_f8_any", "f8E5M2", "f8E5M2", "any", 1, false},
    {"dot_any_f8_any_f8_any_fast_accum", "f8E5M2", "f8E5M2", "any", 1, true},
    {"dot_f16_f16_f16", "f16", "f16", "f16", 1, false},
    {"dot_f16_f16_f32", "f16", "f16", "f32", 1, false},
    {"dot_bf16_bf16_bf16", "bf16", "bf16", "bf16", 1, false},
    {"dot_bf16_bf16_f32", "bf16", "bf16", "f32", 1, false},
    {"dot_bf16_bf16_f32_x3", "bf16", "bf16", "f32", 3, false},
    {"dot_bf16_bf16_f32_x6", "bf16", "bf16", "f32", 6, false},
    {"dot_bf16_bf16_f32_x9", "bf16", "bf16", "f32", 9, false},
    {"dot_tf32_tf32_f32", "tf32", "tf32", "f32", 1, false},
    {"dot_tf32_tf32_f32_x3", "tf32", "tf32", "f32", 3, false},
    {"dot_f32_f32_f32", "f32", "f32", "f32", 1, false},
    {"dot_f64_f64_f64", "f64", "f64", "f64", 1, false},
};

DotAlgorithm Expand(const Algorithm& row) {
  DotAlgorithm algorithm;
  algorithm.lhs_type = row.lhs;
  algorithm.rhs_type = row.rhs;
  algorithm.accumulation_type = row.accumulation;
  algorithm.primitive_operations = row.primitives;
  algorithm.allow_imprecise_accumulation = row.imprecise;
  return algorithm;
}

// One word of a window: fills `member` of every dimension.
bool ReadWindowPart(HloCursor& cursor, std::string_view name, Window& window) {
  const char* start = cursor.at();
  std::string_view text = cursor.Word();
  std::vector<Dims> values;
  if (name == "pad") {
    if (!SplitPads(text, 2, values))
      return BadValue(cursor, "window: pad is low_highxlow_high", start);
  } else {
    Dims numbers;
    if (!Split(text, 'x', numbers)) return BadValue(cursor, "window: expected 1x2x3", start);
    for (int64_t n : numbers) values.push_back({n});
  }
  if (window.empty()) window.resize(values.size());
  if (window.size() != values.size() || values.size() > static_cast<size_t>(kMaxRank)) {
    return BadValue(cursor,
                    "window: " + std::string(name) + " has " + std::to_string(values.size()) +
                        " dimensions, the rest " + std::to_string(window.size()),
                    start);
  }
  for (size_t i = 0; i < values.size(); ++i) {
    WindowDim& dim = window[i];
    int64_t value = values[i][0];
    if (name == "size") {
      dim.size = value;
    } else if (name == "stride") {
      dim.stride = value;
    } else if (name == "pad") {
      dim.pad_low = value;
      dim.pad_high = values[i][1];
    } else if (name == "lhs_dilate") {
      dim.base_dilation = value;
    } else if (name == "rhs_dilate") {
      dim.window_dilation = value;
    } else if (name == "rhs_reversal") {
      dim.reversed = value != 0;
    } else {
      return BadValue(cursor, "window: unknown part '" + std::string(name) + "'", start);
    }
  }
  return true;
}

// One array of dim_labels: "b01f" with first 'b' and second 'f' (kernels: 'i' and 'o'). '?' is an
// unused dimension.
bool ReadLabels(std::string_view text, char first, char second, int64_t& first_at,
                int64_t& second_at, Dims& spatial) {
  bool has_first = false, has_second = false;
  size_t count = 0;
  for (char c : text) count += c >= '0' && c <= '9' ? 1 : 0;
  spatial.assign(count, -1);
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == first && !has_first) {
      first_at = static_cast<int64_t>(i);
      has_first = true;
    } else if (c == second && !has_second) {
      second_at = static_cast<int64_t>(i);
      has_second = true;
    } else if (c >= '0' && c <= '9' && static_cast<size_t>(c - '0') < count &&
               spatial[static_cast<size_t>(c - '0')] < 0) {
      spatial[static_cast<size_t>(c - '0')] = static_cast<int64_t>(i);
    } else if (c != '?') {
      return false;
    }
  }
  return has_first && has_second;
}

// Returns nullopt if the numbers do not form valid labels.
std::optional<std::string> Labels(char first, char second, int64_t first_at, int64_t second_at,
                                  const Dims& spatial) {
  if (spatial.size() > 10) return std::nullopt;
  std::string text;
  auto put = [&](int64_t at, char label) {
    if (at < 0 || at >= kMaxRank) return false;
    auto i = static_cast<size_t>(at);
    if (text.size() <= i) text.resize(i + 1, '?');
    if (text[i] != '?') return false;
    text[i] = label;
    return true;
  };
  if (!put(first_at, first) || !put(second_at, second)) return std::nullopt;
  for (size_t i = 0; i < spatial.size(); ++i)
    if (!put(spatial[i], static_cast<char>('0' + i))) return std::nullopt;
  return text;
}

}  // namespace

bool FailEnum(HloCursor& cursor, std::string_view word, const char* where) {
  return BadValue(cursor,
                  "no value of this attribute is called '" + std::string(word.substr(0, 60)) + "'",
                  where);
}

bool FailField(HloCursor& cursor, std::string_view name, const char* where) {
  return cursor.Fail(ErrorCode::kHloUnknownAttribute,
                     "unknown field '" + std::string(name.substr(0, 60)) + "'", where);
}

bool ReadValue(HloValueContext& context, int64_t& value) {
  HloCursor& cursor = context.cursor;
  if (!cursor.Try('{')) return cursor.Int(value);
  return cursor.Int(value) && cursor.Expect('}');
}
bool ReadValue(HloValueContext& context, bool& value) {
  return context.cursor.Bool(value);
}
bool ReadValue(HloValueContext& context, double& value) {
  return context.cursor.Double(value);
}
bool ReadValue(HloValueContext& context, std::string& value) {
  if (context.cursor.Peek() == '"') return context.cursor.String(value);
  value = std::string(context.cursor.Word());
  return !value.empty() || context.cursor.FailExpected("a string");
}
bool ReadValue(HloValueContext& context, Dims& value) {
  return context.cursor.Ints(value);
}
bool ReadValue(HloValueContext& context, std::vector<bool>& value) {
  HloCursor& cursor = context.cursor;
  bool one = false;
  value.clear();
  if (!cursor.Try('{')) {
    if (!cursor.Bool(one)) return false;
    value.push_back(one);
    return true;
  }
  while (!cursor.Try('}')) {
    if (!cursor.Bool(one)) return false;
    value.push_back(one);
    if (cursor.Peek() != '}' && !cursor.Expect(',')) return false;
  }
  return true;
}
bool ReadValue(HloValueContext& context, Shape& value) {
  return context.shapes.Read(context.cursor, value);
}
bool ReadValue(HloValueContext& context, Literal& value) {
  Shape shape;
  return context.shapes.Read(context.cursor, shape) && ReadHloLiteral(context.cursor, shape, value);
}
bool ReadValue(HloValueContext& context, Sharding& value) {
  return ReadSharding(context.cursor, context.meshes, value);
}
bool ReadValue(HloValueContext& context, AttrDict& value) {
  HloCursor& cursor = context.cursor;
  (void)cursor.Peek();
  const char* start = cursor.at();
  std::string_view text;
  if (!cursor.Braces(text)) return false;
  std::optional<AttrDict> dict = ParseHloAttrDict(text);
  if (!dict) return BadValue(cursor, "not a dictionary of attributes", start);
  value = std::move(*dict);
  return true;
}
bool ReadValue(HloValueContext& context, TileDevices& value) {
  return ReadTileDevices(context.cursor, value);
}
bool ReadValue(HloValueContext& context, AxisRef& value) {
  return ReadAxisRef(context.cursor, value);
}

bool ReadValue(HloValueContext& context, Window& window) {
  HloCursor& cursor = context.cursor;
  window.clear();
  if (!cursor.Expect('{')) return false;
  while (!cursor.Try('}')) {
    std::string_view name = cursor.Word();
    if (!cursor.Expect('=') || !ReadWindowPart(cursor, name, window)) return false;
    (void)cursor.Try(',');
  }
  return true;
}

bool ReadValue(HloValueContext& context, ConvDims& dims) {
  HloCursor& cursor = context.cursor;
  if (cursor.Peek() == '{') return ReadStruct(context, dims);
  const char* start = cursor.at();
  auto is_label = [](char c) {
    return HloCursor::IsWordChar(c) || c == '?' || c == '>' || c == '-';
  };
  size_t size = 0;
  while (is_label(cursor.PeekRaw(size))) ++size;
  std::string_view text(start, size);
  size_t bar = text.find('_'), arrow = text.find("->");
  bool fine = bar != std::string_view::npos && arrow != std::string_view::npos && bar < arrow;
  fine = fine &&
         ReadLabels(text.substr(0, bar), 'b', 'f', dims.input_batch, dims.input_feature,
                    dims.input_spatial) &&
         ReadLabels(text.substr(bar + 1, arrow - bar - 1), 'i', 'o', dims.kernel_input,
                    dims.kernel_output, dims.kernel_spatial) &&
         ReadLabels(text.substr(arrow + 2), 'b', 'f', dims.output_batch, dims.output_feature,
                    dims.output_spatial);
  if (!fine) return BadValue(cursor, "dim_labels is written as b01f_01io->b01f", start);
  cursor.Advance(size);
  return true;
}

bool ReadValue(HloValueContext& context, DotAlgorithm& algorithm) {
  HloCursor& cursor = context.cursor;
  if (cursor.Peek() == '{') return ReadStruct(context, algorithm);
  const char* start = cursor.at();
  std::string_view word = cursor.Word();
  for (const Algorithm& row : kAlgorithms) {
    if (row.name != word) continue;
    algorithm = Expand(row);
    return true;
  }
  return BadValue(cursor, "dot: unknown algorithm '" + std::string(word) + "'", start);
}

bool ReadValue(HloValueContext& context, ReplicaGroups& groups) {
  HloCursor& cursor = context.cursor;
  char c = cursor.Peek();
  const char* start = cursor.at();
  if (c == '{') return ReadValue(context, groups.lists);
  if (c == '[') {
    if (!cursor.Ints(groups.iota_tile, '[', ']') || !ReadTileDevices(cursor, groups.iota))
      return false;
    std::optional<int64_t> tiles = CheckedElementCount(groups.iota_tile);
    std::optional<int64_t> devices = CheckedElementCount(groups.iota.reshape);
    if (groups.iota_tile.size() == 2 && tiles && tiles == devices) return true;
    return BadValue(cursor, "replica_groups: [groups,size] and the devices after <= disagree",
                    start);
  }
  return ReadMesh(cursor, context.meshes, groups.mesh) && ReadAxes(cursor, groups.axes);
}

bool ReadValue(HloValueContext& context, OutputAlias& alias) {
  HloCursor& cursor = context.cursor;
  return cursor.Ints(alias.output) && cursor.Expect(':') && cursor.Expect('(') &&
         cursor.Int(alias.operand) && cursor.Expect(',') && cursor.Ints(alias.operand_index) &&
         cursor.Expect(')');
}

bool ReadSliceRanges(HloValueContext& context, SliceAttrs& slice) {
  HloCursor& cursor = context.cursor;
  if (!cursor.Expect('{')) return false;
  while (!cursor.Try('}')) {
    int64_t start = 0, limit = 0, stride = 1;
    if (!cursor.Expect('[') || !cursor.Int(start) || !cursor.Expect(':') || !cursor.Int(limit))
      return false;
    if (cursor.Try(':') && !cursor.Int(stride)) return false;
    if (!cursor.Expect(']')) return false;
    slice.starts.push_back(start);
    slice.limits.push_back(limit);
    slice.strides.push_back(stride);
    if (cursor.Peek() != '}' && !cursor.Expect(',')) return false;
  }
  return true;
}

bool ReadPadding(HloValueContext& context, PadAttrs& pad) {
  HloCursor& cursor = context.cursor;
  // Nothing is written for a scalar: the next token is on another line.
  for (size_t ahead = 0;; ++ahead) {
    char next = cursor.PeekRaw(ahead);
    if (next == '\n' || next == '\r' || next == ',' || next == '}' || next == '\0') return true;
    if (next != ' ' && next != '\t') break;
  }
  (void)cursor.Peek();
  const char* start = cursor.at();
  std::string_view text = cursor.Word();
  std::vector<Dims> values;
  if (!SplitPads(text, 3, values))
    return BadValue(cursor, "pad: padding is low_high_interiorxlow_high_interior", start);
  for (const Dims& v : values) {
    pad.low.push_back(v[0]);
    pad.high.push_back(v[1]);
    pad.interior.push_back(v.size() > 2 ? v[2] : 0);
  }
  return true;
}

// {mode=highest}, {tolerance={atol=1,rtol=0.5,ulps=2}}
bool ReadAccuracy(HloValueContext& context, AccuracyAttrs& accuracy) {
  HloCursor& cursor = context.cursor;
  HloCursor::Depth depth(cursor);
  if (!depth.ok || !cursor.Expect('{')) return false;
  while (!cursor.Try('}')) {
    const char* start = cursor.at();
    std::string_view name = cursor.Word();
    bool known = false;
    if (!cursor.Expect('=')) return false;
    if (name == "tolerance") {
      accuracy.mode = AccuracyMode::kTolerance;
      if (!ReadAccuracy(context, accuracy)) return false;
    } else if (!ReadField(context, accuracy, name, known)) {
      return false;
    } else if (!known) {
      return FailField(cursor, name, start);
    }
    (void)cursor.Try(',');
  }
  return true;
}

bool ReadDomain(HloValueContext& context, DomainAttrs& domain) {
  return ReadStruct(context, domain);
}

// ---- writing

void AppendInt(std::string& out, int64_t value) {
  char buffer[24];
  out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
}
void AppendValue(std::string& out, const HloTextContext&, int64_t value) {
  AppendInt(out, value);
}
void AppendValue(std::string& out, const HloTextContext&, bool value) {
  out += value ? "true" : "false";
}
void AppendValue(std::string& out, const HloTextContext&, double value) {
  char buffer[48];
  out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
}
void AppendValue(std::string& out, const HloTextContext&, const std::string& value) {
  AppendQuoted(out, value);
}
void AppendValue(std::string& out, const HloTextContext&, const Dims& value) {
  out += '{';
  for (size_t i = 0; i < value.size(); ++i) {
    if (i > 0) out += ',';
    AppendInt(out, value[i]);
  }
  out += '}';
}
void AppendValue(std::string& out, const HloTextContext&, const Shape& value) {
  AppendShape(out, value);
}
void AppendValue(std::string& out, const HloTextContext&, const Literal& value) {
  AppendShape(out, value.shape());
  out += ' ';
  AppendHloLiteral(out, value);
}
void AppendValue(std::string& out, const HloTextContext& context, const Sharding& value) {
  AppendSharding(out, value, context.meshes);
}
void AppendValue(std::string& out, const HloTextContext&, const AttrDict& value) {
  AppendAttrDict(out, value);
}
void AppendValue(std::string& out, const HloTextContext&, const TileDevices& value) {
  AppendTileDevices(out, value);
}
void AppendValue(std::string& out, const HloTextContext&, const AxisRef& value) {
  AppendAxisRef(out, value);
}

void AppendValue(std::string& out, const HloTextContext&, const Window& window) {
  bool first = true;
  auto part = [&](std::string_view name, auto differs, auto append) {
    bool any = name == "size";
    for (const WindowDim& dim : window) any = any || differs(dim);
    if (!any || window.empty()) return;
    if (!first) out += ' ';
    first = false;
    out.append(name) += '=';
    for (size_t i = 0; i < window.size(); ++i) {
      if (i > 0) out += 'x';
      append(window[i]);
    }
  };
  auto number = [&](std::string_view name, int64_t WindowDim::*member, int64_t plain) {
    part(
        name, [&](const WindowDim& dim) { return dim.*member != plain; },
        [&](const WindowDim& dim) { AppendInt(out, dim.*member); });
  };
  out += '{';
  number("size", &WindowDim::size, 1);
  number("stride", &WindowDim::stride, 1);
  part(
      "pad", [](const WindowDim& dim) { return dim.pad_low != 0 || dim.pad_high != 0; },
      [&](const WindowDim& dim) {
        AppendInt(out, dim.pad_low);
        out += '_';
        AppendInt(out, dim.pad_high);
      });
  number("lhs_dilate", &WindowDim::base_dilation, 1);
  number("rhs_dilate", &WindowDim::window_dilation, 1);
  part(
      "rhs_reversal", [](const WindowDim& dim) { return dim.reversed; },
      [&](const WindowDim& dim) { out += dim.reversed ? '1' : '0'; });
  out += '}';
}

void AppendValue(std::string& out, const HloTextContext& context, const ConvDims& dims) {
  auto input = Labels('b', 'f', dims.input_batch, dims.input_feature, dims.input_spatial);
  auto kernel = Labels('i', 'o', dims.kernel_input, dims.kernel_output, dims.kernel_spatial);
  auto output = Labels('b', 'f', dims.output_batch, dims.output_feature, dims.output_spatial);
  if (input && kernel && output) {
    out += *input + "_" + *kernel + "->" + *output;
  } else {
    AppendStruct(out, context, dims);
  }
}

void AppendValue(std::string& out, const HloTextContext& context, const DotAlgorithm& algorithm) {
  for (const Algorithm& row : kAlgorithms) {
    if (!(Expand(row) == algorithm)) continue;
    out += row.name;
    return;
  }
  AppendStruct(out, context, algorithm);
}

void AppendValue(std::string& out, const HloTextContext& context, const ReplicaGroups& groups) {
  if (!groups.mesh.empty() || !groups.axes.empty()) {
    AppendMesh(out, groups.mesh, context.meshes);
    out += ' ';
    AppendAxes(out, groups.axes);
  } else if (!groups.iota_tile.empty()) {
    out += '[';
    for (size_t i = 0; i < groups.iota_tile.size(); ++i) {
      if (i > 0) out += ',';
      AppendInt(out, groups.iota_tile[i]);
    }
    out += ']';
    AppendTileDevices(out, groups.iota);
  } else {
    out += '{';
    for (size_t i = 0; i < groups.lists.size(); ++i) {
      if (i > 0) out += ',';
      AppendValue(out, context, groups.lists[i]);
    }
    out += '}';
  }
}

void AppendValue(std::string& out, const HloTextContext& context, const OutputAlias& alias) {
  AppendValue(out, context, alias.output);
  out += ": (";
  AppendInt(out, alias.operand);
  out += ", ";
  AppendValue(out, context, alias.operand_index);
  out += ')';
}

void AppendSliceRanges(std::string& out, const SliceAttrs& slice) {
  out += '{';
  for (size_t i = 0; i < slice.starts.size(); ++i) {
    if (i > 0) out += ", ";
    out += '[';
    AppendInt(out, slice.starts[i]);
    out += ':';
    AppendInt(out, i < slice.limits.size() ? slice.limits[i] : 0);
    if (i < slice.strides.size() && slice.strides[i] != 1) {
      out += ':';
      AppendInt(out, slice.strides[i]);
    }
    out += ']';
  }
  out += '}';
}

void AppendPadding(std::string& out, const PadAttrs& pad) {
  for (size_t i = 0; i < pad.low.size(); ++i) {
    if (i > 0) out += 'x';
    AppendInt(out, pad.low[i]);
    out += '_';
    AppendInt(out, i < pad.high.size() ? pad.high[i] : 0);
    if (i < pad.interior.size() && pad.interior[i] != 0) {
      out += '_';
      AppendInt(out, pad.interior[i]);
    }
  }
}

}  // namespace tokamak
