#include "wasm/convert_text.h"

#include <fmt/core.h>

#include <algorithm>

#include "wasm/delivery.h"
#include "wasm/engine.h"
#include "wasm/handles.h"

namespace bulkhead::wasm {
namespace {

using Kind = wire::Terminal::Kind;

// The engine draws a picture around the place: "SENTENCE\n --> <anon>:LINE:COLUMN\n ...".
std::string Sentence(std::string_view message) {
  constexpr std::string_view kPlaceMark = "<anon>:";
  std::string sentence(message.substr(0, message.find('\n')));
  const std::size_t mark = message.find(kPlaceMark);
  if (mark != std::string_view::npos) {
    const std::string_view place = message.substr(mark + kPlaceMark.size());
    const std::string_view line = place.substr(0, place.find(':'));
    const std::string_view column = place.substr(std::min(line.size() + 1, place.size()));
    sentence += fmt::format(" (line {}, column {})", line, column.substr(0, column.find('\n')));
  }
  return sentence;
}

}  // namespace

wire::Terminal ConvertText(const worker::RunRequest& request) {
  ByteVector binary;
  const auto* const text = reinterpret_cast<const char*>(request.module.data());
  if (const ErrorHandle error{wasmtime_wat2wasm(text, request.module.size(), binary.get())}) {
    ByteVector message;
    wasmtime_error_message(error.get(), message.get());
    wire::Terminal terminal = worker::MakeTerminal(Kind::kModuleRefused, Sentence(message.view()));
    terminal.reason = "invalid-text";
    return terminal;
  }
  return Deliver(request, {"the converted module", binary.view()});
}

}  // namespace bulkhead::wasm
