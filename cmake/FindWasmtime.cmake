# Wasmtime::wasmtime: the Wasmtime C API in its official layout (include/, lib/) under
# BH_WASMTIME_ROOT. scripts/setup.sh fills the default folder. A static library is preferred where
# both are there.
#
# Wasmtime_VERSION, WASMTIME_LIBRARY and WASMTIME_INCLUDE_DIR describe what was found.

# A root named by the user wins at every configuration, also over what the cache remembers.
set(BH_WASMTIME_ROOT "" CACHE PATH
    "Wasmtime C API: a folder with include/ and lib/; empty: build/deps/wasmtime")
set(bh_wasmtime_root "${BH_WASMTIME_ROOT}")
if(NOT bh_wasmtime_root)
  set(bh_wasmtime_root "$ENV{BH_WASMTIME_ROOT}")
endif()
if(NOT bh_wasmtime_root)
  set(bh_wasmtime_root "${PROJECT_SOURCE_DIR}/build/deps/wasmtime")
endif()
if(NOT bh_wasmtime_root STREQUAL BH_WASMTIME_FOUND_ROOT)
  unset(WASMTIME_INCLUDE_DIR CACHE)
  unset(WASMTIME_LIBRARY CACHE)
  set(BH_WASMTIME_FOUND_ROOT "${bh_wasmtime_root}" CACHE INTERNAL "root of the found files")
endif()

find_path(WASMTIME_INCLUDE_DIR wasmtime.h HINTS "${bh_wasmtime_root}/include" NO_DEFAULT_PATH)
find_library(WASMTIME_LIBRARY NAMES libwasmtime.a libwasmtime.so
             HINTS "${bh_wasmtime_root}/lib" "${bh_wasmtime_root}/lib64" NO_DEFAULT_PATH)
mark_as_advanced(WASMTIME_INCLUDE_DIR WASMTIME_LIBRARY)

if(WASMTIME_INCLUDE_DIR)
  file(STRINGS "${WASMTIME_INCLUDE_DIR}/wasmtime.h" bh_wasmtime_version
       REGEX "#define WASMTIME_VERSION ")
  string(REGEX REPLACE ".*\"([0-9.]+)\".*" "\\1" Wasmtime_VERSION "${bh_wasmtime_version}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Wasmtime
  REQUIRED_VARS WASMTIME_LIBRARY WASMTIME_INCLUDE_DIR
  VERSION_VAR Wasmtime_VERSION
  REASON_FAILURE_MESSAGE
    "no Wasmtime C API under ${bh_wasmtime_root}: run scripts/setup.sh, or set BH_WASMTIME_ROOT")

if(Wasmtime_FOUND AND NOT TARGET Wasmtime::wasmtime)
  if(WASMTIME_LIBRARY MATCHES "\\.so$")
    add_library(Wasmtime::wasmtime SHARED IMPORTED)
    # The released library names no SONAME; without this its absolute path would end up in the
    # programs.
    set_target_properties(Wasmtime::wasmtime PROPERTIES IMPORTED_NO_SONAME TRUE)
  else()
    add_library(Wasmtime::wasmtime STATIC IMPORTED)
    set_target_properties(Wasmtime::wasmtime PROPERTIES
      INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS};m")
  endif()
  # System headers: they are not clean under the warnings of this project.
  set_target_properties(Wasmtime::wasmtime PROPERTIES
    IMPORTED_LOCATION "${WASMTIME_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${WASMTIME_INCLUDE_DIR}"
    INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${WASMTIME_INCLUDE_DIR}")
endif()
