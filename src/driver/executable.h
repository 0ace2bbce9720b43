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
  CheckTally* checks = nullptr;  // null: a check that fails is an error. Only cpu fills it
};

class Device;

// A program ready to run. Everything is const and may be used by any number of threads.
class Executable {
 public:
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;
  virtual ~Executable() = default;

  const std::string& name() const { return name_; }
  int64_t replicas() const { return replicas_; }
  int64_t partitions() const { return partitions_; }
  int64_t devices() const { return replicas_ * partitions_; }
  const std::vector<ParameterInfo>& parameters() const { return parameters_; }
  const std::vector<ArrayInfo>& results() const { return results_; }
  const CostAnalysis& cost() const { return cost_; }
  const MemoryAnalysis& memory() const { return memory_; }
  // Calls functions of the host: never to be run on a thread that may not wait.
  bool calls_host() const { return calls_host_; }

  // It is for the data to say how long a run takes: PredictedMicros tells of past runs alone.
  bool time_depends_on_data() const { return time_depends_on_data_; }

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
  virtual std::string HloText() const = 0;
  // How much of the program is compiled: kernels that are launched, and why each other step is
  // interpreted ("sort: has no kernel").
  virtual int64_t Launches() const { return 0; }
  virtual std::vector<std::string> HostSteps() const { return {"the program: it is interpreted"}; }
  // Kernels whose code generation failed, and what was done about it.
  const std::vector<std::string>& codegen_fallbacks() const { return codegen_fallbacks_; }

 protected:
  Executable() = default;
  virtual Status RunOnce(std::span<const void* const> inputs, std::span<void* const> outputs,
                         const RunControl& control) const = 0;

  std::string name_;
  int64_t replicas_ = 1, partitions_ = 1;
  std::vector<ParameterInfo> parameters_;
  std::vector<ArrayInfo> results_;
  CostAnalysis cost_;
  MemoryAnalysis memory_;
  bool calls_host_ = false, time_depends_on_data_ = false;
  std::vector<std::string> codegen_fallbacks_;
  mutable std::atomic<double> predicted_us_{0};
  mutable std::atomic<bool> measured_{false};
};

struct CompileOptions {
  int64_t num_replicas = 1, num_partitions = 1;
  std::string backend;  // "": the best that is built
  bool strict = false;  // every value as the program states it, no rewrite that may change bits
  std::string passes = "default";  // the pipeline, as `tokamak opt --passes` takes it; "": none
  std::string skip_passes;         // passes to be left out, with commas between them
  // What decides which instructions are one kernel: none, rules (the paper's passes), greedy or
  // search; and rules of those passes to be left out, with commas between them.
  std::string fusion = "search", lift;
  std::string effort = "default";  // what planning may take: fast, default or max
  // Instructions (by name, or "train.py:12") that no kernel shares with others, with commas between
  // them; groups of such that are to be, or must be, one kernel, with semicolons between groups.
  std::string never_fuse, fuse, require_fused;
  bool verified = false;  // this build has verified an equal module before
  std::string dump_dir;   // where the program is written before and after compilation; "": nowhere
  // An instruction that only the interpreter could do is an error (TK4005); not for interp itself.
  bool require_kernels = false;
  // What TOKAMAK_CHECK asks for, too: every kernel is compared with the interpreter when it runs;
  // bytes that hold no value are made NaN (in builds with assertions by default).
  bool check_kernels = false;
#ifdef NDEBUG
  bool check_memory = false;
#else
  bool check_memory = true;
#endif
  // Kernels that run as one launch: none, those that it pays for (auto), all that may (for tests;
  // TOKAMAK_CHECK=packs).
  std::string packs = "none";
  bool short_chunks =
      false;  // loops that are kernels do few rounds a launch (TOKAMAK_CHECK=chunks)
  int64_t spoil_kernel = -1;  // for tests: this one writes a wrong number
  // For tests (TOKAMAK_CHECK=codegen-crash, codegen-crash:2 ...): what the code generation of the
  // first kernel does, without "codegen-".
  std::string codegen_fault;
  bool faults = false;  // for tests (TOKAMAK_CHECK=fault): a GPU's kernels get wrong addresses
};

// Makes a program executable. The module is verified here, unless the options say that it was.
Result<std::shared_ptr<const Executable>> Compile(std::unique_ptr<Module> module,
                                                  const CompileOptions& options);

}  // namespace tokamak
