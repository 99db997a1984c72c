# symm_refuse_unseen_functions(PROGRAM [function...]): PROGRAM's build fails if its own code calls a
# function that is not instrumented, since the explorer would not see its accesses. The functions
# given are allowed. So are those of C++ and fmt, with which scenes are set up, what the explorer
# has replaced, what accesses no memory that threads could share, and output, of which only texts
# could be such memory.
#
# As a script it does that, when PROGRAM is linked:
# cmake -DNM=nm -DPROGRAM=name -DALLOWED=a|b -DOBJECTS=a.o|b.o -P ExploredFunctions.cmake
function(symm_refuse_unseen_functions program)
  list(JOIN ARGN "|" allowed)
  add_custom_command(TARGET ${program} PRE_LINK VERBATIM COMMAND "${CMAKE_COMMAND}"
    "-DNM=${CMAKE_NM}" "-DPROGRAM=${program}" "-DALLOWED=${allowed}"
    "-DOBJECTS=$<JOIN:$<TARGET_OBJECTS:${program}>,|>"
    -P "${CMAKE_CURRENT_FUNCTION_LIST_FILE}")
endfunction()
if(NOT CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  return()
endif()

set(replaced "memcpy|memmove|memset|memcmp|bcmp|strcmp|strlen|memchr|strchr|\
__mem(cpy|move|set)_chk")
set(compilers "__(tsan|ubsan_handle)_[a-z0-9_]*|__cxa_[a-z_]*|__g(xx|cc)_personality_v0|\
_Unwind_Resume|__dso_handle|\
__dynamic_cast|__stack_chk_fail|__assert_fail|abort|_GLOBAL_OFFSET_TABLE_")
set(output "printf|fprintf|puts|putchar|fflush|stdout|stderr|_Exit")  # so ends an unsolved exercise
set(waiting "sched_yield|nanosleep|pthread_self|__errno_location|__libc_single_threaded")
set(numbers "(sqrt|cbrt|fma|fmin|fmax|fabs|fmod|remainder|copysign|hypot|floor|ceil|round|trunc|\
rint|nearbyint|lround|llround|lrint|llrint|exp|exp2|expm1|log|log2|log10|log1p|pow|ldexp|sin|cos|\
tan|asin|acos|atan|atan2|sinh|cosh|tanh|erf|erfc)[fl]?|\
__(mul|div)[sdx]c3|__u?(div|mod)ti3")  # the last are of complex numbers, and of 16 bytes
# Templates' names begin with the type that they return, and have no arguments here.
set(mangled "operator (new|delete).*|\
(.* )?(std|fmt|symm|__cxxabiv1|__gnu_cxx)::[^ ]*(operator .*)?|\
(vtable|typeinfo|VTT|guard variable) .*")
set(refused "std::(random_device|thread|jthread)::.*|__cxa_throw")

string(REPLACE "|" ";" objects "${OBJECTS}")
list(FILTER objects EXCLUDE REGEX "\\.pch$")
execute_process(COMMAND "${NM}" --demangle ${objects} OUTPUT_VARIABLE symbols
                COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE ";" "," symbols "${symbols}")
string(REGEX REPLACE "\\[(abi:[^]]*)?\\]?|\\]" "" symbols "${symbols}")  # lists need pairs of them
string(REPLACE "\n" ";" symbols "${symbols}")
set(undefined)
set(defined)
foreach(line IN LISTS symbols)
  if(line MATCHES "^ +[Uwv] (.+)$")
    list(APPEND undefined "${CMAKE_MATCH_1}")
  elseif(line MATCHES "^[0-9a-f]+ . (.+)$")
    list(APPEND defined "${CMAKE_MATCH_1}")
  endif()
endforeach()
list(REMOVE_ITEM undefined ${defined} "")
list(REMOVE_DUPLICATES undefined)
set(unseen)
foreach(symbol IN LISTS undefined)
  set(name "${symbol}")
  while(name MATCHES "<[^<>]*>")
    string(REGEX REPLACE "<[^<>]*>" "" name "${name}")
  endwhile()
  string(REGEX REPLACE "\\(.*" "" name "${name}")
  string(STRIP "${name}" name)
  if(NOT name MATCHES "^(${ALLOWED})$" AND (name MATCHES "^(${refused})$" OR
     NOT name MATCHES "^(${replaced}|${compilers}|${output}|${waiting})$" AND
     NOT name MATCHES "^(${numbers}|${mangled})$"))
    list(APPEND unseen "${name}")
  endif()
endforeach()
if(unseen)
  list(JOIN unseen ", " names)
  string(REPLACE "__cxa_throw" "throw (__cxa_throw)" names "${names}")
  list(JOIN unseen " " arguments)
  message(FATAL_ERROR "${PROGRAM} calls functions whose accesses of memory the explorer would not "
    "see: ${names}. Do without them in scenes. If they access nothing that threads share, allow "
    "them: ALLOW ${arguments} at the end of symm_add_exploration() or symm_explored().")
endif()
