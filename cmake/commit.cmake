# SPDX-License-Identifier: Apache-2.0
# Run at every build: HEADER says of which commit the sources under SOURCE are. Written anew only where that has changed,
# so that nothing is compiled for it otherwise.
cmake_minimum_required(VERSION 3.25) # a script has no policies of the project
execute_process(COMMAND git -C ${SOURCE} rev-parse --short HEAD OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE
                ERROR_QUIET)
if(commit)
  execute_process(COMMAND git -C ${SOURCE} diff --quiet HEAD -- include src bench cmake CMakeLists.txt
                  RESULT_VARIABLE differs ERROR_QUIET)
  if(differs)
    string(APPEND commit "-modified")
  endif()
else()
  set(commit unknown) # no git, or sources without its folder
endif()
file(CONFIGURE OUTPUT ${HEADER} CONTENT "#define GRAPHI_COMMIT \"@commit@\"\n" @ONLY)
