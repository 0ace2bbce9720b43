// Files, modules and functions of MLIR text.

#include "text/mlir_text.h"

#include "support/limits.h"
#include "text/mlir_ops.h"
#include "text/mlir_sdy.h"
#include "text/read.h"

namespace tokamak {

MlirTextReader::MlirTextReader(std::string_view text, const std::string& file, int first_line)
    : text_(text),
      file_(file),
      first_line_(static_cast<uint32_t>(first_line)),
      cursor_(text, first_line_),
      importer_(file) {}

Result<std::unique_ptr<Module>> MlirTextReader::Read() {
  if (!FindAliases() || !ParseTopLevel()) return std::move(*error_);
  return importer_.Finish();
}

// ---- errors

bool MlirTextReader::FailAt(TextPos pos, ErrorCode code, std::string message) {
  if (!error_) error_ = importer_.At(pos, code, std::move(message));
  return false;
}

bool MlirTextReader::Expected(std::string_view what) {
  cursor_.Peek();
  std::string found = "the end";
  if (cursor_.left() > 0) {
    std::string_view word = cursor_.PeekWord();
    unsigned char c = static_cast<unsigned char>(cursor_.Here());
    if (!word.empty()) {
      found = "'" + std::string(word.substr(0, 40)) + "'";
    } else if (c >= 32 && c < 127) {
      found = std::string("'") + cursor_.Here() + "'";
    } else {
      found = "byte " + std::to_string(c);
    }
  }
  return Fail(ErrorCode::kMlirSyntax, "expected " + std::string(what) + ", found " + found);
}

bool MlirTextReader::Take(Status status) {
  if (status.ok()) return true;
  if (!error_) error_ = std::move(status.error());
  return false;
}

bool MlirTextReader::Expect(char c) {
  return cursor_.Eat(c) || Expected(std::string("'") + c + "'");
}
bool MlirTextReader::Expect(std::string_view text) {
  return cursor_.Eat(text) || Expected("'" + std::string(text) + "'");
}

bool MlirTextReader::Enter() {
  if (++depth_ <= kMaxNesting) return true;
  return Fail(ErrorCode::kTooDeep, "nested deeper than " + std::to_string(kMaxNesting));
}

// ---- definitions that may follow their uses

// Alias definitions start a line: "#loc3 = ...", "!t = ...".
bool MlirTextReader::FindAliases() {
  MlirCursor scan(text_, first_line_);
  const char* line = text_.data();
  const char* end = line + text_.size();
  while (line < end) {
    const void* newline = std::memchr(line, '\n', static_cast<size_t>(end - line));
    const char* next = newline == nullptr ? end : static_cast<const char*>(newline) + 1;
    if (*line == '{' && next - line >= 3 && line[1] == '-' && line[2] == '#') {
      if (!FindResources(line)) return false;
      break;
    }
    if (*line == '#' || *line == '!') {
      scan.SkipTo(line);
      scan.Advance();
      scan.Name();
      std::string_view key(line, static_cast<size_t>(scan.at() - line));
      TextPos pos = {scan.Pos().line, 1};
      if (scan.Eat('=')) {
        scan.Peek();
        Alias alias;
        alias.mark = scan.Save();
        if (!aliases_.emplace(key, std::move(alias)).second)
          return FailAt(pos, ErrorCode::kMlirAlias, std::string(key) + " is defined twice");
      }
    }
    line = next;
  }
  return true;
}

// {-# dialect_resources: { builtin: { name: "0x..." } } #-}
bool MlirTextReader::FindResources(const char* begin) {
  MlirCursor::Mark mark = cursor_.Save();
  cursor_.SkipTo(begin);
  cursor_.Advance(3);
  int depth = 0;
  std::string_view name;
  bool ok = true;
  while (ok && !cursor_.StartsWith("#-}")) {
    char c = cursor_.Peek();
    if (c == '{') {
      if (++depth > kMaxNesting)
        return Fail(ErrorCode::kTooDeep, "nested deeper than " + std::to_string(kMaxNesting));
      cursor_.Advance();
    } else if (c == '}') {
      --depth;
      cursor_.Advance();
    } else if (c == ':' || c == ',') {
      cursor_.Advance();
    } else if (c == '"') {
      const char* open = cursor_.at() + 1;
      const void* close = std::memchr(open, '"', cursor_.left() - 1);
      if (close == nullptr) return Fail(ErrorCode::kMlirToken, "a string is not closed");
      std::string_view text(open, static_cast<size_t>(static_cast<const char*>(close) - open));
      cursor_.SkipTo(static_cast<const char*>(close) + 1);
      if (cursor_.Peek() == ':') {
        name = text;
      } else {
        resources_[std::string(name)] = text;
      }
    } else {
      name = cursor_.Name();
      if (name.empty()) ok = Expected("the name of a resource");
    }
  }
  cursor_.Restore(mark);
  return ok;
}

// ---- modules

bool MlirTextReader::ParseTopLevel() {
  while (cursor_.Peek() != '\0' || cursor_.left() > 0) {
    if (cursor_.StartsWith("{-#")) {
      // Already read by FindResources.
      const char* begin = cursor_.at();
      size_t end = text_.find("#-}", static_cast<size_t>(begin - text_.data()));
      if (end == std::string_view::npos) return Expected("'#-}' behind resources");
      cursor_.SkipTo(text_.data() + end + 3);
      continue;
    }
    if (!ParseTopLevelOp(false)) return false;
  }
  return true;
}

bool MlirTextReader::ParseTopLevelOp(bool inside_module) {
  char c = cursor_.Peek();
  if (c == '#' || c == '!') {
    cursor_.Advance();
    cursor_.Name();
    if (!Expect('=')) return false;
    std::string_view skipped;
    if (cursor_.EatWord("loc")) return SkipBalanced('(', ')', skipped);
    if (c == '#') {
      AttrValue value;
      return ParseAttr(value);
    }
    if (cursor_.Eat('!')) {
      cursor_.Name();
      return cursor_.Here() != '<' || SkipBalanced('<', '>', skipped);
    }
    Shape shape;
    return ParseType(shape);
  }
  if (c == '"') return ParseGenericTopLevel(inside_module);
  TextPos pos = cursor_.Pos();
  std::string_view word = cursor_.PeekWord();
  if (word == "module" || word == "builtin.module") {
    if (inside_module)
      return Fail(ErrorCode::kMlirNestedModule, "builtin.module: stands inside a module");
    cursor_.Advance(word.size());
    return ParseModule();
  }
  if (word == "func.func" || word == "func") return ParseFunction();
  if (word == "sdy.mesh") return ParseMesh();
  if (c == '%' || !word.empty()) {
    if (c == '%' && !ParseResultNames()) return false;
    pos = cursor_.Pos();
    word = cursor_.PeekWord();
    if (FindMlirOp(word) == nullptr && !word.empty() && word.find('.') != std::string_view::npos) {
      FindOp(word, pos);
      return false;
    }
    if (FindMlirOp(word) != nullptr)
      return FailAt(pos, ErrorCode::kMlirPlacement,
                    std::string(word) + ": stands outside a function");
  }
  return Expected("a module or a function");
}

// @name attributes {...} { ops }
bool MlirTextReader::ParseModule() {
  if (cursor_.Peek() == '@') {
    std::string name;
    if (!ParseSymbol(name)) return false;
    importer_.module().set_name(std::move(name));
  }
  if (cursor_.EatWord("attributes") && !ParseModuleAttributes()) return false;
  if (!Expect('{') || !ParseModuleBody() || !Expect('}')) return false;
  OriginId skipped = OriginId::kNone;
  return ParseOptionalLoc(skipped);
}

bool MlirTextReader::ParseModuleBody() {
  while (cursor_.Peek() != '}') {
    if (cursor_.left() == 0) return Expected("'}'");
    if (!ParseTopLevelOp(true)) return false;
  }
  return true;
}

bool MlirTextReader::ParseModuleAttributes() {
  TextPos pos = cursor_.Pos();
  Attrs_ attrs;
  if (!ParseAttrDict(attrs)) return false;
  for (MlirAttr& attr : attrs)
    if (!Take(importer_.AddModuleAttribute(attr.name, std::move(attr.value), pos))) return false;
  return true;
}

// sdy.mesh @name = <["x"=2]> {attributes}
bool MlirTextReader::ParseMesh() {
  TextPos pos = cursor_.Pos();
  cursor_.Word();
  Mesh mesh;
  std::string name;
  OriginId skipped = OriginId::kNone;
  Attrs_ attrs;
  if (!ParseSymbol(name) || !Expect('=') || !ParseMeshBody(mesh) || !ParseOptionalAttrDict(attrs) ||
      !ParseOptionalLoc(skipped))
    return false;
  mesh.name = std::move(name);
  return Take(importer_.AddMesh(std::move(mesh), pos));
}

// ---- functions

// func.func private @name(%a: t {attributes}) -> (t {attributes}) attributes {...} { ops }
bool MlirTextReader::ParseFunction() {
  cursor_.Word();
  MlirFunction function;
  if (cursor_.EatWord("private") || cursor_.EatWord("nested")) function.is_public = false;
  cursor_.EatWord("public");
  function.pos = cursor_.Pos();
  std::string name;
  if (!ParseSymbol(name)) return false;
  function.name = name;
  scopes_.Clear();
  scopes_.Push();
  if (!Take(importer_.BeginFunction(function))) return false;
  if (!ParseFunctionArguments()) return false;
  std::vector<Shape> results;
  std::vector<Attrs_> result_attrs;
  if (cursor_.Eat("->") && !ParseFunctionResults(results, result_attrs)) return false;
  Attrs_ attrs;
  if (cursor_.EatWord("attributes") && !ParseAttrDict(attrs)) return false;
  if (cursor_.Peek() != '{')
    return FailAt(function.pos, ErrorCode::kMlirTerminator, "func.func: @" + name + " has no body");
  if (!Enter() || !Expect('{') || !ParseRegionBody()) return false;
  Leave();
  TextPos end = cursor_.Pos();
  if (!Expect('}')) return false;
  Computation* computation = importer_.current();
  if (!Take(importer_.EndFunction(results, result_attrs, attrs, end))) return false;
  scopes_.Pop();
  OriginId origins = OriginId::kNone;
  if (!ParseOptionalLoc(origins)) return false;
  computation->origins = origins;
  return true;
}

bool MlirTextReader::ParseFunctionArguments() {
  if (!Expect('(')) return false;
  if (cursor_.Eat(')')) return true;
  do {
    TextPos pos = cursor_.Pos();
    if (!Expect('%')) return false;
    std::string_view name = cursor_.Name();
    Shape shape;
    Attrs_ attrs;
    OriginId origins = OriginId::kNone;
    if (!Expect(':') || !ParseType(shape) || !ParseOptionalAttrDict(attrs) ||
        !ParseOptionalLoc(origins))
      return false;
    std::string_view shown = name.empty() || IsMlirDigit(name[0]) ? std::string_view() : name;
    Result<Instr*> argument = importer_.AddArgument(std::move(shape), shown, attrs, pos, origins);
    if (!argument.ok()) return Take(std::move(argument.error()));
    Instr* value = argument.value();
    if (!scopes_.Define(name, {&value, 1}))
      return FailAt(pos, ErrorCode::kMlirRedefinedValue,
                    "%" + std::string(name) + " is defined twice");
  } while (cursor_.Eat(','));
  return Expect(')');
}

bool MlirTextReader::ParseFunctionResults(std::vector<Shape>& results, std::vector<Attrs_>& attrs) {
  bool parens = cursor_.Eat('(');
  if (parens && cursor_.Eat(')')) return true;
  do {
    if (!ParseType(results.emplace_back())) return false;
    if (parens && !ParseOptionalAttrDict(attrs.emplace_back())) return false;
  } while (parens && cursor_.Eat(','));
  return !parens || Expect(')');
}

// ---- the generic form of modules and functions

// "builtin.module"() <{...}> ({ ops }) {...} : () -> ()
bool MlirTextReader::ParseGenericTopLevel(bool inside_module) {
  TextPos pos = cursor_.Pos();
  std::string name;
  if (!ParseString(name) || !Expect('(') || !Expect(')')) return false;
  Attrs_ attrs;
  if (cursor_.StartsWith("<{")) {
    cursor_.Advance(2);
    if (!ParseAttrDictBody(attrs, '}') || !Expect('>')) return false;
  }
  // Attributes may follow the regions.
  cursor_.Peek();
  MlirCursor::Mark regions = cursor_.Save();
  std::string_view skipped;
  if (cursor_.Peek() == '(' && !SkipBalanced('(', ')', skipped)) return false;
  if (!ParseOptionalAttrDict(attrs) || !Expect(':') || !Expect('(') || !Expect(')') ||
      !Expect("->") || !Expect('(') || !Expect(')'))
    return false;
  OriginId origins = OriginId::kNone;
  if (!ParseOptionalLoc(origins)) return false;
  MlirCursor::Mark end = cursor_.Save();
  cursor_.Restore(regions);
  bool ok = false;
  if (name == "builtin.module") {
    if (inside_module)
      return FailAt(pos, ErrorCode::kMlirNestedModule, "builtin.module: stands inside a module");
    for (MlirAttr& attr : attrs) {
      const auto* text = attr.value.As<std::string>();
      if (attr.name == "sym_name" && text != nullptr) {
        importer_.module().set_name(*text);
      } else if (!Take(importer_.AddModuleAttribute(attr.name, std::move(attr.value), pos))) {
        return false;
      }
    }
    ok = Expect('(') && Expect('{');
    if (ok && cursor_.Peek() == '^') ok = ParseBlockLabel();
    ok = ok && ParseModuleBody() && Expect('}') && Expect(')');
  } else if (name == "func.func") {
    ok = ParseGenericFunction(regions, attrs, pos);
  } else if (name == "sdy.mesh") {
    MlirOpInput input;
    input.op = FindMlirOp(name);
    input.attrs = attrs;
    input.pos = pos;
    ok = Take(importer_.AddOp(input, values_));
  } else if (FindOp(name, pos) != nullptr) {
    ok = FailAt(pos, ErrorCode::kMlirPlacement, name + ": stands outside a function");
  }
  if (ok) cursor_.Restore(end);
  return ok;
}

bool MlirTextReader::ParseGenericFunction(const MlirCursor::Mark&, const Attrs_& attrs,
                                          TextPos pos) {
  MlirFunction function;
  function.pos = pos;
  const AttrList* types = nullptr;
  std::vector<Attrs_> argument_attrs, result_attrs;
  Attrs_ rest;
  auto lists = [](const AttrValue& value, std::vector<Attrs_>& out) {
    const auto* list = value.As<AttrList>();
    for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
      Attrs_& one = out.emplace_back();
      if (const auto* dict = (*list)[i].As<AttrDict>())
        for (const AttrEntry& entry : *dict) one.push_back({entry.name, entry.value});
    }
  };
  for (const MlirAttr& attr : attrs) {
    const auto* text = attr.value.As<std::string>();
    if (attr.name == "sym_name" && text != nullptr) {
      function.name = *text;
    } else if (attr.name == "sym_visibility" && text != nullptr) {
      function.is_public = *text == "public" || text->empty();
    } else if (attr.name == "function_type") {
      types = attr.value.As<AttrList>();
    } else if (attr.name == "arg_attrs") {
      lists(attr.value, argument_attrs);
    } else if (attr.name == "res_attrs") {
      lists(attr.value, result_attrs);
    } else {
      rest.push_back(attr);
    }
  }
  const AttrList* outputs =
      types == nullptr || types->size() != 2 ? nullptr : (*types)[1].As<AttrList>();
  if (outputs == nullptr || function.name.empty())
    return FailAt(pos, ErrorCode::kMlirAttributeMeaning,
                  "func.func: sym_name or function_type is missing");
  std::vector<Shape> results;
  for (const AttrValue& value : *outputs) {
    const auto* shape = value.As<Shape>();
    if (shape != nullptr) results.push_back(*shape);
  }
  scopes_.Clear();
  scopes_.Push();
  if (!Take(importer_.BeginFunction(function))) return false;
  if (!Enter() || !Expect('(') || !Expect('{') || !ParseRegionBody()) return false;
  Leave();
  for (size_t i = 0; i < argument_attrs.size() && i < importer_.current()->parameters().size(); ++i)
    if (!Take(
            importer_.AddArgumentAttrs(importer_.current()->parameter(i), argument_attrs[i], pos)))
      return false;
  TextPos end = cursor_.Pos();
  bool ok =
      Take(importer_.EndFunction(results, result_attrs, rest, end)) && Expect('}') && Expect(')');
  scopes_.Pop();
  return ok;
}

Result<std::unique_ptr<Module>> ReadMlirText(std::string_view text, const std::string& file,
                                             int first_line) {
  return MlirTextReader(text, file, first_line).Read();
}

}  // namespace tokamak
