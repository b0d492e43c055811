// One command's words, sorted by option but not yet understood.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::cli {

struct RawOptions {
  std::map<std::string, std::vector<std::string>, std::less<>> values;  // by long name, in order
  std::vector<std::string> operands;
  std::vector<std::string> arguments;  // after "--"

  bool Has(std::string_view name) const { return values.find(name) != values.end(); }

  // Of an option that may be given once; nullptr if it was not.
  const std::string* Value(std::string_view name) const {
    const auto found = values.find(name);
    return found == values.end() ? nullptr : &found->second.front();
  }

  std::vector<std::string> Values(std::string_view name) const {
    const auto found = values.find(name);
    return found == values.end() ? std::vector<std::string>{} : found->second;
  }
};

}  // namespace bulkhead::cli
