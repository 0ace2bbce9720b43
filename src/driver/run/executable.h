#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "driver/compile/program_info.h"
#include "ir/ir.h"
#include "support/result.h"

// The interface of a compiled program, independent of the backend that runs it.

namespace tokamak {

class Device;
class StepRecorder;
struct Compilation;

// Outcome of the checks of a program (check.expect_eq ...).
struct CheckTally {
  int64_t passed = 0;
  std::vector<Error> failures;  // TK6012
};

struct RunControl {
  const std::atomic<bool>* stop = nullptr;  // if true, the run ends soon with TK6103; may be null
  CheckTally* checks = nullptr;             // null: a failed check is an error. Only cpu fills it
  StepRecorder* recorder = nullptr;         // records steps instead of executing them; may be null
};

// A program ready to run. All methods are const and thread-safe.
class Executable {
 public:
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;
  virtual ~Executable() = default;

  // The program and how it was compiled.
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
  // Whether a run calls host functions. Such a program must not run on a thread that may not block.
  bool calls_host() const;

  // Whether the run time is data-dependent. PredictedMicros then describes past runs only.
  bool time_depends_on_data() const;

  // Expected time of a run: the cost model's estimate at first, then measured.
  double PredictedMicros() const { return predicted_us_.load(std::memory_order_relaxed); }

  // Runs the program. inputs[d * parameters + i] is parameter i on device d; outputs are indexed in
  // the same way. A result may share memory only with a donated parameter that it aliases. Errors
  // carry locations in the program.
  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs,
             const RunControl& control) const;

  // The device that the program runs on; null for the host. Run() always takes arrays in host
  // memory; Issue() takes them in device memory.
  virtual Device* device() const { return nullptr; }
  // Enqueues the program on the device behind all earlier work, and returns when everything is
  // enqueued. Requires a device; the arrays are indexed as in Run.
  virtual Status Issue(std::span<const void* const> inputs, std::span<void* const> outputs,
                       const RunControl& control) const;
  // Whether Issue may block on the device: for a value that decides control flow, or for an input
  // of a host step.
  virtual bool IssueWaits() const { return true; }

  // HLO text of the optimized program.
  std::string HloText() const;
  // How much of the program is compiled: the number of kernel launches, and the reason why each
  // other step is interpreted ("sort: has no kernel").
  int64_t Launches() const;
  std::vector<std::string> HostSteps() const;
  // Kernels whose code generation failed, with the fallback used.
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
