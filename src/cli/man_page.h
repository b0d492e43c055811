// bulkhead(1) as roff, from the option table. Pure; the same input gives the same bytes (no date in
// it).
#pragma once

#include <string>
#include <string_view>

namespace bulkhead::cli {

std::string ManPage(std::string_view version);

}  // namespace bulkhead::cli
