// The graph of the HTML report. Linear in instructions, operands and arrays read by steps.

#include <optional>
#include <unordered_map>
#include <unordered_set>

#include <nlohmann/json.hpp>

#include "driver/report/page_data.h"
#include "driver/report/stored_values.h"
#include "driver/report/xla_dump.h"
#include "support/json_text.h"

namespace tokamak {
namespace {

using nlohmann::json;

class GraphBuilder {
 public:
  explicit GraphBuilder(const CompileReport& report) : report_(report), stored_(report) {}

  json Build() {
    AddComputation(*report_.module().entry(), nullptr);
    LinkOperands();
    for (size_t i = 0; i < report_.steps.size(); ++i) AddStep(i);
    for (size_t i = 0; i < report_.steps.size(); ++i) AddEdges(i);
    AddResults();
    return {{"instrs", std::move(instrs_)},
            {"computations", std::move(computations_)},
            {"lines", std::move(lines_)},
            {"steps", std::move(steps_)},
            {"edges", std::move(edges_)}};
  }

  const std::vector<const Instr*>& order() const { return order_; }

 private:
  // Ops whose computations are executed as steps. Those of the others (reduce, sort) are part of
  // the instruction.
  static bool RunsSteps(Op op) {
    return op == Op::kWhile || op == Op::kConditional || op == Op::kCall;
  }

  void AddComputation(const Computation& computation, const Instr* caller) {
    if (!seen_.insert(&computation).second) return;
    size_t number = computations_.size();
    computations_.push_back({{"name", computation.name()},
                             {"caller", caller == nullptr ? json(nullptr) : json(IdOf(*caller))}});
    std::vector<const Instr*> callers;
    for (const Instr* instr : computation.PostOrder()) {
      ids_[instr] = instrs_.size();
      json entry = {{"name", LabelOf(*instr)},
                    {"op", instr->info().name},
                    {"shape", ToString(instr->shape())},
                    {"computation", number},
                    {"steps", json::array()}};
      if (std::vector<std::string> lines = SourcePlaces(*instr); !lines.empty())
        entry["line"] = LineId(lines[0]);
      if (std::string scope = ScopeOf(*instr); !scope.empty()) entry["scope"] = std::move(scope);
      instrs_.push_back(std::move(entry));
      order_.push_back(instr);
      if (RunsSteps(instr->op())) callers.push_back(instr);
    }
    for (const Instr* instr : callers)
      for (const Computation* called : instr->called()) AddComputation(*called, instr);
  }

  void LinkOperands() {
    for (size_t i = 0; i < order_.size(); ++i) {
      json operands = json::array();
      for (const Instr* operand : order_[i]->operands()) operands.push_back(IdOf(*operand));
      instrs_[i]["operands"] = std::move(operands);
    }
  }

  // The name of the first origin without its last part: "jit(step)/transpose(jvp(layer_1))".
  std::string ScopeOf(const Instr& instr) const {
    for (const Origin* origin : report_.module().origins().Of(instr.origins())) {
      size_t slash = origin->op_name.rfind('/');
      if (slash != std::string::npos) return origin->op_name.substr(0, slash);
    }
    return {};
  }

  static std::vector<std::string> SourcePlaces(const Instr& instr) {
    return instr.origins() == OriginId::kNone ? std::vector<std::string>() : SourceLines(instr);
  }

  size_t LineId(const std::string& text) {
    auto [at, is_new] = line_ids_.try_emplace(text, lines_.size());
    if (is_new) lines_.push_back(text);
    return at->second;
  }

  json IdOf(const Instr& instr) const {
    auto found = ids_.find(&instr);
    return found == ids_.end() ? json(nullptr) : json(found->second);
  }

  json IdsOf(const std::vector<const Instr*>& instrs) const {
    json ids = json::array();
    for (const Instr* instr : instrs)
      if (auto found = ids_.find(instr); found != ids_.end()) ids.push_back(found->second);
    return ids;
  }

  // What a step that runs a whole loop computes: the instructions of its body.
  static void AddBodies(const Instr& instr, std::vector<const Instr*>& members) {
    if (!RunsSteps(instr.op())) return;
    for (const Computation* called : instr.called())
      for (const Instr* inner : called->PostOrder()) {
        if (inner->op() == Op::kParameter) continue;
        members.push_back(inner);
        AddBodies(*inner, members);
      }
  }

  void AddStep(size_t number) {
    const StepReport& step = report_.steps[number];
    std::vector<const Instr*> members;
    json parts = json::array();  // of a launch of several kernels
    json arguments = json::array();
    for (size_t kernel : step.kernels) {
      const std::vector<const Instr*>& instrs = report_.program().sources[kernel].region.instrs;
      members.insert(members.end(), instrs.begin(), instrs.end());
      if (step.kernels.size() > 1)
        parts.push_back(
            {{"name", report_.program().kernels[kernel].name}, {"instrs", IdsOf(instrs)}});
      for (const KernelArgument& argument : report_.program().sources[kernel].arguments)
        arguments.push_back(IdOf(*argument.instr));
    }
    if (step.kernels.empty()) members = step.made;
    for (size_t i = 0, count = members.size(); i < count; ++i) AddBodies(*members[i], members);
    for (const Instr* instr : members)
      if (auto found = ids_.find(instr); found != ids_.end())
        instrs_[found->second]["steps"].push_back(number);
    json lines = json::array();
    for (const std::string& line : step.lines) lines.push_back(LineId(line));
    steps_.push_back({{"instrs", IdsOf(members)},
                      {"parts", std::move(parts)},
                      {"lines", std::move(lines)},
                      {"arguments", std::move(arguments)},
                      {"made", IdsOf(step.made)}});
  }

  // The part of a step's time on memory that these bytes take.
  static double ShareOf(const StepReport& step, int64_t bytes) {
    int64_t moved = step.reads + step.writes;
    if (!step.estimate || moved == 0) return 0;
    return step.estimate->memory * static_cast<double>(bytes) / static_cast<double>(moved);
  }

  // `to`: a step, or null for the results of the program.
  void AddEdge(const Instr* value, json to) {
    const Instr* stored = stored_.StoredAs(value);
    json edge = {{"to", to}, {"value", IdOf(*stored)}, {"bytes", BytesOfLeaves(value->shape())}};
    std::optional<size_t> producer = stored_.StepOf(stored);
    edge["from"] = OrNull(producer);
    if (producer && !to.is_null()) {
      const StepReport& from = report_.steps[*producer];
      edge["us"] = ShareOf(from, BytesOfLeaves(stored->shape())) +
                   ShareOf(report_.steps[to.get<size_t>()], edge["bytes"].get<int64_t>());
    }
    edges_.push_back(std::move(edge));
  }

  void AddEdges(size_t number) {
    for (const Instr* value : report_.steps[number].read) AddEdge(value, number);
  }

  void AddResults() {
    const Instr* root = report_.module().entry()->root();
    if (root->op() != Op::kTuple) return AddEdge(root, nullptr);
    for (const Instr* value : root->operands()) AddEdge(value, nullptr);
  }

  const CompileReport& report_;
  StoredValues stored_;
  std::unordered_set<const Computation*> seen_;
  std::unordered_map<const Instr*, size_t> ids_;
  std::unordered_map<std::string, size_t> line_ids_;
  std::vector<const Instr*> order_;
  json instrs_ = json::array(), computations_ = json::array(), lines_ = json::array();
  json steps_ = json::array(), edges_ = json::array();
};

}  // namespace

json GraphOf(const CompileReport& report, std::vector<const Instr*>* instrs) {
  GraphBuilder builder(report);
  json graph = builder.Build();
  if (instrs != nullptr) *instrs = builder.order();
  return graph;
}

}  // namespace tokamak
