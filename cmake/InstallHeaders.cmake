# Copies HEADERS and all headers that they include, directly or not, from SOURCE to DESTINATION.
# There all of them lie in symm/, and name each other by it: an installed `common/` or `labs/` could
# be taken for a folder of the user's project.

cmake_policy(VERSION 3.25)
set(headers ${HEADERS})
set(done)
while(headers)
  list(POP_FRONT headers header)
  list(APPEND done ${header})
  file(READ "${SOURCE}/${header}" text)
  string(REGEX MATCHALL "#include \"[^\"]+" includes "${text}")
  list(TRANSFORM includes REPLACE "#include \"" "")
  list(APPEND headers ${includes})
  list(REMOVE_ITEM headers ${done})
  list(REMOVE_DUPLICATES headers)
  string(REGEX REPLACE "#include \"(symm/)?" "#include \"symm/" text "${text}")
  string(REGEX REPLACE "^symm/(include/symm/)?" "" place "${header}")
  file(CONFIGURE OUTPUT "${DESTINATION}/symm/${place}" CONTENT "@text@" @ONLY)
endwhile()
