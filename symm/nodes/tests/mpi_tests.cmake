# Runs of 06_allreduce_mpi, named by machines x ranks of each, on emulated GPUs of one host. Results
# are compared with the reference.

# By default, Open MPI refuses root, and more ranks than cores.
list(APPEND open_mpi OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1)

function(symm_mpi_test name ranks each)  # the program's arguments...
  add_test(NAME 06_allreduce_mpi.${name}
    COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks}
            $<TARGET_FILE:06_allreduce_mpi> ${ARGN})
  set_tests_properties(06_allreduce_mpi.${name} PROPERTIES LABELS lab06 TIMEOUT 120
    PASS_REGULAR_EXPRESSION "All results are right"
    ENVIRONMENT "SYMM_DRIVER=emulated;SYMM_RANKS_PER_NODE=${each};${open_mpi}")
endfunction()

symm_mpi_test(2x2 4 2 --bytes 4:256K --factor 16)
symm_mpi_test(2x3 6 3 --bytes 1K:64K --dtype int32 --op max)
symm_mpi_test(4x2 8 2 --bytes 1K:64K --dtype double)
symm_mpi_test(2x2_bfloat16 4 2 --bytes 2K --dtype bfloat16 --op avg --inplace)
# One machine with two ranks, one with one.
symm_mpi_test(unequal 3 2)
set_tests_properties(06_allreduce_mpi.unequal PROPERTIES
  PASS_REGULAR_EXPRESSION "all machines need the same number of ranks, but they have 2, 1")

# Runs that fail: each ends before its limit or soon after it, and says why.
function(symm_mpi_failure name says)  # a shell command, whose $MPIRUN and $PROGRAM are set
  add_test(NAME 06_allreduce_mpi.${name} COMMAND sh -c "exec 2>&1; ${ARGN}")
  set_tests_properties(06_allreduce_mpi.${name} PROPERTIES LABELS lab06 TIMEOUT 60
    PASS_REGULAR_EXPRESSION "${says}"
    ENVIRONMENT "SYMM_DRIVER=emulated;SYMM_RANKS_PER_NODE=2;MPIRUN=${MPIEXEC_EXECUTABLE};\
PROGRAM=$<TARGET_FILE:06_allreduce_mpi>;${open_mpi}")
endfunction()

# A process that never calls MPI_Init.
symm_mpi_failure(missing "error: MPI_Init_thread did not return within 2 s"
  "SYMM_TIMEOUT=2 $MPIRUN -np 3 $PROGRAM : -np 1 sleep 30")
# Machine 1 cannot join, and machine 0 does not wait for it.
symm_mpi_failure(join "error: rank 0 of machine 1: cuDevicePrimaryCtxRetain"
  "SYMM_TIMEOUT=50 $MPIRUN -np 2 $PROGRAM : -np 2 \
   env SYMM_EMU_FAIL=cuDevicePrimaryCtxRetain:1:CUDA_ERROR_UNKNOWN $PROGRAM")
symm_mpi_failure(output "cannot write to stdout" "$PROGRAM --bytes 1K >/dev/full")
