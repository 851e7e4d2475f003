# SPDX-License-Identifier: Apache-2.0
# Tests in C, Python and shell, and fuzz targets.

# --- tests: tests/test_*.c, one program each, linked with the static objects so that internal headers may be used ---------
if(GRAPHI_TESTS)
  enable_testing()
  set(GRAPHI_TEST_SECONDS 300 CACHE STRING "Limit of a test; a busy machine needs more")
  math(EXPR long_seconds "3 * ${GRAPHI_TEST_SECONDS}")
  pkg_check_modules(CMOCKA REQUIRED cmocka)
  file(GLOB test_sources CONFIGURE_DEPENDS tests/test_*.c)
  if(NOT GRAPHI_BENCH)
    list(FILTER test_sources EXCLUDE REGEX "/test_(peer|waiting)[.]c$") # test parts of the benchmarks
  endif()
  foreach(source ${test_sources})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    target_include_directories(${name} PRIVATE tests ${CMOCKA_INCLUDE_DIRS})
    target_link_libraries(${name} PRIVATE graphi_build graphi_static ${CMOCKA_LIBRARIES})
    add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${GRAPHI_TEST_SECONDS} ENVIRONMENT "GRAPHI_BIN=${CMAKE_BINARY_DIR}/graphi")
  endforeach()
  # Labels. `unit`: what sanitizers run after every `make test` (tools/test_sanitized.sh); whole networks, graphs of 100,000 operations
  # and what repeats a plan for each allocation that fails wait for tools/test_long.sh, since a sanitizer makes them minutes.
  # `threads`: tests that start threads or execute plans, a race elsewhere is impossible; whole networks aside. test_resident counts
  # pages, and ThreadSanitizer has pages of its own.
  # The second row has not been timed under a sanitizer as a whole yet.
  set(heavy allot curves data faults gemm identity large_graphs memory_plan networks profile resident run workloads
      rounding scratch shared_core stages state static streaming tables target trace updates wavefront workers)
  set(unthreaded large_graphs networks resident workloads)
  foreach(source ${test_sources})
    get_filename_component(name ${source} NAME_WE)
    string(REPLACE "test_" "" idea ${name})
    file(STRINGS ${source} threaded REGEX "pthread_|graphi_run_execute|graphi_plan_(tune|profile)|schedule_run|session[.]h" LIMIT_COUNT 1)
    set(labels)
    if(NOT idea IN_LIST heavy)
      list(APPEND labels unit)
    endif()
    if(threaded AND NOT idea IN_LIST unthreaded)
      list(APPEND labels threads)
    endif()
    set_tests_properties(${name} PROPERTIES LABELS "${labels}")
  endforeach()
  # It counts calls of the heap, also the C library's own that the linker sees.
  target_link_options(test_run PRIVATE -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc,--wrap=posix_memalign)
  set_tests_properties(test_scheduler PROPERTIES TIMEOUT ${long_seconds}) # a few seconds, but where others take its cores
endif()

# Tests of the tree and of the command, in Python and shell. What they print tells which part failed.
if(GRAPHI_TESTS AND TARGET graphi_cli)
  find_program(PYTHON NAMES python3)
  if(PYTHON)
    set(structure ${PYTHON} ${PROJECT_SOURCE_DIR}/tests/test_structure.py --source ${PROJECT_SOURCE_DIR} --build ${CMAKE_BINARY_DIR})
    add_test(NAME test_structure COMMAND ${structure})
    add_test(NAME test_structure_faults COMMAND ${structure} --self-test)
    add_test(NAME test_results COMMAND ${PYTHON} ${PROJECT_SOURCE_DIR}/tests/test_results.py)
    if(GRAPHI_BENCH)
      set(documented ${PYTHON} ${PROJECT_SOURCE_DIR}/tests/test_docs.py --build ${CMAKE_BINARY_DIR})
      add_test(NAME test_docs COMMAND ${documented})
      add_test(NAME test_docs_faults COMMAND ${documented} --self-test)
    endif()
    set(command_tests test_cli test_cli_bench test_cli_data test_cli_memory test_cli_onnx test_cli_plans test_cli_resume test_cli_show test_cli_signals test_cli_solvers test_cli_trees test_cli_use test_cli_words
        test_simulated)
    foreach(name ${command_tests})
      add_test(NAME ${name} COMMAND ${PYTHON} ${PROJECT_SOURCE_DIR}/tests/${name}.py --build ${CMAKE_BINARY_DIR})
    endforeach()
    add_test(NAME test_python COMMAND ${PYTHON} ${PROJECT_SOURCE_DIR}/tests/test_python.py --build ${CMAKE_BINARY_DIR})
    add_test(NAME test_python_wheel COMMAND ${PYTHON} ${PROJECT_SOURCE_DIR}/tests/test_python_wheel.py --build ${CMAKE_BINARY_DIR})
    set(python_tests test_python test_python_wheel)
    foreach(name test_python_session test_python_train test_python_types)
      add_test(NAME ${name} COMMAND ${PYTHON} ${PROJECT_SOURCE_DIR}/tests/${name}.py --build ${CMAKE_BINARY_DIR})
      list(APPEND python_tests ${name})
    endforeach()
    set_tests_properties(${python_tests} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT ${long_seconds})
    set_tests_properties(test_python_wheel PROPERTIES LABELS long)
    if(GRAPHI_SANITIZE) # its runtime would have to come before Python's
      set_tests_properties(${python_tests} PROPERTIES DISABLED ON)
    endif()
    add_test(NAME test_regression COMMAND ${PYTHON} ${PROJECT_SOURCE_DIR}/tests/test_regression.py --build ${CMAKE_BINARY_DIR})
    add_test(NAME test_timeline COMMAND ${PYTHON} ${PROJECT_SOURCE_DIR}/tests/test_timeline.py --build ${CMAKE_BINARY_DIR})
    set_tests_properties(test_timeline PROPERTIES LABELS long)
    add_test(NAME test_ranks COMMAND ${PYTHON} ${PROJECT_SOURCE_DIR}/tests/test_ranks.py --build ${CMAKE_BINARY_DIR})
    set_tests_properties(test_ranks PROPERTIES LABELS long SKIP_RETURN_CODE 77 TIMEOUT ${GRAPHI_TEST_SECONDS})
    add_executable(traffic tests/traffic.c)
    target_link_libraries(traffic PRIVATE graphi_static)
    add_test(NAME test_traffic COMMAND ${PYTHON} ${PROJECT_SOURCE_DIR}/tests/test_traffic.py --build ${CMAKE_BINARY_DIR})
    set_tests_properties(test_traffic PROPERTIES LABELS long SKIP_RETURN_CODE 77 TIMEOUT ${GRAPHI_TEST_SECONDS})
    set_tests_properties(${command_tests} test_timeline PROPERTIES TIMEOUT ${long_seconds}) # a few seconds, but under a sanitizer
  else()
    message(STATUS "graphi: python3 not found: the tests of structure and command line are left out")
  endif()
  add_test(NAME test_system COMMAND ${PROJECT_SOURCE_DIR}/tests/test_system.sh ${PROJECT_SOURCE_DIR})
  add_test(NAME test_install COMMAND ${PROJECT_SOURCE_DIR}/tests/test_install.sh ${PROJECT_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  set(flags)
  if(GRAPHI_SANITIZE)
    set(flags "-fsanitize=${GRAPHI_SANITIZE}")
  endif()
  set_tests_properties(test_install PROPERTIES TIMEOUT ${GRAPHI_TEST_SECONDS} ENVIRONMENT "CC=${CMAKE_C_COMPILER};GRAPHI_TEST_FLAGS=${flags}")
endif()

# The networks of the second paper by the same program.
if(TARGET test_networks)
  add_test(NAME test_networks_workloads COMMAND test_networks tests/data/reference_workloads.json WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  add_test(NAME test_networks_solvers COMMAND test_networks tests/data/reference_solvers.json WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(test_networks_workloads test_networks_solvers PROPERTIES TIMEOUT ${GRAPHI_TEST_SECONDS})
endif()

# --- fuzzing: tests/fuzz/fuzz_*.c, each with driver.c, which mutates the target's seeds; a few iterations a test run --------
if(GRAPHI_TESTS)
  set(GRAPHI_FUZZ_ITERATIONS 20000 CACHE STRING "Inputs per fuzz target in the tests")
  file(GLOB fuzz_sources CONFIGURE_DEPENDS tests/fuzz/fuzz_*.c)
  foreach(source ${fuzz_sources})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source} tests/fuzz/driver.c)
    target_include_directories(${name} PRIVATE tests/fuzz)
    target_link_libraries(${name} PRIVATE graphi_build graphi_tool)
    add_test(NAME ${name} COMMAND ${name} ${GRAPHI_FUZZ_ITERATIONS})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${GRAPHI_TEST_SECONDS} LABELS fuzz)
  endforeach()
endif()

# Tests run side by side (`make test`): those that take longest begin first, in this order, so that none runs on alone at the end.
if(GRAPHI_TESTS)
  set(longest test_cli_plans test_cli_bench test_cli_data test_identity test_cli test_cli_words test_workloads test_networks_workloads test_gemm
      test_allot test_networks test_cli_signals test_cli_resume test_large_graphs fuzz_plan test_cli_use test_run fuzz_curves test_tune
      test_memory_plan test_install test_layers_kernels)
  list(LENGTH longest cost)
  foreach(name ${longest})
    if(TEST ${name})
      set_tests_properties(${name} PROPERTIES COST ${cost})
    endif()
    math(EXPR cost "${cost} - 1")
  endforeach()
endif()
