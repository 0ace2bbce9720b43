#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "driver/report/compile_report.h"
#include "driver/report/page_data.h"

namespace tokamak {

// The report as JSON (write.h), with the parts that only pages have (page_data.h).
nlohmann::json WithPageData(const CompileReport& report, nlohmann::json data,
                            const PageOptions& options = {});

// The compile report as one HTML file that needs no other file and no network: the templates of
// src/driver/report/html around `data`.
std::string PageOf(const std::string& title, const nlohmann::json& data);
// The same with other scripts of that folder: "diff.html", "index.html", "xla.html".
std::string PageFrom(std::string_view file, const std::string& title, const nlohmann::json& data);

}  // namespace tokamak
