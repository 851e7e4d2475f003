# SPDX-License-Identifier: Apache-2.0
# The extension of the Python package, for pip (pyproject.toml): declarations from the public headers, operations from the table. It is
# of the stable interface, for CPython 3.9 and newer. Free-threaded builds have no such interface.
find_package(Python 3.9 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(COMMAND ${Python_EXECUTABLE} -c "import sysconfig; print(sysconfig.get_config_var('Py_GIL_DISABLED') or 0)"
                OUTPUT_VARIABLE free_threaded OUTPUT_STRIP_TRAILING_WHITESPACE)
if(free_threaded EQUAL 1)
  message(FATAL_ERROR "graphi: found a free-threaded Python (${Python_EXECUTABLE}), expected one with its lock: the package is of the "
                      "stable interface, which free-threaded builds lack")
endif()
set(native ${CMAKE_BINARY_DIR}/python/native.c)
set(operations ${CMAKE_BINARY_DIR}/python/operations)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/python)
file(GLOB headers CONFIGURE_DEPENDS include/graphi/*.h)
add_custom_command(OUTPUT ${native}
  COMMAND ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/python/generate_native.py --include ${PROJECT_SOURCE_DIR}/include --out ${native}
          --cc ${CMAKE_C_COMPILER}
  DEPENDS python/generate_native.py ${headers} VERBATIM)
add_custom_command(OUTPUT ${operations}.py
  COMMAND generate_ops json > ${operations}.json
  COMMAND ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/python/generate_operations.py ${operations}.json ${operations}.py
  DEPENDS generate_ops python/generate_operations.py VERBATIM)
add_library(graphi_python MODULE ${native} ${operations}.py)
set_target_properties(graphi_python PROPERTIES PREFIX "" OUTPUT_NAME _native SUFFIX .abi3.so)
target_compile_definitions(graphi_python PRIVATE Py_LIMITED_API=0x03090000)
target_compile_options(graphi_python PRIVATE -w) # generated
target_include_directories(graphi_python PRIVATE ${Python_INCLUDE_DIRS})
target_link_libraries(graphi_python PRIVATE graphi_static)
target_link_options(graphi_python PRIVATE -Wl,--exclude-libs,ALL -Wl,-z,nodelete)
install(TARGETS graphi_python LIBRARY DESTINATION graphi COMPONENT python)
install(FILES ${operations}.py DESTINATION graphi COMPONENT python)
install(TARGETS graphi_cli RUNTIME DESTINATION graphi/bin COMPONENT python)
