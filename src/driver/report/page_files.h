#pragma once

#include <span>
#include <string_view>

namespace tokamak {

// A file of src/driver/report/html, compiled in by cmake/TokEmbed.cmake.
struct PageFile {
  std::string_view name;  // relative to that folder: "style.css"
  std::string_view text;
};
std::span<const PageFile> PageFiles();

}  // namespace tokamak
