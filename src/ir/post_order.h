#pragma once

#include <utility>
#include <vector>

#include "ir/ir.h"

namespace tokamak {

// Lists instructions of one computation, each after its operands and control predecessors, in the
// order of the calls to Visit. Depth-first without recursion, because a chain of a million
// instructions is legal.
class PostOrderWalk {
 public:
  explicit PostOrderWalk(size_t id_limit) : seen_(id_limit, false) {}

  void Visit(Instr* start) {
    Push(start);
    while (!stack_.empty()) {
      auto& [instr, next] = stack_.back();
      size_t operands = instr->operand_count();
      const std::vector<Instr*>& control = instr->extras().control_predecessors;
      if (next == operands + control.size()) {
        order_.push_back(instr);
        stack_.pop_back();
        continue;
      }
      Instr* before = next < operands ? instr->operand(next) : control[next - operands];
      ++next;
      Push(before);
    }
  }
  std::vector<Instr*> TakeOrder() { return std::move(order_); }

 private:
  void Push(Instr* instr) {
    auto index = static_cast<size_t>(instr->id());
    // An instruction that is still on the stack means a cycle, which the verifier reports.
    if (seen_[index]) return;
    seen_[index] = true;
    stack_.emplace_back(instr, 0);
  }

  std::vector<bool> seen_;
  std::vector<std::pair<Instr*, size_t>> stack_;
  std::vector<Instr*> order_;
};

}  // namespace tokamak
