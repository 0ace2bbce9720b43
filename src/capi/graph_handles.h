#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <tokamak/c_api.h>

#include "capi/graph_edit.h"
#include "capi/graph_plan.h"
#include "capi/graph_program.h"

// The contents of tok_graph and tok_plan.

namespace tokamak {

// Descriptions for C, with what they point to.
struct DescribedInstr {
  tok_instruction in_c{};
  std::string shape, scope, line;
  std::vector<int64_t> dims, operands, users;
  std::vector<size_t> called;
};
struct DescribedComputation {
  tok_computation in_c{};
  std::vector<int64_t> instrs, parameters;
};

}  // namespace tokamak

struct tok_graph {
  explicit tok_graph(tokamak::GraphProgram given) : program(std::move(given)) {}

  tokamak::GraphProgram program;
  // Caches of what the functions returned, cleared by edits.
  std::string text, json, attributes;
  std::vector<int64_t> path, results;
  std::vector<tokamak::GraphMatch> matches;
  std::vector<tok_match> matches_in_c;
  std::map<int64_t, std::unique_ptr<tokamak::DescribedInstr>> instrs;
  std::map<size_t, std::unique_ptr<tokamak::DescribedComputation>> computations;

  void SetProgram(tokamak::GraphProgram edited) {
    program = std::move(edited);
    json.clear();
    instrs.clear();
    computations.clear();
  }
};

struct tok_plan {
  std::unique_ptr<tokamak::GraphPlan> plan;
  std::vector<tok_step> steps;
  std::string json, decisions, explained;
  std::string why_text, why_json, boundary_text, boundary_json, diff_text, diff_json;
};
