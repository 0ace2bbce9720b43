# Compiler, linker and cache settings shared by every target.
include_guard()
include(CheckLinkerFlag)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)  # we have none; CMake 3.28 would look with every compile
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/archive")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
  message(FATAL_ERROR "g++ ${CMAKE_CXX_COMPILER_VERSION} is too old: Tokamak needs g++ 12 or clang 14")
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
  message(FATAL_ERROR "clang ${CMAKE_CXX_COMPILER_VERSION} is too old: Tokamak needs g++ 12 or clang 14")
endif()

# Another compiler may warn of more (g++ 13 does), which must not fail the build.
if(TOK_STRICT AND ((CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13) OR
                   (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 15)))
  set(CMAKE_COMPILE_WARNING_AS_ERROR ON)
endif()
add_compile_options(-Wall -Wextra -Wimplicit-fallthrough -Werror=switch -Werror=return-type)
# Values must not depend on the machine: no multiply and add is contracted behind our back (g++ on
# aarch64 does so by default). FMA is an op of the IR.
add_compile_options(-ffp-contract=off)
# __FILE__ and debug info name files from the root of the tree, so that two checkouts give equal
# objects and share the compiler cache (which itself turns the root into `../`).
add_compile_options("-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=" -ffile-prefix-map=../=)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wshadow=local)
  # These come from the optimizer: whether they fire, and wrongly, depends on what was inlined, hence
  # on the machine and the compiler's version. They are shown and never fail a build.
  foreach(warning array-bounds dangling-pointer free-nonheap-object maybe-uninitialized nonnull
          overflow restrict stringop-overflow stringop-overread use-after-free)
    add_compile_options(-Wno-error=${warning})
  endforeach()
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    add_compile_options(-Wno-restrict)  # g++ 12 is wrong about std::string (gcc bug 105329).
  endif()
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
    add_compile_options(-Wno-free-nonheap-object)  # They take a vector's own buffer for a foreign one.
  endif()
else()
  add_compile_options(-Wno-unknown-warning-option)
endif()

# lld when it links (mold or another linker: -DTOK_LINKER=mold; the compiler's own: -DTOK_LINKER=default).
set(TOK_LINKER lld CACHE STRING "Linker given to -fuse-ld, or 'default'")
if(NOT TOK_LINKER STREQUAL "default")
  check_linker_flag(CXX "-fuse-ld=${TOK_LINKER}" TOK_LINKER_WORKS)
  if(TOK_LINKER_WORKS)
    add_link_options("-fuse-ld=${TOK_LINKER}")
  endif()
endif()

# Linking is where memory goes: one at a time.
set_property(GLOBAL PROPERTY JOB_POOLS link=1)
set(CMAKE_JOB_POOL_LINK link)

# ccache with paths made relative to this tree, so that worktrees share hits. Comments count: a precompiled header records the
# size of each header in it, and one from a hit whose comments differ includes them twice.
find_program(TOK_CCACHE ccache)
find_program(TOK_ENV env)
mark_as_advanced(TOK_CCACHE TOK_ENV)
if(TOK_CCACHE AND TOK_ENV AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${TOK_ENV}" "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=1
                                  CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_COMMENTS=1
                                  "${TOK_CCACHE}")
endif()

if(TOK_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "TOK_FUZZ needs clang for libFuzzer (Debian, Ubuntu: 'clang'): use --preset fuzz")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
  add_compile_definitions(TOK_FUZZ_LIMITS=1)
endif()
