# Files compiled in batches of about eight: a file's headers cost more than the file.
include_guard()

option(TOK_UNITY "Compile the files of a folder in batches: half the work from nothing, more for one edited file" OFF)

# tok_unity(<target>): compiles the target's files in batches, where TOK_UNITY is on. They are cut in alphabetical order; the
# hash of its name says whether a file begins a batch, so that a new file changes its own batch and not all behind it.
function(tok_unity target)
  if(NOT TOK_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cc$")
  list(SORT sources)
  set(number 0)
  set(held 0)
  foreach(source IN LISTS sources)
    get_filename_component(name "${source}" NAME)
    string(MD5 hash "${name}")
    if(held GREATER_EQUAL 10 OR (held GREATER_EQUAL 5 AND hash MATCHES "^[0-3]"))
      math(EXPR number "${number} + 1")
      set(held 0)
    endif()
    math(EXPR held "${held} + 1")
    set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${number}")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
