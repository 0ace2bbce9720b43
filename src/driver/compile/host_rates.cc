// Chooses the machine file whose rates the cost model uses for this host and its GPUs. For a CPU,
// the first that exists:
//
//   the user's own file     stored in the disk cache by `tokamak calibrate`
//   a shipped file          of the same processor, with the nearest core count
//   a compatible CPU        same vendor and CPU flags
//   the default             slow rates, for any machine
//
// For a GPU without a file, the shipped H200 rates are scaled: bandwidths by memory clock and bus
// width, operations by clock. A processor is identified by vendor, family and model of
// /proc/cpuinfo, not by its marketing name. Rates are read once and live until the process ends,
// because plans and reports refer to them.

#include "driver/compile/host_rates.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "cost/json.h"
#include "cost/machine_files.h"
#include "runtime/disk_cache.h"

namespace tokamak {
namespace {

// The fields of the first processor in /proc/cpuinfo: "model name" and so on.
std::map<std::string, std::string> ProcessorFields() {
  std::map<std::string, std::string> fields;
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line) && !(line.empty() && !fields.empty())) {
    size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    std::string name = line.substr(0, colon), value = line.substr(colon + 1);
    name.erase(name.find_last_not_of(" \t") + 1);
    value.erase(0, std::min(value.find_first_not_of(' '), value.size()));
    fields.emplace(std::move(name), std::move(value));
  }
  return fields;
}

// Bytes of a size text: "48K", "2048K", "105M".
double SizeOf(const std::string& text) {
  char* end = nullptr;
  double size = std::strtod(text.c_str(), &end);
  if (*end == 'K') size *= 1024;
  if (*end == 'M') size *= 1024 * 1024;
  return size;
}

void ReadCaches(CpuFacts& facts) {
  for (int i = 0; i < 8; ++i) {
    std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/";
    std::ifstream level_file(folder + "level"), type_file(folder + "type"),
        size_file(folder + "size");
    std::string type, size;
    int level = 0;
    if (!(level_file >> level) || !(type_file >> type) || !(size_file >> size)) break;
    if (type == "Instruction") continue;
    (level == 1 ? facts.l1_bytes : level == 2 ? facts.l2_bytes : facts.l3_bytes) = SizeOf(size);
  }
}

CpuFacts ReadFacts() {
  std::map<std::string, std::string> fields = ProcessorFields();
  CpuFacts facts;
  facts.cpu = fields.count("vendor_id") != 0
                  ? fields["vendor_id"] + " " + fields["cpu family"] + "/" + fields["model"]
                  : "arm " + fields["CPU implementer"] + "/" + fields["CPU part"];
  facts.name = fields.count("model name") != 0 ? fields["model name"] : facts.cpu;
  ReadCaches(facts);
  return facts;
}

int64_t Cores() {
  return std::max(1u, std::thread::hardware_concurrency());
}

constexpr std::string_view kMachineFileKind = "machine";

std::string OwnKey() {
  return CacheKey()
      .Add("1")
      .Add(HostFacts().cpu)
      .Add(HostFacts().name)
      .Add(std::to_string(Cores()))
      .bytes();
}

std::optional<Rates> OwnRates() {
  DiskCache* cache = DiskCache::OfProcess();
  std::optional<std::string> text =
      cache == nullptr ? std::nullopt : cache->Get(kMachineFileKind, OwnKey());
  if (!text) return std::nullopt;
  Result<Rates> rates = RatesFromJson(*text, "the cache's machine file");
  if (!rates.ok()) return std::nullopt;
  rates.value().source += ", saved for this machine";
  return std::move(rates.value());
}

const Rates* Leaked(Rates rates) {
  return new Rates(std::move(rates));  // lives until the process ends
}

std::atomic<bool> as_unknown{false};

// The shipped file with the nearest core count among processors for which `is_it` holds.
template <typename Fn>
std::optional<Rates> ShippedRates(int64_t cores, Fn&& is_it) {
  std::optional<Rates> best;
  for (const MachineFile& file : MachineFiles()) {
    Result<Rates> rates = RatesFromJson(file.text, std::string(file.name));
    if (!rates.ok() || !is_it(rates.value())) continue;
    rates.value().source = "machines/" + std::string(file.name);
    if (!best || std::abs(rates.value().cores - cores) < std::abs(best->cores - cores))
      best = std::move(rates.value());
  }
  return best;
}

std::optional<Rates> RatesOf(const std::string& cpu, int64_t cores) {
  return ShippedRates(cores, [&](const Rates& rates) { return rates.cpu == cpu; });
}

// The rates of a processor of the same vendor with the same CPU flags.
std::optional<Rates> RatesOfCompatibleCpu() {
  std::map<std::string, std::string> fields = ProcessorFields();
  bool is_arm = fields.count("vendor_id") == 0;
  const std::string &vendor = fields[is_arm ? "CPU implementer" : "vendor_id"],
                    &flags = fields[is_arm ? "Features" : "flags"];
  std::optional<Rates> rates = ShippedRates(Cores(), [&](const Rates& other) {
    return IsCompatibleCpu(other.compatible_cpu, vendor, flags);
  });
  if (rates) rates->source += " (this processor was not measured); `tokamak calibrate` measures it";
  return rates;
}

}  // namespace

const CpuFacts& HostFacts() {
  static const auto* facts = new CpuFacts(ReadFacts());
  return *facts;
}

void UseDefaultRates() {
  as_unknown.store(true, std::memory_order_relaxed);
}

bool UsesDefaultRates() {
  return as_unknown.load(std::memory_order_relaxed);
}

const Rates& HostRates() {
  if (UsesDefaultRates()) return DefaultRates(MachineKind::kCpu);
  static const Rates* rates = [] {
    if (std::optional<Rates> own = OwnRates()) return Leaked(std::move(*own));
    if (std::optional<Rates> shipped = RatesOf(HostFacts().cpu, Cores()))
      return Leaked(std::move(*shipped));
    if (std::optional<Rates> compatible_cpu = RatesOfCompatibleCpu())
      return Leaked(std::move(*compatible_cpu));
    return &DefaultRates(MachineKind::kCpu);
  }();
  return *rates;
}

const Rates& GpuRates() {
  static const Rates* rates = [] {
    if (std::optional<Rates> shipped = RatesOf("NVIDIA H200", 132))
      return Leaked(std::move(*shipped));
    return &DefaultRates(MachineKind::kGpu);
  }();
  return *rates;
}

Rates ScaledRates(const Rates& measured, const DeviceInfo& gpu) {
  // Properties of the H200 on which the shipped file was measured: its clock, and its memory
  // bandwidth (6144-bit bus at 3.2 GHz, two transfers per cycle), as the CUDA driver reports them.
  constexpr double kClockKhz = 1'980'000, kBytesNs = 6144.0 / 8 * 2 * 3.2;
  constexpr int kFirstWithClusters = 9;  // compute capability (CUDA programming guide)
  Rates rates = measured;
  rates.name = gpu.name + ", scaled from " + measured.name;
  rates.cpu = gpu.name;
  rates.cores = gpu.multiprocessors;
  rates.source =
      measured.source + ", scaled by clocks and bus width: " + gpu.name + " was not measured";
  if (gpu.memory_clock_khz > 0 && gpu.memory_bus_bits > 0) {
    double bytes_ns = gpu.memory_bus_bits / 8.0 * 2 * gpu.memory_clock_khz * 1e-6;
    for (std::vector<Bandwidth>* curve : {&rates.one, &rates.all})
      for (Bandwidth& at : *curve)
        for (double* rate : {&at.read, &at.write, &at.copy}) *rate *= bytes_ns / kBytesNs;
  }
  if (gpu.clock_khz > 0) {
    for (double& ns : rates.ns) ns *= kClockKhz / gpu.clock_khz;
    rates.latency_ns *= kClockKhz / gpu.clock_khz;
  }
  if (gpu.l2_bytes > 0) rates.l2_bytes = rates.l3_bytes = gpu.l2_bytes;
  if (gpu.threads > 0) rates.threads = gpu.threads;
  if (gpu.registers > 0) rates.registers = gpu.registers;
  if (gpu.shared_bytes > 0) rates.shared_bytes = gpu.shared_bytes;
  if (gpu.compute_major < kFirstWithClusters) rates.cluster_blocks = 1;
  return rates;
}

const Rates& RatesOfGpu(const DeviceInfo& gpu) {
  static std::mutex mutex;
  static auto* known = new std::map<std::string, const Rates*>;
  std::lock_guard<std::mutex> lock(mutex);
  const Rates*& rates = (*known)[gpu.name];
  if (rates == nullptr) {
    std::optional<Rates> own = RatesOf(gpu.name, gpu.multiprocessors);
    rates = Leaked(own ? std::move(*own) : ScaledRates(GpuRates(), gpu));
  }
  return *rates;
}

bool KeepHostRates(const Rates& rates) {
  DiskCache* cache = DiskCache::OfProcess();
  if (cache == nullptr || !cache->IsUsable()) return false;
  cache->Put(kMachineFileKind, OwnKey(), ToJson(rates));
  return true;
}

}  // namespace tokamak
