# Puts files of text into a library, as constants.
include_guard()

# The files of `folder` that match the patterns after it become what `header` declares: a struct `type` of a name, relative to
# `folder`, and a text; and the function `type`s(), which returns them all.
function(tok_embed_files target header type folder)
  list(TRANSFORM ARGN PREPEND "${folder}/" OUTPUT_VARIABLE patterns)
  file(GLOB files RELATIVE "${folder}" CONFIGURE_DEPENDS ${patterns})
  set(rows "")
  foreach(file IN LISTS files)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${folder}/${file}")
    file(READ "${folder}/${file}" text)
    string(APPEND rows "    {\"${file}\", R\"text(${text})text\"},\n")
  endforeach()
  get_filename_component(name "${header}" NAME_WE)
  set(source "${CMAKE_BINARY_DIR}/generated/${name}.cc")
  file(CONFIGURE OUTPUT "${source}" @ONLY CONTENT
"#include \"@header@\"

namespace tokamak {
namespace {
constexpr @type@ kFiles[] = {
@rows@};
}  // namespace

std::span<const @type@> @type@s() {
  return kFiles;
}
}  // namespace tokamak
")
  target_sources(${target} PRIVATE "${source}")
endfunction()
