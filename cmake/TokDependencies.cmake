# What we take from the system. A missing package is named as Debian and Ubuntu name it;
# scripts/bootstrap installs them all.
include_guard()

# tok_require(<package> <Debian package>): find_package with a message that helps.
function(tok_require package debian)
  find_package(${package} QUIET ${ARGN})
  if(NOT ${package}_FOUND)
    message(FATAL_ERROR "${package} was not found. Install the package '${debian}' (Debian, Ubuntu), "
                        "or run scripts/bootstrap, which installs everything that is missing.")
  endif()
endfunction()

# TOK_HEADERS: a folder with the headers of fmt, nlohmann-json and CLI11, for machines without the packages
# (tests/gpu/pack makes one). Tests that need GoogleTest are left out where that is missing, too.
set(TOK_HEADERS "" CACHE PATH "Headers of fmt, nlohmann-json and CLI11, in place of packages")
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
if(TOK_HEADERS)
  foreach(name fmt::fmt fmt::fmt-header-only nlohmann_json::nlohmann_json CLI11::CLI11)
    add_library(${name} INTERFACE IMPORTED)
    target_include_directories(${name} SYSTEM INTERFACE "${TOK_HEADERS}")
  endforeach()
  file(GLOB fmt_library "${TOK_HEADERS}/../lib/libfmt.so.*")
  if(fmt_library)
    target_link_libraries(fmt::fmt INTERFACE "${fmt_library}")
  else()
    target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY=1)
  endif()
  target_compile_definitions(fmt::fmt-header-only INTERFACE FMT_HEADER_ONLY=1)
  find_package(GTest QUIET)
else()
  tok_require(fmt libfmt-dev)
  tok_require(nlohmann_json nlohmann-json3-dev)
  tok_require(CLI11 libcli11-dev)
  if(TOK_TESTS)
    tok_require(GTest libgtest-dev)
  endif()
endif()

if(TOK_FMT_HEADER_ONLY)
  set(TOK_FMT fmt::fmt-header-only)
else()
  set(TOK_FMT fmt::fmt)  # 0.6 s a file against 2.8 s header-only (g++ 12, measured).
endif()

# zlib unpacks .npz files that were saved compressed. Without it they are rejected, and the error says why.
add_library(tok_zlib INTERFACE)
find_package(ZLIB QUIET)
if(ZLIB_FOUND)
  set(TOK_HAVE_ZLIB 1)
  target_link_libraries(tok_zlib INTERFACE ZLIB::ZLIB)
else()
  set(TOK_HAVE_ZLIB 0)
endif()
target_compile_definitions(tok_zlib INTERFACE TOK_HAVE_ZLIB=${TOK_HAVE_ZLIB})

# Python runs the checks and test drivers: the project's own .venv when it is there.
find_package(Python3 QUIET COMPONENTS Interpreter)
if(EXISTS "${CMAKE_SOURCE_DIR}/.venv/bin/python")
  set(TOK_PYTHON "${CMAKE_SOURCE_DIR}/.venv/bin/python")
elseif(Python3_Interpreter_FOUND)
  set(TOK_PYTHON "${Python3_EXECUTABLE}")
elseif(TOK_TESTS)
  message(FATAL_ERROR "python3 was not found (Debian, Ubuntu: 'python3'); the tests need it, or give -DTOK_TESTS=OFF")
endif()

include(TokLlvm)  # the CPU backend

# CUDA backend: needs nothing to build, its libraries are opened at run time.
set(TOK_HAVE_CUDA OFF)
if(NOT EXISTS "${CMAKE_SOURCE_DIR}/src/backend/cuda")
  set(TOK_CUDA_STATE "absent (not written yet)")
elseif(TOK_WITH_CUDA STREQUAL "OFF")
  set(TOK_CUDA_STATE "absent (TOK_WITH_CUDA=OFF)")
else()
  set(TOK_HAVE_CUDA ON)
  set(TOK_CUDA_STATE "built; the driver and NVRTC are looked for at run time")
endif()
