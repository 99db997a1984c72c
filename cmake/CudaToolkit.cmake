# symm_find_cuda_toolkit(VERSION [argument of find_package...]): finds the CUDA Toolkit and defines
# symm::cuda_headers. Used here, and by projects that use the installed libraries. On a machine
# without a toolkit ./lab fetches one: see tools/lab/cuda.py.
macro(symm_find_cuda_toolkit)
  # CMake 3.25 sets a property of this target even if the toolkit lacks the library, as CUDA 13
  # does.
  if(NOT TARGET CUDA::nvToolsExt)
    add_library(CUDA::nvToolsExt INTERFACE IMPORTED)
  endif()
  find_package(CUDAToolkit ${ARGV})
  if(CUDAToolkit_FOUND AND NOT TARGET symm::cuda_headers)
    add_library(symm::cuda_headers INTERFACE IMPORTED)
    # Since CUDA 13, libcu++ (cuda/atomic) has its own folder.
    foreach(include IN LISTS CUDAToolkit_INCLUDE_DIRS)
      target_include_directories(symm::cuda_headers INTERFACE "${include}")
      if(EXISTS "${include}/cccl")
        target_include_directories(symm::cuda_headers INTERFACE "${include}/cccl")
      endif()
    endforeach()
  endif()
endmacro()
