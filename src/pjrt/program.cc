// Programs: compilation, caches and serialization.

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "driver/compile/event_sink.h"
#include "driver/compile/named_options.h"
#include "driver/compile/user_rules.h"
#include "driver/plugins/registry.h"
#include "driver/run/make_executable.h"
#include "pjrt/executable.h"
#include "pjrt/extensions.h"
#include "pjrt/op_sharding.h"
#include "runtime/disk_cache.h"
#include "runtime/process.h"
#include "support/bytes.h"
#include "support/digest.h"
#include "support/hash.h"
#include "support/json_text.h"
#include "text/read.h"

namespace tokamak {
namespace {

constexpr std::string_view kMagic = "TOKEXE1\n";

template <typename Info>
ShardingTexts ShardingsOf(const std::vector<Info>& arrays, int64_t devices) {
  ShardingTexts texts;
  if (devices == 1) return texts;
  for (const Info& array : arrays) texts.texts.push_back(WriteOpSharding(array.shard_map, devices));
  for (const std::string& text : texts.texts) {
    texts.data.push_back(text.data());
    texts.sizes.push_back(text.size());
  }
  return texts;
}

void Describe(Program& program) {
  const Executable& executable = *program.executable;
  program.name = executable.name();
  const CostAnalysis& cost = executable.cost();
  program.cost.AddFloat("flops", static_cast<float>(cost.flops));
  program.cost.AddFloat("transcendentals", static_cast<float>(cost.transcendentals));
  program.cost.AddFloat("bytes accessed", static_cast<float>(cost.bytes_accessed));
  for (const ArrayInfo& result : executable.results()) {
    program.result_types.push_back(TypeToPjrt(result.type));
    program.result_dims.insert(program.result_dims.end(), result.dims.begin(), result.dims.end());
    program.result_ranks.push_back(result.dims.size());
    program.result_kinds.push_back(result.memory_kind.c_str());
    program.result_kind_sizes.push_back(result.memory_kind.size());
    program.result_layouts.push_back(RowMajorLayout(result.dims.size()));
  }
  for (const ParameterInfo& parameter : executable.parameters()) {
    program.parameter_kinds.push_back(parameter.memory_kind.c_str());
    program.parameter_kind_sizes.push_back(parameter.memory_kind.size());
    program.parameter_layouts.push_back(RowMajorLayout(parameter.dims.size()));
  }
  program.parameter_shardings = ShardingsOf(executable.parameters(), executable.devices());
  program.result_shardings = ShardingsOf(executable.results(), executable.devices());
}

// Programs of this process, by the digest of their source: a function that is traced twice, or two
// threads that compile the same program, share one. The least recently used programs are evicted
// beyond the limits.
class ProgramCache {
 public:
  std::shared_ptr<const Program> Find(const std::string& key, std::string_view code) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = programs_.find(key);
    if (it == programs_.end() || it->second.program->bytes.text() != code) return nullptr;
    it->second.used = ++clock_;
    return it->second.program;
  }

  void Add(const std::string& key, std::shared_ptr<const Program> program) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto [it, added] = programs_.emplace(key, Entry{program, ++clock_});
    if (!added) return;
    bytes_ += program->bytes.size();
    while (programs_.size() > kMaxPrograms || (bytes_ > kMaxBytes && programs_.size() > 1)) {
      auto oldest = std::min_element(
          programs_.begin(), programs_.end(),
          [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
      bytes_ -= oldest->second.program->bytes.size();
      programs_.erase(oldest);
    }
  }

  static ProgramCache& OfProcess() {
    static auto* cache = new ProgramCache;
    return *cache;
  }

 private:
  // Limits of the cache: programs, and bytes of their sources (chosen).
  static constexpr size_t kMaxPrograms = 1024, kMaxBytes = size_t{64} << 20;
  struct Entry {
    std::shared_ptr<const Program> program;
    uint64_t used;
  };
  std::mutex mutex_;
  std::unordered_map<std::string, Entry> programs_;
  uint64_t clock_ = 0;
  size_t bytes_ = 0;
};

// Bytes: smaller programs verify faster than the disk is read, so they are not looked up (chosen).
constexpr size_t kDiskCacheFrom = size_t{64} << 10;
constexpr std::string_view kVerified = "verified";

double MicrosSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
      .count();
}

void ReportHit(const Program& program) {
  if (HasEventSink())
    EmitEvent(nlohmann::json{{"event", "compile"}, {"name", program.name}, {"cache", "memory"}});
}

// The disk record of a program: that this build accepted it, and the compile time.
std::string DiskRecord(const Program& program, double compile_us) {
  return JsonText({{"name", program.name}, {"verified", true}, {"compile_us", compile_us}});
}

}  // namespace

// Compiled programs are cached per process by bytes and options. The disk only records that a large
// program has passed the verifier, which later processes then skip.
Result<std::shared_ptr<const Program>> CompileProgram(std::string_view code,
                                                      std::string_view options) {
  TOK_TRY(PjrtCompileOptions read, ReadCompileOptions(options));
  TOK_TRY(CompileOptions compile, OptionsOfEnvironment());
  compile.num_replicas = read.num_replicas;
  compile.num_partitions = read.num_partitions;
  for (const auto& [name, value] : read.overrides)
    TOK_RETURN_IF_ERROR(SetOption(compile, name, value));
  TOK_RETURN_IF_ERROR(LoadPluginsOfEnvironment());
  std::string key = HexOf(CacheKey()
                              .Add(PlatformVersion())
                              .Add(code)
                              .Add(options)
                              .Add(ActiveUserRulesKey())
                              .Add(ExtensionsKey())
                              .Digest());
  // A program that is to be dumped is compiled even if it is cached.
  if (std::shared_ptr<const Program> kept = ProgramCache::OfProcess().Find(key, code);
      kept != nullptr && compile.dump_dir.empty()) {
    ReportHit(*kept);
    return kept;
  }
  auto begin = std::chrono::steady_clock::now();
  auto program = std::make_shared<Program>();
  program->bytes = Bytes::FromString(std::string(code));
  program->options = options;
  program->fingerprint = key;
  TOK_TRY(std::unique_ptr<Module> module, ReadModule(program->bytes, "program"));
  DiskCache* disk = code.size() < kDiskCacheFrom ? nullptr : DiskCache::OfProcess();
  std::string disk_key = CacheKey().Add(BuildId()).Add(key).bytes();
  compile.verified = disk != nullptr && disk->Get(kVerified, disk_key).has_value();
  TOK_TRY(program->executable, CompileAndLoad(std::move(module), compile));
  Describe(*program);
  // Host functions belong to this process and are released with the program: do not cache.
  if (program->executable->calls_host()) return std::shared_ptr<const Program>(std::move(program));
  if (disk != nullptr && !compile.verified)
    disk->Put(kVerified, disk_key, DiskRecord(*program, MicrosSince(begin)));
  std::shared_ptr<const Program> made = std::move(program);
  ProgramCache::OfProcess().Add(key, made);
  return made;
}

std::string SerializeProgram(const Program& program) {
  std::string body;
  for (std::string_view part : {std::string_view(PlatformVersion()),
                                std::string_view(program.options), program.bytes.text()}) {
    uint64_t size = part.size();
    body.append(reinterpret_cast<const char*>(&size), sizeof size);
    body += part;
  }
  Hasher hasher;
  hasher.Add(std::string_view(body));
  uint64_t check = hasher.digest();
  std::string out(kMagic);
  out.append(reinterpret_cast<const char*>(&check), sizeof check);
  return out + body;
}

Result<std::shared_ptr<const Program>> DeserializeProgram(std::string_view bytes) {
  auto bad = [](const char* why) {
    return MakeError(ErrorCode::kSerializedProgram, std::string("serialized executable: ") + why);
  };
  uint64_t check = 0;
  if (bytes.size() < kMagic.size() + sizeof check || bytes.substr(0, kMagic.size()) != kMagic)
    return bad("it does not begin with the expected bytes");
  std::memcpy(&check, bytes.data() + kMagic.size(), sizeof check);
  bytes.remove_prefix(kMagic.size() + sizeof check);
  Hasher hasher;
  hasher.Add(bytes);
  if (hasher.digest() != check) return bad("the bytes are damaged");
  std::string_view parts[3];
  for (std::string_view& part : parts) {
    uint64_t size = 0;
    if (bytes.size() < sizeof size) return bad("the bytes are truncated");
    std::memcpy(&size, bytes.data(), sizeof size);
    bytes.remove_prefix(sizeof size);
    if (size > bytes.size()) return bad("the bytes are truncated");
    part = bytes.substr(0, size);
    bytes.remove_prefix(size);
  }
  if (parts[0] != PlatformVersion()) return bad("it was written by another version of Tokamak");
  return CompileProgram(parts[2], parts[1]);
}

}  // namespace tokamak
