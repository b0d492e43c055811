#include "wasm/convert_text.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/errno_error.h"
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

Status WriteAll(BorrowedFd file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) {
      return Fail(ErrnoError("write", "converted module", errno));
    }
    bytes.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
  }
  return {};
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
  if (binary.view().size() > request.execute.output_bytes_max) {
    wire::Terminal terminal =
        worker::MakeTerminal(Kind::kLimitReached, "the converted module is too large");
    terminal.limit = wire::Terminal::Limit::kOutput;
    return terminal;
  }
  if (const Status written = WriteAll(request.output.borrow(), binary.view()); !written) {
    return worker::MakeTerminal(Kind::kWorkerFailure, written.error().message);
  }
  wire::Terminal terminal = worker::MakeTerminal(Kind::kCompleted);
  terminal.completed_as = wire::Terminal::CompletedAs::kStarted;
  terminal.facts.output_created = true;
  return terminal;
}

}  // namespace bulkhead::wasm
