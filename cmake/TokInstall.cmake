# What C++ programs use (docs/cpp.md): include/tokamak, the library, and a package, so that
#   find_package(Tokamak REQUIRED)
#   target_link_libraries(program PRIVATE Tokamak::tokamak)
# works with the prefix in CMAKE_PREFIX_PATH.
include_guard()
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

target_include_directories(libtokamak INTERFACE "$<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>"
                                                "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
target_compile_features(libtokamak INTERFACE cxx_std_20)
set_target_properties(libtokamak PROPERTIES EXPORT_NAME tokamak)
install(TARGETS libtokamak EXPORT TokamakTargets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(DIRECTORY include/tokamak DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h")

set(package "${CMAKE_INSTALL_LIBDIR}/cmake/Tokamak")
install(EXPORT TokamakTargets NAMESPACE Tokamak:: DESTINATION "${package}")
write_basic_package_version_file("${CMAKE_BINARY_DIR}/TokamakConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES cmake/TokamakConfig.cmake "${CMAKE_BINARY_DIR}/TokamakConfigVersion.cmake" DESTINATION "${package}")
