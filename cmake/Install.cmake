# `./lab install P` installs the library symm::symm: its archives, the headers in symm/include with
# all that they include, and a package for find_package(symm); and symm::c, the component c of that
# package. Skipped if this project is part of another one.

# symm_install_headers(HEADERS file... [argument of install()...]): with all that they include.
function(symm_install_headers)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "HEADERS;TO")
  install(CODE "set(SOURCE [[${PROJECT_SOURCE_DIR}]])
    set(HEADERS ${arg_HEADERS})
    set(DESTINATION \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/include\")
    include([[${PROJECT_SOURCE_DIR}/cmake/InstallHeaders.cmake]])" ${arg_TO})
endfunction()

# symm_linked(RESULT TARGET): the target and all targets of this project that it links.
function(symm_linked result target)
  set(found ${target})
  get_target_property(type ${target} TYPE)
  set(property LINK_LIBRARIES)
  if(type STREQUAL "INTERFACE_LIBRARY")
    set(property INTERFACE_LINK_LIBRARIES)
  endif()
  get_target_property(links ${target} ${property})
  foreach(link IN LISTS links)
    if(TARGET "${link}" AND NOT link MATCHES "::")
      symm_linked(more ${link})
      list(APPEND found ${more})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES found)
  set(${result} ${found} PARENT_SCOPE)
endfunction()

# symm_install(TARGET): as symm::symm. The target symm_installed builds what is installed.
function(symm_install target)
  if(NOT PROJECT_IS_TOP_LEVEL)
    return()
  endif()
  symm_linked(targets ${target})
  get_property(others GLOBAL PROPERTY SYMM_INSTALLED)  # which install themselves
  add_custom_target(symm_installed DEPENDS ${targets} ${others})
  install(TARGETS ${targets} EXPORT symm ARCHIVE DESTINATION lib/symm)
  set(headers symm nodes kernel launch algorithm)
  list(TRANSFORM headers REPLACE ".+" "symm/include/symm/\\0.hpp")
  symm_install_headers(HEADERS ${headers})
  include(CMakePackageConfigHelpers)
  set(package "${PROJECT_BINARY_DIR}/package")
  configure_file(cmake/symmConfig.cmake.in "${package}/symmConfig.cmake" @ONLY)
  write_basic_package_version_file("${package}/symmConfigVersion.cmake"
    COMPATIBILITY SameMinorVersion)
  install(FILES LICENSE DESTINATION share/doc/symm)
  install(FILES cmake/CudaToolkit.cmake cmake/Kernels.cmake "${package}/symmConfig.cmake"
    "${package}/symmConfigVersion.cmake" DESTINATION lib/cmake/symm)
  install(EXPORT symm NAMESPACE symm:: FILE symmTargets.cmake DESTINATION lib/cmake/symm)
  install(EXPORT symm_c NAMESPACE symm:: FILE symmCTargets.cmake DESTINATION lib/cmake/symm)
endfunction()
