#pragma once

#include <cstddef>
#include <optional>
#include <unordered_map>

#include "driver/report/compile_report.h"

namespace tokamak {

// The steps that store the arrays of a program.
class StoredValues {
 public:
  explicit StoredValues(const CompileReport& report);

  // The value under which these bytes are stored: looks through renames and reshapes.
  const Instr* StoredAs(const Instr* value) const;
  // The number of the step that stores a result of StoredAs; unset for parameters, constants and
  // what a loop carries.
  std::optional<size_t> StepOf(const Instr* stored) const;

 private:
  std::unordered_map<const Instr*, size_t> producers_;
};

}  // namespace tokamak
