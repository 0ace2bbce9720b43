#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "driver/spread.h"
#include "ir/ir.h"
#include "support/result.h"

// What a compiled program is to its callers, whatever runs it.

namespace tokamak {

class Device;
class StepRecorder;
struct Compilation;

// A parameter or result of a program, as one device holds it: a dense row-major array, sub-byte
// elements taking a byte each. A token is a pred[] whose value means nothing.
struct ArrayInfo {
  ElementType type = ElementType::kPred;
  Dims dims;
  Dims whole_dims;  // of the program, of which `dims` is one device's part
  Spread spread;
  int64_t bytes = 1;
  std::string memory_kind = "device";
  bool is_token = false;
};

struct ParameterInfo : ArrayInfo {
  bool donated = false;       // the caller's buffer is used up
  int64_t alias_result = -1;  // donated: the result that takes its memory; -1: none
};

struct CostAnalysis {
  double flops = 0, transcendentals = 0, bytes_accessed = 0;
};

struct MemoryAnalysis {
  int64_t code = 0, arguments = 0, results = 0, aliased = 0, temporary = 0;
};

// What the checks of a program (check.expect_eq ...) said.
struct CheckTally {
  int64_t passed = 0;
  std::vector<Error> failures;  // TK6012
};

struct RunControl {
  const std::atomic<bool>* stop = nullptr;  // once true, the run ends soon with TK6103; may be null
  CheckTally* checks = nullptr;      // null: a check that fails is an error. Only cpu fills it
  StepRecorder* recorder = nullptr;  // takes the place of what executes steps; may be null
};

// A program ready to run. Everything is const and may be used by any number of threads.
class Executable {
 public:
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;
  virtual ~Executable() = default;

  // All that is known of the program and how it was compiled.
  const Compilation& compilation() const { return *compilation_; }
  std::shared_ptr<const Compilation> shared_compilation() const { return compilation_; }
  const std::string& name() const { return name_; }
  int64_t replicas() const;
  int64_t partitions() const;
  int64_t devices() const { return replicas() * partitions(); }
  const std::vector<ParameterInfo>& parameters() const;
  const std::vector<ArrayInfo>& results() const;
  const CostAnalysis& cost() const;
  const MemoryAnalysis& memory() const;
  // Calls functions of the host: never to be run on a thread that may not wait.
  bool calls_host() const;

  // It is for the data to say how long a run takes: PredictedMicros tells of past runs alone.
  bool time_depends_on_data() const;

  // How long a run takes, as far as is known: priced at first, then measured.
  double PredictedMicros() const { return predicted_us_.load(std::memory_order_relaxed); }

  // Runs the program. inputs[d * parameters + i] is parameter i on device d, results likewise. The
  // memory of a result may be that of a donated parameter which it aliases, and overlaps no other.
  // Errors are located in the program.
  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs,
             const RunControl& control) const;

  // The device that the program runs on; null: the host. Run() has arrays in the host's memory in
  // either case, and Issue() has them in the device's.
  virtual Device* device() const { return nullptr; }
  // Has the device run the program after all that it was asked for before; returns when all of it
  // has been asked for. Only with a device; the arrays are as those of Run.
  virtual Status Issue(std::span<const void* const> inputs, std::span<void* const> outputs,
                       const RunControl& control) const;
  // Whether Issue may have to wait for the device: for what decides where the program goes on, or
  // for what the host computes.
  virtual bool IssueWaits() const { return true; }

  // HLO text of what runs.
  std::string HloText() const;
  // How much of the program is compiled: kernels that are launched, and why each other step is
  // interpreted ("sort: has no kernel").
  int64_t Launches() const;
  std::vector<std::string> HostSteps() const;
  // Kernels whose code generation failed, and what was done about it.
  const std::vector<std::string>& codegen_fallbacks() const { return codegen_fallbacks_; }

 protected:
  explicit Executable(std::shared_ptr<const Compilation> compilation);
  virtual Status RunOnce(std::span<const void* const> inputs, std::span<void* const> outputs,
                         const RunControl& control) const = 0;

  std::vector<std::string> codegen_fallbacks_;

 private:
  std::shared_ptr<const Compilation> compilation_;
  std::string name_;
  mutable std::atomic<double> predicted_us_{0};
  mutable std::atomic<bool> measured_{false};
};

}  // namespace tokamak
