// CUDA graphs: many steps, enqueued at once. Pointers are node parameters. Pointers that recur from
// run to run get a graph of all steps, which is launched unchanged. Other runs update the nodes
// whose pointers have changed since the last such run; for them a long sequence of steps is divided
// into several graphs (chunks): the device runs one while the host updates the next.

#include <algorithm>

#include "backend/cuda/driver_gpu.h"
#include "backend/cuda/launch_parameters.h"
#include "backend/cuda/loaded_code.h"
#include "backend/cuda/pointer_sets.h"

namespace tokamak::cuda {

// A CUDA graph and its nodes.
struct DriverGpu::GraphChunk {
  GraphChunk(const DriverApi& api, Handle context, std::span<const GraphStep> given)
      : api(api), context(context), steps(given.begin(), given.end()) {
    for (const GraphStep& step : steps) pointer_count += step.pointers;
  }
  GraphChunk(const GraphChunk&) = delete;
  GraphChunk& operator=(const GraphChunk&) = delete;
  ~GraphChunk() {
    api.set_current(context);
    if (instance != nullptr) api.destroy_instance(instance);
    if (graph != nullptr) api.destroy_graph(graph);
  }

  const DriverApi& api;
  Handle context;
  std::vector<GraphStep> steps;
  std::vector<Handle> nodes;    // per step
  std::vector<void*> pointers;  // of the last run
  size_t pointer_count = 0;
  Handle graph = nullptr, instance = nullptr;
};

class DriverGpu::Graph final : public StepGraph {
 public:
  std::vector<GraphStep> steps;
  std::vector<std::unique_ptr<GraphChunk>> chunks;
  PointerSets recurring;
  std::vector<std::unique_ptr<GraphChunk>> whole;  // per slot of recurring: all steps
};

namespace {

// Steps of the first chunk, which the device waits for, and maximum steps of the others: updating
// the pointers of twice as many takes less time than running them. If the host is slower than the
// device, the device runs the last chunk alone, so chunks shrink towards the end.
constexpr size_t kFirstGraphChunk = 8, kMaxGraphChunk = 64;

std::vector<size_t> ChunkSizesOf(size_t steps) {
  std::vector<size_t> chunks;
  for (size_t most = kFirstGraphChunk; steps > 0; most = std::min(2 * most, kMaxGraphChunk)) {
    size_t chunk = std::min(most, std::max(kFirstGraphChunk, steps * 3 / 5));
    // Avoids a short last chunk.
    if (steps - std::min(chunk, steps) < kFirstGraphChunk) chunk = steps;
    chunks.push_back(chunk);
    steps -= chunk;
  }
  return chunks;
}

KernelNode NodeOf(const LoadedCode& code, LaunchParameters& parameters) {
  KernelNode node;
  node.function = code.function;
  node.grid[0] = code.grid;
  for (size_t i = 0; i < 3; ++i) node.block[i] = static_cast<unsigned>(code.threads[i]);
  node.dynamic_bytes = code.dynamic_bytes;
  node.parameters = parameters.data();
  return node;
}

CopyNode CopyOf(const GraphStep& step, std::span<void* const> pointers) {
  CopyNode node;
  node.to.device = reinterpret_cast<uintptr_t>(pointers[0]);
  node.from.device = reinterpret_cast<uintptr_t>(pointers[1]);
  node.width = step.bytes;
  return node;
}

}  // namespace

Result<std::unique_ptr<StepGraph>> DriverGpu::MakeGraph(std::span<const GraphStep> steps) {
  for (const GraphStep& step : steps) {
    bool in_memory = step.code != nullptr && static_cast<const LoadedCode*>(step.code)->pointers ==
                                                 LaunchSource::Pointers::kMemory;
    if (in_memory) return std::unique_ptr<StepGraph>();
  }
  auto graph = std::make_unique<Graph>();
  graph->steps.assign(steps.begin(), steps.end());
  for (size_t count : ChunkSizesOf(steps.size())) {
    graph->chunks.push_back(std::make_unique<GraphChunk>(api_, context_, steps.first(count)));
    steps = steps.subspan(count);
  }
  return std::unique_ptr<StepGraph>(std::move(graph));
}

// Each node depends on the previous one, as in a stream.
Status DriverGpu::FillGraph(GraphChunk& graph, std::span<void* const> pointers) {
  if (graph.graph != nullptr) api_.destroy_graph(graph.graph);  // of an attempt that failed
  graph.graph = nullptr;
  graph.nodes.clear();
  TOK_RETURN_IF_ERROR(Check(api_.create_graph(&graph.graph, 0), "a graph"));
  graph.pointers.assign(pointers.begin(), pointers.end());
  for (const GraphStep& step : graph.steps) {
    std::span<void* const> own = pointers.first(step.pointers);
    pointers = pointers.subspan(step.pointers);
    Handle node = nullptr;
    const Handle* before = graph.nodes.empty() ? nullptr : &graph.nodes.back();
    size_t count = graph.nodes.empty() ? 0 : 1;
    int result = 0;
    if (step.code != nullptr) {
      const auto& code = *static_cast<const LoadedCode*>(step.code);
      LaunchParameters parameters;
      TOK_RETURN_IF_ERROR(parameters.Set(api_, code, own));
      KernelNode kernel = NodeOf(code, parameters);
      result = api_.add_kernel(&node, graph.graph, before, count, &kernel);
    } else {
      CopyNode copy = CopyOf(step, own);
      result = api_.add_copy(&node, graph.graph, before, count, &copy, context_);
    }
    TOK_RETURN_IF_ERROR(Check(result, "a step of a graph"));
    graph.nodes.push_back(node);
  }
  return Check(api_.instantiate(&graph.instance, graph.graph, 0), "a graph");
}

Status DriverGpu::UpdateGraph(GraphChunk& graph, std::span<void* const> pointers) {
  size_t at = 0;
  for (size_t i = 0; i < graph.steps.size(); ++i) {
    const GraphStep& step = graph.steps[i];
    std::span<void* const> own = pointers.subspan(at, step.pointers);
    auto known = graph.pointers.begin() + static_cast<std::ptrdiff_t>(at);
    at += step.pointers;
    if (std::equal(own.begin(), own.end(), known)) continue;
    int result = 0;
    if (step.code != nullptr) {
      const auto& code = *static_cast<const LoadedCode*>(step.code);
      LaunchParameters parameters;
      TOK_RETURN_IF_ERROR(parameters.Set(api_, code, own));
      KernelNode kernel = NodeOf(code, parameters);
      result = api_.set_kernel(graph.instance, graph.nodes[i], &kernel);
    } else {
      CopyNode copy = CopyOf(step, own);
      result = api_.set_copy(graph.instance, graph.nodes[i], &copy, context_);
    }
    TOK_RETURN_IF_ERROR(Check(result, "a step of a graph"));
    std::copy(own.begin(), own.end(), known);
  }
  return Ok();
}

Status DriverGpu::LaunchGraph(const GraphChunk& graph) {
  for (const GraphStep& step : graph.steps)
    if (step.code != nullptr) NoteLaunch(static_cast<const LoadedCode*>(step.code)->label);
  return Check(api_.launch_graph(graph.instance, stream_), "a graph");
}

Status DriverGpu::RunGraph(StepGraph& given, std::span<void* const> pointers) {
  auto& graph = static_cast<Graph&>(given);
  TOK_RETURN_IF_ERROR(Enter());
  PointerSets::Kind kind = graph.recurring.Find(pointers);
  if (kind == PointerSets::Kind::kAdded) {
    auto whole = std::make_unique<GraphChunk>(api_, context_, graph.steps);
    if (Status filled = FillGraph(*whole, pointers); !filled.ok()) {
      graph.recurring.Drop();
      return filled;
    }
    graph.whole.resize(std::max(graph.whole.size(), graph.recurring.slot() + 1));
    graph.whole[graph.recurring.slot()] = std::move(whole);
  }
  if (kind != PointerSets::Kind::kOther) return LaunchGraph(*graph.whole[graph.recurring.slot()]);
  for (const std::unique_ptr<GraphChunk>& chunk : graph.chunks) {
    std::span<void* const> own = pointers.first(chunk->pointer_count);
    pointers = pointers.subspan(chunk->pointer_count);
    TOK_RETURN_IF_ERROR(chunk->instance == nullptr ? FillGraph(*chunk, own)
                                                   : UpdateGraph(*chunk, own));
    TOK_RETURN_IF_ERROR(LaunchGraph(*chunk));
  }
  return Ok();
}

}  // namespace tokamak::cuda
