# Libraries: the distribution's if it has them, else fetched by hash. All are linked statically, so
# that a build directory can be copied to another machine and run there. The exception: if the
# distribution has only a shared Google Benchmark, it is copied next to the programs.

include(FetchContent)
include(CudaToolkit)
symm_find_cuda_toolkit(12.4 REQUIRED)
find_package(Threads REQUIRED GLOBAL)

# GLOBAL: another project may have this one as a subdirectory, and link its libraries.
set(CMAKE_POLICY_DEFAULT_CMP0077 NEW)  # fetched projects take the options set here
set(BUILD_SHARED_LIBS OFF)
set(BENCHMARK_ENABLE_TESTING OFF)
# None of the fetched projects is installed.
set(FMT_INSTALL OFF)
set(CLI11_INSTALL OFF)
set(INSTALL_GTEST OFF)
set(BENCHMARK_ENABLE_INSTALL OFF)
FetchContent_Declare(CLI11
  URL https://github.com/CLIUtils/CLI11/archive/refs/tags/v2.4.1.tar.gz
  URL_HASH SHA256=73b7ec52261ce8fe980a29df6b4ceb66243bb0b779451dbd3d014cfec9fdbb58
  FIND_PACKAGE_ARGS 2.1 GLOBAL)
FetchContent_Declare(fmt GIT_REPOSITORY https://github.com/fmtlib/fmt.git
  GIT_TAG e69e5f977d458f2650bb346dadf2ad30c5320281  # 10.2.1
  FIND_PACKAGE_ARGS 9.1 GLOBAL)
FetchContent_MakeAvailable(CLI11 fmt)
if(PROJECT_IS_TOP_LEVEL)
  FetchContent_Declare(GTest GIT_REPOSITORY https://github.com/google/googletest.git
    GIT_TAG f8d7d77c06936315286eb55f8de22cd23c188571  # 1.14.0
    FIND_PACKAGE_ARGS 1.12)
  FetchContent_Declare(benchmark GIT_REPOSITORY https://github.com/google/benchmark.git
    GIT_TAG 344117638c8ff7e239044fd0fa7085839fc03021  # 1.8.3
    FIND_PACKAGE_ARGS 1.7)
  FetchContent_MakeAvailable(GTest benchmark)
endif()

# fmt is no part of the interface: users may have another version. As a static library: see fmt.cpp.
add_library(symm_fmt STATIC "${CMAKE_CURRENT_LIST_DIR}/fmt.cpp")
target_compile_features(symm_fmt PRIVATE cxx_std_20)
set_target_properties(symm_fmt PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_include_directories(symm_fmt SYSTEM PUBLIC
  $<BUILD_INTERFACE:$<TARGET_PROPERTY:fmt::fmt-header-only,INTERFACE_INCLUDE_DIRECTORIES>>)
