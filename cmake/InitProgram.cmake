# bulkhead-init, pid 1 of a worker's namespace: freestanding, carried inside bh_process as bytes.
add_executable(bulkhead-init "${PROJECT_SOURCE_DIR}/apps/bulkhead-init/main.cc")
target_include_directories(bulkhead-init PRIVATE "${PROJECT_SOURCE_DIR}/src")
target_compile_options(bulkhead-init PRIVATE ${BH_WARNING_FLAGS} -O2 -g0 -ffreestanding -fno-pie
                       -fno-exceptions -fno-rtti -fno-stack-protector -fno-threadsafe-statics
                       -fno-asynchronous-unwind-tables)
target_link_options(bulkhead-init PRIVATE -static -nostdlib -no-pie
                    LINKER:-z,noexecstack,--build-id=none,--strip-all)
set_target_properties(bulkhead-init PROPERTIES POSITION_INDEPENDENT_CODE OFF
                      RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/init")

set(bh_init_program "${PROJECT_BINARY_DIR}/init/bulkhead-init")
# For the targets of the calling folder.
function(bh_set_init_program)
  set_source_files_properties("${PROJECT_SOURCE_DIR}/src/process/init_image.cc" PROPERTIES
                              COMPILE_DEFINITIONS "BH_INIT_PROGRAM=\"${bh_init_program}\""
                              OBJECT_DEPENDS "${bh_init_program}")
endfunction()
bh_set_init_program()
add_dependencies(bh_process bulkhead-init)
