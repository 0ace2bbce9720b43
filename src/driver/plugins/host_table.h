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

struct tok_graph {
  std::unique_ptr<tokamak::Module> module;
  std::deque<std::string> texts;  // that were handed out
  // The instructions of a computation as the plugin numbers them.
  std::unordered_map<const tokamak::Computation*, std::vector<tokamak::Instr*>> listed;
  std::vector<tokamak::Decision> notes;
  std::string_view pass;  // the name for the notes; interned
  bool edited = false;
};

namespace tokamak {

// Makes a graph the one that this thread's calls of the table refer to.
class GraphScope {
 public:
  explicit GraphScope(tok_graph& graph);
  ~GraphScope();
  GraphScope(const GraphScope&) = delete;
  GraphScope& operator=(const GraphScope&) = delete;

 private:
  tok_graph* outer_;
};

// Sets the members of the table from `fail` on.
void FillHostTable(tok_plugin_host& host);

// The source lines of an instruction, "train.py:12", and its scopes.
std::vector<std::string> SourceLinesOf(const Instr& instr);
std::vector<std::string> ScopesOf(const Instr& instr);

}  // namespace tokamak
