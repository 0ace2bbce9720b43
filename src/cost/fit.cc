#include <algorithm>
#include <cmath>
#include <functional>

#include "cost/calibrate.h"

// FitRates: goes through the rates one after the other, each a little up or down, as long as that
// brings prices nearer to measurements.

namespace tokamak {
namespace {

constexpr double kFar = 8;

// What may be moved: a rate, or a factor of several.
struct Knob {
  std::function<void(Rates&, double factor)> turn;
  double most = kFar;  // how far it may go, up or down
  double value = 1;    // all factors so far
};

void Scale(std::vector<Bandwidth>& curve, double low, double high, double factor,
           double Bandwidth::*member) {
  for (Bandwidth& point : curve)
    if (point.bytes > low && point.bytes <= high) point.*member *= factor;
}

Knob SoftnessKnob(double most) {
  return {[](Rates& r, double f) { r.softness = std::clamp(r.softness * f, 1.0, 12.0); }, most};
}

// Bandwidths of sizes between two levels, all by one factor.
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
    for (double& times : r.crowd) times = 1 + (times - 1) * f;
  }});
  knobs.push_back(SoftnessKnob(kFar));
  const double levels[] = {0, rates.l1_bytes, rates.l2_bytes, rates.l3_bytes / 2, INFINITY};
  AddCurveKnobs(levels, kFar, knobs);
  return knobs;
}

// Of a GPU: what a multiprocessor does, waits and gaps, its second cache and memory.
std::vector<Knob> GpuKnobsOf(const Rates& rates) {
  constexpr double kMost = 3;
  std::vector<Knob> knobs;
  for (size_t i = 0; i < kPipes; ++i)
    knobs.push_back({[i](Rates& r, double f) { r.ns[i] *= f; }, kMost});
  for (double Rates::*member :
       {&Rates::graph_gap_us, &Rates::barrier_us, &Rates::latency_ns, &Rates::bytes_in_flight})
    knobs.push_back({[member](Rates& r, double f) { r.*member *= f; }, kMost});
  knobs.push_back(SoftnessKnob(kMost));
  const double levels[] = {0, rates.l2_bytes, INFINITY};
  AddCurveKnobs(levels, kMost, knobs);
  return knobs;
}

// The farther a rate is from what was measured for itself, the more it must help.
constexpr double kStay = 0.05;

double Loss(const Rates& rates, Machine machine, std::span<const FitPoint> points,
            const std::vector<Knob>& knobs) {
  machine.rates = &rates;
  double sum = 0, count = 0;
  for (const FitPoint& point : points) {
    if (point.weight <= 0 || point.measured_us <= 0) continue;
    double off = std::abs(std::log(PriceOf(point.work, machine).total() / point.measured_us));
    sum += point.weight * std::min(off, 1.5);  // what is far off is another matter
    count += point.weight;
  }
  double away = 0;
  for (const Knob& knob : knobs) away += std::abs(std::log(knob.value));
  return sum / std::max(count, 1.0) + kStay * away / static_cast<double>(knobs.size());
}

}  // namespace

Rates FitRates(const Rates& rates, const Machine& machine, std::span<const FitPoint> points) {
  Rates best = rates;
  std::vector<Knob> knobs = machine.is_gpu() ? GpuKnobsOf(rates) : KnobsOf(rates);
  double least = Loss(best, machine, points, knobs);
  for (double step : {1.6, 1.25, 1.1, 1.04}) {
    for (int round = 0; round < 12; ++round) {
      bool moved = false;
      for (Knob& knob : knobs) {
        for (double factor : {step, 1 / step}) {
          if (std::abs(std::log(knob.value * factor)) > std::log(knob.most)) continue;
          Rates tried = best;
          knob.turn(tried, factor);
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
