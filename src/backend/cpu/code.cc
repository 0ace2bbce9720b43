#include "backend/cpu/code.h"

#include <chrono>
#include <unordered_map>

#include "kernel/form.h"
#include "runtime/disk_cache.h"
#include "runtime/process.h"
#include "runtime/thread_pool.h"

namespace tokamak::cpu {
namespace {

// Values of the kernels that go into one object file. A file costs 2 ms before its first kernel and
// a kernel about 4 (cpu_kernels); files are made in parallel, and each is an entry of the cache.
constexpr size_t kObjectNodes = 600;

// Of entries of the cache. Their keys are the kernels themselves, the build that compiled them and
// the processor.
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
  std::vector<size_t> numbers;  // among those that differ
  CacheKey key;
};

// What became of a batch.
struct Code::Made {
  Result<std::shared_ptr<const LoadedCode>> code = std::shared_ptr<const LoadedCode>();
  CompileTimes times;
  bool cached = false;
};

// An entry of the cache that does not load is as good as none.
Code::Made Code::CompileBatch(const Batch& batch, const Target& target,
                              const CompileOptions& options) {
  Made made;
  if (options.cache != nullptr) {
    auto begin = std::chrono::steady_clock::now();
    if (std::optional<std::string> object = options.cache->Get(kObjectKind, batch.key.bytes())) {
      made.code = LoadObject(*object, batch.kernels.size());
      made.times.load_us = Since(begin);
      made.cached = made.code.ok();
      if (made.cached) return made;
    }
  }
  Result<std::string> object = MakeObject(batch.kernels, target, &made.times);
  if (!object.ok()) {
    made.code = std::move(object.error());
    return made;
  }
  auto begin = std::chrono::steady_clock::now();
  made.code = LoadObject(object.value(), batch.kernels.size());
  made.times.load_us = Since(begin);
  if (made.code.ok() && options.cache != nullptr)
    options.cache->Put(kObjectKind, batch.key.bytes(), object.value());
  return made;
}

Result<std::shared_ptr<const Code>> Code::Compile(std::span<const Kernel* const> kernels,
                                                  const CompileOptions& options) {
  TOK_TRY(Target target, HostTarget());
  std::string setting = BuildId() + " " + target.Text();

  // Kernels that differ, in batches.
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
  for (size_t b = 0; b < batches.size(); ++b) {
    TOK_TRY(std::shared_ptr<const LoadedCode> loaded, std::move(made[b].code));
    for (size_t i = 0; i < batches[b].numbers.size(); ++i)
      functions[batches[b].numbers[i]] = loaded->function(i);
    code->loaded_.push_back(std::move(loaded));
    code->times_ += made[b].times;
    code->cached_ += made[b].cached ? 1 : 0;
  }
  for (size_t number : which) code->functions_.push_back(functions[number]);
  return std::shared_ptr<const Code>(std::move(code));
}

}  // namespace tokamak::cpu
