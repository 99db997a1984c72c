# symm_find_cuda_toolkit(VERSION [argument of find_package...]): the CUDA Toolkit, and the target
# symm::cuda_headers. Used here, and by projects that use the installed libraries. Where ./lab gets
# the toolkit on a machine that has none: find_cuda.sh.
macro(symm_find_cuda_toolkit)
  # CMake 3.25 sets a property of this target, whether the toolkit has the library (gone since CUDA
  # 13) or not.
  if(NOT TARGET CUDA::nvToolsExt)
    add_library(CUDA::nvToolsExt INTERFACE IMPORTED)
  endif()
  find_package(CUDAToolkit ${ARGV})
  if(CUDAToolkit_FOUND AND NOT TARGET symm::cuda_headers)
    add_library(symm::cuda_headers INTERFACE IMPORTED)
    # libcu++ (cuda/atomic) is in a folder of its own since CUDA 13.
    foreach(include IN LISTS CUDAToolkit_INCLUDE_DIRS)
      target_include_directories(symm::cuda_headers INTERFACE "${include}")
      if(EXISTS "${include}/cccl")
        target_include_directories(symm::cuda_headers INTERFACE "${include}/cccl")
      endif()
    endforeach()
  endif()
endmacro()
