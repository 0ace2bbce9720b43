#include "driver/report/trace.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "cost/rates.h"
#include "driver/report/page_data.h"

// Timestamps of the format are microseconds. "M" names a process or a track, "X" is a slice with a
// start and a duration, "C" is a value of a counter.

namespace tokamak {
namespace {

using nlohmann::json;

enum Process { kPredicted = 1, kMeasured = 2, kCompilation = 3 };
enum Track { kDevice = 1, kHost = 2, kStages = 1, kPasses = 2 };

class TraceWriter {
 public:
  explicit TraceWriter(const CompileReport& report) : report_(report) {}

  json Write() {
    std::string device = RatesOf(report_.machine()).name;
    AddSteps(kPredicted, "predicted", device, &StepReport::predicted_us);
    AddMemory();
    if (report_.totals.measured_us)
      AddSteps(kMeasured, "measured", device, &StepReport::measured_us);
    AddCompilation();
    json about = {{"program", report_.module().name()}, {"machine", device}};
    if (!report_.why_interpreted().empty()) about["interpreted"] = report_.why_interpreted();
    return {{"displayTimeUnit", "ns"},
            {"otherData", std::move(about)},
            {"traceEvents", std::move(events_)}};
  }

 private:
  void Name(const char* what, const std::string& name, int pid, int tid) {
    events_.push_back(
        {{"ph", "M"}, {"name", what}, {"pid", pid}, {"tid", tid}, {"args", {{"name", name}}}});
  }

  // `at`: the process and the track.
  void AddSlice(const json& event, std::pair<int, int> at, double ts, double duration) {
    json slice = {
        {"ph", "X"}, {"pid", at.first}, {"tid", at.second}, {"ts", ts}, {"dur", duration}};
    slice.update(event);
    events_.push_back(std::move(slice));
  }

  static json ArgumentsOf(const StepReport& step, double us) {
    json args = {{"kind", step.library.empty() ? step.generator : step.library},
                 {"phase", NameOf(step.phase)},
                 {"us of a run", us},
                 {"reads", step.reads},
                 {"writes", step.writes},
                 {"source lines", step.lines}};
    args["runs"] = step.calls ? json(*step.calls) : json("data-dependent");
    if (step.estimate) args["bound by"] = step.estimate->binding;
    if (!step.why.empty()) args["why on the host"] = step.why;
    return args;
  }

  // The steps one after the other, as one stream runs them.
  void AddSteps(Process process, const std::string& name, const std::string& device,
                std::optional<double> StepReport::*us_of) {
    Name("process_name", name, process, 0);
    Name("thread_name", device, process, kDevice);
    Name("thread_name", "host", process, kHost);
    double now = 0;
    for (const StepReport& step : report_.steps) {
      double us = (step.*us_of).value_or(0);
      double all = us * static_cast<double>(step.runs());
      if (process == kPredicted) starts_.push_back(now);
      AddSlice({{"name", step.name}, {"cat", "step"}, {"args", ArgumentsOf(step, us)}},
               {process, step.generator == "host" ? kHost : kDevice}, now, all);
      now += all;
    }
    if (process == kPredicted) starts_.push_back(now);
  }

  // The counter has a value at the start of each step, and zero at the end.
  void AddMemory() {
    if (report_.steps.empty()) return;
    std::vector<int64_t> changes(report_.steps.size() + 1, 0);
    json memory = MemoryOf(report_);
    for (const json& life : memory["lives"]) {
      changes[life["first"].get<size_t>()] += life["bytes"].get<int64_t>();
      changes[life["last"].get<size_t>() + 1] -= life["bytes"].get<int64_t>();
    }
    int64_t live = 0;
    for (size_t i = 0; i < changes.size(); ++i) {
      live += changes[i];
      if (changes[i] == 0 && i > 0 && i + 1 < changes.size()) continue;
      events_.push_back({{"ph", "C"},
                         {"name", "temporary memory"},
                         {"pid", kPredicted},
                         {"tid", 0},
                         {"ts", starts_[i]},
                         {"args", {{"bytes", live}}}});
    }
  }

  void AddCompilation() {
    const Compilation& made = *report_.compilation;
    Name("process_name", "compilation", kCompilation, 0);
    Name("thread_name", "stages", kCompilation, kStages);
    Name("thread_name", "passes", kCompilation, kPasses);
    double now = 0;
    for (auto [name, ms] :
         {std::pair("verify", made.times.verify_ms), std::pair("passes", made.times.passes_ms),
          std::pair("describe", made.times.describe_ms),
          std::pair("planning", made.times.planning_ms)}) {
      AddSlice({{"name", name}, {"cat", "stage"}}, {kCompilation, kStages}, now, ms * 1000);
      now += ms * 1000;
    }
    AddPasses(made);
  }

  // The passes of a target belong to planning.
  void AddPasses(const Compilation& made) {
    const CompileTimes& times = made.times;
    double now = times.verify_ms * 1000;
    double planning = now + (times.passes_ms + times.describe_ms) * 1000;
    for (size_t i = 0; i < made.pass_runs.size(); ++i) {
      const PassRun& run = made.pass_runs[i];
      double us = (run.ms + run.verify_ms) * 1000;
      if (i == times.target_runs) now = std::max(now, planning);
      json args = {{"instructions before", run.instrs_before},
                   {"instructions after", run.instrs_after},
                   {"changes", run.changes},
                   {"iteration", run.iteration}};
      AddSlice({{"name", InfoOf(run.pass).name}, {"cat", "pass"}, {"args", std::move(args)}},
               {kCompilation, kPasses}, now, us);
      now += us;
    }
  }

  const CompileReport& report_;
  std::vector<double> starts_;  // of the predicted steps; the last one is the end
  json events_ = json::array();
};

}  // namespace

json TraceOf(const CompileReport& report) {
  return TraceWriter(report).Write();
}

}  // namespace tokamak
