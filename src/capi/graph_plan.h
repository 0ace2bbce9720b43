#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "capi/graph_program.h"
#include "driver/report/compile_report.h"
#include "driver/report/explain.h"
#include "support/result.h"

namespace tokamak {

// How a program is compiled, related to the instructions of the program by their numbers: the
// steps that compute each instruction, and the decisions about each pair of steps. Instructions
// carry their number through the passes as an origin (ir/origin.h).
class GraphPlan {
 public:
  static Result<std::unique_ptr<GraphPlan>> Make(const GraphProgram& program,
                                                 const ExplainRequest& request);

  const CompileReport& report() const { return report_; }
  const ExplainRequest& request() const { return request_; }
  // The program before the passes, for comparisons of plans.
  const Module& before() const { return *before_; }

  // Instructions of the program that the step computes, by number, in ascending order.
  const std::vector<int64_t>& InstrsOf(size_t step) const { return instrs_of_[step]; }
  // Steps that compute the instruction, in execution order.
  const std::vector<size_t>& StepsOf(int64_t instr) const;

  // {"report": ..., "graph": ...}: the compile report without its decisions, and the program after
  // the passes (driver/report/page_data.h) with "sources", the numbers of the instructions that
  // each of its instructions was made from.
  nlohmann::json Json() const;
  // All decisions, each with "instrs" (numbers, of the subject first) and "steps".
  nlohmann::json Decisions() const;

  // Why instructions share the step, and what keeps its neighbours apart: {"text", "together":
  // [decision], "apart": [{"step", "reads", "array", "bytes", "text", "decisions"}]}; decisions are
  // numbers in Decisions().
  nlohmann::json Why(size_t step) const;
  // Why no step computes both; null if one does, or if no step computes one of them.
  nlohmann::json Boundary(int64_t producer, int64_t consumer) const;

 private:
  // An array that one step stores and another reads.
  struct StepEdge {
    size_t producer, consumer;
    const Instr* array;
  };

  GraphPlan() = default;
  void IndexInstrs();
  void IndexEdges();
  void IndexDecisions();
  void AddMember(const Instr& instr, size_t step);
  const std::vector<int64_t>& SourcesOf(OriginId origins) const;
  const std::vector<size_t>& StepsNamed(const std::string& label) const;
  std::string Reason(size_t producer, size_t consumer, const std::string& array) const;
  std::string KindReason(size_t producer, size_t consumer) const;
  const std::vector<size_t>& Between(size_t producer, size_t consumer) const;
  std::string TextOfDecision(size_t number) const;
  nlohmann::json Apart(const StepEdge& edge, bool reads) const;

  CompileReport report_;
  ExplainRequest request_;
  std::unique_ptr<Module> before_;
  std::vector<std::string> facts_;  // per decision: what would change it
  std::vector<std::vector<int64_t>> instrs_of_;
  std::unordered_map<int64_t, std::vector<size_t>> steps_of_;
  std::unordered_map<std::string, std::vector<size_t>> named_;  // steps by label of a member
  std::vector<StepEdge> edges_;
  std::vector<std::vector<size_t>> inside_;  // decisions by step
  std::map<std::pair<size_t, size_t>, std::vector<size_t>> between_;
  mutable std::unordered_map<OriginId, std::vector<int64_t>> sources_;
};

}  // namespace tokamak
