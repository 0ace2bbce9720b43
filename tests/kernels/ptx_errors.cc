#include "kernels/ptx_errors.h"

#include <map>
#include <set>
#include <sstream>

namespace tokamak {
namespace {

struct Line {
  std::string op;
  std::vector<std::string> operands;  // registers and numbers, in order, without brackets
};

Line LineOf(const std::string& text) {
  Line line;
  std::string word;
  auto end = [&] {
    if (word.empty()) return;
    if (line.op.empty()) {
      line.op = word;
    } else {
      line.operands.push_back(word);
    }
    word.clear();
  };
  for (char c : text) {
    if (std::string_view(" \t,;{}[]").find(c) == std::string_view::npos) {
      word += c;
    } else {
      end();
    }
  }
  end();
  return line;
}

class Scanner {
 public:
  std::vector<std::string> Run(std::string_view ptx) {
    std::istringstream in{std::string(ptx)};
    for (std::string text; std::getline(in, text);) {
      // Registers are local to a function.
      if (text.find(".entry") != std::string::npos) *this = Scanner(std::move(errors_));
      Look(LineOf(text), text);
    }
    return std::move(errors_);
  }

  Scanner() = default;

 private:
  explicit Scanner(std::vector<std::string> errors) : errors_(std::move(errors)) {}

  void Look(const Line& line, const std::string& text) {
    if (line.operands.empty()) return;
    const std::string &op = line.op, &to = line.operands[0];
    LookForConstants(line);
    LookForConstantSums(line, text);
    if (op == "neg.s32" || op == "neg.s16") negations_.insert(to);
    for (std::string_view kind : {"max.s32", "max.s16", "min.s32", "min.s16"})
      if (op == kind && line.operands.size() == 3) LookAtExtreme(line, text);
    if (op.starts_with("ld.") && op.ends_with(".v4.u16"))
      halves_.insert(line.operands.begin(), line.operands.begin() + 4);
    // The halves of a word.
    if (op == "mov.b32" && line.operands.size() == 3 && line.operands[1].starts_with("%rs"))
      halves_.insert(line.operands.begin(), line.operands.begin() + 2);
    if ((op == "shr.u16" || op == "shr.s16") && line.operands[2] == "8" &&
        halves_.contains(line.operands[1]))
      errors_.push_back("a byte of a wide load:" + text);
  }

  // Registers that are constant once loops are unrolled: independent of memory and thread.
  void LookForConstants(const Line& line) {
    if (line.op.starts_with("ld.") || line.op.starts_with("st.") || line.op.starts_with("@"))
      return;
    bool is_constant = line.operands.size() > 1;
    for (size_t i = 1; i < line.operands.size(); ++i)
      is_constant =
          is_constant && (line.operands[i][0] != '%' || constants_.contains(line.operands[i]));
    if (is_constant) constants_.insert(line.operands[0]);
    if (is_constant && (line.op == "add.s32" || line.op == "sub.s32"))
      constant_sums_.insert(line.operands[0]);
  }

  void LookForConstantSums(const Line& line, const std::string& text) {
    for (std::string_view kind : {"max.s32", "max.u32", "min.s32", "min.u32"})
      if (line.op == kind && line.operands.size() == 3 &&
          (constant_sums_.contains(line.operands[1]) || constant_sums_.contains(line.operands[2])))
        errors_.push_back("a sum that unrolling makes a constant in an extreme:" + text);
  }

  void LookAtExtreme(const Line& line, const std::string& text) {
    bool has_negation = false, joins = false, inner_has = false;
    for (size_t i : {1u, 2u}) {
      const std::string& operand = line.operands[i];
      has_negation = has_negation || negations_.contains(operand);
      auto inner = extremes_.find(line.op + " " + operand);
      joins = joins || inner != extremes_.end();
      inner_has = inner_has || (inner != extremes_.end() && inner->second);
    }
    if (joins && (has_negation || inner_has))
      errors_.push_back("a negation in an extreme of three:" + text);
    extremes_[line.op + " " + line.operands[0]] = has_negation;
  }

  std::set<std::string> negations_, halves_, constants_, constant_sums_;
  std::map<std::string, bool> extremes_;  // by op and register: whether it contains a negation
  std::vector<std::string> errors_;
};

}  // namespace

std::vector<std::string> PtxErrors(std::string_view ptx) {
  return Scanner().Run(ptx);
}

}  // namespace tokamak
