# One library, one unit-test binary and one header check per folder of src/.
include_guard()

# tok_layer(<folder> DEPS <folder>...)
#
# Makes tok_<folder> ('/' becomes '_') from src/<folder>/**/*.cc, tests and main.cc left out. A
# folder that is absent or has no such file gives an INTERFACE library, so that a later change only
# adds files. tok_<folder>_SCOPE is PUBLIC or INTERFACE: use it to link more to the library.
# *_test.cc become tok_unit_<folder>, one ctest entry.
add_custom_target(tok_core)  # what scripts/test builds under sanitizers: the fuzzers and the tests labelled core
function(tok_layer folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPS")
  string(REPLACE "/" "_" name "${folder}")
  set(target "tok_${name}")
  set(dir "${CMAKE_SOURCE_DIR}/src/${folder}")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${dir}/*.cc")
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS "${dir}/*.h")
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "(_test|/main)\\.cc$")

  # A backend whose compiler is missing is an empty layer.
  if((folder STREQUAL "backend/cpu" AND NOT TOK_HAVE_LLVM) OR (folder STREQUAL "backend/cuda" AND NOT TOK_HAVE_CUDA))
    set(sources)
    set(tests)
    set(headers)
  endif()

  if(sources)
    set(scope PUBLIC)
    add_library(${target} STATIC ${sources})
    set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ${TOK_FUZZ})  # there, only what is linked
    tok_unity(${target})
  else()
    set(scope INTERFACE)
    add_library(${target} INTERFACE)
  endif()
  target_include_directories(${target} ${scope} "${CMAKE_SOURCE_DIR}/src")
  list(TRANSFORM arg_DEPS REPLACE "/" "_")
  list(TRANSFORM arg_DEPS PREPEND "tok_")
  target_link_libraries(${target} ${scope} ${arg_DEPS} ${TOK_FMT} nlohmann_json::nlohmann_json Threads::Threads)
  set(${target}_SCOPE ${scope} PARENT_SCOPE)
  if(TOK_PCH AND sources AND "tok_ir" IN_LIST arg_DEPS)
    target_precompile_headers(${target} REUSE_FROM tok_pch)
  endif()

  list(LENGTH sources source_count)
  list(LENGTH tests test_count)
  if(source_count OR test_count OR headers)
    set_property(GLOBAL APPEND PROPERTY TOK_LAYERS_PRESENT "${folder}")
  endif()

  if(tests AND TOK_TESTS AND TARGET GTest::gtest)
    add_executable(tok_unit_${name} ${tests})
    target_link_libraries(tok_unit_${name} PRIVATE ${target} GTest::gtest GTest::gtest_main)
    tok_unity(tok_unit_${name})
    add_test(NAME unit.${name} COMMAND tok_unit_${name} --gtest_brief=1)
    set(labels unit asan)
    if(name MATCHES "^(support|ir|interp|text|runtime)$")  # what meets foreign bytes, or memory of its own
      list(APPEND labels core)
      add_dependencies(tok_core tok_unit_${name})
    endif()
    if(name MATCHES "^(runtime|pjrt)$")  # the layers with threads
      list(APPEND labels tsan)
    endif()
    set_tests_properties(unit.${name} PROPERTIES LABELS "${labels}" TIMEOUT 300)
  endif()

  if(headers AND TOK_CHECK_HEADERS)
    tok_headers_alone(${name} ${target} ${headers})
  endif()
endfunction()

# tok_headers_alone(<name> <library> <header>...): compiles each header as the first line of an
# otherwise empty source. A header that leans on its includer breaks the build.
function(tok_headers_alone name library)
  set(alone)
  foreach(header ${ARGN})
    cmake_path(RELATIVE_PATH header BASE_DIRECTORY "${CMAKE_SOURCE_DIR}/src" OUTPUT_VARIABLE inside)
    set(source "${CMAKE_BINARY_DIR}/headers_alone/${inside}.cc")
    file(CONFIGURE OUTPUT "${source}" CONTENT "#include \"${inside}\"  // once\n#include \"${inside}\"  // twice\n")
    list(APPEND alone "${source}")
  endforeach()
  add_library(tok_headers_${name} OBJECT ${alone})
  target_link_libraries(tok_headers_${name} PRIVATE ${library})
  target_compile_options(tok_headers_${name} PRIVATE -O0 -g0)
endfunction()

# tok_layers_from(<layers.txt>): a layer for every line `folder: folders it may include`.
macro(tok_layers_from file)
  if(TOK_PCH)
    add_library(tok_pch OBJECT "${CMAKE_SOURCE_DIR}/cmake/empty.cc")
    target_include_directories(tok_pch PRIVATE "${CMAKE_SOURCE_DIR}/src")
    target_link_libraries(tok_pch PRIVATE ${TOK_FMT} nlohmann_json::nlohmann_json Threads::Threads)
    target_precompile_headers(tok_pch PRIVATE "${CMAKE_SOURCE_DIR}/src/ir/ir.h")
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
  file(STRINGS "${file}" tok_lines REGEX "^[a-z]")
  foreach(tok_line ${tok_lines})
    string(REGEX MATCH "^([a-z_/]+):(.*)$" tok_match "${tok_line}")
    set(tok_folder "${CMAKE_MATCH_1}")
    separate_arguments(tok_deps UNIX_COMMAND "${CMAKE_MATCH_2}")
    tok_layer(${tok_folder} DEPS ${tok_deps})
  endforeach()
endmacro()

# tok_fuzzer(<name> SOURCES <file>... DEPS <library>...): one libFuzzer binary, bin/<name>. Without
# TOK_FUZZ the same target is built with tests/fuzz/replay_main.cc when that exists: it runs the
# files it is given once, so that inputs that once failed are tests under every compiler.
function(tok_fuzzer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPS")
  set(replay "${CMAKE_SOURCE_DIR}/tests/fuzz/replay_main.cc")
  if(TOK_FUZZ)
    add_executable(${name} ${arg_SOURCES})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    add_dependencies(tok_core ${name})
  elseif(EXISTS "${replay}")
    add_executable(${name} ${arg_SOURCES} "${replay}")
  else()
    return()
  endif()
  target_link_libraries(${name} PRIVATE ${arg_DEPS})
endfunction()

function(tok_print_summary)
  get_property(layers GLOBAL PROPERTY TOK_LAYERS_PRESENT)
  list(JOIN layers " " layers)
  set(cache "none")
  if(TOK_CCACHE)
    set(cache "ccache")
  endif()
  set(linker "the compiler's own")
  if(TOK_LINKER_WORKS)
    set(linker "${TOK_LINKER}")
  endif()
  message(STATUS "Tokamak ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}, ${CMAKE_CXX_COMPILER_ID} "
                 "${CMAKE_CXX_COMPILER_VERSION}, ${CMAKE_SYSTEM_PROCESSOR}")
  message(STATUS "  layers        ${layers}")
  message(STATUS "  cpu backend   ${TOK_LLVM_STATE}")
  message(STATUS "  cuda backend  ${TOK_CUDA_STATE}")
  message(STATUS "  linker        ${linker}")
  message(STATUS "  cache         ${cache}")
endfunction()
