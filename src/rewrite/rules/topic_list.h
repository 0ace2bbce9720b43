#pragma once

#include <string_view>
#include <vector>

#include "rewrite/rules/topics.h"

namespace tokamak {

struct RuleTopic {
  std::string_view name;
  std::vector<Rule> (*rules)();
};

// Earlier rules win.
inline constexpr RuleTopic kRuleTopics[] = {
    {"tuple", TupleRules},       {"control", ControlRules},
    {"movement", MovementRules}, {"broadcast", BroadcastRules},
    {"slice", SliceRules},       {"concatenate", ConcatenateRules},
    {"dynamic", DynamicRules},   {"reduce", ReduceRules},
    {"dot", DotRules},           {"arithmetic", ArithmeticRules},
    {"integer", IntegerRules},   {"extremes", ExtremesRules},
    {"function", FunctionRules}, {"complex", ComplexRules},
    {"logic", LogicRules},       {"shift", ShiftRules},
    {"compare", CompareRules},   {"select", SelectRules},
    {"convert", ConvertRules},   {"fast-math", FastMathRules},
};

}  // namespace tokamak
