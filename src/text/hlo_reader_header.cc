// Parses the header of a module, the tables of source positions that follow it, and the instruction
// metadata that refers to them:
//
//   HloModule jit_f, is_scheduled=true, entry_computation_layout={(f32[2]{0})->f32[2]{0}}
//
//   FileNames
//   1 "model.py"
//   ...
#include "text/hlo_reader.h"
#include "text/hlo_sharding.h"

namespace tokamak {
namespace {

bool BadHeader(HloCursor& cursor, std::string message, const char* where = nullptr) {
  return cursor.Fail(ErrorCode::kHloBadAttribute, std::move(message), where);
}

// Parses {a=1 b="x"} with optional commas: calls value(name) after each '='.
template <typename Fn>
bool ReadRecord(HloCursor& cursor, Fn&& value) {
  if (!cursor.Expect('{')) return false;
  while (!cursor.Try('}')) {
    std::string_view name = cursor.Word();
    if (!cursor.Expect('=') || !value(name)) return false;
    (void)cursor.Try(',');
  }
  return true;
}

bool ReadParameterPart(HloCursor& cursor, int64_t& parameter, Dims& index) {
  return cursor.Int(parameter) && (!cursor.Try(',') || cursor.Ints(index));
}

}  // namespace

bool HloReader::ReadHeader() {
  if (!cursor_.TryWord("HloModule")) return true;
  (void)cursor_.Peek();
  if (cursor_.PeekRaw() == '"') {
    std::string name;
    if (!cursor_.String(name)) return false;
    module_->set_name(std::move(name));
  } else {
    size_t size = 0;
    std::string_view rest = cursor_.rest();
    while (size < rest.size() && std::string_view(" ,\n\t\r{").find(rest[size]) == rest.npos)
      ++size;
    if (size == 0) return cursor_.FailExpected("the name of the module");
    module_->set_name(std::string(rest.substr(0, size)));
    cursor_.Advance(size);
  }
  std::vector<std::string_view> seen;
  while (cursor_.Try(',')) {
    (void)cursor_.Peek();
    const char* start = cursor_.at();
    std::string_view name = cursor_.Word();
    if (!cursor_.Expect('=')) return false;
    for (std::string_view other : seen) {
      if (other == name)
        return cursor_.Fail(ErrorCode::kHloDuplicateAttribute,
                            "module: " + std::string(name) + " is written twice", start);
    }
    seen.push_back(name);
    if (!ReadHeaderAttribute(name, start)) return false;
  }
  return ReadTables();
}

bool HloReader::ReadHeaderAttribute(std::string_view name, const char* start) {
  HloValueContext values = Values();
  Module& module = *module_;
  if (name == "is_scheduled") {
    bool skipped = false;  // the order of instructions is kept in any case
    return ReadValue(values, skipped);
  }
  if (name == "replica_count" || name == "num_partitions") {
    int64_t& count = name == "replica_count" ? module.num_replicas : module.num_partitions;
    if (!ReadValue(values, count)) return false;
    return count >= 1 ||
           BadHeader(cursor_, "module: " + std::string(name) + " is not positive", start);
  }
  if (name == "entry_computation_layout") return ReadEntryLayout();
  if (name == "input_output_alias") return ReadAliases();
  if (name == "buffer_donor") return ReadDonors();
  if (name == "frontend_attributes") {
    if (!ReadFrontendAttributes(module.frontend_attributes)) return false;
    TakeOrder(start);
    return !cursor_.failed();
  }
  if (name == "allow_spmd_sharding_propagation_to_parameters" ||
      name == "allow_spmd_sharding_propagation_to_output") {
    std::vector<bool> skipped;  // for XLA's partitioner
    return ReadValue(values, skipped);
  }
  if (name == "alias_passthrough_params" || name == "use_auto_spmd_partitioning") {
    bool value = false;
    if (!ReadValue(values, value)) return false;
    if (value) Set(module.attributes, "hlo." + std::string(name), {value});
    return true;
  }
  if (name == "origin_recovery_table" || name == "original_value_recovery_table") {
    std::string_view skipped;  // debugger information on removed values
    return cursor_.Balanced(skipped);
  }
  // Tokamak extension.
  if (name == "attributes") {
    AttrDict more;
    if (!ReadValue(values, more)) return false;
    for (AttrEntry& entry : more) Set(module.attributes, entry.name, std::move(entry.value));
    return true;
  }
  if (name == "meshes") return ReadMeshTable();
  if (name == "no_entry") return ReadValue(values, no_entry_);
  return cursor_.Fail(ErrorCode::kHloUnknownAttribute,
                      "module: unknown attribute '" + std::string(name.substr(0, 80)) + "'", start);
}

// { {0}: (0, {}, may-alias), {1}: 2 }
bool HloReader::ReadAliases() {
  if (!cursor_.Expect('{')) return false;
  while (!cursor_.Try('}')) {
    InputOutputAlias alias;
    if (!cursor_.Ints(alias.output) || !cursor_.Expect(':')) return false;
    bool in_parens = cursor_.Try('(');
    if (!cursor_.Int(alias.parameter)) return false;
    if (in_parens) {
      if (cursor_.Try(',') && !cursor_.Ints(alias.parameter_index)) return false;
      if (cursor_.Try(',')) {
        const char* start = cursor_.at();
        std::string_view kind = cursor_.Word();
        if (kind != "may-alias" && kind != "must-alias")
          return BadHeader(cursor_, "input_output_alias: neither may-alias nor must-alias", start);
        alias.must = kind == "must-alias";
      }
      if (!cursor_.Expect(')')) return false;
    }
    module_->aliases.push_back(std::move(alias));
    if (cursor_.Peek() != '}' && !cursor_.Expect(',')) return false;
  }
  return true;
}

// { (0, {}), (1, {0}) }
bool HloReader::ReadDonors() {
  if (!cursor_.Expect('{')) return false;
  while (!cursor_.Try('}')) {
    BufferDonor donor;
    if (!cursor_.Expect('(') ||
        !ReadParameterPart(cursor_, donor.parameter, donor.parameter_index) || !cursor_.Expect(')'))
      return false;
    module_->donors.push_back(std::move(donor));
    if (cursor_.Peek() != '}' && !cursor_.Expect(',')) return false;
  }
  return true;
}

// {(f32[2]{0}, s32[])->f32[2]{0}}
bool HloReader::ReadEntryLayout() {
  EntryLayout layout;
  if (!cursor_.Expect('{')) return false;
  layout.where = cursor_.at();
  Shape parameters;
  if (cursor_.Peek() != '(') return cursor_.FailExpected("(");
  if (!shapes_.Read(cursor_, parameters) || !cursor_.ExpectText("->") ||
      !shapes_.Read(cursor_, layout.result))
    return false;
  layout.parameters = parameters.elements();
  entry_layout_ = std::move(layout);
  return cursor_.Expect('}');
}

// {@"mesh" mesh['x'=2], @"other" maximal_mesh[device_id=3]}
bool HloReader::ReadMeshTable() {
  if (!cursor_.Expect('{')) return false;
  while (!cursor_.Try('}')) {
    std::string name, ignored;
    std::vector<Mesh> one;
    if (!cursor_.Expect('@') || !cursor_.String(name) || !ReadMesh(cursor_, one, ignored))
      return false;
    if (one.empty()) return cursor_.FailExpected("a mesh");
    one[0].name = std::move(name);
    module_->meshes.push_back(std::move(one[0]));
    if (cursor_.Peek() != '}' && !cursor_.Expect(',')) return false;
  }
  return true;
}

// The writer prints callees first, as XLA requires, and stores the module's order of computations
// in this attribute.
void HloReader::TakeOrder(const char* where) {
  AttrDict& dict = module_->frontend_attributes;
  const AttrValue* value = Find(dict, kHloOrderAttribute);
  if (value == nullptr || value->As<std::string>() == nullptr) return;
  HloCursor indices(*value->As<std::string>());
  do {
    int64_t computation_index = 0;
    if (!indices.Int(computation_index)) {
      BadHeader(cursor_, std::string(kHloOrderAttribute) + ": not a list of numbers", where);
      return;
    }
    order_.push_back(computation_index);
  } while (indices.Try(','));
  order_where_ = where;
  std::erase_if(dict, [](const AttrEntry& entry) { return entry.name == kHloOrderAttribute; });
}

// ---- tables

bool HloReader::ReadTables() {
  std::vector<std::string> files, functions;
  for (;;) {
    if (cursor_.TryWord("FileNames")) {
      if (!ReadStringTable(files)) return false;
    } else if (cursor_.TryWord("FunctionNames")) {
      if (!ReadStringTable(functions)) return false;
    } else if (cursor_.TryWord("FileLocations")) {
      if (!ReadLocations()) return false;
    } else if (cursor_.TryWord("StackFrames")) {
      if (!ReadFrames(files, functions)) return false;
    } else {
      return true;
    }
  }
}

// 1 "a.py" 2 "b.py": ids are consecutive from 1.
bool HloReader::ReadStringTable(std::vector<std::string>& table) {
  for (char c = cursor_.Peek(); c >= '0' && c <= '9'; c = cursor_.Peek()) {
    int64_t id = 0;
    if (!cursor_.Int(id) || !cursor_.String(table.emplace_back())) return false;
    if (id != static_cast<int64_t>(table.size()))
      return BadHeader(cursor_, "table: expected entry " + std::to_string(table.size()));
  }
  return true;
}

bool HloReader::ReadLocations() {
  for (char c = cursor_.Peek(); c >= '0' && c <= '9'; c = cursor_.Peek()) {
    int64_t id = 0;
    Location computation_index;
    if (!cursor_.Int(id)) return false;
    bool fine = ReadRecord(cursor_, [&](std::string_view name) {
      if (name == "file_name_id") return cursor_.Int(computation_index.file);
      if (name == "function_name_id") return cursor_.Int(computation_index.function);
      if (name == "line") return cursor_.Int(computation_index.line);
      if (name == "end_line") return cursor_.Int(computation_index.end_line);
      if (name == "column") return cursor_.Int(computation_index.column);
      if (name == "end_column") return cursor_.Int(computation_index.end_column);
      return FailField(cursor_, name, cursor_.at());
    });
    if (!fine) return false;
    locations_.push_back(computation_index);
  }
  return true;
}

bool HloReader::ReadFrames(const std::vector<std::string>& files,
                           const std::vector<std::string>& functions) {
  auto text = [](const std::vector<std::string>& table, int64_t id) {
    bool known = id >= 1 && id <= static_cast<int64_t>(table.size());
    return known ? table[static_cast<size_t>(id) - 1] : std::string();
  };
  for (char c = cursor_.Peek(); c >= '0' && c <= '9'; c = cursor_.Peek()) {
    const char* start = cursor_.at();
    int64_t id = 0, location = 0, parent = 0;
    if (!cursor_.Int(id)) return false;
    bool fine = ReadRecord(cursor_, [&](std::string_view name) {
      if (name == "file_location_id") return cursor_.Int(location);
      if (name == "parent_frame_id") return cursor_.Int(parent);
      return FailField(cursor_, name, cursor_.at());
    });
    if (!fine) return false;
    if (location < 1 || location > static_cast<int64_t>(locations_.size()))
      return BadHeader(cursor_, "stack frame: no file location " + std::to_string(location), start);
    const Location& computation_index = locations_[static_cast<size_t>(location) - 1];
    Frame frame;
    frame.file = text(files, computation_index.file);
    frame.function = text(functions, computation_index.function);
    frame.line = static_cast<int32_t>(computation_index.line);
    frame.end_line = static_cast<int32_t>(computation_index.end_line);
    frame.column = static_cast<int32_t>(computation_index.column);
    frame.end_column = static_cast<int32_t>(computation_index.end_column);
    // Parents in the text count from 2: 1 means "no parent". Callers come first.
    if (parent > 1 && parent - 1 <= static_cast<int64_t>(frames_.size()))
      frame.caller = frames_[static_cast<size_t>(parent) - 2];
    frames_.push_back(module_->origins().AddFrame(frame));
  }
  return true;
}

// ---- metadata and frontend attributes

bool HloReader::ReadMetadata(OriginId& origins) {
  std::string_view text;
  if (!cursor_.Braces(text)) return false;
  OriginId own = OriginId::kNone;
  if (const OriginId* known = metadata_cache_.Find(text)) {
    own = *known;
  } else {
    const char* after = cursor_.at();
    Origin origin;
    cursor_.MoveTo(text.data());
    if (!ParseMetadata(text, origin)) return false;
    cursor_.MoveTo(after);
    own = module_->origins().Add(origin);
    metadata_cache_.Add(text, own);
  }
  origins = module_->origins().Merge(origins, own);
  return true;
}

bool HloReader::ParseMetadata(std::string_view text, Origin& origin) {
  Frame frame;
  int64_t stack_frame = 0;
  auto number = [&](int32_t& out) {
    int64_t value = 0;
    if (!cursor_.Int(value)) return false;
    out = static_cast<int32_t>(value);
    return true;
  };
  bool fine = ReadRecord(cursor_, [&](std::string_view name) {
    if (name == "op_name") return cursor_.String(origin.op_name);
    if (name == "op_type") return cursor_.String(origin.op_type);
    if (name == "source_file") return cursor_.String(frame.file);
    if (name == "source_line") return number(frame.line);
    if (name == "source_end_line") return number(frame.end_line);
    if (name == "source_column") return number(frame.column);
    if (name == "source_end_column") return number(frame.end_column);
    if (name == "stack_frame_id") return cursor_.Int(stack_frame);
    // deduplicated_name="x", profile_type={1}, preserve_layout=true ...
    const char* start = name.data();
    std::string ignored;
    std::string_view braces;
    char c = cursor_.Peek();
    if (c == '"' ? !cursor_.String(ignored) : c == '{' ? !cursor_.Braces(braces) : false)
      return false;
    if (c != '"' && c != '{' && cursor_.Word().empty()) return cursor_.FailExpected("a value");
    if (!origin.other.empty()) origin.other += ' ';
    origin.other.append(start, cursor_.at());
    return true;
  });
  if (!fine) return false;
  if (stack_frame >= 1 && stack_frame <= static_cast<int64_t>(frames_.size())) {
    origin.frame = frames_[static_cast<size_t>(stack_frame) - 1];
  } else if (!(frame == Frame{})) {
    origin.frame = module_->origins().AddFrame(frame);
  }
  return cursor_.at() == text.data() + text.size() || cursor_.FailExpected("'}'");
}

// {a="1", b={"json": 2}, c=!(5 : i32)}: values are text; the last form is a Tokamak extension.
bool HloReader::ReadFrontendAttributes(AttrDict& dict) {
  if (!cursor_.Expect('{')) return false;
  while (!cursor_.Try('}')) {
    std::string name;
    if (cursor_.Peek() == '"') {
      if (!cursor_.String(name)) return false;
    } else {
      name = std::string(cursor_.Word());
    }
    if (name.empty()) return cursor_.FailExpected("the name of an attribute");
    if (!cursor_.Expect('=')) return false;
    if (cursor_.Peek() == '!') {
      cursor_.Advance(1);
      HloValueContext values = Values();
      AttrDict one;
      if (!ReadValue(values, one)) return false;
      if (const AttrValue* value = Find(one, "value")) Set(dict, std::move(name), *value);
    } else if (cursor_.Peek() == '{') {
      std::string_view text;
      if (!cursor_.Braces(text)) return false;
      Set(dict, std::move(name), {std::string(text)});
    } else {
      std::string text;
      if (!cursor_.String(text)) return false;
      Set(dict, std::move(name), {std::move(text)});
    }
    if (cursor_.Peek() != '}' && !cursor_.Expect(',')) return false;
  }
  return true;
}

}  // namespace tokamak
