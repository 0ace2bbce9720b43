#include "driver/device_loops.h"

#include <algorithm>

#include "analysis/loops.h"

namespace tokamak {
namespace {

using Phase = cuda::LoopShape::Phase;

// Bytes that a step reads or writes.
struct Touch {
  Place place;
  int64_t bytes = 0;
  bool writes = false;
};

// Whether one must not be done at the same time as the other. Parameters, results and constants may
// be one memory.
bool Conflict(const Touch& x, const Touch& y) {
  if (!x.writes && !y.writes) return false;
  if (x.place.memory != y.place.memory) return x.place.memory != 0 && y.place.memory != 0;
  return x.place.offset < y.place.offset + y.bytes && y.place.offset < x.place.offset + x.bytes;
}

// What steps do with their places, in the order of a launch's pointers.
std::vector<Touch> TouchesOf(const std::vector<RunStep>& steps, const LoweredProgram& program) {
  std::vector<Touch> touches;
  auto add = [&](const RunStep& launch) {
    const Kernel& kernel = program.kernels[launch.target];
    for (size_t i = 0; i < launch.places.size(); ++i) {
      const Array& array = kernel.arrays[i];
      touches.push_back(
          {launch.places[i], array.size * BytesOf(array.type), array.access != Access::kRead});
    }
  };
  for (const RunStep& step : steps) {
    if (step.kind == StepKind::kCopy) {
      for (const Place& place : step.places)
        touches.push_back({place, step.bytes, &place == step.places.data()});
    } else if (step.kind == StepKind::kPack) {
      for (const RunStep& launch : step.blocks[0]) add(launch);
    } else {
      add(step);
    }
  }
  return touches;
}

class Maker {
 public:
  explicit Maker(const LoweredProgram& program) : program_(program) {}

  LoopLaunch Make(const RunStep& loop, bool has_condition) {
    bool in_turn = loop.blocks.size() > 3;
    cuda::LoopShape shape;
    shape.in_turn = in_turn;
    if (has_condition) {
      Add(loop.blocks[0], &shape.condition);
      AddPlace(loop.places[0]);
      open_ = {{loop.places[0], 1, false}};  // teams have met, and look at it
    }
    Add(loop.blocks[1], &shape.body);
    if (!in_turn) Add(loop.blocks[2], &shape.body);
    if (in_turn) {
      // The same kernels, elsewhere.
      std::vector<cuda::CudaPackPart> parts = made_.form.parts;
      if (has_condition) {
        Add(loop.blocks[3], nullptr);
        AddPlace(loop.places[1]);
      }
      Add(loop.blocks[4], nullptr);
      made_.form.parts = std::move(parts);
      open_.clear();
      Add(loop.blocks[2], &shape.closing);
    }
    made_.form.loop = std::move(shape);
    made_.form.label = "loop of " + made_.form.label;
    return std::move(made_);
  }

 private:
  void AddPlace(const Place& place) { made_.places.push_back(place); }

  void AddLaunch(const RunStep& launch, std::vector<Touch>& touches) {
    const Kernel& kernel = program_.kernels[launch.target];
    made_.form.label += (made_.form.label.empty() ? "" : "+") + kernel.name;
    made_.form.parts.push_back({&kernel, launch.grid});
    for (size_t i = 0; i < launch.places.size(); ++i) {
      const Array& array = kernel.arrays[i];
      AddPlace(launch.places[i]);
      touches.push_back(
          {launch.places[i], array.size * BytesOf(array.type), array.access != Access::kRead});
    }
  }

  // Null: only places and kernels.
  void Add(const std::vector<RunStep>& steps, std::vector<Phase>* phases) {
    for (const RunStep& step : steps) {
      Phase phase;
      std::vector<Touch> touches;
      if (step.kind == StepKind::kCopy) {
        phase.bytes = step.bytes;
        for (const Place& place : step.places) {
          touches.push_back({place, step.bytes, &place == step.places.data()});
          AddPlace(place);
        }
      } else if (step.kind == StepKind::kPack) {
        for (const RunStep& launch : step.blocks[0]) AddLaunch(launch, touches);
        phase.parts = step.blocks[0].size();
      } else {
        AddLaunch(step, touches);
        phase.parts = 1;
      }
      if (phases == nullptr) continue;
      phase.meets = std::any_of(touches.begin(), touches.end(), [&](const Touch& touch) {
        return std::any_of(open_.begin(), open_.end(),
                           [&](const Touch& other) { return Conflict(touch, other); });
      });
      if (phase.meets) open_.clear();
      open_.insert(open_.end(), touches.begin(), touches.end());
      phases->push_back(phase);
    }
  }

  const LoweredProgram& program_;
  LoopLaunch made_;
  std::vector<Touch> open_;  // since teams met last
};

}  // namespace

bool MustFollow(const RunStep& copy, const RunStep& before) {
  Touch to{copy.places[0], copy.bytes, true}, from{copy.places[1], copy.bytes, false};
  Touch to_before{before.places[0], before.bytes, true};
  return Conflict(from, to_before) || Conflict(to, {before.places[1], before.bytes, false});
}

std::optional<std::vector<Place>> WithoutCopy(const RunStep& loop, const LoweredProgram& program,
                                              const std::vector<Place>& places,
                                              const RunStep& copy) {
  // What odd rounds make in the same place.
  bool in_turn =
      loop.blocks.size() > 3 && std::ranges::any_of(loop.blocks[2], [&](const RunStep& closing) {
        return closing.places[0] == copy.places[0] && closing.bytes == copy.bytes;
      });
  if (!in_turn) return std::nullopt;
  Touch to{copy.places[0], copy.bytes, true}, from{copy.places[1], copy.bytes, false};
  std::vector<Touch> touches = TouchesOf(loop.blocks[1], program);
  for (const Touch& touch : touches) {
    bool reads = !touch.writes && touch.place == to.place && touch.bytes <= to.bytes;
    if (Conflict(touch, from) || (Conflict(touch, to) && !reads)) return std::nullopt;
  }
  std::vector<Place> first = places;
  for (size_t i = 0; i < touches.size(); ++i)
    if (first[i] == to.place) first[i] = from.place;
  return first;
}

std::optional<uint64_t> RoundsOf(const RunStep& loop, const LoweredProgram& program) {
  auto* instr = const_cast<Instr*>(program.loops[loop.target]);  // looks only
  std::optional<WhileLoop> found = LoopOf(instr);
  return found ? TripCount(*found) : std::nullopt;
}

LoopLaunch LoopLaunchOf(const RunStep& loop, const LoweredProgram& program) {
  return Maker(program).Make(loop, !RoundsOf(loop, program));
}

}  // namespace tokamak
