# SPDX-License-Identifier: Apache-2.0
# What `make install` puts where: libraries, headers, pkg-config file, CMake package, the command with its man page and
# completion, benchmark programs, machine descriptions, examples. Included last: it looks at the targets that exist.
include(CMakePackageConfigHelpers)

# The static library as others get it is one object whose hidden symbols are local: a user's function called `fail` or `arena_init`
# neither clashes with ours nor replaces it. Inside the tree the archive of plain objects is used (tests call internals).
set(merged ${CMAKE_BINARY_DIR}/merged)
file(WRITE ${merged}/objects.rsp.in "\"$<JOIN:${objects},\"\n\">\"\n") # quoted: the linker splits lines at blanks
file(GENERATE OUTPUT ${merged}/objects.rsp INPUT ${merged}/objects.rsp.in)
add_custom_command(OUTPUT ${merged}/libgraphi.a
  COMMAND ${CMAKE_LINKER} -r -o ${merged}/graphi.o @${merged}/objects.rsp
  COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${merged}/graphi.o
  COMMAND ${CMAKE_COMMAND} -E rm -f ${merged}/libgraphi.a
  COMMAND ${CMAKE_AR} qcs ${merged}/libgraphi.a ${merged}/graphi.o
  DEPENDS ${layers} ${objects} ${merged}/objects.rsp
  COMMENT "Merging objects into libgraphi.a, hidden symbols local" VERBATIM)
add_custom_target(graphi_merged ALL DEPENDS ${merged}/libgraphi.a)
install(FILES ${merged}/libgraphi.a DESTINATION ${CMAKE_INSTALL_LIBDIR})

install(TARGETS graphi EXPORT graphi-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/graphi DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(DIRECTORY machines DESTINATION ${CMAKE_INSTALL_DATADIR}/graphi FILES_MATCHING PATTERN "*.json")
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR}
  FILES_MATCHING PATTERN "*.c" PATTERN "*.map" PATTERN "*.dag" PATTERN "CMakeLists.txt" PATTERN "build*" EXCLUDE)
install(PROGRAMS tools/from_pytorch.py DESTINATION ${CMAKE_INSTALL_DATADIR}/graphi)

# pkg-config and CMake packages.
set(GRAPHI_STATIC_NAMES hwloc jansson nettle z protobuf-c m ${CMAKE_DL_LIBS})
set(GRAPHI_PC_LIBS -lhwloc -ljansson -lnettle -lz -lprotobuf-c -pthread -lm)
foreach(library ${CMAKE_DL_LIBS})
  list(APPEND GRAPHI_PC_LIBS -l${library})
endforeach()
list(JOIN GRAPHI_PC_LIBS " " GRAPHI_PC_LIBS)
file(RELATIVE_PATH GRAPHI_PC_UP /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" GRAPHI_PC_UP "${GRAPHI_PC_UP}")
configure_file(cmake/graphi.pc.in graphi.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/graphi.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/graphi)
configure_package_config_file(cmake/graphi-config.cmake.in graphi-config.cmake INSTALL_DESTINATION ${package}
  PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(graphi-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/graphi-config.cmake ${CMAKE_BINARY_DIR}/graphi-config-version.cmake DESTINATION ${package})
install(EXPORT graphi-targets NAMESPACE graphi:: DESTINATION ${package})

# The command tells its own manual and completion.
if(TARGET graphi_cli)
  set(share ${CMAKE_BINARY_DIR}/share)
  file(MAKE_DIRECTORY ${share})
  add_custom_command(OUTPUT ${share}/graphi.1 ${share}/graphi ${share}/_graphi ${share}/graphi.fish
    COMMAND graphi_cli help man > ${share}/graphi.1
    COMMAND graphi_cli help bash > ${share}/graphi
    COMMAND graphi_cli help zsh > ${share}/_graphi
    COMMAND graphi_cli help fish > ${share}/graphi.fish
    DEPENDS graphi_cli COMMENT "Writing the man page and the completion" VERBATIM)
  add_custom_target(graphi_manual ALL DEPENDS ${share}/graphi.1 ${share}/graphi)
  install(TARGETS graphi_cli DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES ${share}/graphi.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${share}/graphi DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${share}/_graphi DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
  install(FILES ${share}/graphi.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()

if(TARGET graphi_mpi)
  install(TARGETS graphi_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/graphi)
endif()
