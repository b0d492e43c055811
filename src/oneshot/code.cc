#include "oneshot/code.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/errno_error.h"
#include "wire/handshake.h"

namespace bulkhead {

std::string_view CodeSourceName(CodeSource source) {
  switch (source) {
    case CodeSource::kCompiledInRun:
      return "compiled-in-run";
    case CodeSource::kCompiled:
      return "compiled";
    case CodeSource::kCache:
      return "cache";
  }
  return "compiled-in-run";
}

}  // namespace bulkhead

namespace bulkhead::oneshot {
namespace {

constexpr int kCodeSeals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;

// Under somebody's `ulimit -v` workers, who inherit it, reserve less address space; the code then
// depends on how much.
std::uint64_t ReservationBytes(const wire::Execute& execute) {
  rlimit limit{};
  const bool scarce = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return scarce ? execute.memory_bytes : 0;
}

// The counterpart of wasm::SettingsOf: whatever of it changes the code.
std::string SettingsText(const Preparation& run) {
  const wire::Execute& execute = run.exchange.execute;
  return fmt::format("profile {} cooperative {} metered {} images {} reservation {}",
                     static_cast<int>(execute.profile), execute.cooperative, execute.fuel != 0,
                     run.start.hello.sandbox, ReservationBytes(execute));
}

std::string EngineText() {
  return fmt::format("wasmtime {} in bulkhead {}", BH_ENGINE_VERSION, wire::BuildId());
}

}  // namespace

const codecache::Store* StoreFor(const Runtime::Impl& runtime, const RunRequest& request,
                                 const Work& work) {
  const CodeCache* cache = runtime.options.code_cache.get();
  const bool used = cache != nullptr && work.admitted != nullptr && request.worker.check_build_id;
  return used ? &cache->impl().store : nullptr;
}

codecache::Key CodeKey(const Preparation& run, const AdmittedModule& module) {
  return codecache::KeyOf({.module_sha256 = module.sha256(),
                           .engine = EngineText(),
                           .settings = SettingsText(run),
                           .processor = codecache::ProcessorFeatures()});
}

Result<Work> CompileWork(const Work& run) {
  Work work;
  work.mode = wire::Mode::kCompile;
  work.module = run.module;
  work.module_bytes = run.module_bytes;
  work.profile = run.profile;
  work.product.Reset(memfd_create("bulkhead-code", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!work.product.valid()) {
    return Fail(ErrnoError("memfd_create", "compiled code", errno));
  }
  return work;
}

RunRequest WithoutAuthority(const RunRequest& request) {
  RunRequest bare = request;
  bare.arguments.clear();
  bare.environment.clear();
  bare.directories.clear();
  bare.output.reset();
  bare.stdin_from = bare.stdout_to = bare.stderr_to = GuestStream::None();
  bare.limits.scratch_bytes = 0;
  return bare;
}

Result<codecache::Code> TakeCode(Work compiled, std::uint64_t bytes_max) {
  if (fcntl(compiled.product.get(), F_ADD_SEALS, kCodeSeals) != 0) {
    return Fail(ErrnoError("fcntl F_ADD_SEALS", "compiled code", errno));
  }
  struct stat status{};
  if (fstat(compiled.product.get(), &status) != 0) {
    return Fail(ErrnoError("fstat", "compiled code", errno));
  }
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  if (bytes == 0 || bytes > bytes_max) {
    return Fail(ErrorCode::kProtocol,
                fmt::format("a worker that compiled left {} bytes of code, at most {} are accepted",
                            bytes, bytes_max));
  }
  return codecache::Code{std::move(compiled.product), 0, bytes};
}

Status GiveCode(const codecache::Code& code, Preparation& run) {
  UniqueFd copy(fcntl(code.file.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) {
    return Fail(ErrnoError("fcntl F_DUPFD_CLOEXEC", "compiled code", errno));
  }
  std::vector<UniqueFd>& descriptors = run.exchange.execute_descriptors;
  descriptors.insert(descriptors.begin() + 1, std::move(copy));  // after the module
  run.exchange.execute.code_bytes = code.bytes;
  run.exchange.execute.code_offset = code.offset;
  return {};
}

}  // namespace bulkhead::oneshot
