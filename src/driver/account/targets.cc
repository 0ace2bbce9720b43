#include "driver/account/targets.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cost/rates.h"
#include "driver/account/write.h"

namespace tokamak {
namespace {

constexpr double kSmallest = 1.0 / 4096, kLargest = 4096;

int64_t BytesOf(const Shape& shape) {
  int64_t bytes = 0;
  for (const Shape& leaf : LeavesOf(shape)) bytes += leaf.IsArray() ? leaf.ByteSize() : 0;
  return bytes;
}

Work Scaled(Work work, double scale) {
  for (double* count : {&work.tasks, &work.reads, &work.writes, &work.rereads, &work.far_rereads,
                        &work.lines, &work.sums, &work.chain})
    *count *= scale;
  work.tasks = std::max(1.0, work.tasks);
  for (double& ops : work.ops) ops *= scale;
  return work;
}

// What a launch takes whatever the size of its arrays.
double LaunchMicros(const Machine& machine) {
  const Rates& rates = RatesOf(machine);
  return machine.is_gpu() ? rates.graph_gap_us : rates.step_us;
}

// Microseconds of all steps with arrays so much larger. Launches take the same at any size.
double PriceAt(const ProgramAccount& account, double scale) {
  double us = 0;
  for (const StepAccount& step : account.steps) {
    double now = step.predicted_us.value_or(0);
    double launch = std::min(now, LaunchMicros(account.machine()));
    double own = step.work ? PriceOf(Scaled(*step.work, scale), account.machine()).total()
                           : launch + (now - launch) * scale;
    us += static_cast<double>(step.runs()) * own;
  }
  return us;
}

class Comparer {
 public:
  Comparer(const ProgramAccount& host, const ProgramAccount& gpu, const Places& places)
      : host_(host), gpu_(gpu), places_(places) {}

  // Where the sign of the difference changes nearest to the size that there is.
  std::optional<double> Turns(bool transfers) const {
    bool now = Difference(1, transfers) > 0;
    double best = 0;
    for (double factor : {2.0, 0.5}) {
      for (double scale = factor; scale >= kSmallest && scale <= kLargest; scale *= factor) {
        if ((Difference(scale, transfers) > 0) == now) continue;
        double found = Between(scale / factor, scale, transfers);
        if (best == 0 || std::abs(std::log(found)) < std::abs(std::log(best))) best = found;
        break;
      }
    }
    return best == 0 ? std::nullopt : std::optional(best);
  }

 private:
  // Above 0: the GPU is faster.
  double Difference(double scale, bool transfers) const {
    const Rates& rates = RatesOf(gpu_.machine());
    double moved = static_cast<double>(places_.transferred) * scale;
    double link = transfers ? 2 * rates.link_us + moved / rates.link_bytes_ns / 1000 : 0;
    return PriceAt(host_, scale) - PriceAt(gpu_, scale) - link;
  }

  double Between(double low, double high, bool transfers) const {
    bool at_low = Difference(low, transfers) > 0;
    for (int i = 0; i < 30; ++i) {
      double middle = std::sqrt(low * high);
      ((Difference(middle, transfers) > 0) == at_low ? low : high) = middle;
    }
    return high;
  }

  const ProgramAccount &host_, &gpu_;
  const Places& places_;
};

// The first dimension that more than half of the arguments have in common; 0: there is none.
int64_t BatchOf(const Module& module) {
  std::map<int64_t, int> sizes;
  int arrays = 0;
  for (const Instr* parameter : module.entry()->parameters()) {
    if (!parameter->shape().IsArray() || parameter->shape().rank() == 0) continue;
    ++sizes[parameter->shape().dim(0)];
    ++arrays;
  }
  for (auto [size, count] : sizes)
    if (2 * count > arrays) return size;
  return 0;
}

std::string TurnText(const std::optional<double>& turn, bool gpu_wins, int64_t batch) {
  std::string_view other = gpu_wins ? "host" : "h200";
  if (!turn)
    return fmt::format("at no size from {:g} to {:g} times this one is {} faster", kSmallest,
                       kLargest, other);
  std::string text =
      fmt::format("with arrays {:.3g} times {}, {} is faster", *turn > 1 ? *turn : 1 / *turn,
                  *turn > 1 ? "larger" : "smaller", other);
  if (batch > 1)
    text += fmt::format(" (a first dimension of {:.0f} in place of {})",
                        std::max(1.0, std::round(*turn * static_cast<double>(batch))), batch);
  return text;
}

}  // namespace

Places PlacesOf(const Module& module, const ProgramAccount& host, const ProgramAccount& gpu) {
  Places places;
  places.host = host.totals;
  places.gpu = gpu.totals;
  places.transferred = BytesOf(module.entry()->root()->shape());
  for (const Instr* parameter : module.entry()->parameters())
    places.transferred += BytesOf(parameter->shape());
  const Rates& rates = RatesOf(gpu.machine());
  places.transfer_us =
      2 * rates.link_us + static_cast<double>(places.transferred) / rates.link_bytes_ns / 1000;
  places.link = rates.link_source;
  places.batch = BatchOf(module);
  Comparer comparer(host, gpu, places);
  places.turns_with_transfers = comparer.Turns(true);
  places.turns_without = comparer.Turns(false);
  return places;
}

std::string TextOf(const Places& places) {
  std::string text;
  text += fmt::format("host: {} steps, {:.4g} us predicted\n", places.host.steps(), places.host.us);
  text += fmt::format("h200: {} steps, {:.4g} us predicted; {:.4g} us to bring {} there and back\n",
                      places.gpu.steps(), places.gpu.us, places.transfer_us,
                      BytesText(places.transferred));
  auto say = [&](const char* where, double gpu_us, const std::optional<double>& turn) {
    bool gpu_wins = gpu_us < places.host.us;
    text += fmt::format("{}: {} is faster, {:.4g} us against {:.4g}; {}\n", where,
                        gpu_wins ? "h200" : "host", std::min(gpu_us, places.host.us),
                        std::max(gpu_us, places.host.us), TurnText(turn, gpu_wins, places.batch));
  };
  say("arrays on the host", places.gpu.us + places.transfer_us, places.turns_with_transfers);
  say("arrays where it runs", places.gpu.us, places.turns_without);
  return text + "sizes: the work of each kernel is scaled, plans stay as they are; transfers: " +
         places.link + "\n";
}

nlohmann::json JsonOf(const Places& places) {
  auto turn = [](const std::optional<double>& at) {
    return at ? nlohmann::json(*at) : nlohmann::json(nullptr);
  };
  bool with = places.gpu.us + places.transfer_us < places.host.us;
  return {{"host", JsonOf(places.host)},
          {"h200", JsonOf(places.gpu)},
          {"transferred_bytes", places.transferred},
          {"transfer_us", places.transfer_us},
          {"transfers", places.link},
          {"faster_with_transfers", with ? "h200" : "host"},
          {"faster_without", places.gpu.us < places.host.us ? "h200" : "host"},
          {"turns_with_transfers", turn(places.turns_with_transfers)},
          {"turns_without", turn(places.turns_without)},
          {"batch", places.batch},
          {"by", "scaled work"}};
}

}  // namespace tokamak
