// The name of a piece of compiled code: a digest of everything that it depends on.
#pragma once

#include <string>
#include <string_view>

#include "base/sha256.h"

namespace bulkhead::codecache {

struct Key {
  Sha256Digest digest{};

  // 64 lower-case hex digits: the entry's file name.
  std::string Text() const;

  friend bool operator==(const Key&, const Key&) = default;
};

// Is it what Text gives?
bool IsKeyText(std::string_view name);

struct KeyParts {
  std::string_view module_sha256;
  std::string_view engine;     // engine and program, each with version
  std::string_view settings;   // of the engine, as far as code depends on them
  std::string_view processor;  // ProcessorFeatures()
};

// Changes with each part and with the form of entries; parts cannot run into each other.
Key KeyOf(const KeyParts& parts);

// What this processor can execute, as it says itself. Equal on all cores of a machine.
std::string ProcessorFeatures();

}  // namespace bulkhead::codecache
