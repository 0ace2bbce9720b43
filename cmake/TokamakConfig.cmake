# find_package(Tokamak) gives the library Tokamak::tokamak. It needs nothing else.
include("${CMAKE_CURRENT_LIST_DIR}/TokamakTargets.cmake")
