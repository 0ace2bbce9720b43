#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

// A program whose instructions have numbers that survive copies and edits, and unique names. The
// functions of graph_edit.h edit it; an edit is complete after Finish.
class GraphProgram {
 public:
  // Numbers and names the instructions. Unnamed ones are named after their op ("dot.1").
  explicit GraphProgram(std::unique_ptr<Module> module);
  // A copy with the same numbers. Linear.
  GraphProgram Copy() const;

  Module& module() { return *module_; }
  const Module& module() const { return *module_; }

  // The instruction with this number; null if it was removed or never existed.
  Instr* Find(int64_t id) const {
    return id >= 0 && id < static_cast<int64_t>(instrs_.size()) ? instrs_[static_cast<size_t>(id)]
                                                                : nullptr;
  }
  // Returns TK6117 for a number without an instruction. `edit` begins the message.
  Result<Instr*> Get(int64_t id, std::string_view edit) const;
  int64_t IdOf(const Instr& instr) const { return ids_.at(&instr); }
  // The first instruction of this name; -1 if there is none.
  int64_t FindName(std::string_view name) const;
  size_t IndexOf(const Computation& computation) const;

  // A name that no other computation has.
  std::string UniqueComputationName(std::string_view wanted) const;
  // Completes an edit of these computations: restores program order, numbers new instructions,
  // removes computations that the edit left without a caller, and verifies the module. Returns
  // TK6117 for uses that form a cycle, or the verifier's error; the program is then to be
  // discarded. Invalidates pointers to instructions of the computations.
  Status Finish(std::string_view edit, std::span<Computation* const> edited);

 private:
  GraphProgram() = default;
  void Add(Instr& instr);
  void Forget(const Instr& instr);
  void RemoveUncalled();
  std::string UniqueName(const Instr& instr);

  std::unique_ptr<Module> module_;
  std::vector<Instr*> instrs_;  // by number
  std::unordered_map<const Instr*, int64_t> ids_;
  std::unordered_set<std::string> names_;
  std::unordered_set<std::string> uncalled_;       // computations that never had a caller
  std::unordered_map<std::string, int64_t> next_;  // number to try for a name
};

// TK6117 with the position of an instruction.
Error GraphEditError(std::string message, const Instr* at = nullptr);

}  // namespace tokamak
