#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "driver/report/compile_report.h"

namespace tokamak {

// What the page of a diff shows (`explain --diff A B --html`): DiffJson (write.h), and
//   "a", "b"     also the report of each side ("report"), without its decisions
//   "pairs"      numbers of equal steps, as [step of a, step of b]
//   "lines"      microseconds of each source line on both sides: {line, a, b}
//   "decisions"  those that only one side has, or with other verdicts or costs:
//                {pass, rule, subject, other, a, b}; a and b are {verdict, before_us, after_us,
//                because} or null. Records of passes that rewrite are left out, as --decisions
//                counts them.
nlohmann::json DiffPageData(const CompileReport& a, const CompileReport& b,
                            const std::string& name_a, const std::string& name_b);

// The page with that data.
std::string DiffPage(const CompileReport& a, const CompileReport& b, const std::string& name_a,
                     const std::string& name_b);

}  // namespace tokamak
