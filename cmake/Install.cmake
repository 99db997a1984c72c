# `cmake --install build/release --prefix P` installs the libraries, their headers, and a package
# for find_package(symm). Skipped if this project is part of another one.

# symm_install(TARGET...)
function(symm_install)
  if(PROJECT_IS_TOP_LEVEL)
    install(TARGETS ${ARGV} EXPORT symm ARCHIVE DESTINATION lib/symm)
  endif()
endfunction()

symm_install(symm_options symm_fmt)
if(TARGET symm_fmt_9)
  symm_install(symm_fmt_9)
endif()

if(PROJECT_IS_TOP_LEVEL)
  # Excludes headers of tests and programs. The latter need CLI11, which users may not have.
  install(DIRECTORY common labs DESTINATION include/symm
    FILES_MATCHING PATTERN "*.hpp" PATTERN "*.inc"
    REGEX "/(tests|bench|cli|example|linker_errors)$" EXCLUDE
    REGEX "/(story|[a-z]+_command)\\.hpp$" EXCLUDE)
  include(CMakePackageConfigHelpers)
  set(package "${PROJECT_BINARY_DIR}/package")
  # Users need the libraries' fmt version. A fetched fmt is installed with the libraries.
  string(REGEX REPLACE "(.+)" "\\1 EXACT" fmt_version "${fmt_VERSION}")
  configure_file(cmake/symmConfig.cmake.in "${package}/symmConfig.cmake" @ONLY)
  write_basic_package_version_file("${package}/symmConfigVersion.cmake"
    COMPATIBILITY SameMinorVersion)
  install(FILES LICENSE DESTINATION share/doc/symm)
  install(FILES cmake/CudaToolkit.cmake "${package}/symmConfig.cmake"
    "${package}/symmConfigVersion.cmake" DESTINATION lib/cmake/symm)
  install(EXPORT symm NAMESPACE symm:: FILE symmTargets.cmake DESTINATION lib/cmake/symm)
endif()
