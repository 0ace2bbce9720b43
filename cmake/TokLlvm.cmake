# LLVM for the CPU backend: optional. Gives TOK_HAVE_LLVM, TOK_LLVM_STATE and the library tok_llvm; and, where LLVM has
# it, TOK_HAVE_LLVM_OTHER and tok_llvm_other: the code generator of the other processor (AArch64 on x86_64, and the other
# way round), for tests only. libtokamak.so links its own alone.
#
#   TOK_WITH_LLVM    AUTO (when it is found), ON, OFF
#   TOK_LLVM_SHARED  link libLLVM.so instead of the archives: quicker links, and what
#                    tools/pack_llvm.sh packs for another machine. There:
#                      -DLLVM_DIR=$PWD/sys/usr/lib/llvm-19/lib/cmake/llvm -DTOK_LLVM_SHARED=ON
include_guard()

option(TOK_LLVM_SHARED "Link libLLVM.so instead of LLVM's archives" OFF)
set(TOK_LLVM_VERSION 19.1)  # LLVM is compatible with no other minor version
set(TOK_HAVE_LLVM OFF)
set(TOK_HAVE_LLVM_OTHER OFF)
add_library(tok_llvm INTERFACE)
add_library(tok_llvm_other INTERFACE)

# tok_llvm_closure(<list> <target>): the LLVM libraries that a target needs and itself, before them.
function(tok_llvm_closure list name)
  set(known ${${list}})
  if(NOT name IN_LIST known)
    get_target_property(needed ${name} INTERFACE_LINK_LIBRARIES)
    foreach(other ${needed})
      if(other MATCHES "^LLVM" AND TARGET ${other})
        tok_llvm_closure(known ${other})
      endif()
    endforeach()
    list(PREPEND known ${name})
    set(${list} ${known} PARENT_SCOPE)
  endif()
endfunction()

# tok_link_llvm_components(<library> <component>...): the archives by path and not by target: LLVM's targets bring Z3 and
# others that nothing here needs.
function(tok_link_llvm_components library)
  llvm_map_components_to_libnames(names ${ARGN})
  set(all)
  foreach(name ${names})
    tok_llvm_closure(all ${name})
  endforeach()
  foreach(name ${all})
    target_link_libraries(${library} INTERFACE "$<TARGET_FILE:${name}>")
  endforeach()
endfunction()

function(tok_link_llvm_archives)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    set(target AArch64)
    set(other X86)
  else()
    set(target X86)
    set(other AArch64)
  endif()
  tok_link_llvm_components(tok_llvm core support analysis target transformutils scalaropts instcombine
                           codegen selectiondag asmprinter runtimedyld ${target}CodeGen ${target}Desc ${target}Info)
  if(TARGET LLVM${other}CodeGen)
    tok_link_llvm_components(tok_llvm_other ${other}CodeGen ${other}Desc ${other}Info)
    set(TOK_HAVE_LLVM_OTHER ON PARENT_SCOPE)
  endif()
  foreach(library zstd::libzstd_static zstd::libzstd_shared)
    if(TARGET ${library})
      target_link_libraries(tok_llvm INTERFACE ${library})
      break()
    endif()
  endforeach()
  if(TARGET ZLIB::ZLIB)
    target_link_libraries(tok_llvm INTERFACE ZLIB::ZLIB)
  endif()
  target_link_libraries(tok_llvm INTERFACE Threads::Threads ${CMAKE_DL_LIBS} m)
  target_link_options(tok_llvm INTERFACE LINKER:--gc-sections)  # 29 MB stripped, 37 without
endfunction()

function(tok_find_llvm)
  if(NOT EXISTS "${CMAKE_SOURCE_DIR}/src/backend/cpu")
    set(state "absent (not written yet)")
  elseif(TOK_WITH_LLVM STREQUAL "OFF")
    set(state "absent (TOK_WITH_LLVM=OFF)")
  elseif((TOK_FUZZ OR "${CMAKE_BUILD_TYPE} ${CMAKE_CXX_FLAGS_DEBUG}" MATCHES "Debug.*sanitize=thread") AND
         NOT TOK_WITH_LLVM STREQUAL "ON")
    set(state "left out: LLVM is not built with the sanitizers")
  else()
    enable_language(C)  # LLVM's own package files ask for it.
    foreach(unused CURL LibEdit LibXml2)  # which LLVM looks for, and which we do not link
      set(CMAKE_DISABLE_FIND_PACKAGE_${unused} ON)
    endforeach()
    find_program(TOK_LLVM_CONFIG NAMES llvm-config-19 llvm-config)
    mark_as_advanced(TOK_LLVM_CONFIG)
    set(hint "")
    if(TOK_LLVM_CONFIG)
      execute_process(COMMAND "${TOK_LLVM_CONFIG}" --cmakedir OUTPUT_VARIABLE hint OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    endif()
    find_package(LLVM ${TOK_LLVM_VERSION} QUIET CONFIG HINTS "${hint}" /usr/lib/llvm-19/lib/cmake/llvm)
    if(LLVM_FOUND)
      set(TOK_HAVE_LLVM ON PARENT_SCOPE)
      set(state "LLVM ${LLVM_PACKAGE_VERSION}, its archives")
      target_include_directories(tok_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
      if(TOK_LLVM_SHARED)
        set(state "LLVM ${LLVM_PACKAGE_VERSION}, shared")
        find_library(TOK_LLVM_LIBRARY NAMES LLVM-19 LLVM HINTS ${LLVM_LIBRARY_DIRS} NO_DEFAULT_PATH REQUIRED)
        target_link_libraries(tok_llvm INTERFACE "${TOK_LLVM_LIBRARY}")
        set(TOK_HAVE_LLVM_OTHER ON PARENT_SCOPE)
      else()
        tok_link_llvm_archives()
        set(TOK_HAVE_LLVM_OTHER "${TOK_HAVE_LLVM_OTHER}" PARENT_SCOPE)
      endif()
    else()
      set(state "absent (LLVM ${TOK_LLVM_VERSION} not found; Debian, Ubuntu: 'llvm-19-dev libzstd-dev')")
      if(TOK_WITH_LLVM STREQUAL "ON")
        message(FATAL_ERROR "TOK_WITH_LLVM=ON, but LLVM ${TOK_LLVM_VERSION} was not found (Debian, Ubuntu: 'llvm-19-dev libzstd-dev')")
      endif()
    endif()
  endif()
  set(TOK_LLVM_STATE "${state}" PARENT_SCOPE)
endfunction()

tok_find_llvm()
