// WebAssembly text to binary, in a worker: the translator never sees hostile text in the parent.
#include <bulkhead/run.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "base/errno_error.h"
#include "oneshot/code.h"
#include "oneshot/run.h"

namespace bulkhead {

Result<ModuleSource> ConvertText(Runtime& runtime, const ModuleSource& text,
                                 const RunRequest& request) {
  oneshot::Work work;
  work.mode = wire::Mode::kConvertText;
  work.module = BorrowedFd(text.descriptor());
  work.module_bytes = text.bytes().size();
  work.product.Reset(memfd_create("bulkhead-converted", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!work.product.valid()) {
    return Fail(ErrnoError("memfd_create", "converted module", errno));
  }
  UniqueFd binary(fcntl(work.product.get(), F_DUPFD_CLOEXEC, 0));
  const RunReport report =
      oneshot::Execute(runtime.impl(), std::move(work), oneshot::WithoutAuthority(request));
  if (report.outcome.code == OutcomeCode::kModuleRefused) {
    return Fail(ErrorCode::kModuleRefused, report.diagnostic, 0, report.outcome.reason);
  }
  if (!report.outcome.completed()) {
    return Fail(ErrorCode::kLaunch,
                report.diagnostic.empty() ? report.outcome.CodeText() : report.diagnostic, 0,
                report.outcome.CodeText());
  }
  if (lseek(binary.get(), 0, SEEK_SET) !=
      0) {  // the worker wrote through the same file description
    return Fail(ErrnoError("lseek", "converted module", errno));
  }
  return ModuleSource::FromDescriptor(binary.get(), "converted module",
                                      ModulePolicy::kModuleBytesCeiling);
}

}  // namespace bulkhead
