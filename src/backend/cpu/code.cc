#include "backend/cpu/code.h"

#include <chrono>
#include <unordered_map>

#include "kernel/form.h"
#include "runtime/disk_cache.h"
#include "runtime/process.h"
#include "runtime/thread_pool.h"

namespace tokamak::cpu {
namespace {

// Maximum values of the kernels in one object file. A file costs 2 ms before its first kernel, and
// a kernel about 4 ms (measured: bench/cpu_kernels); files are compiled in parallel, and each is a
// cache entry.
constexpr size_t kObjectNodes = 600;

// The kind of cache entries. Their keys are the kernels themselves, the build that compiled them
// and the processor.
constexpr std::string_view kObjectKind = "cpu-object";

int64_t Since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() -
                                                               begin)
      .count();
}

}  // namespace

// Kernels that become one object file.
struct Code::Batch {
  std::vector<const Kernel*> kernels;
  std::vector<size_t> numbers;  // among the distinct kernels
  CacheKey key;
  const Target* target = nullptr;
  const CompileOptions* options = nullptr;

  // Options to compile kernels of the batch, from number `first` on.
  CodegenOptions OptionsOf(size_t first, CodegenEffort effort) const {
    bool is_planted = numbers[first] == 0 && static_cast<int>(effort) < options->fault_efforts;
    return {.effort = effort,
            .kernel_time = options->kernel_time,
            .fault = is_planted ? options->fault : InjectedFault::kNone};
  }
};

// The result of a batch.
struct Code::Made {
  Status status = Ok();
  std::vector<KernelFn> functions;  // of its kernels
  std::vector<std::shared_ptr<const LoadedCode>> loaded;
  std::vector<CodegenFallback> fallbacks;  // by number in the batch
  CompileTimes times;
  bool cached = false;

  void Add(std::shared_ptr<const LoadedCode> code) {
    for (size_t i = 0; i < code->size(); ++i) functions.push_back(code->function(i));
    loaded.push_back(std::move(code));
  }
};

// Compiles one kernel of a batch that failed for `reason`.
Status Code::CompileAlone(const Batch& batch, size_t number, std::string reason, Made& made) {
  const Kernel* kernel = batch.kernels[number];
  bool is_new = batch.kernels.size() > 1;
  for (CodegenEffort effort :
       {CodegenEffort::kFull, CodegenEffort::kOtherSelector, CodegenEffort::kLeast}) {
    if (effort == CodegenEffort::kFull && !is_new) continue;  // the batch was this kernel alone
    Result<ObjectCode> code =
        MakeCode({&kernel, 1}, *batch.target, batch.OptionsOf(number, effort), made.times);
    if (code.ok()) {
      made.Add(std::move(code.value().loaded));
      if (effort != CodegenEffort::kFull)
        made.fallbacks.push_back({number, std::move(reason), effort});
      return Ok();
    }
    if (code.error().code != ErrorCode::kCodeGeneration) return std::move(code.error());
    if (effort == CodegenEffort::kFull) reason = code.error().message;
  }
  made.functions.push_back(nullptr);
  made.fallbacks.push_back({number, std::move(reason), std::nullopt});
  return Ok();
}

// A cache entry that does not load is ignored. Code compiled with less effort is not cached: the
// failure may be transient (a time limit on a busy machine).
Code::Made Code::CompileBatch(const Batch& batch, const Target& target,
                              const CompileOptions& options) {
  Made made;
  DiskCache* cache = options.fault == InjectedFault::kNone ? options.cache : nullptr;
  if (cache != nullptr) {
    auto begin = std::chrono::steady_clock::now();
    if (std::optional<std::string> object = cache->Get(kObjectKind, batch.key.bytes())) {
      Result<std::shared_ptr<const LoadedCode>> loaded = LoadObject(*object, batch.kernels.size());
      made.times.load_us = Since(begin);
      made.cached = loaded.ok();
      if (made.cached) {
        made.Add(std::move(loaded.value()));
        return made;
      }
    }
  }
  Result<ObjectCode> code =
      MakeCode(batch.kernels, target, batch.OptionsOf(0, CodegenEffort::kFull), made.times);
  if (code.ok()) {
    made.Add(std::move(code.value().loaded));
    if (cache != nullptr) cache->Put(kObjectKind, batch.key.bytes(), code.value().object);
    return made;
  }
  if (code.error().code != ErrorCode::kCodeGeneration) {
    made.status = std::move(code.error());
    return made;
  }
  for (size_t i = 0; i < batch.kernels.size() && made.status.ok(); ++i)
    made.status = CompileAlone(batch, i, code.error().message, made);
  return made;
}

Result<std::shared_ptr<const Code>> Code::Compile(std::span<const Kernel* const> kernels,
                                                  const CompileOptions& options) {
  TOK_TRY(Target target, HostTarget());
  std::string setting = BuildId() + " " + target.Text();

  // The distinct kernels, in batches.
  std::unordered_map<std::string, size_t> known;
  std::vector<size_t> which;
  std::vector<Batch> batches;
  size_t nodes = kObjectNodes;
  for (const Kernel* kernel : kernels) {
    auto [at, is_new] = known.emplace(FormOf(*kernel), known.size());
    which.push_back(at->second);
    if (!is_new) continue;
    if (nodes + kernel->nodes.size() > kObjectNodes) {
      batches.emplace_back().key.Add(setting);
      batches.back().target = &target;
      batches.back().options = &options;
      nodes = 0;
    }
    nodes += kernel->nodes.size();
    batches.back().kernels.push_back(kernel);
    batches.back().numbers.push_back(at->second);
    batches.back().key.Add(at->first);
  }

  std::vector<Made> made(batches.size());
  auto compile = [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
      made[i] = CompileBatch(batches[i], target, options);
  };
  ThreadPool::OfProcess().For(static_cast<int64_t>(batches.size()), 1, compile);

  auto code = std::make_shared<Code>();
  std::vector<KernelFn> functions(known.size());
  std::unordered_map<size_t, CodegenFallback> fallbacks;  // by number among the distinct kernels
  for (size_t b = 0; b < batches.size(); ++b) {
    TOK_RETURN_IF_ERROR(std::move(made[b].status));
    for (size_t i = 0; i < batches[b].numbers.size(); ++i)
      functions[batches[b].numbers[i]] = made[b].functions[i];
    for (std::shared_ptr<const LoadedCode>& loaded : made[b].loaded)
      code->loaded_.push_back(std::move(loaded));
    for (CodegenFallback& fallback : made[b].fallbacks)
      fallbacks[batches[b].numbers[fallback.kernel]] = std::move(fallback);
    code->times_ += made[b].times;
    code->cached_ += made[b].cached ? 1 : 0;
  }
  for (size_t i = 0; i < which.size(); ++i) {
    code->functions_.push_back(functions[which[i]]);
    if (auto found = fallbacks.find(which[i]); found != fallbacks.end())
      code->fallbacks_.push_back({i, found->second.reason, found->second.effort});
  }
  return std::shared_ptr<const Code>(std::move(code));
}

}  // namespace tokamak::cpu
