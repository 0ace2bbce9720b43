#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "driver/report/compile_report.h"

// What the HTML report shows besides JsonOf(report): parts of the JSON that is embedded in a page
// (page.h). Steps are numbered from 0 in the order of CompileReport::steps, which is that of
// "kernels" in the JSON.

namespace tokamak {

struct PageOptions {
  bool code = false;  // generate and compile code of the slowest kernels: takes seconds
  // Milliseconds around the compilation; 0: it did not happen, or is not known.
  double read_ms = 0;     // from the program's file to a module
  double loading_ms = 0;  // from steps to machine code
};

// The program that ran, after all passes: instructions with operands, shapes, source lines and the
// steps that compute them; the computations that steps execute; arrays that are stored between
// steps, with the part of the predicted time that their traffic takes. `instrs` receives the
// instructions in the order of the JSON.
nlohmann::json GraphOf(const CompileReport& report, std::vector<const Instr*>* instrs = nullptr);

// The live ranges of temporary arrays in numbers of steps, and bytes that are allocated throughout.
nlohmann::json MemoryOf(const CompileReport& report);

// Kernel IR of the steps, the longest first, up to a limit in all.
nlohmann::json KernelFormsOf(const CompileReport& report);

// The generated code of the slowest kernels and the machine code of each (listing.h), by step.
nlohmann::json KernelCodesOf(const CompileReport& report, const PageOptions& options);

// Roofs of the machine; operations and occupancy of each step.
nlohmann::json ResourcesOf(const CompileReport& report);

// Other schedules of the slowest kernels, with their predicted times, by step.
nlohmann::json AlternativesOf(const CompileReport& report);

// The stages of the compilation with their times. `codes`: KernelCodesOf.
nlohmann::json ProfileOf(const CompileReport& report, const PageOptions& options,
                         const nlohmann::json& codes);

// The lines of the program's file and of Python sources around those that `lines` (of GraphOf)
// names, where the files can be read: as named, or relative to the folder of `program_file`.
nlohmann::json SourcesOf(const nlohmann::json& lines, const std::string& program_file);

}  // namespace tokamak
