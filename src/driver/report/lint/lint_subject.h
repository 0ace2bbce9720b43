#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "driver/report/lints.h"

namespace tokamak {

// What the rules of `tokamak lint` look at: the program as it was written, the program that runs,
// and the time of each step. The microseconds of a step are claimed by at most one finding.
//
// Instructions of the two programs are related by origins (name stack and source line), which
// passes keep. An instruction of the written program without an origin is related by its position
// in the text.
class LintSubject {
 public:
  // `written`: the user's module with calls inlined; `folded`: the same with constants folded and
  // equal values merged. Null: the compiled module.
  LintSubject(const CompileReport& report, const Module* written, const Module* folded);

  const CompileReport& report() const { return report_; }
  // The arrays that a step makes, and then the instructions in its kernels.
  std::vector<const Instr*> InstrsOf(const StepReport& step) const;
  const Machine& machine() const { return report_.machine(); }
  const Module& compiled() const { return report_.module(); }
  const Module& written() const { return *written_; }
  const Module& folded() const { return *folded_; }
  // Whether `written` is what the user wrote.
  bool has_written() const { return written_ != &report_.module(); }

  // The steps that contain an instruction with an origin of this one.
  std::vector<size_t> StepsOf(const Instr& instr) const;
  // The instructions of the program that runs with an origin of this one and with its op.
  std::vector<const Instr*> CompiledAs(const Instr& written) const;
  // Whether a step stores a value with an origin of this one and as many elements.
  bool StoresLike(const Instr& written) const;
  // The step that stores a value of the program that runs, if one does, and those that read it.
  struct Traffic {
    bool is_stored = false;
    std::vector<size_t> steps;  // the storing step first, then the readers
    size_t readers = 0;
  };
  const Traffic& TrafficOf(const Instr& compiled) const;

  // Takes up to `us` of the time of a step that is not claimed yet.
  double Claim(size_t step, double us);
  double unclaimed(size_t step) const { return unclaimed_[step]; }
  // Claims the part of a step's time that moving this many of its bytes takes.
  double ClaimBytes(size_t step, int64_t bytes);
  // Claims what storing and reading a value takes, times `share`.
  double ClaimTraffic(const Traffic& traffic, int64_t bytes, double share = 1);
  // Predicted microseconds of a kernel that only reads and writes this many bytes.
  double UsOfBytes(int64_t bytes) const;

  // Adds a finding. Findings of one rule, severity and lines become one.
  void Add(Lint lint);
  // Adds a note about a cost that Tokamak avoids by itself. `how`: "the product runs as a slice".
  void AddAvoided(std::string rule, std::vector<std::string> lines, const std::string& how,
                  double saved_us = 0);
  void set_call_us(double us) { lints_.call_us = us; }
  Lints Take();

 private:
  void AddLoopReaders();
  // Origins, or the position in the text of an instruction that has none, as hashes.
  const std::vector<uint64_t>& KeysOf(const Instr& instr) const;

  const CompileReport& report_;
  const Module* written_;
  const Module* folded_;
  std::vector<double> unclaimed_;
  std::unordered_map<uint64_t, std::vector<size_t>> steps_of_;            // by origin
  std::unordered_map<uint64_t, std::vector<const Instr*>> compiled_of_;   // by origin
  mutable std::unordered_map<const Instr*, std::vector<uint64_t>> keys_;  // known so far
  std::unordered_map<const Instr*, Traffic> traffic_;
  Traffic not_stored_;
  std::unordered_map<std::string, size_t> at_;  // findings by rule, severity and lines
  Lints lints_;
};

// Bytes of an array; 0 for anything else or of unknown size.
int64_t LintBytes(const Instr& instr);
// The first source line of the user's program, "model.py:7"; empty if it has none.
std::string LintLineOf(const Instr& instr);
// The lines of several instructions, each once, in order.
std::vector<std::string> LintLinesOf(const std::vector<const Instr*>& instrs);
// The value behind renames: reshape, broadcast, convert, copy, transpose and bitcast.
const Instr* LintSource(const Instr* value);

// The families of rules. Each adds its findings; the order of the calls is that of precedence in
// claiming time (lints.cc).
void LintConcatenations(LintSubject& subject);
void LintUnrolledLoops(LintSubject& subject);
void LintDispatch(LintSubject& subject);
void LintDonation(LintSubject& subject);
void LintFloat64(LintSubject& subject);
void LintLoops(LintSubject& subject);
void LintIndexing(LintSubject& subject);
void LintStoredValues(LintSubject& subject);
void LintConstants(LintSubject& subject);
void LintProducts(LintSubject& subject);
void LintPrecision(LintSubject& subject);
void LintRandomKeys(LintSubject& subject);
void LintWhereGradients(LintSubject& subject);
void LintSmallBatches(LintSubject& subject);

}  // namespace tokamak
