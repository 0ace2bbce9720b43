// Graphs in C. An edit is made on a copy of the program, which replaces it if the edit succeeds.

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "capi/graph_handles.h"
#include "capi/graph_json.h"
#include "capi/handles.h"
#include "driver/report/explain.h"
#include "driver/report/xla_dump.h"
#include "ir/clone.h"
#include "support/json_text.h"
#include "text/write.h"

namespace tokamak {
namespace {

tok_error* NullPointer(const char* function) {
  return InvalidArgument(std::string(function) + ": a null pointer");
}

// Calls edit(program) with a copy, and keeps the copy if it returns OK.
template <typename Edit>
tok_error* EditGraph(tok_graph* graph, Edit&& edit) {
  return Guarded([&]() -> tok_error* {
    if (graph == nullptr) return NullPointer("graph");
    GraphProgram copy = graph->program.Copy();
    Status status = edit(copy);
    if (!status.ok()) return InC(status.error());
    graph->SetProgram(std::move(copy));
    return nullptr;
  });
}

std::unique_ptr<DescribedInstr> DescribeInstr(const GraphProgram& program, const Instr& instr) {
  auto made = std::make_unique<DescribedInstr>();
  made->shape = ToString(instr.shape());
  made->scope = ScopeOf(instr);
  std::vector<std::string> lines = SourceLines(instr);
  if (!lines.empty()) made->line = lines[0];
  if (instr.shape().IsArray()) made->dims = instr.shape().dims();
  for (const Instr* operand : instr.operands()) made->operands.push_back(program.IdOf(*operand));
  for (const Instr* user : instr.users()) made->users.push_back(program.IdOf(*user));
  std::ranges::sort(made->users);
  made->users.erase(std::unique(made->users.begin(), made->users.end()), made->users.end());
  for (const Computation* callee : instr.called()) made->called.push_back(program.IndexOf(*callee));
  tok_instruction& in_c = made->in_c;
  in_c.struct_size = sizeof(tok_instruction);
  in_c.number = program.IdOf(instr);
  in_c.name = instr.name().c_str();
  in_c.op = instr.info().name.data();
  in_c.shape = made->shape.c_str();
  in_c.type = instr.shape().IsArray() ? InfoOf(instr.shape().type()).hlo.data() : "";
  in_c.dims = made->dims.data();
  in_c.rank = made->dims.size();
  in_c.computation = program.IndexOf(*instr.parent());
  in_c.operands = made->operands.data();
  in_c.num_operands = made->operands.size();
  in_c.users = made->users.data();
  in_c.num_users = made->users.size();
  in_c.called = made->called.data();
  in_c.num_called = made->called.size();
  in_c.scope = made->scope.c_str();
  in_c.line = made->line.c_str();
  return made;
}

std::unique_ptr<DescribedComputation> DescribeComputation(const GraphProgram& program,
                                                          const Computation& computation) {
  auto made = std::make_unique<DescribedComputation>();
  for (const Instr* instr : computation.Instrs()) made->instrs.push_back(program.IdOf(*instr));
  for (const Instr* parameter : computation.parameters())
    made->parameters.push_back(program.IdOf(*parameter));
  made->in_c = {
      sizeof(tok_computation), computation.name().c_str(), program.IdOf(*computation.root()),
      made->instrs.data(),     made->instrs.size(),        made->parameters.data(),
      made->parameters.size()};
  return made;
}

tok_error* WriteGraphText(tok_graph& graph, std::string_view format, const char** text) {
  if (format != "mlir" && format != "hlo")
    return InvalidArgument("graph: the format is 'mlir' or 'hlo', not '" + std::string(format) +
                           "'");
  const Module& module = graph.program.module();
  graph.text = format == "hlo" ? WriteHloText(module) : WriteStablehloText(module);
  *text = graph.text.c_str();
  return nullptr;
}

}  // namespace
}  // namespace tokamak

using tokamak::EditGraph;
using tokamak::GraphProgram;
using tokamak::Guarded;
using tokamak::Instr;
using tokamak::NullPointer;
using tokamak::Status;

tok_error* tok_graph_of(const tok_module* module, tok_graph** graph) {
  return Guarded([&]() -> tok_error* {
    if (module == nullptr || graph == nullptr) return NullPointer("graph");
    *graph = new tok_graph(GraphProgram(tokamak::CloneModule(*module->module)));
    return nullptr;
  });
}

tok_error* tok_graph_copy(const tok_graph* graph, tok_graph** copy) {
  return Guarded([&]() -> tok_error* {
    if (graph == nullptr || copy == nullptr) return NullPointer("graph");
    *copy = new tok_graph(graph->program.Copy());
    return nullptr;
  });
}

void tok_graph_free(tok_graph* graph) {
  delete graph;
}

tok_error* tok_graph_module(const tok_graph* graph, tok_module** module) {
  return Guarded([&]() -> tok_error* {
    if (graph == nullptr || module == nullptr) return NullPointer("graph");
    *module = new tok_module{tokamak::CloneModule(graph->program.module()), {}, {}};
    return nullptr;
  });
}

tok_error* tok_graph_text(tok_graph* graph, const char* format, const char** text) {
  return Guarded([&]() -> tok_error* {
    if (graph == nullptr || format == nullptr || text == nullptr) return NullPointer("graph");
    return tokamak::WriteGraphText(*graph, format, text);
  });
}

tok_error* tok_graph_json(tok_graph* graph, const char** json) {
  return Guarded([&]() -> tok_error* {
    if (graph == nullptr || json == nullptr) return NullPointer("graph");
    if (graph->json.empty()) graph->json = tokamak::JsonText(JsonOf(graph->program));
    *json = graph->json.c_str();
    return nullptr;
  });
}

size_t tok_graph_num_computations(const tok_graph* graph) {
  return graph == nullptr ? 0 : graph->program.module().computations().size();
}

size_t tok_graph_entry(const tok_graph* graph) {
  if (graph == nullptr || graph->program.module().entry() == nullptr) return SIZE_MAX;
  return graph->program.IndexOf(*graph->program.module().entry());
}

tok_error* tok_graph_computation(tok_graph* graph, size_t index,
                                 const tok_computation** computation) {
  return Guarded([&]() -> tok_error* {
    if (graph == nullptr || computation == nullptr) return NullPointer("graph");
    *computation = nullptr;
    const auto& all = graph->program.module().computations();
    if (index >= all.size())
      return tokamak::InvalidArgument("graph: there is no computation number " +
                                      std::to_string(index));
    auto& described = graph->computations[index];
    if (described == nullptr) described = tokamak::DescribeComputation(graph->program, *all[index]);
    *computation = &described->in_c;
    return nullptr;
  });
}

tok_error* tok_graph_instruction(tok_graph* graph, int64_t number,
                                 const tok_instruction** instruction) {
  return Guarded([&]() -> tok_error* {
    if (graph == nullptr || instruction == nullptr) return NullPointer("graph");
    *instruction = nullptr;
    auto instr = graph->program.Get(number, "graph");
    if (!instr.ok()) return tokamak::InC(instr.error());
    auto& described = graph->instrs[number];
    if (described == nullptr) described = tokamak::DescribeInstr(graph->program, *instr.value());
    *instruction = &described->in_c;
    return nullptr;
  });
}

tok_error* tok_graph_attributes(tok_graph* graph, int64_t number, const char** json) {
  return Guarded([&]() -> tok_error* {
    if (graph == nullptr || json == nullptr) return NullPointer("graph");
    *json = nullptr;
    auto instr = graph->program.Get(number, "graph");
    if (!instr.ok()) return tokamak::InC(instr.error());
    graph->attributes = tokamak::JsonText(tokamak::AttributesOf(*instr.value()));
    *json = graph->attributes.c_str();
    return nullptr;
  });
}

int64_t tok_graph_find(const tok_graph* graph, const char* name) {
  return graph == nullptr || name == nullptr ? -1 : graph->program.FindName(name);
}

tok_error* tok_graph_path(tok_graph* graph, int64_t from, int64_t to, const int64_t** numbers,
                          size_t* count) {
  return Guarded([&]() -> tok_error* {
    if (graph == nullptr || numbers == nullptr || count == nullptr) return NullPointer("graph");
    *count = 0;
    for (int64_t end : {from, to}) {
      auto instr = graph->program.Get(end, "path");
      if (!instr.ok()) return tokamak::InC(instr.error());
    }
    graph->path = tokamak::PathBetween(graph->program, from, to);
    *numbers = graph->path.data();
    *count = graph->path.size();
    return nullptr;
  });
}

tok_error* tok_graph_match(tok_graph* graph, const tok_module* pattern, int any_shape,
                           const tok_match** matches, size_t* count) {
  return Guarded([&]() -> tok_error* {
    if (graph == nullptr || pattern == nullptr || matches == nullptr || count == nullptr)
      return NullPointer("match");
    auto found = tokamak::MatchesOf(graph->program, *pattern->module, any_shape != 0);
    if (!found.ok()) return tokamak::InC(found.error());
    graph->matches = std::move(found.value());
    graph->matches_in_c.clear();
    for (const tokamak::GraphMatch& match : graph->matches)
      graph->matches_in_c.push_back({sizeof(tok_match), match.results.data(), match.results.size(),
                                     match.variables.data(), match.variables.size(),
                                     match.inner.data(), match.inner.size()});
    *matches = graph->matches_in_c.data();
    *count = graph->matches_in_c.size();
    return nullptr;
  });
}

tok_error* tok_graph_add(tok_graph* graph, const tok_fragment* fragment, const int64_t** results,
                         size_t* num_results) {
  if (graph == nullptr || fragment == nullptr || fragment->module == nullptr ||
      (fragment->operands == nullptr && fragment->num_operands > 0) || results == nullptr ||
      num_results == nullptr)
    return NullPointer("add");
  std::vector<int64_t> made;
  tok_error* error = EditGraph(graph, [&](GraphProgram& program) -> Status {
    TOK_TRY(made,
            AddFragment(program, {fragment->module->module.get(),
                                  {fragment->operands, fragment->operands + fragment->num_operands},
                                  fragment->beside}));
    return tokamak::Ok();
  });
  if (error != nullptr) return error;
  graph->results = std::move(made);
  *results = graph->results.data();
  *num_results = graph->results.size();
  return nullptr;
}

tok_error* tok_graph_replace(tok_graph* graph, int64_t from, const int64_t* to, size_t num_to) {
  if (to == nullptr || num_to == 0) return NullPointer("replace");
  return EditGraph(graph, [&](GraphProgram& program) {
    return ReplaceInstr(program, from, {to, num_to});
  });
}

tok_error* tok_graph_replace_uses(tok_graph* graph, int64_t from, int64_t to, const int64_t* users,
                                  size_t num_users) {
  if (users == nullptr && num_users > 0) return NullPointer("insert");
  return EditGraph(graph, [&](GraphProgram& program) -> Status {
    if (users != nullptr && num_users == 0) return tokamak::Ok();
    return ReplaceUses(program, from, to, {users, num_users});
  });
}

tok_error* tok_graph_set_operand(tok_graph* graph, int64_t user, size_t index, int64_t operand) {
  return EditGraph(
      graph, [&](GraphProgram& program) { return SetOperand(program, user, index, operand); });
}

tok_error* tok_graph_remove(tok_graph* graph, int64_t number) {
  return EditGraph(graph, [&](GraphProgram& program) { return RemoveInstr(program, number); });
}

tok_error* tok_graph_outline(tok_graph* graph, const int64_t* numbers, size_t count,
                             const char* name, int64_t* call) {
  if ((numbers == nullptr && count > 0) || name == nullptr || call == nullptr)
    return NullPointer("outline");
  return EditGraph(graph, [&](GraphProgram& program) -> Status {
    TOK_TRY(*call, Outline(program, {numbers, count}, name));
    return tokamak::Ok();
  });
}

tok_error* tok_graph_inline(tok_graph* graph, int64_t call) {
  return EditGraph(graph, [&](GraphProgram& program) { return InlineCall(program, call); });
}

tok_error* tok_graph_pin(tok_graph* graph, const int64_t* numbers, size_t count, const char* kind,
                         const char* label) {
  if ((numbers == nullptr && count > 0) || kind == nullptr || label == nullptr)
    return NullPointer("pin");
  return EditGraph(graph, [&](GraphProgram& program) {
    return PinInstrs(program, {numbers, count}, kind, label);
  });
}
