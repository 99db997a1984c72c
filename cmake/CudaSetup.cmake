# The CUDA Toolkit is needed, a GPU is not. Finds nvcc where PATH does not have it, and chooses the
# architecture: the GPU's own where this machine has one, else 90 (H100 and H200).

find_program(SYMM_NVCC nvcc HINTS ENV CUDACXX ENV CUDA_HOME /usr/local/cuda PATH_SUFFIXES bin)
if(NOT SYMM_NVCC)
  message(FATAL_ERROR
    "No CUDA Toolkit found. Install version 12.4 or newer (Debian, Ubuntu: package cuda-toolkit of "
    "NVIDIA's repository, https://developer.nvidia.com/cuda-downloads), or set CUDA_HOME to where it "
    "is. No GPU is needed.")
endif()
if(NOT DEFINED CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_COMPILER "${SYMM_NVCC}" CACHE FILEPATH "The CUDA compiler")
endif()

if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
                  OUTPUT_VARIABLE capabilities ERROR_QUIET RESULT_VARIABLE failed)
  string(REGEX MATCH "[0-9]+\\.[0-9]+" capability "${capabilities}")
  if(failed OR NOT capability)
    set(capability "9.0")
  endif()
  string(REPLACE "." "" capability "${capability}")
  set(CMAKE_CUDA_ARCHITECTURES "${capability}" CACHE STRING "CUDA architectures to compile for")
endif()
