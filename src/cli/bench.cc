#include "driver/measure/bench.h"

#include <cstdlib>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/json_error.h"
#include "cli/programs.h"
#include "driver/compile/backend.h"
#include "driver/compile/fusion_options.h"
#include "driver/report/counters.h"
#include "driver/report/write.h"
#include "interp/arguments.h"
#include "ir/clone.h"

// `tokamak bench`: measures a program under each fusion mode, interleaved; with --counters, the GPU
// resources of its kernels before and after fusion.

namespace tokamak {
namespace {

using nlohmann::json;

std::string TableOf(const std::vector<BenchRow>& rows) {
  std::string text =
      fmt::format("{:8} {:>8} {:>6} {:>12} {:>12} {:>12} {:>12} {:>8}\n", "fusion", "launches",
                  "host", "compile ms", "min us", "median us", "max us", "speed");
  const BenchRow& last = rows.back();
  for (const BenchRow& row : rows)
    text += fmt::format("{:8} {:>8} {:>6} {:>12} {:>12} {:>12} {:>12} {:>8.2f}\n", row.mode,
                        row.launches, row.host_steps, NumberText(row.compile_ms),
                        NumberText(row.best()), NumberText(row.median()), NumberText(row.most()),
                        last.median() / row.median());
  text += fmt::format("{} interleaved repetitions; speed: {}'s median over its own\n",
                      last.us.size(), last.mode);
  for (const BenchRow& row : rows)
    if (&row != &last)
      text += BreakEvenText("compiling by " + last.mode, {last.compile_ms, last.median()},
                            "by " + row.mode, {row.compile_ms, row.median()});
  return text;
}

json JsonOf(const std::vector<BenchRow>& rows) {
  json all = json::array();
  for (const BenchRow& row : rows)
    all.push_back({{"fusion", row.mode},
                   {"launches", row.launches},
                   {"host_steps", row.host_steps},
                   {"compile_ms", row.compile_ms},
                   {"least_us", row.best()},
                   {"median_us", row.median()},
                   {"most_us", row.most()},
                   {"repetitions", row.us.size()}});
  return all;
}

// ---- counters

struct CounterTotals {
  int64_t launches = 0, bytes = 0, spilled = 0;
  double registers = 0, occupancy = 0, us = 0;  // the first two: means over kernel launches
};

CounterTotals TotalsOf(const std::vector<LaunchCounters>& all) {
  CounterTotals totals;
  double kernels = 0;
  for (const LaunchCounters& one : all) {
    totals.launches += one.runs;
    totals.bytes += one.runs * one.bytes;
    totals.us += static_cast<double>(one.runs) * one.predicted_us;
    if (!one.code) continue;
    auto runs = static_cast<double>(one.runs);
    kernels += runs;
    totals.registers += runs * one.code->registers;
    totals.occupancy += runs * one.code->occupancy;
    totals.spilled += one.code->spilled_bytes;
  }
  totals.registers /= std::max(kernels, 1.0);
  totals.occupancy /= std::max(kernels, 1.0);
  return totals;
}

constexpr char kRow[] = "{:28.28} {:>10} {:>7} {:>10} {:>9} {:>7} {:>8} {:>8} {:>9} {:>9} {:>10}\n";

std::string CounterTable(const std::string& mode, const std::vector<LaunchCounters>& all) {
  std::string text = fmt::format("\nkernels of fusion={} on an H200:\n", mode);
  text += fmt::format(kRow, "kernel", "generator", "runs", "bytes", "registers", "spills",
                      "threads", "blocks", "memory", "occupancy", "est. us");
  for (const LaunchCounters& one : all) {
    auto of_code = [&](auto text_of) { return one.code ? text_of(*one.code) : std::string("-"); };
    using Code = LaunchCounters::Code;
    text += fmt::format(
        kRow, one.name, one.generator, one.runs, BytesText(one.bytes),
        of_code([](const Code& code) { return std::to_string(code.registers); }),
        of_code([](const Code& code) { return std::to_string(code.spilled_bytes); }),
        of_code([](const Code& code) { return std::to_string(code.threads); }),
        of_code([](const Code& code) { return std::to_string(code.blocks); }),
        of_code([](const Code& code) { return BytesText(code.shared_bytes); }),
        of_code([](const Code& code) { return fmt::format("{:.0f} %", code.occupancy * 100); }),
        NumberText(one.predicted_us));
  }
  CounterTotals totals = TotalsOf(all);
  return text + fmt::format(
                    "total: {} launches, {}, {:.1f} registers per thread, {} bytes spilled, "
                    "occupancy {:.0f} %, {} us estimated\n",
                    totals.launches, BytesText(totals.bytes), totals.registers, totals.spilled,
                    totals.occupancy * 100, NumberText(totals.us));
}

json JsonOf(const std::vector<LaunchCounters>& all) {
  json rows = json::array();
  for (const LaunchCounters& one : all) {
    json row = {{"kernel", one.name},
                {"generator", one.generator},
                {"runs", one.runs},
                {"bytes", one.bytes},
                {"predicted_us", one.predicted_us}};
    if (one.code)
      row.update({{"registers", one.code->registers},
                  {"spilled_bytes", one.code->spilled_bytes},
                  {"threads", one.code->threads},
                  {"blocks", one.code->blocks},
                  {"shared_bytes", one.code->shared_bytes},
                  {"occupancy", one.code->occupancy}});
    rows.push_back(std::move(row));
  }
  return rows;
}

class Bencher : private BenchWatcher {
 public:
  Bencher(const BenchCommand& command, Console& console) : command_(command), console_(console) {}

  int Run() {
    setenv("TOKAMAK_CACHE", "off", 1);  // measure compile times without the disk cache
    Result<const BackendInfo*> backend = FindBackend(command_.backend);
    if (!backend.ok()) return console_.Report(backend.error());
    options_.backend = backend.value()->name;
    Status modes = ReadModes();
    if (!modes.ok()) return console_.Report(modes.error());
    options_.seconds = command_.seconds;
    options_.repetitions = command_.repetitions;
    return ForEachProgram(command_.file, console_, [&](Module& program, std::string_view source) {
      if (program.entry() == nullptr) return 0;
      Status status = BenchProgram(program);
      Progress("");
      return status.ok() ? 0 : console_.Report(status.error(), source);
    });
  }

 private:
  Status ReadModes() {
    if (!command_.modes.empty()) options_.modes.clear();
    for (const std::string& word : command_.modes) {
      TOK_TRY(FusionMode mode, ParseFusionMode(word));
      options_.modes.push_back(mode);
    }
    TOK_TRY(options_.effort, ParseEffort(command_.effort));
    return Ok();
  }

  Status BenchProgram(const Module& program) {
    json output = {{"file", command_.file}, {"backend", options_.backend}};
    TOK_TRY(std::vector<Value> arguments, DrawArguments(command_.seed, *program.entry()));
    TOK_TRY(std::vector<BenchRow> rows, Bench(program, arguments, options_, *this));
    Progress("");
    output["fusion_modes"] = JsonOf(rows);
    if (!command_.json)
      console_.Out(fmt::format("{} on {}\n", command_.file, options_.backend) + TableOf(rows));
    if (command_.counters)
      for (FusionMode by : {options_.modes.front(), options_.modes.back()}) {
        std::string mode(NameOf(by));
        Progress("compiling kernels for an H200: " + mode);
        TOK_TRY(std::vector<LaunchCounters> counters, CountersOf(program, by));
        Progress("");
        output["counters"][mode] = JsonOf(counters);
        if (!command_.json) console_.Out(CounterTable(mode, counters));
      }
    if (command_.json) console_.Out(JsonLine(output));
    return Ok();
  }

  void Progress(const std::string& now) override {
    if (console_.ShowsProgress()) console_.Err("\r" + now + "\x1b[K");
  }

  const BenchCommand& command_;
  Console& console_;
  BenchOptions options_;
};

}  // namespace

int Bench(const BenchCommand& command, Console& console) {
  return Bencher(command, console).Run();
}

}  // namespace tokamak
