# The allocation fails, and the capture is lost (cmake/Mutants.cmake).
symm_mutants(pinned_calloc_mutant LABELS lab04
  SOURCES host_memory/tests/pinned_calloc_test.cpp host_memory/pinned_calloc.cpp LINK symm_cuda)
symm_mutant(pinned_calloc_mutant no_exchange *LeavesTheCapture*
  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
  FILE labs/04_shm_transport/host_memory/pinned_calloc.cpp
  OLD [[const RelaxedCapture relaxed;]] NEW "")
