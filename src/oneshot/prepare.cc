// What a worker is started with and told: descriptors, limits, Hello and Execute.
#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/errno_error.h"
#include "base/strings.h"
#include "oneshot/run.h"
#include "wire/handshake.h"

namespace bulkhead::oneshot {
namespace {

// While the guest runs the worker may use this much beyond the guest's own memory: its stack, the
// engine's instance data, buffers of the host functions.
constexpr std::uint64_t kMemoryOverheadBytes = 64ULL << 20;
// Threads that a worker has beside the guest's and the compiler's, and its init.
constexpr std::uint64_t kWorkerTasksMax = 16;
constexpr std::uint64_t kKernelBytes = 32ULL << 20;
constexpr std::uint64_t kKernelBytesOfThread = 64ULL << 10;
constexpr std::uint64_t kBytesPerKernelByte = 256;            // page tables, twice
constexpr std::uint64_t kCountedOutputBytesMax = 1ULL << 50;  // more is no limit
// A worker without an output grant still writes memory files of its own (copy-on-write images of
// guest memories).
constexpr std::uint64_t kFileBytesWithoutOutput = 4ULL << 30;

std::uint64_t WholeSeconds(std::chrono::nanoseconds duration) {
  return static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::seconds>(duration).count());
}

Result<UniqueFd> OpenGrant(const DirectoryGrant& grant) {
  UniqueFd fd(open(grant.host_path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) {
    return Fail(
        ErrnoError(ErrorCode::kInvalidArgument, "granting directory", grant.host_path, errno));
  }
  return fd;
}

std::uint64_t FileBytesMax(const RunRequest& request, wire::Mode mode) {
  if (mode == wire::Mode::kCompile) {
    return CodeBytesMax(request);
  }
  if (request.worker.file_bytes_max != 0) {
    return request.worker.file_bytes_max;
  }
  const bool writes_files = std::any_of(request.directories.begin(), request.directories.end(),
                                        [](const auto& d) { return d.writable; });
  const std::uint64_t output = request.output ? request.output->bytes_max : 0;
  return writes_files ? ~0ULL : std::max(output, kFileBytesWithoutOutput);
}

void FillHello(const RunRequest& request, wire::Mode mode, wire::Hello& hello) {
  hello.build_id = wire::BuildId();
  hello.scratch_bytes = request.limits.scratch_bytes;
  hello.compile_memory_bytes = request.limits.compile_memory_bytes;
  hello.file_bytes_max = FileBytesMax(request, mode);
  hello.sandbox = request.worker.sandbox != SandboxLevel::kNone;
  for (const DirectoryGrant& grant : request.directories) {
    hello.directories.push_back({grant.guest_path, grant.writable});
  }
}

// What a worker that makes something writes it to, a memory file of ours.
std::uint64_t ProductBytesMax(const RunRequest& request, wire::Mode mode) {
  switch (mode) {
    case wire::Mode::kRun:
      return 0;
    case wire::Mode::kCompile:
      return CodeBytesMax(request);
    case wire::Mode::kConvertText:
      return ModulePolicy::kModuleBytesCeiling;
  }
  return 0;
}

bool Requires(const WorkerConfig& config, std::string_view mechanism) {
  const std::vector<std::string> required = RequiredMechanisms(config);
  return std::find(required.begin(), required.end(), mechanism) != required.end();
}

// Until the guest runs: what RLIMIT_DATA allows then, and what it does not count.
process::TreeLimits TreeLimitsFor(const RunRequest& request, wire::Mode mode) {
  const long processors = sysconf(_SC_NPROCESSORS_ONLN);
  process::TreeLimits limits;
  limits.memory_bytes = request.limits.compile_memory_bytes + kMemoryOverheadBytes +
                        request.limits.stack_bytes + request.limits.scratch_bytes +
                        ProductBytesMax(request, mode);
  limits.tasks = kWorkerTasksMax + request.limits.threads_max +
                 static_cast<std::uint64_t>(std::max(processors, 1L));
  limits.memory_at_any_cost = Requires(request.worker, "cgroup-memory");
  limits.tasks_at_any_cost = Requires(request.worker, "cgroup-pids");
  return limits;
}

// What a run may use once its guest runs and RLIMIT_DATA does not count: the kernel's own memory
// for it (page tables, threads, sockets), scratch space, images of the memories that the module
// describes, and an output on a file system that is memory.
std::uint64_t UncountedBytes(const RunRequest& request, const Work& work,
                             const staging::StagingArea* staging) {
  struct statfs status{};
  const bool output_is_memory = staging != nullptr &&
                                fstatfs(staging->file().get(), &status) == 0 &&
                                (status.f_type == TMPFS_MAGIC || status.f_type == RAMFS_MAGIC);
  const std::uint64_t kernel = kKernelBytes + request.limits.threads_max * kKernelBytesOfThread +
                               request.limits.memory_bytes / kBytesPerKernelByte;
  return kernel + request.limits.scratch_bytes + work.module_bytes +
         (output_is_memory ? std::min(request.output->bytes_max, kCountedOutputBytesMax) : 0);
}

void FillSpec(const RunRequest& request, process::SpawnSpec& spec) {
  spec.program = request.worker.executable;
  spec.program_sha256 = request.worker.executable_sha256;
  spec.working_directory = request.worker.working_directory;
  spec.namespaces = request.worker.sandbox != SandboxLevel::kNone;
  spec.limits.push_back({RLIMIT_CORE, 0});
  // The worker lowers these further by itself; the parent does not rely on it.
  spec.limits.push_back({RLIMIT_DATA, request.limits.compile_memory_bytes});
  if (request.worker.descriptors_max != 0) {
    spec.limits.push_back({RLIMIT_NOFILE, request.worker.descriptors_max});
  }
}

Status AddStreams(const RunRequest& request, supervise::ExchangeInput& exchange) {
  const auto add = [&](UniqueFd end, bool* present) {
    *present = end.valid();
    if (end.valid()) {
      exchange.execute_descriptors.push_back(std::move(end));
    }
  };
  UniqueFd end;
  exchange.guest_stdin = BH_TRY(supervise::GuestInput::Create(request.stdin_from, &end));
  add(std::move(end), &exchange.execute.has_stdin);
  supervise::GuestOutput::Options options{request.stdout_to, request.neutralise_terminal,
                                          request.limits.stdout_bytes_max};
  // A limit on a stream that nobody reads still counts.
  if (options.bytes_max != 0 && options.stream.kind == GuestStream::Kind::kNone) {
    options.stream = GuestStream::Capture(0);
  }
  exchange.guest_stdout = BH_TRY(supervise::GuestOutput::Create(options, &end));
  add(std::move(end), &exchange.execute.has_stdout);
  exchange.guest_stderr = BH_TRY(
      supervise::GuestOutput::Create({request.stderr_to, request.neutralise_terminal, 0}, &end));
  add(std::move(end), &exchange.execute.has_stderr);
  return {};
}

Result<UniqueFd> Duplicate(BorrowedFd fd) {
  UniqueFd copy(fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) {
    return Fail(ErrnoError("fcntl F_DUPFD_CLOEXEC", "", errno));
  }
  return copy;
}

Status FillExecute(const RunRequest& request, Work& work, const staging::StagingArea* staging,
                   supervise::ExchangeInput& exchange) {
  wire::Execute& execute = exchange.execute;
  execute.mode = work.mode;
  execute.module_bytes = work.module_bytes;
  execute.memory_bytes = request.limits.memory_bytes;
  execute.memory_overhead_bytes = kMemoryOverheadBytes + request.limits.stack_bytes;
  execute.stack_bytes = request.limits.stack_bytes;
  FillGuestLimits(request, work.profile, execute);
  execute.cooperative = request.limits.cooperative_stop;
  execute.arguments = request.arguments;
  execute.environment = request.environment;
  exchange.execute_descriptors.push_back(BH_TRY(Duplicate(work.module)));
  if (work.mode != wire::Mode::kRun) {
    execute.has_output = true;
    execute.output_bytes_max = ProductBytesMax(request, work.mode);
    exchange.execute_descriptors.push_back(BH_TRY(Duplicate(work.product.borrow())));
    return {};
  }
  BH_TRY(AddStreams(request, exchange));
  if (staging != nullptr) {
    execute.has_output = true;
    execute.output_name = std::filesystem::path(request.output->path).filename().string();
    execute.output_bytes_max = request.output->bytes_max;
    exchange.execute_descriptors.push_back(BH_TRY(Duplicate(staging->file())));
  }
  return {};
}

Status CheckTexts(const std::vector<std::string>& texts, std::string_view what) {
  if (texts.size() > wire::kArgumentsMax) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("{} {} entries: at most {} are accepted",
                                                         texts.size(), what, wire::kArgumentsMax));
  }
  for (const std::string& text : texts) {
    if (text.size() > wire::kArgumentBytesMax) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("one {} entry of {} bytes: at most {} are accepted", what,
                              text.size(), wire::kArgumentBytesMax));
    }
    if (text.find('\0') != std::string::npos) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{} entry {}: a NUL byte cannot be passed on", what,
                              Quoted(CutUtf8(text, 64))));
    }
  }
  return {};
}

std::size_t TotalBytes(const std::vector<std::string>& texts) {
  std::size_t total = 0;
  for (const std::string& text : texts) {
    total += text.size();
  }
  return total;
}

}  // namespace

Status ValidateRequest(const RunRequest& request, Profile profile) {
  BH_TRY(request.worker.Validate());
  BH_TRY(request.limits.Validate());
  if (profile == Profile::kSketch) {
    BH_TRY(ValidateSketch(request));
  }
  BH_TRY(CheckTexts(request.arguments, "argument"));
  BH_TRY(CheckTexts(request.environment, "environment"));
  const std::size_t total = TotalBytes(request.arguments) + TotalBytes(request.environment);
  if (total > wire::kArgumentsTotalBytesMax) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("arguments and environment of {} bytes together: at most {} are accepted",
                    total, wire::kArgumentsTotalBytesMax));
  }
  for (const std::string& entry : request.environment) {
    if (entry.find('=') == std::string::npos || entry.front() == '=') {
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("environment entry {}: NAME=VALUE is accepted", Quoted(CutUtf8(entry, 64))));
    }
  }
  if (request.directories.size() > wire::kDirectoryGrantsMax) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} directory grants: at most {} are accepted",
                            request.directories.size(), wire::kDirectoryGrantsMax));
  }
  for (const DirectoryGrant& grant : request.directories) {
    if (grant.guest_path.empty() || grant.guest_path.size() > 4096 ||
        grant.guest_path.find('\0') != std::string::npos || grant.host_path.empty() ||
        grant.host_path.find('\0') != std::string::npos) {
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format(
              "directory grant {}::{}: two paths of 1 to 4096 bytes without NUL are accepted",
              Quoted(grant.host_path), Quoted(CutUtf8(grant.guest_path, 64))));
    }
  }
  return {};
}

supervise::WorkerStart StartFor(const RunRequest& request, wire::Mode mode) {
  supervise::WorkerStart start;
  FillHello(request, mode, start.hello);
  FillSpec(request, start.spec);
  start.spec.tree_limits = TreeLimitsFor(request, mode);
  start.expected.mechanisms = RequiredMechanisms(request.worker);
  if (request.worker.check_build_id) {
    start.expected.build = wire::BuildId();
  }
  return start;
}

bool MayBeWarm(const RunRequest& request) {
  return request.directories.empty() && request.limits.scratch_bytes == 0;
}

std::uint64_t CodeBytesMax(const RunRequest& request) {
  return std::min(wire::kCodeBytesMax, request.limits.compile_memory_bytes);
}

void LimitCpu(const RunRequest& request, std::chrono::microseconds used,
              supervise::WorkerStart& start) {
  if (!request.limits.cpu_time) {
    return;
  }
  const std::uint64_t seconds = WholeSeconds(std::max<std::chrono::nanoseconds>(
      *request.limits.cpu_time - used, std::chrono::nanoseconds(1)));
  start.hello.cpu_seconds = seconds;
  // The worker sets the soft limit to the second before; SIGXCPU then tells what happened.
  start.spec.limits.push_back({RLIMIT_CPU, seconds + 1});
}

Result<Preparation> Prepare(const RunRequest& request, Work& work,
                            const staging::StagingArea* staging) {
  Preparation preparation;
  preparation.start = StartFor(request, work.mode);
  for (const DirectoryGrant& grant : request.directories) {
    preparation.exchange.hello_descriptors.push_back(BH_TRY(OpenGrant(grant)));
  }
  BH_TRY(FillExecute(request, work, staging, preparation.exchange));
  preparation.exchange.expected = preparation.start.expected;
  preparation.exchange.uncounted_bytes = UncountedBytes(request, work, staging);
  preparation.exchange.grace = request.worker.grace;
  preparation.exchange.compile_time = request.limits.compile_time;
  preparation.exchange.cancel = request.cancel;
  preparation.exchange.force = request.force;
  return preparation;
}

}  // namespace bulkhead::oneshot
