// What a worker that runs nothing hands over: one result in the output descriptor.
#pragma once

#include <string_view>

#include "worker/run_handler.h"

namespace bulkhead::wasm {

struct Product {
  std::string_view name;  // for people: "the converted module"
  std::string_view bytes;
  wire::Terminal::Limit limit = wire::Terminal::Limit::kOutput;  // met if it is too large
};

// Writes all of it, and says completed; the limit if Execute allows less. A write that fails is a
// failure of the worker.
wire::Terminal Deliver(const worker::RunRequest& request, const Product& product);

}  // namespace bulkhead::wasm
