#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "ir/ir.h"

namespace tokamak {

enum class Verdict : uint8_t { kAccepted, kRejected };
// "accepted", "rejected", as text and JSON have it.
std::string_view NameOf(Verdict verdict);

// One decision of the compiler, recorded as data. explain, lints, JSON and tests use these records;
// passes never print reasons themselves. A rejection has the same fields as an acceptance.
struct Decision {
  std::string_view pass;  // "simplify"; a static string, as is the rule
  std::string_view rule;  // "add.zero": topic.reason
  Verdict verdict = Verdict::kAccepted;
  std::string subject;                 // name of the instruction
  std::string other = {};              // its replacement, or the other end; may be empty
  OriginId origins = OriginId::kNone;  // of the subject
  double before_us = 0, after_us = 0;  // predicted microseconds; 0 if no cost was computed
  std::string because = {};            // the numbers that decided, as text
};

// "accepted  add.1 -> x by add.zero": one line, without a newline.
std::string ToString(const Decision& decision);

// All decisions of one compilation, in order.
class DecisionLog {
 public:
  void Add(Decision decision) {
    if (decision.verdict == Verdict::kAccepted) ++accepted_;
    all_.push_back(std::move(decision));
  }
  const std::deque<Decision>& all() const { return all_; }
  size_t accepted() const { return accepted_; }

 private:
  std::deque<Decision> all_;  // stable addresses
  size_t accepted_ = 0;
};

// The name of an instruction in records: its name, or its op and number.
std::string LabelOf(const Instr& instr);

}  // namespace tokamak
