# cmake --install: the libraries, their headers, the command, and the files that find_package(sluice CONFIG)
# reads.

include(CMakePackageConfigHelpers)
set(config_folder "${CMAKE_INSTALL_LIBDIR}/cmake/sluice")

install(TARGETS sluice_core_${sluice_form} sluice_simulate_${sluice_form} EXPORT sluice-targets
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(TARGETS sluice_cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
if(SLUICE_TORCH_FOUND)
  install(TARGETS sluice_train_cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/sluice" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        FILES_MATCHING PATTERN "*.h")
install(EXPORT sluice-targets NAMESPACE sluice:: DESTINATION "${config_folder}")
if(SLUICE_TORCH_FOUND)
  install(TARGETS sluice_torch_${sluice_form} EXPORT sluice-torch-targets
          ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
          LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(EXPORT sluice-torch-targets NAMESPACE sluice:: DESTINATION "${config_folder}")
endif()

write_basic_package_version_file("${PROJECT_BINARY_DIR}/sluice-config-version.cmake"
                                 COMPATIBILITY SameMinorVersion)
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/sluice-config.cmake.in"
                              "${PROJECT_BINARY_DIR}/sluice-config.cmake"
                              INSTALL_DESTINATION "${config_folder}")
install(FILES "${PROJECT_BINARY_DIR}/sluice-config.cmake"
              "${PROJECT_BINARY_DIR}/sluice-config-version.cmake" DESTINATION "${config_folder}")
