#include "fusion/unit_graph.h"

#include <algorithm>

#include "analysis/effects.h"
#include "fusion/instr_predicates.h"
#include "support/alignment.h"
#include "support/ceil_div.h"

namespace tokamak {
namespace {

// Whether the instruction must stay in program order, without looking into callees: loops and
// branches always count.
bool HasEffect(const Instr& instr) {
  return instr.op() != Op::kParameter && !IsAlias(instr) && !IsPlain(instr);
}

int64_t BytesOf(const Shape& shape) {
  if (shape.IsArray()) return shape.HasDynamicDims() ? 0 : shape.ByteSize();
  int64_t bytes = 0;
  if (shape.IsTuple())
    for (const Shape& element : shape.elements()) bytes += BytesOf(element);
  return bytes;
}

// The buffers that an alias refers to.
std::vector<int> BuffersOfAlias(const Instr& instr, const InstrMap<std::vector<int>>& buffers) {
  if (instr.op() == Op::kGetTupleElement) {
    // Through optimization barriers, to one element of a tuple.
    const Instr* tuple = instr.operand(0);
    while (tuple->op() == Op::kOptimizationBarrier && tuple->operands().size() == 1)
      tuple = tuple->operand(0);
    auto index = static_cast<size_t>(instr.attrs<TupleIndexAttrs>().index);
    bool known = tuple->op() == Op::kTuple || tuple->op() == Op::kOptimizationBarrier;
    if (known && index < tuple->operands().size()) return buffers[tuple->operand(index)];
    return buffers[tuple];
  }
  std::vector<int> all;
  bool several = instr.op() == Op::kTuple || instr.op() == Op::kOptimizationBarrier;
  for (const Instr* operand : instr.operands()) {
    all.insert(all.end(), buffers[operand].begin(), buffers[operand].end());
    if (!several) break;
  }
  return all;
}

}  // namespace

UnitGraph::UnitGraph(const ComputationPlan& plan)
    : plan_(plan),
      num_kernels_(static_cast<int>(plan.kernels.size())),
      order_(plan.computation->PostOrder()),
      unit_of_(*plan.computation, -1) {
  AddUnits();
  AddDependencies();
  AddBuffers();
}

void UnitGraph::AddUnits() {
  for (const Instr* instr : order_) {
    if (int kernel = plan_.kernel_of[instr]; kernel >= 0) {
      unit_of_[instr] = kernel;
    } else if (!plan_.is_internal[instr]) {
      unit_of_[instr] = num_kernels_ + static_cast<int>(instr_of_.size());
      instr_of_.push_back(instr);
    }
  }
  dependencies_.resize(static_cast<size_t>(num_kernels_) + instr_of_.size());
}

void UnitGraph::AddDependencies() {
  auto add = [&](int unit, const Instr* other) {
    int needed = unit_of_[other];
    if (needed >= 0 && needed != unit) dependencies_[static_cast<size_t>(unit)].push_back(needed);
  };
  for (int k = 0; k < num_kernels_; ++k) {
    const PlannedKernel& planned = plan_.kernels[static_cast<size_t>(k)];
    for (const Instr* input : planned.region.inputs) add(k, input);
    for (const auto& [argument, old] : planned.built.must_alias) add(k, old);
    for (const Instr* root : planned.region.roots)
      if (root->has_extras())
        for (const Instr* before : root->extras().control_predecessors) add(k, before);
  }
  const Instr* last = nullptr;
  for (size_t i = 0; i < instr_of_.size(); ++i) {
    const Instr& instr = *instr_of_[i];
    int unit = num_kernels_ + static_cast<int>(i);
    for (const Instr* operand : instr.operands()) add(unit, operand);
    if (instr.has_extras())
      for (const Instr* before : instr.extras().control_predecessors) add(unit, before);
    if (!HasEffect(instr)) continue;
    if (last != nullptr) add(unit, last);
    last = &instr;
    required_units_.push_back(unit);
  }
  required_units_.push_back(unit_of_[plan_.computation->root()]);
}

void UnitGraph::AddBuffers() {
  InstrMap<std::vector<int>> buffers(*plan_.computation);
  for (const Instr* instr : order_) {
    int unit = unit_of_[instr];
    if (unit < 0) continue;
    if (IsAlias(*instr) && unit >= num_kernels_) {
      buffers[instr] = BuffersOfAlias(*instr, buffers);
      continue;
    }
    bool outside_kernels = instr->op() == Op::kParameter || instr->op() == Op::kConstant;
    buffers[instr] = {static_cast<int>(buffers_.size())};
    buffers_.push_back(
        {.bytes = outside_kernels ? 0 : RoundUp(BytesOf(instr->shape()), kArrayAlignment),
         .unit = unit});
  }
  for (int buffer : buffers[plan_.computation->root()])
    buffers_[static_cast<size_t>(buffer)].is_result = true;
  AddReads(buffers);
  AddInPlaceReuses(buffers);
}

void UnitGraph::AddReads(const InstrMap<std::vector<int>>& buffers) {
  reads_.resize(dependencies_.size());
  auto read = [&](int unit, const Instr* instr) {
    std::vector<int>& reads = reads_[static_cast<size_t>(unit)];
    for (int buffer : buffers[instr])
      if (buffers_[static_cast<size_t>(buffer)].bytes > 0) reads.push_back(buffer);
  };
  for (int k = 0; k < num_kernels_; ++k) {
    const PlannedKernel& planned = plan_.kernels[static_cast<size_t>(k)];
    for (const Instr* input : planned.region.inputs) read(k, input);
    for (const auto& [argument, old] : planned.built.must_alias) read(k, old);
  }
  for (size_t i = 0; i < instr_of_.size(); ++i)
    if (!IsAlias(*instr_of_[i]))
      for (const Instr* operand : instr_of_[i]->operands())
        read(num_kernels_ + static_cast<int>(i), operand);
}

void UnitGraph::AddInPlaceReuses(const InstrMap<std::vector<int>>& buffers) {
  in_place_reuses_.resize(static_cast<size_t>(num_kernels_));
  for (int k = 0; k < num_kernels_; ++k) {
    const BuiltKernel& built = plan_.kernels[static_cast<size_t>(k)].built;
    auto reuse = [&](const Instr* input, size_t output) {
      const std::vector<int>&from = buffers[input], &to = buffers[built.arguments[output].instr];
      if (from.size() != 1 || to.size() != 1) return;
      int64_t bytes = buffers_[static_cast<size_t>(from[0])].bytes;
      if (bytes > 0 && bytes == buffers_[static_cast<size_t>(to[0])].bytes)
        in_place_reuses_[static_cast<size_t>(k)].push_back({from[0], to[0]});
    };
    for (auto [input, output] : built.may_alias) reuse(built.arguments[input].instr, output);
    for (const auto& [output, old] : built.must_alias) reuse(old, output);
  }
}

std::vector<int> UnitGraph::ScheduleOf(const std::vector<int>& launch_group_of) const {
  std::vector<std::vector<int>> parts;
  for (int k = 0; k < num_kernels_; ++k) {
    int group = launch_group_of[static_cast<size_t>(k)];
    if (group < 0) continue;
    if (static_cast<size_t>(group) >= parts.size()) parts.resize(static_cast<size_t>(group) + 1);
    parts[static_cast<size_t>(group)].push_back(k);
  }
  std::vector<int> positions(dependencies_.size(), -1), open;
  std::vector<bool> waiting(dependencies_.size());
  int next = 0;
  for (int required : required_units_) {
    open.push_back(required);
    while (!open.empty()) {
      int unit = open.back();
      if (positions[static_cast<size_t>(unit)] >= 0) {
        open.pop_back();
        continue;
      }
      int group = unit < num_kernels_ ? launch_group_of[static_cast<size_t>(unit)] : -1;
      size_t before = open.size();
      auto look = [&](int part) {
        for (int dependency : dependencies(part))
          if (positions[static_cast<size_t>(dependency)] < 0) open.push_back(dependency);
      };
      if (group < 0) look(unit);
      if (group >= 0)
        std::for_each(parts[static_cast<size_t>(group)].begin(),
                      parts[static_cast<size_t>(group)].end(), look);
      if (open.size() > before) {
        if (waiting[static_cast<size_t>(unit)]) return {};
        waiting[static_cast<size_t>(unit)] = true;
        continue;
      }
      if (group < 0) positions[static_cast<size_t>(unit)] = next;
      if (group >= 0)
        for (int part : parts[static_cast<size_t>(group)])
          positions[static_cast<size_t>(part)] = next;
      ++next;
    }
  }
  return positions;
}

struct UnitGraph::LiveRanges {
  // Per buffer: positions of its definition and of its last read, and the unit of the last read; -1
  // if several units read it there.
  std::vector<int> def, last, consumer;
  std::vector<int64_t> bytes;  // that it occupies in temporary memory
  std::vector<int64_t> saved;  // by position: bytes of outputs that reuse the buffer of an input
};

UnitGraph::LiveRanges UnitGraph::LiveRangesOf(const std::vector<int>& positions, int end) const {
  LiveRanges ranges;
  ranges.consumer.assign(buffers_.size(), -1);
  ranges.saved.assign(static_cast<size_t>(end) + 1, 0);
  for (const Buffer& buffer : buffers_) {
    ranges.def.push_back(positions[static_cast<size_t>(buffer.unit)]);
    ranges.last.push_back(buffer.is_result ? end : ranges.def.back());
    ranges.bytes.push_back(buffer.is_result ? 0 : buffer.bytes);
  }
  for (size_t unit = 0; unit < reads_.size(); ++unit) {
    if (positions[unit] < 0) continue;
    for (int read : reads_[unit]) {
      auto v = static_cast<size_t>(read);
      if (positions[unit] < ranges.last[v]) continue;
      bool is_first = positions[unit] > ranges.last[v];
      if (is_first) ranges.consumer[v] = static_cast<int>(unit);
      if (!is_first && ranges.consumer[v] != static_cast<int>(unit)) ranges.consumer[v] = -1;
      ranges.last[v] = positions[unit];
    }
  }
  ReuseInputBuffers(positions, ranges);
  return ranges;
}

// An output that reuses the buffer of an input whose last read is in the same kernel takes no extra
// bytes. If that output is a result or ends up in one, the input lies in the result's memory too.
void UnitGraph::ReuseInputBuffers(const std::vector<int>& positions, LiveRanges& ranges) const {
  std::vector<std::pair<int, int>> order;  // in reverse order
  for (int k = 0; k < num_kernels_; ++k)
    if (positions[static_cast<size_t>(k)] >= 0)
      order.emplace_back(-positions[static_cast<size_t>(k)], k);
  std::sort(order.begin(), order.end());
  std::vector<bool> in_result, dies(buffers_.size()), is_over(buffers_.size());
  for (const Buffer& buffer : buffers_) in_result.push_back(buffer.is_result);
  for (auto [minus, k] : order) {
    for (const InPlaceReuse& reuse : in_place_reuses_[static_cast<size_t>(k)]) {
      auto from = static_cast<size_t>(reuse.input), to = static_cast<size_t>(reuse.output);
      if (dies[from] || is_over[to] || ranges.last[from] != -minus || ranges.consumer[from] != k)
        continue;
      dies[from] = is_over[to] = true;
      in_result[from] = in_result[to];
      if (in_result[to]) ranges.bytes[from] = 0;
      if (!in_result[to]) ranges.saved[static_cast<size_t>(-minus)] += buffers_[to].bytes;
    }
  }
}

UnitGraph::Memory UnitGraph::MemoryOf(const std::vector<int>& positions) const {
  // A cyclic plan is rejected later: report no memory.
  if (positions.empty()) return {0, 0, std::vector<int64_t>(static_cast<size_t>(num_kernels_), 0)};
  int end = 0;
  for (int position : positions) end = std::max(end, position + 1);
  LiveRanges ranges = LiveRangesOf(positions, end);
  std::vector<int64_t> change(static_cast<size_t>(end) + 2, 0);
  for (size_t v = 0; v < buffers_.size(); ++v) {
    if (ranges.def[v] < 0) continue;
    change[static_cast<size_t>(ranges.def[v])] += ranges.bytes[v];
    change[static_cast<size_t>(ranges.last[v]) + 1] -= ranges.bytes[v];
  }
  Memory memory;
  int64_t live = 0;
  for (int at = 0; at <= end; ++at) {
    live += change[static_cast<size_t>(at)];
    int64_t bytes = live - ranges.saved[static_cast<size_t>(at)];
    if (bytes <= memory.peak_bytes) continue;
    memory.peak_bytes = bytes;
    memory.peak_position = at;
  }
  memory.bytes_at_peak.assign(static_cast<size_t>(num_kernels_), 0);
  for (size_t v = 0; v < buffers_.size(); ++v) {
    if (ranges.def[v] < 0 || ranges.def[v] > memory.peak_position ||
        ranges.last[v] < memory.peak_position)
      continue;
    if (int producer = buffers_[v].unit; producer < num_kernels_)
      memory.bytes_at_peak[static_cast<size_t>(producer)] += ranges.bytes[v];
    if (int consumer = ranges.consumer[v]; consumer >= 0 && consumer < num_kernels_)
      memory.bytes_at_peak[static_cast<size_t>(consumer)] += ranges.bytes[v];
  }
  return memory;
}

}  // namespace tokamak
