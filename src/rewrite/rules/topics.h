#pragma once

#include <span>

#include "rewrite/rules.h"

// The tables of algebraic rules by topic, one .cc file each. A new table needs a line here and one
// in topic_list.h.

namespace tokamak {

std::span<const Rule> ArithmeticRules();
std::span<const Rule> BroadcastRules();
std::span<const Rule> CompareRules();
std::span<const Rule> ComparisonSelectRules();
std::span<const Rule> ComplexRules();
std::span<const Rule> ConcatenateRules();
std::span<const Rule> ControlRules();
std::span<const Rule> ConvertRules();
std::span<const Rule> DotRules();
std::span<const Rule> DrawRules();
std::span<const Rule> DynamicRules();
std::span<const Rule> ElementOrderRules();
std::span<const Rule> ExtremesRules();
std::span<const Rule> FunctionRules();
std::span<const Rule> IntegerRules();
std::span<const Rule> IotaRules();
std::span<const Rule> LogicRules();
std::span<const Rule> MovementRules();
std::span<const Rule> PadRules();
std::span<const Rule> RangeRules();
std::span<const Rule> ReduceRules();
std::span<const Rule> SelectRules();
std::span<const Rule> ShiftRules();
std::span<const Rule> SliceRules();
std::span<const Rule> TupleRules();
std::span<const Rule> WindowRules();

}  // namespace tokamak
