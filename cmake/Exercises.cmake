# While an exercise of the course is begun, its file has a stub, a planted fault or an answer.
# Nothing is built or installed from such a file; ./lab takes a copy with solutions instead
# (tools/course/check_tree.py). This file is included when CMake configures, which it does again
# when one of those files changes, and by each installation, which copies headers.
block()
  get_filename_component(root "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
  file(GLOB_RECURSE pages "${root}/labs/exercises.toml")
  foreach(page IN LISTS pages)
    file(STRINGS "${page}" files REGEX "^file = ")
    list(TRANSFORM files REPLACE "^file = \"(.*)\"$" "\\1")
    foreach(file IN LISTS files)
      if(NOT EXISTS "${root}/${file}")
        continue()
      endif()
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${root}/${file}")
      file(STRINGS "${root}/${file}" mark REGEX "// exercise [0-9A-Z]+\\.[0-9]" LIMIT_COUNT 1)
      if(mark MATCHES "// exercise ([0-9A-Z]+)(\\.[0-9]+)")
        message(FATAL_ERROR "${file} has exercise ${CMAKE_MATCH_1}${CMAKE_MATCH_2} of the course "
          "in it. `./lab reset ${CMAKE_MATCH_1}` in ${root} restores the file, and keeps your "
          "answer in .course. Or use ./lab build and ./lab install: they build a copy with the "
          "solution.")
      endif()
    endforeach()
  endforeach()
endblock()
