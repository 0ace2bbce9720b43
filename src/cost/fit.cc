#include <algorithm>
#include <cmath>
#include <functional>

#include "cost/calibrate.h"

// FitRates: coordinate descent. Scales one rate after the other up or down while the estimates
// approach the measurements.

namespace tokamak {
namespace {

// Maximum factor between a fitted and a calibrated rate. Chosen (docs/cost_model.md).
constexpr double kMaxFactor = 8;

// A fitted parameter: a rate, or a common factor of several rates.
struct Knob {
  std::function<void(Rates&, double factor)> fit;
  double most = kMaxFactor;  // maximum factor, up or down
  double value = 1;          // product of the factors applied so far
};

void Scale(std::vector<Bandwidth>& curve, double low, double high, double factor,
           double Bandwidth::*member) {
  for (Bandwidth& point : curve)
    if (point.bytes > low && point.bytes <= high) point.*member *= factor;
}

Knob OverlapExponentKnob(double most) {
  return {[](Rates& r, double f) {
            r.overlap_exponent = std::clamp(r.overlap_exponent * f, 1.0, 12.0);
          },
          most};
}

// One factor for the bandwidths of all sizes between two cache levels.
void AddCurveKnobs(std::span<const double> levels, double most, std::vector<Knob>& knobs) {
  for (size_t level = 0; level + 1 < levels.size(); ++level)
    for (double Bandwidth::*member : {&Bandwidth::read, &Bandwidth::write, &Bandwidth::copy}) {
      double low = levels[level], high = levels[level + 1];
      knobs.push_back({[=](Rates& r, double f) {
                         Scale(r.one, low, high, f, member);
                         Scale(r.all, low, high, f, member);
                       },
                       most});
    }
}

std::vector<Knob> KnobsOf(const Rates& rates) {
  std::vector<Knob> knobs;
  for (size_t i = 0; i < kPipes; ++i) knobs.push_back({[i](Rates& r, double f) { r.ns[i] *= f; }});
  for (double Rates::*member : {&Rates::latency_ns, &Rates::sum_latency_ns, &Rates::line_ns,
                                &Rates::step_us, &Rates::task_us})
    knobs.push_back({[member](Rates& r, double f) { r.*member *= f; }});
  knobs.push_back({[](Rates& r, double f) {
    for (double& us : r.fork_us) us *= f;
  }});
  knobs.push_back({[](Rates& r, double f) {
    for (double& times : r.thread_contention) times = 1 + (times - 1) * f;
  }});
  knobs.push_back(OverlapExponentKnob(kMaxFactor));
  const double levels[] = {0, rates.l1_bytes, rates.l2_bytes, rates.l3_bytes / 2, INFINITY};
  AddCurveKnobs(levels, kMaxFactor, knobs);
  return knobs;
}

// GPU: pipe rates, latencies and gaps, bandwidth of the L2 cache and of memory.
std::vector<Knob> GpuKnobsOf(const Rates& rates) {
  // Maximum factor for GPUs. Chosen (docs/cost_model.md).
  constexpr double kMost = 3;
  std::vector<Knob> knobs;
  for (size_t i = 0; i < kPipes; ++i)
    knobs.push_back({[i](Rates& r, double f) { r.ns[i] *= f; }, kMost});
  for (double Rates::*member :
       {&Rates::graph_gap_us, &Rates::barrier_us, &Rates::latency_ns, &Rates::bytes_in_flight})
    knobs.push_back({[member](Rates& r, double f) { r.*member *= f; }, kMost});
  knobs.push_back(OverlapExponentKnob(kMost));
  const double levels[] = {0, rates.l2_bytes, INFINITY};
  AddCurveKnobs(levels, kMost, knobs);
  return knobs;
}

// Weight of the regularization term, which pulls rates to their calibrated values. Chosen.
constexpr double kRegularization = 0.05;

double Loss(const Rates& rates, Machine machine, std::span<const FitPoint> points,
            const std::vector<Knob>& knobs) {
  machine.rates = &rates;
  double sum = 0, count = 0;
  for (const FitPoint& point : points) {
    if (point.weight <= 0 || point.measured_us <= 0) continue;
    double off = std::abs(std::log(EstimateCost(point.work, machine).total() / point.measured_us));
    sum += point.weight * std::min(off, 1.5);  // outliers are clipped
    count += point.weight;
  }
  double away = 0;
  for (const Knob& knob : knobs) away += std::abs(std::log(knob.value));
  return sum / std::max(count, 1.0) + kRegularization * away / static_cast<double>(knobs.size());
}

}  // namespace

Rates FitRates(const Rates& rates, const Machine& machine, std::span<const FitPoint> points) {
  Rates best = rates;
  std::vector<Knob> knobs = machine.is_gpu() ? GpuKnobsOf(rates) : KnobsOf(rates);
  double least = Loss(best, machine, points, knobs);
  for (double step : {1.6, 1.25, 1.1, 1.04}) {
    for (int iteration = 0; iteration < 12; ++iteration) {
      bool moved = false;
      for (Knob& knob : knobs) {
        for (double factor : {step, 1 / step}) {
          if (std::abs(std::log(knob.value * factor)) > std::log(knob.most)) continue;
          Rates tried = best;
          knob.fit(tried, factor);
          knob.value *= factor;
          double loss = Loss(tried, machine, points, knobs);
          if (loss < least - 1e-6) {
            least = loss;
            best = std::move(tried);
            moved = true;
            break;
          }
          knob.value /= factor;
        }
      }
      if (!moved) break;
    }
  }
  return best;
}

}  // namespace tokamak
