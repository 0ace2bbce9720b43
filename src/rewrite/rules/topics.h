#pragma once

#include <vector>

#include "rewrite/rules.h"

// The table of algebraic rules, by topic: one .cc file each. A new file gets a line here and one in
// topic_list.h.

namespace tokamak {

std::vector<Rule> ArithmeticRules();
std::vector<Rule> BroadcastRules();
std::vector<Rule> CompareRules();
std::vector<Rule> ComplexRules();
std::vector<Rule> ConcatenateRules();
std::vector<Rule> ControlRules();
std::vector<Rule> ConvertRules();
std::vector<Rule> DotRules();
std::vector<Rule> DynamicRules();
std::vector<Rule> ExtremesRules();
std::vector<Rule> FastMathRules();
std::vector<Rule> FunctionRules();
std::vector<Rule> IntegerRules();
std::vector<Rule> LogicRules();
std::vector<Rule> MovementRules();
std::vector<Rule> SelectRules();
std::vector<Rule> ReduceRules();
std::vector<Rule> ShiftRules();
std::vector<Rule> SliceRules();
std::vector<Rule> TupleRules();

}  // namespace tokamak
