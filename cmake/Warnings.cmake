# Warnings of the house: a new enumerator must break every forgotten switch.
set(BH_WARNING_FLAGS
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast
    -Wnon-virtual-dtor -Wswitch-enum -Wimplicit-fallthrough)
if(BH_WERROR)
  list(APPEND BH_WARNING_FLAGS -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # The BH_TRY expression statement is the one GNU extension we use.
  list(APPEND BH_WARNING_FLAGS -Wno-gnu-statement-expression
       -Wno-gnu-statement-expression-from-macro-expansion)
endif()
