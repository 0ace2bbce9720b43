# The checks of form, as tests. Label `check`: quick, and equal in every build.
include_guard()

# tok_check(<name> <script> [argument...]): exit 77 is a skip with its reason printed.
function(tok_check name script)
  add_test(NAME check.${name} COMMAND "${TOK_PYTHON}" "${CMAKE_SOURCE_DIR}/tools/${script}" ${ARGN})
  set_tests_properties(check.${name} PROPERTIES LABELS check SKIP_RETURN_CODE 77 TIMEOUT 300)
endfunction()

if(NOT TOK_FUZZ)
  tok_check(layers check_layers.py)
  if(TOK_HAVE_LLVM AND TOK_HAVE_CUDA AND CMAKE_BUILD_TYPE STREQUAL "Release")
    tok_check(planted check_planted.py --build "${CMAKE_BINARY_DIR}")  # all tests that it may ask for are there
  else()
    tok_check(planted check_planted.py)
  endif()
  tok_check(sizes check_sizes.py)
  tok_check(style check_style.py)
  tok_check(format check_format.py)
  tok_check(references check_references.py)
  tok_check(names check_names.py)
  tok_check(literals check_literals.py)
  tok_check(words check_words.py)
  tok_check(prose check_prose.py)
  tok_check(readme readme.py --check)
  tok_check(pictures pictures.py --check)
  tok_check(selftest checks_test.py)
  tok_check(headers check_headers.py --build "${CMAKE_BINARY_DIR}")
endif()
