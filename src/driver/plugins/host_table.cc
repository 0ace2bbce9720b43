// The instruction-level C API of plugins. Null pointers and indices out of range are allowed
// everywhere; a pointer that is no instruction crashes the callback, which is guarded (callback.h).

#include "driver/plugins/host_table.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "driver/plugins/callback.h"
#include "driver/plugins/paste.h"
#include "driver/plugins/registry.h"
#include "ir/clone.h"
#include "ir/infer.h"
#include "rewrite/match.h"
#include "rewrite/replace.h"
#include "support/interned.h"
#include "text/read.h"
#include "text/write.h"

namespace tokamak {
namespace {

thread_local PassGraph* t_graph = nullptr;

PassGraph* In(tok_graph* graph) {
  return reinterpret_cast<PassGraph*>(graph);
}

Instr* In(tok_instr* instr) {
  return reinterpret_cast<Instr*>(instr);
}
const Instr* In(const tok_instr* instr) {
  return reinterpret_cast<const Instr*>(instr);
}
Computation* In(tok_computation* computation) {
  return reinterpret_cast<Computation*>(computation);
}
tok_instr* OutInstr(const Instr* instr) {
  return reinterpret_cast<tok_instr*>(const_cast<Instr*>(instr));
}
tok_computation* Out(Computation* computation) {
  return reinterpret_cast<tok_computation*>(computation);
}

const char* KeptText(std::string text) {
  if (t_graph == nullptr) return "";
  return t_graph->texts.emplace_back(std::move(text)).c_str();
}

int Fail(const char* message) {
  FailCallback(message == nullptr ? "" : message);
  return -1;
}
int FailWith(const std::string& message) {
  return Fail(message.c_str());
}

const std::vector<Instr*>& ListOf(Computation& computation) {
  auto [it, is_new] = t_graph->listed.try_emplace(&computation);
  if (is_new) it->second = computation.PostOrder();
  return it->second;
}

// ---- the program

tok_computation* Entry(tok_graph* graph) {
  return graph == nullptr ? nullptr : Out(In(graph)->module->entry());
}
size_t ComputationCount(tok_graph* graph) {
  return graph == nullptr ? 0 : In(graph)->module->computations().size();
}
tok_computation* ComputationAt(tok_graph* graph, size_t i) {
  return i < ComputationCount(graph) ? Out(In(graph)->module->computations()[i].get()) : nullptr;
}
const char* ComputationName(tok_computation* computation) {
  return computation == nullptr ? "" : In(computation)->name().c_str();
}
size_t InstrCount(tok_computation* computation) {
  return computation == nullptr || t_graph == nullptr ? 0 : ListOf(*In(computation)).size();
}
tok_instr* InstrAt(tok_computation* computation, size_t i) {
  return i < InstrCount(computation) ? OutInstr(ListOf(*In(computation))[i]) : nullptr;
}
tok_instr* Root(tok_computation* computation) {
  return computation == nullptr ? nullptr : OutInstr(In(computation)->root());
}
void Refresh(tok_computation* computation) {
  if (computation != nullptr && t_graph != nullptr) t_graph->listed.erase(In(computation));
}

// ---- instructions

const char* OpOf(const tok_instr* instr) {
  return instr == nullptr ? "" : In(instr)->info().name.data();
}
const char* NameOfInstr(const tok_instr* instr) {
  return instr == nullptr ? "" : KeptText(LabelOf(*In(instr)));
}
const char* ShapeOf(const tok_instr* instr) {
  return instr == nullptr ? "" : KeptText(ToString(In(instr)->shape()));
}
bool IsArrayInstr(const tok_instr* instr) {
  return instr != nullptr && In(instr)->shape().IsArray();
}
const char* TypeOf(const tok_instr* instr) {
  return IsArrayInstr(instr) ? InfoOf(In(instr)->shape().type()).hlo.data() : "";
}
size_t RankOf(const tok_instr* instr) {
  return IsArrayInstr(instr) ? static_cast<size_t>(In(instr)->shape().rank()) : 0;
}
const int64_t* DimsOf(const tok_instr* instr) {
  return IsArrayInstr(instr) ? In(instr)->shape().dims().data() : nullptr;
}
size_t OperandCount(const tok_instr* instr) {
  return instr == nullptr ? 0 : In(instr)->operand_count();
}
tok_instr* OperandAt(const tok_instr* instr, size_t i) {
  return i < OperandCount(instr) ? OutInstr(In(instr)->operand(i)) : nullptr;
}
size_t UserCount(const tok_instr* instr) {
  return instr == nullptr ? 0 : In(instr)->users().size();
}
tok_instr* UserAt(const tok_instr* instr, size_t i) {
  return i < UserCount(instr) ? OutInstr(In(instr)->users()[i]) : nullptr;
}
tok_computation* CalledAt(const tok_instr* instr, size_t i) {
  bool is_there = instr != nullptr && i < In(instr)->called().size();
  return is_there ? Out(In(instr)->called(i)) : nullptr;
}
tok_computation* ParentOf(const tok_instr* instr) {
  return instr == nullptr ? nullptr : Out(In(instr)->parent());
}

// The instruction as a line of HLO text, in a module of its own.
std::string LineOf(const Instr& instr) {
  Module module("one");
  Computation* entry = module.AddComputation("one");
  std::vector<Instr*> operands;
  for (const Instr* operand : instr.operands())
    operands.push_back(
        entry->AppendParameter(static_cast<int64_t>(operands.size()), operand->shape()));
  Instr* copy = instr.op() == Op::kParameter
                    ? entry->AppendParameter(0, instr.shape())
                    : CopyAcross(instr, *entry, std::move(operands), instr);
  copy->set_origins(OriginId::kNone);
  entry->set_root(copy);
  module.set_entry(entry);
  std::string text = WriteHloText(module);
  size_t begin = text.rfind("ROOT ");
  return begin == std::string::npos ? "" : text.substr(begin, text.find('\n', begin) - begin);
}

// The value of `key` in "..., key={0,1}, other=...", without quotes; nullopt if there is none.
std::optional<std::string> ValueIn(const std::string& line, const std::string& key) {
  size_t at = line.find(", " + key + "=");
  if (at == std::string::npos) return std::nullopt;
  size_t begin = at + key.size() + 3, end = begin;
  int depth = 0;
  bool is_quoted = false;
  for (; end < line.size(); ++end) {
    char c = line[end];
    if (c == '"' && line[end - 1] != '\\') is_quoted = !is_quoted;
    if (is_quoted) continue;
    if (c == '{' || c == '[' || c == '(') ++depth;
    if (c == '}' || c == ']' || c == ')') --depth;
    if (c == ',' && depth == 0) break;
  }
  std::string value = line.substr(begin, end - begin);
  bool has_quotes = value.size() > 1 && value.front() == '"' && value.back() == '"';
  return has_quotes ? value.substr(1, value.size() - 2) : value;
}

const char* AttributeOf(const tok_instr* instr, const char* key) {
  if (instr == nullptr || key == nullptr) return nullptr;
  const Instr& of = *In(instr);
  if (of.op() == Op::kComposite && std::string_view(key) == "name")
    return KeptText(of.attrs<CompositeAttrs>().name);
  for (const AttrDict* dict : {&of.extras().frontend_attributes, &of.extras().discardable})
    if (const AttrValue* value = Find(*dict, key))
      if (const std::string* text = value->As<std::string>()) return KeptText(*text);
  std::optional<std::string> value = ValueIn(LineOf(of), key);
  return value ? KeptText(std::move(*value)) : nullptr;
}

int NumberOf(const tok_instr* instr, double* number) {
  const Instr* at = In(instr);
  auto is_same_everywhere = [](Op op) {
    return op == Op::kBroadcast || op == Op::kReshape || op == Op::kConvert || op == Op::kCopy ||
           op == Op::kTranspose;
  };
  while (at != nullptr && is_same_everywhere(at->op())) at = at->operand(0);
  if (at == nullptr || number == nullptr) return 0;
  const Literal* value = SplatOf(at);
  if (value == nullptr || !value->shape().IsArray() || IsComplex(value->type())) return 0;
  *number = value->DoubleAt(0);
  return 1;
}

const char* SourceOfInstr(const tok_instr* instr) {
  if (instr == nullptr) return "";
  std::vector<std::string> lines = SourceLinesOf(*In(instr));
  return lines.empty() ? "" : KeptText(std::move(lines[0]));
}
const char* ScopeOfInstr(const tok_instr* instr) {
  if (instr == nullptr) return "";
  std::vector<std::string> scopes = ScopesOf(*In(instr));
  return scopes.empty() ? "" : KeptText(std::move(scopes[0]));
}

// ---- changes

tok_instr* BuildBeside(tok_instr* like, const char* hlo, tok_instr* const* operands, size_t count) {
  if (like == nullptr || hlo == nullptr || (operands == nullptr && count > 0)) {
    Fail("build: a null pointer");
    return nullptr;
  }
  std::vector<Instr*> values;
  for (size_t i = 0; i < count; ++i) {
    if (operands[i] == nullptr) {
      FailWith("build: operand " + std::to_string(i) + " is null");
      return nullptr;
    }
    values.push_back(In(operands[i]));
  }
  Result<Instr*> built = BuildFromText(*In(like), hlo, values);
  if (!built.ok()) {
    FailWith(built.error().message);
    return nullptr;
  }
  t_graph->edited = true;
  return OutInstr(built.value());
}

// The users of `from` that `to` is computed by: they keep it, or the program would have a cycle.
std::vector<Instr*> UsersBetween(const Instr& from, Instr& to) {
  std::vector<Instr*> between, open = {&to};
  std::unordered_set<const Instr*> seen = {&to};
  while (!open.empty()) {
    Instr* at = open.back();
    open.pop_back();
    bool uses = std::ranges::count(at->operands(), &from) > 0;
    if (uses) between.push_back(at);
    for (Instr* operand : at->operands())
      if (operand != &from && seen.insert(operand).second) open.push_back(operand);
  }
  return between;
}

int ReplaceInstr(tok_instr* from, tok_instr* to) {
  if (from == nullptr || to == nullptr) return Fail("replace: a null pointer");
  Instr& old = *In(from);
  Instr& with = *In(to);
  if (old.parent() != with.parent()) return Fail("replace: they are in different computations");
  if (!(old.shape() == with.shape()))
    return FailWith("replace: " + LabelOf(old) + " is " + ToString(old.shape()) + ", not " +
                    ToString(with.shape()));
  if (&old == &with) return 0;
  if (!CanReplace(old, with, !with.has_extras()))
    return FailWith("replace: " + LabelOf(old) +
                    " has a control dependence, or a sharding or attribute that would be lost");
  std::vector<std::pair<Instr*, size_t>> kept;
  for (Instr* user : UsersBetween(old, with))
    for (size_t i = 0; i < user->operand_count(); ++i)
      if (user->operand(i) == &old) kept.emplace_back(user, i);
  ReplaceBy(&old, &with, with.users().empty() && with.name().empty());
  for (auto [user, i] : kept) user->set_operand(i, &old);
  t_graph->edited = true;
  return 0;
}

void NoteChange(const tok_instr* instr, const char* rule, const char* because) {
  if (instr == nullptr || t_graph == nullptr) return;
  t_graph->notes.push_back({.pass = t_graph->pass,
                            .rule = Interned(rule == nullptr ? "plugin.pass" : rule),
                            .subject = LabelOf(*In(instr)),
                            .origins = In(instr)->origins(),
                            .because = because == nullptr ? "" : because});
}

const char* TextOfGraph(tok_graph* graph, const char* format) {
  if (graph == nullptr) return "";
  // Of a copy: putting the module in order would invalidate pointers that the plugin has.
  std::unique_ptr<Module> ordered = CloneModuleInOrder(*In(graph)->module);
  bool is_mlir = format != nullptr && std::string_view(format) == "stablehlo";
  return KeptText(is_mlir ? WriteStablehloText(*ordered) : WriteHloText(*ordered));
}

int SetTextOfGraph(tok_graph* in_c, const char* text) {
  if (in_c == nullptr || text == nullptr) return Fail("set_text: a null pointer");
  Result<std::unique_ptr<Module>> read = ReadModule(Bytes::FromString(text), "plugin");
  if (!read.ok()) return FailWith("set_text: " + read.error().message);
  if (Status verified = VerifyModule(*read.value()); !verified.ok())
    return FailWith("set_text: " + verified.error().message);
  PassGraph* graph = In(in_c);
  read.value()->file = graph->module->file;
  graph->module = std::move(read.value());
  graph->listed.clear();
  graph->edited = true;
  return 0;
}

void AddOnce(std::vector<std::string>& list, std::string text) {
  if (!text.empty() && std::ranges::count(list, text) == 0) list.push_back(std::move(text));
}

}  // namespace

GraphScope::GraphScope(PassGraph& graph) : outer_(std::exchange(t_graph, &graph)) {}
GraphScope::~GraphScope() {
  t_graph = outer_;
}

std::vector<std::string> SourceLinesOf(const Instr& instr) {
  std::vector<std::string> lines;
  const OriginTable& table = instr.parent()->module()->origins();
  for (const Origin* origin : table.Of(instr.origins())) {
    const Frame& frame = table.frame(origin->frame);
    if (!frame.file.empty()) AddOnce(lines, frame.file + ":" + std::to_string(frame.line));
  }
  return lines;
}

std::vector<std::string> ScopesOf(const Instr& instr) {
  std::vector<std::string> scopes;
  for (const Origin* origin : instr.parent()->module()->origins().Of(instr.origins()))
    AddOnce(scopes, origin->op_name);
  return scopes;
}

void FillHostTable(tok_plugin_host& host) {
  host.fail = Fail;
  host.entry = Entry;
  host.computation_count = ComputationCount;
  host.computation = ComputationAt;
  host.computation_name = ComputationName;
  host.instr_count = InstrCount;
  host.instr = InstrAt;
  host.root = Root;
  host.op = OpOf;
  host.name = NameOfInstr;
  host.shape = ShapeOf;
  host.type = TypeOf;
  host.rank = RankOf;
  host.dims = DimsOf;
  host.operand_count = OperandCount;
  host.operand = OperandAt;
  host.user_count = UserCount;
  host.user = UserAt;
  host.called = CalledAt;
  host.parent = ParentOf;
  host.attribute = AttributeOf;
  host.number = NumberOf;
  host.source = SourceOfInstr;
  host.scope = ScopeOfInstr;
  host.build = BuildBeside;
  host.replace = ReplaceInstr;
  host.note = NoteChange;
  host.refresh = Refresh;
  host.text = TextOfGraph;
  host.set_text = SetTextOfGraph;
}

}  // namespace tokamak
