# What `cmake --install` lays out:
#   bin/bulkhead                     the command
#   libexec/bulkhead/                worker programs, and the engine library that they load
#   include/bulkhead/                the public headers
#   lib/libbulkhead.a                bulkhead::bulkhead, the parent side
#   lib/libbulkhead_worker.a         bulkhead::worker, for authors of worker programs
#   lib/cmake/Bulkhead/, lib/pkgconfig/bulkhead.pc
#   share/                           man page and shell completions, where the build makes them
# The layout may be moved as a whole: nothing in it names the prefix.
include(CMakePackageConfigHelpers)

# Each side is one archive for its users, made of the objects of the folders' libraries. Folder
# libraries are internal: their number and names are not part of the interface.
function(bh_public_library target name)
  set(objects "")
  foreach(folder IN LISTS ARGN)
    list(APPEND objects "$<TARGET_OBJECTS:bh_${folder}>")
  endforeach()
  add_library(${target} STATIC ${objects})
  add_library(bulkhead::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX EXPORT_NAME ${name})
  target_compile_features(${target} INTERFACE cxx_std_20)
  target_include_directories(${target} INTERFACE
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  target_link_libraries(${target} INTERFACE fmt::fmt tl::expected Threads::Threads)
endfunction()

bh_public_library(bh_parent_archive bulkhead
                  base wire contract process staging admission codecache supervise oneshot)
set_target_properties(bh_parent_archive PROPERTIES OUTPUT_NAME bulkhead)
target_link_libraries(bh_parent_archive INTERFACE OpenSSL::Crypto)

bh_public_library(bh_worker_archive worker base_w wire_w worker)
set_target_properties(bh_worker_archive PROPERTIES OUTPUT_NAME bulkhead_worker)

install(TARGETS bh_parent_archive bh_worker_archive EXPORT BulkheadTargets
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/bulkhead"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h")

# Workers find the engine beside themselves, wherever the installation is moved.
set(bh_libexec_dir "${CMAKE_INSTALL_LIBEXECDIR}/bulkhead")
install(TARGETS bulkhead RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(TARGETS bulkhead-wasm-worker RUNTIME DESTINATION "${bh_libexec_dir}")
if(WASMTIME_LIBRARY MATCHES "\\.so$")
  install(PROGRAMS "${WASMTIME_LIBRARY}" DESTINATION "${bh_libexec_dir}")
endif()
# The engine's licence goes where its code goes, also when that is linked in.
install(FILES "${WASMTIME_INCLUDE_DIR}/../LICENSE"
        DESTINATION "${CMAKE_INSTALL_DOCDIR}" RENAME LICENSE.wasmtime OPTIONAL)

install(DIRECTORY "${PROJECT_BINARY_DIR}/share/"
        DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}" OPTIONAL)
foreach(document LICENSE NOTICE README.md)
  if(EXISTS "${PROJECT_SOURCE_DIR}/${document}")
    install(FILES "${PROJECT_SOURCE_DIR}/${document}" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
  endif()
endforeach()

set(bh_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Bulkhead")
install(EXPORT BulkheadTargets NAMESPACE bulkhead:: DESTINATION "${bh_cmake_dir}")
configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/BulkheadConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/package/BulkheadConfig.cmake" INSTALL_DESTINATION "${bh_cmake_dir}")
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/package/BulkheadConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/package/BulkheadConfig.cmake"
              "${PROJECT_BINARY_DIR}/package/BulkheadConfigVersion.cmake"
        DESTINATION "${bh_cmake_dir}")

set(bh_pc_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
file(RELATIVE_PATH bh_pc_prefix "/${bh_pc_dir}" "/")
configure_file("${PROJECT_SOURCE_DIR}/cmake/bulkhead.pc.in"
               "${PROJECT_BINARY_DIR}/package/bulkhead.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/package/bulkhead.pc" DESTINATION "${bh_pc_dir}")
