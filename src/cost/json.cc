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

// The numbers of a machine file that are no list.
constexpr std::pair<const char*, double Rates::*> kRateNumbers[] = {
    {"l1_bytes", &Rates::l1_bytes},
    {"l2_bytes", &Rates::l2_bytes},
    {"l3_bytes", &Rates::l3_bytes},
    {"latency_ns", &Rates::latency_ns},
    {"sum_latency_ns", &Rates::sum_latency_ns},
    {"line_ns", &Rates::line_ns},
    {"step_us", &Rates::step_us},
    {"task_us", &Rates::task_us},
    {"grain_us", &Rates::grain_us},
    {"softness", &Rates::softness},
    {"stream_gap_us", &Rates::stream_gap_us},
    {"graph_gap_us", &Rates::graph_gap_us},
    {"barrier_us", &Rates::barrier_us},
    {"bytes_in_flight", &Rates::bytes_in_flight},
    {"registers", &Rates::registers},
    {"threads", &Rates::threads},
    {"team_bytes", &Rates::team_bytes},
};

// Those of GPUs that older files say nothing of.
constexpr std::pair<const char*, double Rates::*> kOfMeetings[] = {
    {"cluster_blocks", &Rates::cluster_blocks}, {"cluster_cores", &Rates::cluster_cores},
    {"cluster_us", &Rates::cluster_us},         {"cluster_bytes_ns", &Rates::cluster_bytes_ns},
    {"meeting_us", &Rates::meeting_us},         {"wait_us", &Rates::wait_us},
};

constexpr std::pair<const char*, double Work::*> kCounts[] = {
    {"tasks", &Work::tasks},
    {"reads", &Work::reads},
    {"writes", &Work::writes},
    {"rereads", &Work::rereads},
    {"far_rereads", &Work::far_rereads},
    {"registers", &Work::registers},
    {"grain", &Work::grain},
    {"lines", &Work::lines},
    {"sums", &Work::sums},
    {"chain", &Work::chain},
    {"threads", &Work::threads},
    {"words", &Work::words},
    {"barriers", &Work::barriers},
    {"team_bytes", &Work::team_bytes},
};

// More digits than any measurement has.
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

// Reads a number that must be there and above 0 (or 0, where that means something).
class Reader {
 public:
  double Number(const json& in, const std::string& name, bool may_be_zero) {
    auto it = in.find(name);
    if (it == in.end() || !it->is_number()) return Fail("'" + name + "' is not there");
    double value = it->get<double>();
    bool fine = std::isfinite(value) && (value > 0 || (may_be_zero && value == 0));
    return fine ? value : Fail("'" + name + "' is " + it->dump());
  }
  std::vector<Bandwidth> Curve(const json& in, const std::string& name) {
    std::vector<Bandwidth> curve;
    auto it = in.find(name);
    if (it == in.end() || !it->is_array() || it->empty()) Fail("'" + name + "' is not there");
    if (!fault.empty()) return curve;
    for (const json& point : *it) {
      if (!point.is_object()) Fail("'" + name + "' holds what is no point");
      if (!fault.empty()) return curve;
      curve.push_back({Number(point, "bytes", false), Number(point, "read", false),
                       Number(point, "write", false), Number(point, "copy", false)});
      if (curve.size() > 1 && curve.back().bytes <= curve[curve.size() - 2].bytes)
        Fail("'" + name + "' does not ascend");
    }
    return curve;
  }
  double Fail(const std::string& why) {
    if (fault.empty()) fault = why;
    return 0;
  }

  std::string fault;
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
  if (!rates.kin.empty()) out["kin"] = rates.kin;
  out["bandwidth"] = {{"one", CurveJson(rates.one)}, {"all", CurveJson(rates.all)}};
  for (size_t i = 0; i < kPipes; ++i)
    out["ns"][std::string(NameOf(static_cast<Pipe>(i)))] = Rounded(rates.ns[i]);
  for (const auto& [name, member] : kRateNumbers) {
    double value = rates.*member;
    out[name] = value > 1000 ? std::round(value) : Rounded(value);
  }
  out["fork_us"] = json::array();
  for (double us : rates.fork_us) out["fork_us"].push_back(Rounded(us));
  for (double times : rates.crowd) out["crowd"].push_back(Rounded(times));
  return out.dump(1);
}

Result<Rates> RatesFromJson(std::string_view text, const std::string& file) {
  TOK_TRY(json in, ObjectOf(text, file));
  // Older files say nothing of sums.
  if (in.contains("latency_ns") && !in.contains("sum_latency_ns"))
    in["sum_latency_ns"] = in["latency_ns"];
  Reader reader;
  Rates rates;
  rates.name = TextAt(in, "name");
  rates.cpu = TextAt(in, "cpu");
  rates.kin = TextAt(in, "kin");
  rates.source = TextAt(in, "source");
  rates.cores = static_cast<int64_t>(reader.Number(in, "cores", false));
  json bandwidth = in.value("bandwidth", json::object());
  rates.one = reader.Curve(bandwidth, "one");
  rates.all = reader.Curve(bandwidth, "all");
  json ns = in.value("ns", json::object());
  for (size_t i = 0; i < kPipes; ++i)
    rates.ns[i] = reader.Number(ns, std::string(NameOf(static_cast<Pipe>(i))), true);
  for (const auto& [name, member] : kRateNumbers) rates.*member = reader.Number(in, name, true);
  json fork = in.value("fork_us", json::array());
  for (const json& us : fork) rates.fork_us.push_back(us.is_number() ? us.get<double>() : 0);
  // Of GPUs there is none.
  json crowd = in.value("crowd", json::array());
  for (const json& times : crowd)
    rates.crowd.push_back(times.is_number() ? std::max(times.get<double>(), 1.0) : 1);
  for (const auto& [name, member] : kOfMeetings)
    if (in.contains(name)) rates.*member = reader.Number(in, name, false);
  // Files of CPUs, and older ones, say nothing of it.
  if (in.contains("link_bytes_ns")) {
    rates.link_bytes_ns = reader.Number(in, "link_bytes_ns", false);
    rates.link_us = reader.Number(in, "link_us", true);
    rates.link_source = TextAt(in, "link_source");
  }
  if (rates.softness < 1) reader.Fail("'softness' is below 1");
  if (!reader.fault.empty())
    return MakeError(ErrorCode::kUsage, file + ": no machine file: " + reader.fault);
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
