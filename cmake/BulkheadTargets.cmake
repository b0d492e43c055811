# bh_library(name [WORKER] DEPS ...): all src/<name>/*.cc but tests -> bh_<name>; its *_test.cc
# -> <name>_test. Those of BH_BOTH_TOWERS exist twice: bh_<name> (parent flags) and bh_<name>_w
# (worker flags).
# bh_program(name [WORKER] DEPS ...): apps/<name>/*.cc -> program <name> in <build>/bin.
# bh_test(name [TIMEOUT SECONDS] [LABELS ...] SOURCES ... DEPS ...): a GoogleTest program registered
# test by test.

set(BH_BOTH_TOWERS base wire contract)

function(bh_flags target worker)
  target_compile_options(${target} PRIVATE ${BH_WARNING_FLAGS} ${BH_HARDEN_COMPILE_FLAGS})
  target_link_options(${target} PRIVATE ${BH_HARDEN_LINK_FLAGS})
  target_include_directories(${target} PUBLIC "${PROJECT_SOURCE_DIR}/src"
                             $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
  if(BH_SANITIZE_FLAGS AND (NOT worker OR BH_SANITIZE_WORKERS))
    target_compile_options(${target} PRIVATE ${BH_SANITIZE_FLAGS})
    target_link_options(${target} PRIVATE ${BH_SANITIZE_FLAGS})
  endif()
endfunction()

function(bh_add_static target worker sources deps)
  add_library(${target} STATIC ${sources})
  bh_flags(${target} ${worker})
  target_link_libraries(${target} PUBLIC ${deps} Threads::Threads)
endfunction()

function(bh_resolve_deps out suffix)
  set(resolved "")
  foreach(dep IN LISTS ARGN)
    if(dep STREQUAL "fmt::fmt" AND suffix STREQUAL "_w")
      list(APPEND resolved fmt::fmt-header-only)  # no worker program loads a library for it
    elseif(dep MATCHES "::")
      list(APPEND resolved ${dep})
    elseif(dep IN_LIST BH_BOTH_TOWERS)
      list(APPEND resolved bh_${dep}${suffix})
    else()
      list(APPEND resolved bh_${dep})
    endif()
  endforeach()
  set(${out} "${resolved}" PARENT_SCOPE)
endfunction()

function(bh_library name)
  cmake_parse_arguments(ARG "WORKER" "" "DEPS;LABELS" ${ARGN})
  set(dir "${PROJECT_SOURCE_DIR}/src/${name}")
  file(GLOB sources CONFIGURE_DEPENDS "${dir}/*.cc")
  if(NOT sources)  # a folder appears with the first file in it
    add_library(bh_${name} INTERFACE)
    if(name IN_LIST BH_BOTH_TOWERS)
      add_library(bh_${name}_w INTERFACE)
    endif()
    return()
  endif()
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  if(ARG_WORKER)
    bh_resolve_deps(deps "_w" ${ARG_DEPS})
    bh_add_static(bh_${name} TRUE "${sources}" "${deps}")
  else()
    bh_resolve_deps(deps "" ${ARG_DEPS})
    bh_add_static(bh_${name} FALSE "${sources}" "${deps}")
    if(name IN_LIST BH_BOTH_TOWERS)
      bh_resolve_deps(deps "_w" ${ARG_DEPS})
      bh_add_static(bh_${name}_w TRUE "${sources}" "${deps}")
    endif()
  endif()
  if(BH_TESTS AND tests)
    if(ARG_WORKER)
      bh_test(${name}_test WORKER SOURCES ${tests} DEPS bh_${name} LABELS ${ARG_LABELS})
    else()
      bh_test(${name}_test SOURCES ${tests} DEPS bh_${name} LABELS ${ARG_LABELS})
    endif()
  endif()
endfunction()

function(bh_program name)
  cmake_parse_arguments(ARG "WORKER" "" "DEPS;SOURCES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  bh_flags(${name} ${ARG_WORKER})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
endfunction()

# A worker program with the engine linked in needs no dynamic loader at all, which is a third of the
# time it takes to start. Sanitizers need one.
function(bh_self_contained target)
  if(WASMTIME_LIBRARY MATCHES "\\.a$" AND NOT (BH_SANITIZE AND BH_SANITIZE_WORKERS))
    target_link_options(${target} PRIVATE -static-pie LINKER:--gc-sections)
  endif()
endfunction()

function(bh_test name)
  cmake_parse_arguments(ARG "WORKER" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  bh_flags(${name} ${ARG_WORKER})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_compile_definitions(${name} PRIVATE BH_BIN_DIR="${PROJECT_BINARY_DIR}/bin"
                             BH_TEST_WORKER_DIR="${PROJECT_BINARY_DIR}/test-workers"
                             BH_GUEST_DIR="${PROJECT_BINARY_DIR}/guests"
                             BH_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gtest GTest::gtest_main)
  if("threads" IN_LIST ARG_LABELS)
    set_property(GLOBAL APPEND PROPERTY BH_THREAD_TESTS ${name})  # what target thread_tests builds
  endif()
  gtest_discover_tests(${name} TEST_LIST ${name}_cases DISCOVERY_TIMEOUT 60
                       PROPERTIES TIMEOUT ${ARG_TIMEOUT})
  # gtest_discover_tests drops all labels but the first: set them when ctest reads the tests.
  set(labels_file "${CMAKE_CURRENT_BINARY_DIR}/${name}_labels.cmake")
  file(WRITE "${labels_file}" "if(${name}_cases)\n"
       "  set_tests_properties(\${${name}_cases} PROPERTIES LABELS \"${ARG_LABELS}\")\n"
       "endif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${labels_file}")
endfunction()
