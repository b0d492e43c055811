// Where fuzzing begins: whole inputs of one target, each near to what is accepted. Every target has
// a *_seeds.cc that says them.
#pragma once

#include <string>
#include <vector>

namespace bulkhead::fuzz {

std::vector<std::string> Seeds();

}  // namespace bulkhead::fuzz
