// The memory curve of the HTML report, from the buffer slices of the steps.
//
// The plan of the arena (lower/memory.h) is not part of the program, but its result is: every step
// names the slices that it reads and writes. A range of the arena is live from the step that writes
// it to the last step that reads it before an overlapping range is written. A value from before a
// loop that the loop reads is live until the loop ends.

#include <map>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "driver/report/page_data.h"
#include "driver/report/xla_dump.h"

namespace tokamak {
namespace {

using nlohmann::json;

class LiveRanges {
 public:
  explicit LiveRanges(const CompileReport& report) : program_(report.program()) {
    for (size_t i = 0; i < report.steps.size(); ++i)
      if (report.steps[i].step != nullptr) numbers_[report.steps[i].step] = i;
  }

  std::vector<json> Find() {
    Walk(program_.steps, false);
    while (!live_.empty()) End(live_.begin());
    return std::move(done_);
  }

 private:
  struct Life {
    const Instr* instr = nullptr;  // null: scratch memory
    int64_t bytes = 0;
    size_t first = 0, last = 0;
  };
  using Lives = std::map<int64_t, Life>;  // by offset

  // `inside`: the steps are part of a step of the report, a persistent loop.
  void Walk(const std::vector<RunStep>& steps, bool inside) {
    for (const RunStep& step : steps) {
      auto found = numbers_.find(&step);
      if (!inside && found != numbers_.end()) now_ = found->second;
      bool within = inside || (step.kind == StepKind::kWhile && found != numbers_.end());
      if (step.kind == StepKind::kHorizontal) {
        for (const RunStep& launch : step.blocks[0]) Touch(launch);
      } else if (!step.blocks.empty()) {
        size_t begin = now_;
        // The blocks after the second repeat the first two on alternate buffers.
        size_t blocks = step.kind == StepKind::kWhile ? 2 : step.blocks.size();
        for (size_t i = 0; i < blocks; ++i) Walk(step.blocks[i], within);
        if (step.kind == StepKind::kWhile) ExtendLoop(begin);
      } else {
        Touch(step);
      }
    }
  }

  // A value from before the loop that was read in it is live until the loop ends.
  void ExtendLoop(size_t begin) {
    for (auto& [offset, life] : live_)
      if (life.first <= begin && life.last > begin) life.last = now_;
  }

  void Touch(const RunStep& step) {
    switch (step.kind) {
      case StepKind::kLaunch: {
        const std::vector<KernelArgument>& arguments = program_.sources[step.target].arguments;
        for (bool writes : {false, true})
          for (size_t i = 0; i < arguments.size() && i < step.slices.size(); ++i)
            if (arguments[i].is_output == writes)
              Access(
                  step.slices[i], arguments[i].instr,
                  ResultShapesOf(arguments[i].instr->shape())[arguments[i].result_index].ByteSize(),
                  writes);
        return;
      }
      case StepKind::kLibrary:
        return TouchInstr(step, *program_.product_instrs[step.target]);
      case StepKind::kCall:
        return TouchInstr(step, *program_.call_instrs[step.target]);
      case StepKind::kHost:
        return TouchInstr(step, *program_.host_instrs[step.target]);
      case StepKind::kCopy:
        Access(step.slices[1], nullptr, step.bytes, false);
        Access(step.slices[0], SourceOf(step.slices[1]), step.bytes, true);
        return;
      default:
        return;
    }
  }

  // Slices of the arrays of the operands, then of the results, then of scratch memory.
  void TouchInstr(const RunStep& step, const Instr& instr) {
    size_t at = 0;
    auto touch = [&](const Instr& of, bool writes) {
      for (const Shape& shape : LeavesOf(of.shape())) {
        if (!shape.IsArray()) continue;
        if (at < step.slices.size()) Access(step.slices[at], &of, shape.ByteSize(), writes);
        ++at;
      }
    };
    for (const Instr* operand : instr.operands()) touch(*operand, false);
    touch(instr, true);
    if (step.kind == StepKind::kCall && at < step.slices.size())
      Access(step.slices[at], nullptr, program_.calls[step.target]->ScratchBytes(), true);
  }

  const Instr* SourceOf(const BufferSlice& slice) const {
    auto found = live_.find(slice.offset);
    return slice.memory != 0 || found == live_.end() ? nullptr : found->second.instr;
  }

  void Access(const BufferSlice& slice, const Instr* instr, int64_t bytes, bool writes) {
    if (slice.memory != 0 || bytes == 0) return;
    if (!writes) {
      if (auto at = live_.upper_bound(slice.offset); at != live_.begin()) {
        --at;
        if (at->first + at->second.bytes > slice.offset) at->second.last = now_;
      }
      return;
    }
    auto same = live_.find(slice.offset);
    if (same != live_.end() && same->second.instr == instr && same->second.bytes == bytes) {
      same->second.last = now_;
      return;
    }
    EndOverlapping(slice.offset, bytes);
    live_[slice.offset] = {instr, bytes, now_, now_};
  }

  void EndOverlapping(int64_t offset, int64_t bytes) {
    auto at = live_.upper_bound(offset);
    if (at != live_.begin() && std::prev(at)->first + std::prev(at)->second.bytes > offset) --at;
    while (at != live_.end() && at->first < offset + bytes) at = End(at);
  }

  Lives::iterator End(Lives::iterator at) {
    const Life& life = at->second;
    json entry = {
        {"offset", at->first}, {"bytes", life.bytes}, {"first", life.first}, {"last", life.last}};
    entry["name"] = life.instr == nullptr ? "scratch memory" : LabelOf(*life.instr);
    if (life.instr != nullptr)
      if (std::vector<std::string> lines = SourceLines(*life.instr); !lines.empty())
        entry["line"] = lines[0];
    done_.push_back(std::move(entry));
    return live_.erase(at);
  }

  const LoweredProgram& program_;
  std::unordered_map<const RunStep*, size_t> numbers_;
  Lives live_;
  std::vector<json> done_;
  size_t now_ = 0;  // number of the step, in the report
};

int64_t BytesOfAll(const std::vector<const Instr*>& instrs) {
  int64_t bytes = 0;
  for (const Instr* instr : instrs) bytes += BytesOfLeaves(instr->shape());
  return bytes;
}

}  // namespace

json MemoryOf(const CompileReport& report) {
  const Computation& entry = *report.module().entry();
  std::vector<const Instr*> arguments(entry.parameters().begin(), entry.parameters().end());
  return {{"arguments_bytes", BytesOfAll(arguments)},
          {"results_bytes", BytesOfLeaves(entry.root()->shape())},
          {"constants_bytes", BytesOfAll(report.program().constants)},
          {"arena_bytes", report.program().arena_bytes},
          {"lives", LiveRanges(report).Find()}};
}

}  // namespace tokamak
