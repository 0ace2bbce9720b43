#include "text/hlo_reader.h"

#include <algorithm>
#include <utility>

#include "support/near_names.h"
#include "text/hlo_literal.h"
#include "text/read.h"

namespace tokamak {
namespace {

int64_t CountWords(std::string_view text, std::string_view word) {
  int64_t count = 0;
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++count;
  return count;
}

}  // namespace

HloReader::HloReader(std::string_view text, const std::string& file, int first_line)
    : text_(text), cursor_(text, first_line), module_(std::make_unique<Module>()) {
  module_->file = file;
}

Result<std::unique_ptr<Module>> HloReader::Read() {
  bool fine =
      ReadHeader() && ReadComputations() && Resolve() && FindEntry() && CompareEntryLayout();
  if (!fine) return cursor_.TakeError(module_->file);
  return std::move(module_);
}

bool HloReader::ReadComputations() {
  while (!cursor_.AtEnd())
    if (!ReadComputation()) return false;
  return true;
}

// ENTRY name (p: f32[2]) -> f32[2] { ... }, execution_thread="x"
bool HloReader::ReadComputation() {
  (void)cursor_.Peek();
  const char* entry_start = cursor_.at();
  bool is_entry = cursor_.TryWord("ENTRY");
  (void)cursor_.Peek();
  const char* name_start = cursor_.at();
  std::string_view name;
  if (!cursor_.Name(name)) return false;
  if (is_entry && marked_entry_ != nullptr)
    return cursor_.Fail(ErrorCode::kHloNoEntry, "a second computation marked ENTRY", entry_start);
  computation_ = module_->AddComputation(std::string(name));
  computation_->is_public = false;
  computation_->pos = cursor_.PosOf(name_start);
  if (is_entry) marked_entry_ = computation_;
  if (!computations_.Add(name, computation_)) {
    return cursor_.Fail(ErrorCode::kHloDuplicateName,
                        "a second computation called " + std::string(name), name_start);
  }
  std::optional<Shape> declared;
  const char* declared_start = nullptr;
  if (cursor_.Peek() == '(') {
    std::string_view parameters;
    if (!cursor_.Balanced(parameters) || !cursor_.ExpectText("->")) return false;
    (void)cursor_.Peek();
    declared_start = cursor_.at();
    if (!shapes_.Read(cursor_, declared.emplace())) return false;
  }
  if (!ReadBody(name_start)) return false;
  if (declared && computation_->root() != nullptr &&
      !CompatibleWithDynamic(*declared, computation_->root()->shape())) {
    return cursor_.Fail(ErrorCode::kHloBadShape,
                        "computation " + std::string(name) + ": declared with result " +
                            ToString(*declared) + ", but its root is " +
                            ToString(computation_->root()->shape()),
                        declared_start);
  }
  return ReadComputationAttributes(*computation_);
}

bool HloReader::ReadBody(const char* where) {
  if (!cursor_.Expect('{')) return false;
  names_.Clear();
  control_links_.clear();
  (void)cursor_.Peek();
  const char* first = cursor_.at();
  while (!cursor_.Try('}'))
    if (!ReadInstruction()) return false;
  if (computation_->size() == 0)
    return cursor_.Fail(ErrorCode::kHloBadRoot, "a computation without instructions", first);
  for (const ControlLink& link : control_links_) {
    Instr* const* before = names_.Find(link.name);
    if (before == nullptr) {
      return cursor_.Fail(ErrorCode::kHloUnknownInstruction,
                          "control-predecessors: no instruction " + std::string(link.name),
                          link.where);
    }
    link.instr->AddControlPredecessor(*before);
  }
  if (computation_->root() == nullptr) computation_->set_root(computation_->Instrs().back());
  return CheckParameters(where);
}

bool HloReader::OpensBody() const {
  auto skip = [this](const char* at, auto accepts) {
    while (at < cursor_.end() && accepts(*at)) ++at;
    return at;
  };
  auto is_space = [](char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; };
  const char* at = skip(cursor_.at() + 1, is_space);
  if (std::string_view(at, static_cast<size_t>(cursor_.end() - at)).starts_with("ROOT "))
    at = skip(at + 5, is_space);
  const char* name = at;
  at = skip(at, [](char c) { return c == '%' || HloCursor::IsWordChar(c); });
  const char* after = skip(at, is_space);
  return at > name && after < cursor_.end() && *after == '=';
}

bool HloReader::ReadInlineComputation(std::string name, std::string_view& key) {
  HloCursor::Depth depth(cursor_);
  if (!depth.ok) return false;
  const char* start = cursor_.at();
  // No name in the text contains a brace, so the key is unique.
  key = inline_keys_.emplace_back("{" + std::to_string(inline_keys_.size()));
  Computation* outer = computation_;
  auto outer_names = std::exchange(names_, {});
  auto outer_links = std::exchange(control_links_, {});
  auto outer_seen = std::exchange(seen_, {});
  computation_ = module_->AddComputation(std::move(name));
  computation_->is_public = false;
  computation_->pos = cursor_.PosOf(start);
  (void)computations_.Add(key, computation_);
  bool fine = ReadBody(start);
  computation_ = outer;
  names_ = std::move(outer_names);
  control_links_ = std::move(outer_links);
  seen_ = std::move(outer_seen);
  return fine;
}

bool HloReader::CheckParameters(const char* where) {
  const auto& parameters = computation_->parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i] != nullptr) continue;
    return cursor_.Fail(ErrorCode::kHloBadParameter,
                        "computation " + computation_->name() + ": parameter " +
                            std::to_string(parameters.size() - 1) + " but no parameter " +
                            std::to_string(i),
                        where);
  }
  return true;
}

bool HloReader::ReadComputationAttributes(Computation& computation) {
  HloValueContext values = Values();
  while (cursor_.Try(',')) {
    (void)cursor_.Peek();
    const char* start = cursor_.at();
    std::string_view name = cursor_.Word();
    if (!cursor_.Expect('=')) return false;
    bool fine = true;
    if (name == "execution_thread") {
      fine = ReadValue(values, computation.execution_thread);
      if (computation.execution_thread == "main") computation.execution_thread.clear();
    } else if (name == "attributes") {
      fine = ReadValue(values, computation.attributes);
    } else if (name == "visibility") {
      std::string_view word = cursor_.Word();
      (word == "public" ? public_ : private_).push_back(&computation);
      fine = word == "public" || word == "private" || FailEnum(cursor_, word, start);
    } else if (name == "results") {
      fine = ReadResults(computation);
    } else if (name == "metadata") {
      fine = ReadMetadata(computation.origins);
    } else {
      fine = FailField(cursor_, name, start);
    }
    if (!fine) return false;
  }
  return true;
}

// {{sharding={...}, attributes={...}}, {}}
bool HloReader::ReadResults(Computation& computation) {
  HloValueContext values = Values();
  if (!cursor_.Expect('{')) return false;
  while (!cursor_.Try('}')) {
    ResultInfo& result = computation.results.emplace_back();
    if (!cursor_.Expect('{')) return false;
    while (!cursor_.Try('}')) {
      const char* start = cursor_.at();
      std::string_view name = cursor_.Word();
      if (!cursor_.Expect('=')) return false;
      bool fine = name == "sharding"     ? ReadValue(values, result.sharding)
                  : name == "attributes" ? ReadValue(values, result.attributes)
                                         : FailField(cursor_, name, start);
      if (!fine || (cursor_.Peek() != '}' && !cursor_.Expect(','))) return false;
    }
    if (cursor_.Peek() != '}' && !cursor_.Expect(',')) return false;
  }
  return true;
}

// ROOT name = shape op(operands), attributes
bool HloReader::ReadInstruction() {
  (void)cursor_.Peek();
  const char* start = cursor_.at();
  bool is_root = cursor_.TryWord("ROOT");
  (void)cursor_.Peek();
  const char* name_start = cursor_.at();
  std::string_view name;
  if (!cursor_.Name(name) || !cursor_.Expect('=')) return false;
  Instr* instr = ReadRightSide(name, /*allow_attributes=*/true);
  if (instr == nullptr) return false;
  if (!names_.Add(name, instr)) {
    return cursor_.Fail(ErrorCode::kHloDuplicateName,
                        "a second instruction called " + std::string(name), name_start);
  }
  if (!is_root) return true;
  if (computation_->root() != nullptr)
    return cursor_.Fail(ErrorCode::kHloBadRoot, "a second ROOT", start);
  computation_->set_root(instr);
  return true;
}

Instr* HloReader::ReadRightSide(std::string_view name, bool allow_attributes) {
  HloCursor::Depth depth(cursor_);
  if (!depth.ok) return nullptr;
  ParsedInstr parsed_instr;
  parsed_instr.name = name;
  if (HloShapeReader::IsNext(cursor_) && !shapes_.Read(cursor_, parsed_instr.shape.emplace()))
    return nullptr;
  if (!ReadOp(parsed_instr) || !ReadOperands(parsed_instr) ||
      !ReadAttributes(parsed_instr, allow_attributes))
    return nullptr;
  return MakeInstr(parsed_instr);
}

bool HloReader::ReadOp(ParsedInstr& parsed_instr) {
  (void)cursor_.Peek();
  parsed_instr.op_start = cursor_.at();
  std::string_view word = cursor_.Word();
  if (word.empty()) return cursor_.FailExpected("an op");
  if (std::optional<Op> op = OpFromName(word)) {
    parsed_instr.op = *op;
    return true;
  }
  if (word == "cross-replica-sum") {  // an old name of all-reduce
    parsed_instr.op = Op::kAllReduce;
    return true;
  }
  constexpr std::pair<std::string_view, Op> kHalves[] = {
      {"-start", Op::kAsyncStart}, {"-update", Op::kAsyncUpdate}, {"-done", Op::kAsyncDone}};
  for (auto [suffix, half] : kHalves) {
    if (!word.ends_with(suffix)) continue;
    std::optional<Op> wrapped = OpFromName(word.substr(0, word.size() - suffix.size()));
    if (!wrapped) break;
    parsed_instr.op = half;
    parsed_instr.wrapped = wrapped;
    return true;
  }
  std::vector<std::string_view> names;
  for (const OpInfo& info : AllOps()) names.push_back(info.name);
  return cursor_.Fail(ErrorCode::kHloUnknownOp,
                      "unknown op '" + ShownWord(word) + "'" + DidYouMean(word, names),
                      parsed_instr.op_start);
}

bool HloReader::ReadOperands(ParsedInstr& parsed_instr) {
  if (!cursor_.Expect('(')) return false;
  if (parsed_instr.op == Op::kParameter) {
    const char* start = cursor_.at();
    if (!cursor_.Int(parsed_instr.parameter)) return false;
    if (parameter_words_ < 0) parameter_words_ = CountWords(text_, "parameter");
    if (parsed_instr.parameter < 0 || parsed_instr.parameter >= parameter_words_) {
      return cursor_.Fail(ErrorCode::kHloBadParameter,
                          "parameter " + std::to_string(parsed_instr.parameter) + " of so few",
                          start);
    }
    return cursor_.Expect(')');
  }
  if (parsed_instr.op == Op::kConstant) {
    if (!parsed_instr.shape) {
      return cursor_.Fail(ErrorCode::kHloNoShape, "constant: written without a shape",
                          parsed_instr.op_start);
    }
    HloValueContext values = Values();
    bool has_own_shape = cursor_.Peek() != '(' && HloShapeReader::IsNext(cursor_);
    Shape shape = parsed_instr.shape->WithoutLayout();
    if (has_own_shape && !ReadValue(values, shape)) return false;
    shape = shape.WithoutLayout();  // the text is row-major, whatever the layout
    return ReadHloLiteral(cursor_, shape, parsed_instr.literal) && cursor_.Expect(')');
  }
  if (cursor_.Try(')')) return true;
  do {
    if (!ReadOperand(parsed_instr)) return false;
  } while (cursor_.Try(','));
  return cursor_.Expect(')');
}

// %x, f32[2] %x, x, or another instruction without attributes: negate(x).
bool HloReader::ReadOperand(ParsedInstr& parsed_instr) {
  char c = cursor_.Peek();
  const char* start = cursor_.at();
  if (c != '%' && HloShapeReader::IsNext(cursor_)) {
    Shape written;
    if (!shapes_.Read(cursor_, written)) return false;
    c = cursor_.Peek();
  }
  const char* name_start = cursor_.at();
  std::string_view name;
  if (!cursor_.Name(name)) return false;
  if (c != '%' && cursor_.Peek() == '(') {
    cursor_.MoveTo(start);
    Instr* nested = ReadRightSide({}, /*allow_attributes=*/false);
    if (nested == nullptr) return false;
    parsed_instr.operands.push_back(nested);
    return true;
  }
  Instr* const* operand = names_.Find(name);
  if (operand == nullptr) {
    return cursor_.Fail(ErrorCode::kHloUnknownInstruction,
                        "no instruction '" + ShownWord(name) + "' before this one" +
                            DidYouMean(name, names_.Names()),
                        name_start);
  }
  parsed_instr.operands.push_back(*operand);
  return true;
}

// ---- the end of the module

bool HloReader::Resolve() {
  for (CallLink& link : call_links_) {
    std::vector<Computation*> called;
    for (auto [name, where] : link.names) {
      Computation* computation = FindComputation(name);
      if (computation == nullptr) {
        return cursor_.Fail(ErrorCode::kHloUnknownComputation,
                            "no computation " + std::string(name.substr(0, 80)), where);
      }
      called.push_back(computation);
    }
    link.instr->set_called(std::move(called));
  }
  return order_.empty() || Reorder();
}

bool HloReader::Reorder() {
  std::vector<size_t> positions;
  std::vector<bool> seen(module_->computations().size(), false);
  bool fine = order_.size() == seen.size();
  for (int64_t position : order_) {
    auto i = static_cast<size_t>(position);
    fine = fine && position >= 0 && i < seen.size() && !seen[i];
    if (!fine) break;
    seen[i] = true;
    positions.push_back(i);
  }
  if (!fine) {
    return cursor_.Fail(ErrorCode::kHloBadAttribute,
                        std::string(kHloOrderAttribute) + ": not an order of the " +
                            std::to_string(seen.size()) + " computations",
                        order_where_);
  }
  // Without an ENTRY mark, the last computation in the text is the entry.
  if (marked_entry_ == nullptr) marked_entry_ = module_->computations().back().get();
  module_->OrderComputations(positions);
  return true;
}

bool HloReader::FindEntry() {
  for (Computation* computation : public_) computation->is_public = true;
  if (no_entry_) return true;
  if (module_->computations().empty())
    return cursor_.Fail(ErrorCode::kHloNoEntry, "a module without computations");
  Computation* entry =
      marked_entry_ != nullptr ? marked_entry_ : module_->computations().back().get();
  bool is_private = std::find(private_.begin(), private_.end(), entry) != private_.end();
  entry->is_public = !is_private;
  module_->set_entry(entry);
  return true;
}

// The layout is stored only if it differs from that of the entry itself.
bool HloReader::CompareEntryLayout() {
  if (!entry_layout_ || module_->entry() == nullptr) return true;
  const Computation& entry = *module_->entry();
  EntryLayout& layout = *entry_layout_;
  if (layout.parameters.size() != entry.parameters().size()) {
    return cursor_.Fail(ErrorCode::kHloBadAttribute,
                        "entry_computation_layout: " + std::to_string(layout.parameters.size()) +
                            " parameters, the entry has " +
                            std::to_string(entry.parameters().size()),
                        layout.where);
  }
  bool same = true;
  for (size_t i = 0; i < layout.parameters.size(); ++i)
    same = same && layout.parameters[i] == entry.parameter(i)->shape();
  if (!same) module_->entry_parameter_layouts = std::move(layout.parameters);
  if (entry.root() != nullptr && !(layout.result == entry.root()->shape()))
    module_->entry_result_layout = std::move(layout.result);
  return true;
}

Result<std::unique_ptr<Module>> ReadHloText(std::string_view text, const std::string& file,
                                            int first_line) {
  return HloReader(text, file, first_line).Read();
}

}  // namespace tokamak
