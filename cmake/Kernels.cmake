# symm_kernels(TARGET): compiles each .cu file of a target by itself; as C++ with
# SYMM_EMULATED_ONLY. For this project and, installed, for those that use the library.
function(symm_kernels target)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cu$")
  # Otherwise newer CMake releases compile all of a target's kernels together, on one core.
  set_source_files_properties(${sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  if(SYMM_EMULATED_ONLY)
    set_source_files_properties(${sources} PROPERTIES
      LANGUAGE CXX COMPILE_OPTIONS "-xc++;-Wno-attributes;-Wno-unknown-attributes")
  else()
    # CMake 3.25 does not know that nvcc supports C++20. Lambdas that choose kernels have template
    # parameters that are not deduced, of which nvcc warns.
    target_compile_options(${target} PRIVATE
      $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20 -diag-suppress=445>)
  endif()
endfunction()
