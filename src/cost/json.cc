// JSON of machine files (Rates) and of Work. Tables map JSON keys to members and serve both
// directions; only curves, lists and optional fields are handled separately. ToJson does not write
// the optional GPU fields.
//
// A machine file is user input: every required number must be present, finite and positive (0 where
// meaningful), and bandwidth curves must ascend in bytes. The reader records the first problem and
// continues with zeros, and the caller turns the problem into one error.

#include "cost/json.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <nlohmann/json.hpp>

namespace tokamak {
namespace {

using nlohmann::json;

// The scalar fields of a machine file.
constexpr std::pair<const char*, double Rates::*> kRateNumbers[] = {
    {"l1_bytes", &Rates::l1_bytes},
    {"l2_bytes", &Rates::l2_bytes},
    {"l3_bytes", &Rates::l3_bytes},
    {"latency_ns", &Rates::latency_ns},
    {"sum_latency_ns", &Rates::sum_latency_ns},
    {"line_ns", &Rates::line_ns},
    {"step_us", &Rates::step_us},
    {"task_us", &Rates::task_us},
    {"min_chunk_us", &Rates::min_chunk_us},
    {"overlap_exponent", &Rates::overlap_exponent},
    {"stream_gap_us", &Rates::stream_gap_us},
    {"graph_gap_us", &Rates::graph_gap_us},
    {"barrier_us", &Rates::barrier_us},
    {"bytes_in_flight", &Rates::bytes_in_flight},
    {"registers", &Rates::registers},
    {"threads", &Rates::threads},
    {"shared_bytes", &Rates::shared_bytes},
};

// Optional GPU fields.
constexpr std::pair<const char*, double Rates::*> kClusterRates[] = {
    {"cluster_blocks", &Rates::cluster_blocks},   {"cluster_sms", &Rates::cluster_sms},
    {"cluster_us", &Rates::cluster_us},           {"cluster_bytes_ns", &Rates::cluster_bytes_ns},
    {"grid_barrier_us", &Rates::grid_barrier_us}, {"wait_us", &Rates::wait_us},
    {"panel_load_ns", &Rates::panel_load_ns},     {"panel_byte_ns", &Rates::panel_byte_ns},
    {"result_load_ns", &Rates::result_load_ns},   {"copied_byte_ns", &Rates::copied_byte_ns},
    {"result_byte_ns", &Rates::result_byte_ns},
};

constexpr std::pair<const char*, double Work::*> kCounts[] = {
    {"tasks", &Work::tasks},
    {"reads", &Work::reads},
    {"writes", &Work::writes},
    {"rereads", &Work::rereads},
    {"memory_rereads", &Work::memory_rereads},
    {"registers", &Work::registers},
    {"min_chunk", &Work::min_chunk},
    {"lines", &Work::lines},
    {"sums", &Work::sums},
    {"chain", &Work::chain},
    {"threads", &Work::threads},
    {"thread_registers", &Work::thread_registers},
    {"barriers", &Work::barriers},
    {"shared_bytes", &Work::shared_bytes},
    {"panel_loads", &Work::panel_loads},
    {"panel_bytes", &Work::panel_bytes},
    {"copied_bytes", &Work::copied_bytes},
    {"result_bytes", &Work::result_bytes},
    {"panel_ops", &Work::panel_ops},
    {"result_loads", &Work::result_loads},
};

// Rounds to more digits than a measurement has.
double Rounded(double value) {
  if (!std::isfinite(value)) return 0;
  char text[32];
  std::snprintf(text, sizeof text, "%.5g", value);
  return std::strtod(text, nullptr);
}

json CurveJson(const std::vector<Bandwidth>& curve) {
  json out = json::array();
  for (const Bandwidth& point : curve)
    out.push_back({{"bytes", point.bytes},
                   {"read", Rounded(point.read)},
                   {"write", Rounded(point.write)},
                   {"copy", Rounded(point.copy)}});
  return out;
}

// Reads required fields, which must be positive (or 0, where that is meaningful).
class RatesJsonReader {
 public:
  double Number(const json& in, const std::string& name, bool may_be_zero) {
    auto it = in.find(name);
    if (it == in.end() || !it->is_number()) return Fail("'" + name + "' is missing");
    double value = it->get<double>();
    bool fine = std::isfinite(value) && (value > 0 || (may_be_zero && value == 0));
    return fine ? value : Fail("'" + name + "' is " + it->dump());
  }
  std::vector<Bandwidth> Curve(const json& in, const std::string& name) {
    std::vector<Bandwidth> curve;
    auto it = in.find(name);
    if (it == in.end() || !it->is_array() || it->empty()) Fail("'" + name + "' is missing");
    if (!error.empty()) return curve;
    for (const json& point : *it) {
      if (!point.is_object()) Fail("'" + name + "' has an entry that is not a point");
      if (!error.empty()) return curve;
      curve.push_back({Number(point, "bytes", false), Number(point, "read", false),
                       Number(point, "write", false), Number(point, "copy", false)});
      if (curve.size() > 1 && curve.back().bytes <= curve[curve.size() - 2].bytes)
        Fail("'" + name + "' is not in ascending order");
    }
    return curve;
  }
  double Fail(const std::string& why) {
    if (error.empty()) error = why;
    return 0;
  }

  std::string error;
};

Result<json> ObjectOf(std::string_view text, const std::string& file) {
  json in = json::parse(text.begin(), text.end(), nullptr, false);
  if (!in.is_object()) return MakeError(ErrorCode::kUsage, file + ": not a JSON object");
  return in;
}

std::string TextAt(const json& in, const char* name) {
  auto it = in.find(name);
  return it != in.end() && it->is_string() ? it->get<std::string>() : "";
}

}  // namespace

std::string ToJson(const Rates& rates) {
  json out = {
      {"name", rates.name}, {"cpu", rates.cpu}, {"cores", rates.cores}, {"source", rates.source}};
  if (!rates.compatible_cpu.empty()) out["compatible_cpu"] = rates.compatible_cpu;
  out["bandwidth"] = {{"one", CurveJson(rates.one)}, {"all", CurveJson(rates.all)}};
  for (size_t i = 0; i < kPipes; ++i)
    out["ns"][std::string(NameOf(static_cast<Pipe>(i)))] = Rounded(rates.ns[i]);
  for (const auto& [name, member] : kRateNumbers) {
    double value = rates.*member;
    out[name] = value > 1000 ? std::round(value) : Rounded(value);
  }
  out["fork_us"] = json::array();
  for (double us : rates.fork_us) out["fork_us"].push_back(Rounded(us));
  for (double times : rates.thread_contention) out["thread_contention"].push_back(Rounded(times));
  return out.dump(1);
}

Result<Rates> RatesFromJson(std::string_view text, const std::string& file) {
  TOK_TRY(json in, ObjectOf(text, file));
  // Optional: defaults to latency_ns.
  if (in.contains("latency_ns") && !in.contains("sum_latency_ns"))
    in["sum_latency_ns"] = in["latency_ns"];
  RatesJsonReader json_reader;
  Rates rates;
  rates.name = TextAt(in, "name");
  rates.cpu = TextAt(in, "cpu");
  rates.compatible_cpu = TextAt(in, "compatible_cpu");
  rates.source = TextAt(in, "source");
  rates.cores = static_cast<int64_t>(json_reader.Number(in, "cores", false));
  json bandwidth = in.value("bandwidth", json::object());
  rates.one = json_reader.Curve(bandwidth, "one");
  rates.all = json_reader.Curve(bandwidth, "all");
  json ns = in.value("ns", json::object());
  for (size_t i = 0; i < kPipes; ++i)
    if (auto pipe = static_cast<Pipe>(i); pipe != Pipe::kTensor || ns.contains(NameOf(pipe)))
      rates.ns[i] = json_reader.Number(ns, std::string(NameOf(pipe)), true);
  for (const auto& [name, member] : kRateNumbers)
    rates.*member = json_reader.Number(in, name, true);
  json fork = in.value("fork_us", json::array());
  for (const json& us : fork) rates.fork_us.push_back(us.is_number() ? us.get<double>() : 0);
  // Absent for GPUs.
  json thread_contention = in.value("thread_contention", json::array());
  for (const json& times : thread_contention)
    rates.thread_contention.push_back(times.is_number() ? std::max(times.get<double>(), 1.0) : 1);
  for (const auto& [name, member] : kClusterRates)
    if (in.contains(name)) rates.*member = json_reader.Number(in, name, false);
  // Optional: absent for CPUs.
  if (in.contains("link_bytes_ns")) {
    rates.link_bytes_ns = json_reader.Number(in, "link_bytes_ns", false);
    rates.link_us = json_reader.Number(in, "link_us", true);
    rates.link_source = TextAt(in, "link_source");
  }
  if (rates.overlap_exponent < 1) json_reader.Fail("'overlap_exponent' is below 1");
  if (!json_reader.error.empty())
    return MakeError(ErrorCode::kUsage, file + ": no machine file: " + json_reader.error);
  return rates;
}

std::string ToJson(const Work& work) {
  json out;
  for (const auto& [name, member] : kCounts)
    if (work.*member != 0) out[name] = work.*member;
  for (size_t i = 0; i < kPipes; ++i)
    if (work.ops[i] != 0) out["ops"][std::string(NameOf(static_cast<Pipe>(i)))] = work.ops[i];
  return out.dump();
}

Result<Work> WorkFromJson(std::string_view text, const std::string& file) {
  TOK_TRY(json in, ObjectOf(text, file));
  Work work;
  for (const auto& [name, member] : kCounts) work.*member = in.value(name, 0.0);
  json ops = in.value("ops", json::object());
  for (size_t i = 0; i < kPipes; ++i)
    work.ops[i] = ops.value(std::string(NameOf(static_cast<Pipe>(i))), 0.0);
  return work;
}

}  // namespace tokamak
