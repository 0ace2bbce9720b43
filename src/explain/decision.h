#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "ir/ir.h"

namespace tokamak {

enum class Verdict : uint8_t { kTaken, kRejected };

// One choice that the compiler made, kept as data: explain, lint, JSON and tests read this record,
// so that no pass prints its reasons by hand. A no carries the same fields as a yes.
struct Decision {
  std::string_view pass;  // "simplify"; static text, as the rule
  std::string_view rule;  // "add.zero": topic.reason
  Verdict verdict = Verdict::kTaken;
  std::string subject;                 // the instruction that it is about, by name
  std::string other = {};              // what stands in its place, or the other end; may be ""
  OriginId origins = OriginId::kNone;  // of the subject
  double before_us = 0, after_us = 0;  // predicted, where something was priced
  std::string because = {};            // the numbers that decided, in words
};

// "taken     add.1 -> x   add.zero": one line, without the end of line.
std::string ToString(const Decision& decision);

// All decisions of one compilation, in order.
class DecisionLog {
 public:
  void Add(Decision decision) {
    if (decision.verdict == Verdict::kTaken) ++taken_;
    all_.push_back(std::move(decision));
  }
  const std::deque<Decision>& all() const { return all_; }
  size_t taken() const { return taken_; }

 private:
  std::deque<Decision> all_;  // grows without moving what is there
  size_t taken_ = 0;
};

// How a record names an instruction: its name, or its op and number.
std::string LabelOf(const Instr& instr);

}  // namespace tokamak
