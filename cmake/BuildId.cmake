# BH_BUILD_ID: the version plus a digest of every source file, taken when CMake configures.
# Parent and worker programs of one build agree on it.
file(GLOB_RECURSE bh_id_sources CONFIGURE_DEPENDS
     "${PROJECT_SOURCE_DIR}/src/*.cc" "${PROJECT_SOURCE_DIR}/src/*.h"
     "${PROJECT_SOURCE_DIR}/include/*.h" "${PROJECT_SOURCE_DIR}/apps/*.cc")
list(FILTER bh_id_sources EXCLUDE REGEX "_test\\.cc$")
list(SORT bh_id_sources)
set(bh_id_text "")
foreach(source IN LISTS bh_id_sources)
  file(SHA256 "${source}" digest)
  string(APPEND bh_id_text "${digest}")
endforeach()
string(SHA256 bh_id_digest "${bh_id_text}")
string(SUBSTRING "${bh_id_digest}" 0 16 bh_id_digest)
set(BH_BUILD_ID "${PROJECT_VERSION}+${bh_id_digest}")
set_source_files_properties("${PROJECT_SOURCE_DIR}/src/wire/handshake.cc"
                            TARGET_DIRECTORY bh_wire bh_wire_w
                            PROPERTIES COMPILE_DEFINITIONS "BH_BUILD_ID=\"${BH_BUILD_ID}\"")
