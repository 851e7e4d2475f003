# SPDX-License-Identifier: Apache-2.0
# Benchmarks, and what they compare with where it is installed.

# --- benchmarks: bench/*.c, one program each on bench/lib, public API only ---------------------------------------------------
if(GRAPHI_BENCH AND TARGET graphi_tool)
  file(GLOB bench_library CONFIGURE_DEPENDS bench/lib/*.c)
  add_library(graphi_bench STATIC ${bench_library})
  target_include_directories(graphi_bench PUBLIC bench/lib)
  target_link_libraries(graphi_bench PUBLIC graphi_tool)
  file(GLOB bench_sources CONFIGURE_DEPENDS bench/*.c)
  foreach(source ${bench_sources})
    get_filename_component(name ${source} NAME_WE)
    add_executable(bench_${name} ${source})
    target_link_libraries(bench_${name} PRIVATE graphi_bench)
    if(name STREQUAL "conv_table") # prints a source file, no result
      set_target_properties(bench_${name} PROPERTIES OUTPUT_NAME ${name})
      continue()
    endif()
    set_target_properties(bench_${name} PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
    install(TARGETS bench_${name} DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/graphi)
  endforeach()
  # Tables IV and V of concurrency-control.txt are these experiments under the tables' names.
  foreach(pair table_4:regression table_5:hill_climb)
    string(REPLACE ":" ";" pair ${pair})
    list(GET pair 0 name)
    list(GET pair 1 source)
    add_executable(bench_${name} bench/${source}.c)
    string(REPLACE "_" "-" experiment ${name})
    target_compile_definitions(bench_${name} PRIVATE EXPERIMENT="${experiment}")
    target_link_libraries(bench_${name} PRIVATE graphi_bench)
    set_target_properties(bench_${name} PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
    install(TARGETS bench_${name} DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/graphi)
  endforeach()
endif()

# A library that a program is compared with. Where it was found, its sources join the program; else the program's own
# stand-in (bench/peers/missing.c, MISSING_...) says so in its rows. NAME and PACKAGE are for the message.
function(graphi_peer target macro name package found)
  cmake_parse_arguments(PARSE_ARGV 5 peer "" "OPTIONS" "SOURCES;INCLUDES;LIBRARIES")
  if(found)
    target_sources(${target} PRIVATE ${peer_SOURCES})
    target_include_directories(${target} SYSTEM PRIVATE ${peer_INCLUDES})
    target_link_libraries(${target} PRIVATE ${peer_LIBRARIES})
    if(peer_OPTIONS)
      set_source_files_properties(${peer_SOURCES} PROPERTIES COMPILE_OPTIONS "${peer_OPTIONS}")
    endif()
  else()
    message(STATUS "graphi: ${name} not found (${package}): its rows will say so")
    target_compile_definitions(${target} PRIVATE MISSING_${macro})
  endif()
endfunction()

if(TARGET test_waiting)
  target_include_directories(test_waiting PRIVATE bench)
  target_link_libraries(test_waiting PRIVATE graphi_bench)
endif()

# Peers of the scheduling experiment: C++ and OpenMP only here.
if(TARGET bench_scheduling_cost)
  target_sources(bench_scheduling_cost PRIVATE bench/peers/missing.c bench/peers/loops.c)
  target_include_directories(bench_scheduling_cost PRIVATE bench)
  include(CheckLanguage)
  check_language(CXX)
  if(CMAKE_CXX_COMPILER)
    enable_language(CXX)
    find_package(TBB QUIET CONFIG)
  endif()
  find_package(OpenMP QUIET COMPONENTS C)
  graphi_peer(bench_scheduling_cost TBB oneTBB libtbb-dev "${TBB_FOUND}" SOURCES bench/peers/tbb.cpp LIBRARIES TBB::tbb
              OPTIONS "-std=c++17")
  if(GRAPHI_SANITIZE AND TBB_FOUND) # its flow graph casts to a class that the object is not
    set_property(SOURCE bench/peers/tbb.cpp APPEND PROPERTY COMPILE_OPTIONS -fno-sanitize=vptr)
  endif()
  graphi_peer(bench_scheduling_cost OPENMP OpenMP libgomp "${OpenMP_C_FOUND}" SOURCES bench/peers/openmp.c
              LIBRARIES OpenMP::OpenMP_C OPTIONS "${OpenMP_C_FLAGS}")
  pkg_check_modules(STARPU QUIET starpu-1.3)
  graphi_peer(bench_scheduling_cost STARPU StarPU libstarpu-dev "${STARPU_FOUND}" SOURCES bench/peers/starpu.c
              INCLUDES ${STARPU_INCLUDE_DIRS} LIBRARIES ${STARPU_LINK_LIBRARIES})
endif()

# Peers of the kernel experiment.
if(TARGET bench_kernels)
  file(GLOB kernel_sources CONFIGURE_DEPENDS bench/rows/*.c)
  set_source_files_properties(bench/rows/roof.c PROPERTIES COMPILE_OPTIONS -O3) # vectors of the widest kind
  target_sources(bench_kernels PRIVATE ${kernel_sources} bench/frameworks/peer.c bench/peers/missing.c)
  target_compile_definitions(bench_kernels PRIVATE FRAMEWORKS_SOURCE="${PROJECT_SOURCE_DIR}/bench/frameworks")
  target_include_directories(bench_kernels PRIVATE bench)
  pkg_check_modules(OPENBLAS QUIET openblas)
  graphi_peer(bench_kernels OPENBLAS OpenBLAS libopenblas-dev "${OPENBLAS_FOUND}" SOURCES bench/peers/openblas.c
              INCLUDES ${OPENBLAS_INCLUDE_DIRS} LIBRARIES ${OPENBLAS_LINK_LIBRARIES})
  find_library(DNNL_LIBRARY dnnl)
  if(DNNL_LIBRARY AND OpenMP_C_FOUND)
    set(DNNL_FOUND TRUE)
  endif()
  graphi_peer(bench_kernels ONEDNN oneDNN libdnnl-dev "${DNNL_FOUND}"
              SOURCES bench/peers/onednn.c bench/peers/onednn_call.c bench/peers/onednn_memory.c
              LIBRARIES ${DNNL_LIBRARY} OpenMP::OpenMP_C OPTIONS "${OpenMP_C_FLAGS}")
  find_path(XSMM_INCLUDE libxsmm.h)
  find_library(XSMM_LIBRARY NAMES libxsmm.a xsmm)
  find_library(XSMM_NOBLAS NAMES libxsmmnoblas.a xsmmnoblas)
  if(XSMM_INCLUDE AND XSMM_LIBRARY AND XSMM_NOBLAS)
    set(XSMM_FOUND TRUE)
  endif()
  graphi_peer(bench_kernels LIBXSMM LIBXSMM libxsmm-dev "${XSMM_FOUND}" SOURCES bench/peers/libxsmm.c
              INCLUDES ${XSMM_INCLUDE} LIBRARIES ${XSMM_LIBRARY} ${XSMM_NOBLAS} ${CMAKE_DL_LIBS})
endif()

# Peers that run in Python environments of their own.
if(TARGET bench_frameworks)
  target_sources(bench_frameworks PRIVATE bench/frameworks/ours.c bench/frameworks/alone.c bench/frameworks/beside.c
                 bench/frameworks/turns.c)
  target_sources(bench_bfloat16 PRIVATE bench/frameworks/ours.c bench/frameworks/turns.c)
  target_sources(bench_recurrent PRIVATE bench/frameworks/ours.c bench/frameworks/turns.c bench/frameworks/serving.c)
  target_sources(bench_inference PRIVATE bench/frameworks/ours.c bench/frameworks/turns.c bench/frameworks/serving.c)
  target_sources(bench_dynamic PRIVATE bench/frameworks/ours.c bench/frameworks/turns.c bench/frameworks/graphs_beside.c)
  foreach(name frameworks bfloat16 inference python recurrent dynamic regression table_4 run_cost)
    target_sources(bench_${name} PRIVATE bench/frameworks/peer.c)
    target_include_directories(bench_${name} PRIVATE bench)
    target_compile_definitions(bench_${name} PRIVATE FRAMEWORKS_SOURCE="${PROJECT_SOURCE_DIR}/bench/frameworks")
    target_link_libraries(bench_${name} PRIVATE m)
  endforeach()
  if(TARGET test_peer)
    target_sources(test_peer PRIVATE bench/frameworks/ours.c bench/frameworks/peer.c)
    target_include_directories(test_peer PRIVATE bench)
    target_link_libraries(test_peer PRIVATE graphi_bench)
  endif()
  install(DIRECTORY bench/frameworks/ DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/graphi/frameworks-peers
          FILES_MATCHING PATTERN "*.py" PATTERN "setup.sh" PATTERN "__pycache__" EXCLUDE)
endif()
