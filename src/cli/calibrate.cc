#include "cost/calibrate.h"

#include <chrono>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/json_error.h"
#include "cost/json.h"
#include "driver/compile/host_rates.h"
#include "driver/measure/calibrate.h"
#include "driver/run/kernel_codes.h"
#include "text/load.h"

// `tokamak calibrate`: measures this machine, or fits its rates to measured kernels.

namespace tokamak {
namespace {

using nlohmann::json;

Result<std::string> TextOf(const std::string& path) {
  TOK_TRY(Bytes bytes, ReadFileBytes(path));
  return std::string(bytes.text());
}

Result<std::vector<FitPoint>> PointsOf(const std::string& path) {
  TOK_TRY(std::string text, TextOf(path));
  json in = json::parse(text, nullptr, false);
  if (!in.is_array()) return MakeError(ErrorCode::kUsage, path + ": not a list of kernels");
  std::vector<FitPoint> points;
  for (const json& row : in) {
    if (!row.is_object() || !row.contains("work") || !row.value("measured_us", json()).is_number())
      return MakeError(ErrorCode::kUsage, path + ": a kernel lacks its work or its time");
    TOK_TRY(Work work, WorkFromJson(row["work"].dump(), path));
    points.push_back({work, row["measured_us"].get<double>(), row.value("weight", 1.0)});
  }
  return points;
}

class Calibrator final : public CalibrationWatcher {
 public:
  Calibrator(const CalibrateCommand& command, Console& console)
      : command_(command), console_(console) {}

  Status Run() { return command_.fit.empty() ? Measure() : Fit(); }

  void Progress(const std::string& what, double fraction) override {
    if (!command_.quiet) console_.Err(fmt::format("{:3.0f} %  {}\n", fraction * 100, what));
  }

 private:
  Status Measure() {
    // Not after half a minute of measurements.
    if (!command_.output.empty()) TOK_RETURN_IF_ERROR(CheckWritable(command_.output));
    auto begin = std::chrono::steady_clock::now();
    TOK_TRY(Rates rates, CalibrateHost(*this));
    std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    if (!command_.output.empty()) {
      TOK_RETURN_IF_ERROR(WriteFileBytes(command_.output, ToJson(rates) + "\n"));
    } else if (!KeepHostRates(rates)) {
      console_.Out(ToJson(rates) + "\n");
      return Ok();
    }
    console_.Out(fmt::format("measured {} in {:.1f} s; {}\n", rates.name, elapsed.count(),
                             command_.output.empty() ? "saved in the cache folder for this machine"
                                                     : "written to " + command_.output));
    return Ok();
  }

  // Fits the rates and prints their prediction for each kernel.
  Status Fit() {
    TOK_TRY(std::vector<FitPoint> points, PointsOf(command_.fit));
    Machine machine = HostMachine();
    Rates rates = HostRates();
    if (!command_.machine.empty()) {
      TOK_TRY(std::string text, TextOf(command_.machine));
      TOK_TRY(rates, RatesFromJson(text, command_.machine));
      if (rates.bytes_in_flight > 0) machine = GpuMachine();
      machine.cores = rates.cores;
    }
    rates = FitRates(rates, machine, points);
    machine.rates = &rates;
    json predicted = json::array();
    for (const FitPoint& point : points)
      predicted.push_back(EstimateCost(point.work, machine).total());
    if (!command_.output.empty())
      TOK_RETURN_IF_ERROR(WriteFileBytes(command_.output, ToJson(rates) + "\n"));
    console_.Out(JsonLine({{"predicted_us", predicted}}));
    return Ok();
  }

  const CalibrateCommand& command_;
  Console& console_;
};

}  // namespace

int Calibrate(const CalibrateCommand& command, Console& console) {
  Status done = Calibrator(command, console).Run();
  return done.ok() ? 0 : console.Report(done.error(), "");
}

}  // namespace tokamak
