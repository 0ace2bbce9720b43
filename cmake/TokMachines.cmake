# Puts machines/*.json into the library of src/cost: cost/machine_files.h.
include_guard()

function(tok_machine_files target)
  file(GLOB files CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/machines/*.json")
  set(rows "")
  foreach(file IN LISTS files)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    get_filename_component(name "${file}" NAME)
    file(READ "${file}" text)
    string(APPEND rows "    {\"${name}\", R\"machine(${text})machine\"},\n")
  endforeach()
  set(source "${CMAKE_BINARY_DIR}/generated/machine_files.cc")
  file(CONFIGURE OUTPUT "${source}" @ONLY CONTENT
"#include \"cost/machine_files.h\"

namespace tokamak {
namespace {
constexpr MachineFile kFiles[] = {
@rows@    {\"\", \"\"},
};
}  // namespace

std::span<const MachineFile> MachineFiles() {
  return {kFiles, std::size(kFiles) - 1};
}
}  // namespace tokamak
")
  target_sources(${target} PRIVATE "${source}")
endfunction()
