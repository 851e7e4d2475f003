# SPDX-License-Identifier: Apache-2.0
# Cross-compiling for 64-bit ARM, which runs the plain kernels: build/arm-root holds its libraries (tools/arm_root.sh), the emulator its tests.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(arm_root ${CMAKE_CURRENT_LIST_DIR}/../build/arm-root)
set(CMAKE_FIND_ROOT_PATH ${arm_root})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${arm_root})
set(ENV{PKG_CONFIG_LIBDIR} ${arm_root}/usr/lib/aarch64-linux-gnu/pkgconfig)
# Debian's compiler for a foreign machine does not search the multiarch folders of this root.
set(arm_libraries ${arm_root}/usr/lib/aarch64-linux-gnu)
set(CMAKE_C_FLAGS_INIT "-isystem \"${arm_root}/usr/include/aarch64-linux-gnu\"")
set(link_flags "\"-L${arm_libraries}\" \"-Wl,-rpath-link,${arm_libraries}:${arm_root}/lib/aarch64-linux-gnu\"")
set(CMAKE_EXE_LINKER_FLAGS_INIT ${link_flags})
set(CMAKE_SHARED_LINKER_FLAGS_INIT ${link_flags})
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64;-L;/usr/aarch64-linux-gnu;-E;LD_LIBRARY_PATH=${arm_libraries}:${arm_root}/lib/aarch64-linux-gnu)
