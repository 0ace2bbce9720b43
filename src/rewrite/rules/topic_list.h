#pragma once

#include <span>
#include <string_view>

#include "rewrite/rules/topics.h"

namespace tokamak {

// The list of all rule tables (topics.h), for the engine and for tests.
struct RuleTopic {
  std::string_view name;
  std::span<const Rule> (*rules)();
};

// The order of all rule tables. Earlier rules win.
inline constexpr RuleTopic kRuleTopics[] = {
    {"tuple", TupleRules},
    {"control", ControlRules},
    {"movement", MovementRules},
    {"broadcast", BroadcastRules},
    {"broadcast", IotaRules},
    {"broadcast", ElementOrderRules},
    {"slice", SliceRules},
    {"slice", PadRules},
    {"concatenate", ConcatenateRules},
    {"dynamic", DynamicRules},
    {"reduce", ReduceRules},
    {"reduce", WindowRules},
    {"dot", DotRules},
    {"arithmetic", ArithmeticRules},
    {"integer", IntegerRules},
    {"extremes", ExtremesRules},
    {"function", FunctionRules},
    {"complex", ComplexRules},
    {"logic", LogicRules},
    {"shift", ShiftRules},
    {"draw", DrawRules},
    {"compare", CompareRules},
    {"select", SelectRules},
    {"select", ComparisonSelectRules},
    {"select", RangeRules},
    {"convert", ConvertRules},
};

}  // namespace tokamak
