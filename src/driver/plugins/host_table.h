#pragma once

#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <tokamak/tokamak_plugin.h>

#include "explain/decision.h"
#include "ir/ir.h"

// The functions of the C table that read and change a program (include/tokamak/tokamak_plugin.h).

namespace tokamak {

// What a pass of a plugin receives as tok_graph. The type itself stays incomplete here: the C API
// (capi/graph_handles.h) defines a tok_graph of its own, and libtokamak.so contains both.
struct PassGraph {
  std::unique_ptr<Module> module;
  std::deque<std::string> texts;  // that were handed out
  // The instructions of a computation as the plugin numbers them.
  std::unordered_map<const Computation*, std::vector<Instr*>> listed;
  std::vector<Decision> notes;
  std::string_view pass;  // the name for the notes; interned
  bool edited = false;
};

inline tok_graph* InC(PassGraph& graph) {
  return reinterpret_cast<tok_graph*>(&graph);
}

// Makes a graph the one that this thread's calls of the table refer to.
class GraphScope {
 public:
  explicit GraphScope(PassGraph& graph);
  ~GraphScope();
  GraphScope(const GraphScope&) = delete;
  GraphScope& operator=(const GraphScope&) = delete;

 private:
  PassGraph* outer_;
};

// Sets the members of the table from `fail` on.
void FillHostTable(tok_plugin_host& host);

// The source lines of an instruction, "train.py:12", and its scopes.
std::vector<std::string> SourceLinesOf(const Instr& instr);
std::vector<std::string> ScopesOf(const Instr& instr);

}  // namespace tokamak
