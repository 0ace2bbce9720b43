#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "capi/graph_program.h"

namespace tokamak {

// The instructions and computations of a program, without attributes:
//   {"name", "entry", "computations": [{"name", "root", "parameters"}], "lines": [...],
//    "scopes": [...], "shapes": [{"text", "type", "dims"} or {"text", "elements": [...]}],
//    "instrs": [[number, name, op, shape, computation, operands, called, lines, scope]]}
// Shapes, computations, lines and scopes of instructions are indices; scope is -1 if unknown.
nlohmann::json JsonOf(const GraphProgram& program);

// The attributes of an instruction: those of its op, its frontend attributes and its sharding, by
// their names in HLO text. Numbers, booleans and lists of numbers are JSON values; others are text.
nlohmann::json AttributesOf(const Instr& instr);

// Where the instruction was traced: "jit(f)/jvp(layer)/tanh"; empty if unknown.
std::string ScopeOf(const Instr& instr);

}  // namespace tokamak
