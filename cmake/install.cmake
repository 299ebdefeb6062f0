# What `cmake --install` installs for other C++ projects: headers, libraries and the files that find_package(tamis) reads.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tamis)

install(TARGETS tamis_core EXPORT tamis-core-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT tamis-core-targets NAMESPACE tamis:: DESTINATION ${package_dir})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/tamis DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        PATTERN libtorch EXCLUDE)

if(TAMIS_LIBTORCH)
  # torch.cmake: what uses the installed adapter finds the same torch again.
  install(TARGETS tamis_torch EXPORT tamis-torch-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT tamis-torch-targets NAMESPACE tamis:: DESTINATION ${package_dir})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/tamis/libtorch DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tamis)
  install(FILES ${PROJECT_SOURCE_DIR}/cmake/torch.cmake DESTINATION ${package_dir})
endif()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/tamis-config.cmake.in
  ${PROJECT_BINARY_DIR}/tamis-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tamis-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tamis-config.cmake ${PROJECT_BINARY_DIR}/tamis-config-version.cmake
        DESTINATION ${package_dir})
