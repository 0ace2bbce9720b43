#include "driver/compile/device_loops.h"

#include <algorithm>

#include "analysis/loops.h"

namespace tokamak {
namespace {

using Phase = cuda::LoopShape::Phase;

// A byte range that a step reads or writes.
struct Touch {
  BufferSlice slice;
  int64_t bytes = 0;
  bool writes = false;
};

// Whether two accesses must not overlap in time. Parameters, results and constants may alias.
bool Conflict(const Touch& x, const Touch& y) {
  if (!x.writes && !y.writes) return false;
  if (x.slice.memory != y.slice.memory) return x.slice.memory != 0 && y.slice.memory != 0;
  return x.slice.offset < y.slice.offset + y.bytes && y.slice.offset < x.slice.offset + x.bytes;
}

// The accesses of steps to their slices, in the order of a launch's pointers.
std::vector<Touch> TouchesOf(const std::vector<RunStep>& steps, const LoweredProgram& program) {
  std::vector<Touch> touches;
  auto add = [&](const RunStep& launch) {
    const Kernel& kernel = program.kernels[launch.target];
    for (size_t i = 0; i < launch.slices.size(); ++i) {
      const Array& array = kernel.arrays[i];
      touches.push_back(
          {launch.slices[i], array.size * BytesOf(array.type), array.access != Access::kRead});
    }
  };
  for (const RunStep& step : steps) {
    if (step.kind == StepKind::kCopy) {
      for (const BufferSlice& slice : step.slices)
        touches.push_back({slice, step.bytes, &slice == step.slices.data()});
    } else if (step.kind == StepKind::kHorizontal) {
      for (const RunStep& launch : step.blocks[0]) add(launch);
    } else {
      add(step);
    }
  }
  return touches;
}

class LoopLaunchBuilder {
 public:
  explicit LoopLaunchBuilder(const LoweredProgram& program) : program_(program) {}

  LoopLaunch Make(const RunStep& loop, bool has_condition) {
    bool alternates_buffers = loop.blocks.size() > 3;
    cuda::LoopShape shape;
    shape.alternates_buffers = alternates_buffers;
    if (has_condition) {
      Add(loop.blocks[0], &shape.condition);
      AddSlice(loop.slices[0]);
      open_ = {{loop.slices[0], 1, false}};  // after the barrier all blocks read it
    }
    Add(loop.blocks[1], &shape.body);
    if (!alternates_buffers) Add(loop.blocks[2], &shape.body);
    if (alternates_buffers) {
      // The same kernels on other slices.
      std::vector<cuda::HorizontalKernel> entries = made_.form.entries;
      if (has_condition) {
        Add(loop.blocks[3], nullptr);
        AddSlice(loop.slices[1]);
      }
      Add(loop.blocks[4], nullptr);
      made_.form.entries = std::move(entries);
      open_.clear();
      Add(loop.blocks[2], &shape.closing);
    }
    made_.form.loop = std::move(shape);
    made_.form.label = "loop of " + made_.form.label;
    return std::move(made_);
  }

 private:
  void AddSlice(const BufferSlice& slice) { made_.slices.push_back(slice); }

  void AddLaunch(const RunStep& launch, std::vector<Touch>& touches) {
    const Kernel& kernel = program_.kernels[launch.target];
    made_.form.label += (made_.form.label.empty() ? "" : "+") + kernel.name;
    made_.form.entries.push_back({&kernel, launch.grid});
    for (size_t i = 0; i < launch.slices.size(); ++i) {
      const Array& array = kernel.arrays[i];
      AddSlice(launch.slices[i]);
      touches.push_back(
          {launch.slices[i], array.size * BytesOf(array.type), array.access != Access::kRead});
    }
  }

  // `phases` may be null: then only slices and kernels are added.
  void Add(const std::vector<RunStep>& steps, std::vector<Phase>* phases) {
    for (const RunStep& step : steps) {
      Phase phase;
      std::vector<Touch> touches;
      if (step.kind == StepKind::kCopy) {
        phase.bytes = step.bytes;
        for (const BufferSlice& slice : step.slices) {
          touches.push_back({slice, step.bytes, &slice == step.slices.data()});
          AddSlice(slice);
        }
      } else if (step.kind == StepKind::kHorizontal) {
        for (const RunStep& launch : step.blocks[0]) AddLaunch(launch, touches);
        phase.entries = step.blocks[0].size();
      } else {
        AddLaunch(step, touches);
        phase.entries = 1;
      }
      if (phases == nullptr) continue;
      phase.needs_barrier = std::any_of(touches.begin(), touches.end(), [&](const Touch& touch) {
        return std::any_of(open_.begin(), open_.end(),
                           [&](const Touch& other) { return Conflict(touch, other); });
      });
      if (phase.needs_barrier) open_.clear();
      open_.insert(open_.end(), touches.begin(), touches.end());
      phases->push_back(phase);
    }
  }

  const LoweredProgram& program_;
  LoopLaunch made_;
  std::vector<Touch> open_;  // accesses since the last grid barrier
};

}  // namespace

bool MustFollow(const RunStep& copy, const RunStep& before) {
  Touch to{copy.slices[0], copy.bytes, true}, from{copy.slices[1], copy.bytes, false};
  Touch to_before{before.slices[0], before.bytes, true};
  return Conflict(from, to_before) || Conflict(to, {before.slices[1], before.bytes, false});
}

std::optional<std::vector<BufferSlice>> WithoutCopy(const RunStep& loop,
                                                    const LoweredProgram& program,
                                                    const std::vector<BufferSlice>& slices,
                                                    const RunStep& copy) {
  // Whether odd iterations write the carried value to this buffer.
  bool alternates_buffers =
      loop.blocks.size() > 3 && std::ranges::any_of(loop.blocks[2], [&](const RunStep& closing) {
        return closing.slices[0] == copy.slices[0] && closing.bytes == copy.bytes;
      });
  if (!alternates_buffers) return std::nullopt;
  Touch to{copy.slices[0], copy.bytes, true}, from{copy.slices[1], copy.bytes, false};
  std::vector<Touch> touches = TouchesOf(loop.blocks[1], program);
  for (const Touch& touch : touches) {
    bool reads = !touch.writes && touch.slice == to.slice && touch.bytes <= to.bytes;
    if (Conflict(touch, from) || (Conflict(touch, to) && !reads)) return std::nullopt;
  }
  std::vector<BufferSlice> first = slices;
  for (size_t i = 0; i < touches.size(); ++i)
    if (first[i] == to.slice) first[i] = from.slice;
  return first;
}

std::optional<uint64_t> TripCountOf(const RunStep& loop, const LoweredProgram& program) {
  auto* instr = const_cast<Instr*>(program.loops[loop.target]);  // not modified
  std::optional<WhileLoop> found = LoopOf(instr);
  return found ? TripCount(*found) : std::nullopt;
}

LoopLaunch LoopLaunchOf(const RunStep& loop, const LoweredProgram& program) {
  return LoopLaunchBuilder(program).Make(loop, !TripCountOf(loop, program));
}

}  // namespace tokamak
