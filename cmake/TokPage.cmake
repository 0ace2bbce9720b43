# Puts the files of src/driver/report/html into the library of src/driver/report: driver/report/page_files.h.
include_guard()

function(tok_page_files target)
  set(folder "${CMAKE_SOURCE_DIR}/src/driver/report/html")
  file(GLOB_RECURSE files RELATIVE "${folder}" CONFIGURE_DEPENDS "${folder}/*.html" "${folder}/*.css" "${folder}/*.js" "${folder}/*.txt")
  set(rows "")
  foreach(file IN LISTS files)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${folder}/${file}")
    file(READ "${folder}/${file}" text)
    string(APPEND rows "    {\"${file}\", R\"page(${text})page\"},\n")
  endforeach()
  set(source "${CMAKE_BINARY_DIR}/generated/page_files.cc")
  file(CONFIGURE OUTPUT "${source}" @ONLY CONTENT
"#include \"driver/report/page_files.h\"

namespace tokamak {
namespace {
constexpr PageFile kFiles[] = {
@rows@};
}  // namespace

std::span<const PageFile> PageFiles() {
  return kFiles;
}
}  // namespace tokamak
")
  target_sources(${target} PRIVATE "${source}")
endfunction()
