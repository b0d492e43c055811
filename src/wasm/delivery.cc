#include "wasm/delivery.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/errno_error.h"

namespace bulkhead::wasm {
namespace {

using Kind = wire::Terminal::Kind;

Status WriteAll(BorrowedFd file, const Product& product) {
  std::string_view rest = product.bytes;
  while (!rest.empty()) {
    const ssize_t written = write(file.get(), rest.data(), rest.size());
    if (written < 0 && errno != EINTR) {
      return Fail(ErrnoError("write", product.name, errno));
    }
    rest.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
  }
  return {};
}

}  // namespace

wire::Terminal Deliver(const worker::RunRequest& request, const Product& product) {
  if (product.bytes.size() > request.execute.output_bytes_max) {
    wire::Terminal terminal = worker::MakeTerminal(
        Kind::kLimitReached, fmt::format("{} has {} bytes, at most {} are accepted", product.name,
                                         product.bytes.size(), request.execute.output_bytes_max));
    terminal.limit = product.limit;
    return terminal;
  }
  if (const Status written = WriteAll(request.output.borrow(), product); !written) {
    return worker::MakeTerminal(Kind::kWorkerFailure, written.error().message);
  }
  wire::Terminal terminal = worker::MakeTerminal(Kind::kCompleted);
  terminal.completed_as = wire::Terminal::CompletedAs::kStarted;
  terminal.facts.output_created = true;
  return terminal;
}

}  // namespace bulkhead::wasm
