#include "wasi/wasi.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/errno_error.h"
#include "base/strings.h"
#include "wasi/descriptor_table.h"
#include "wasi/host_directory.h"
#include "wasi/host_stat.h"
#include "wasi/output_directory.h"
#include "wasi/output_file.h"
#include "wasi/path.h"
#include "wasi/stdio_stream.h"

namespace bulkhead::wasi {
namespace {

Status CheckStrings(const std::vector<std::string>& strings, std::string_view what) {
  for (const std::string& text : strings) {
    if (text.find('\0') != std::string::npos) {
      return Fail(ErrorCode::kInvalidArgument,
                  std::string(what) + " " + Quoted(text) + " contains a NUL byte");
    }
  }
  return {};
}

Status CheckGuestPath(const std::string& path) {
  if (path.empty() || !IsUtf8(path) || path.find('\0') != std::string::npos) {
    return Fail(ErrorCode::kInvalidArgument,
                "guest directory " + Quoted(path) + " is not a non-empty UTF-8 path");
  }
  return {};
}

Status CheckOutputName(const std::string& name) {
  const bool is_name = CheckPath(name).has_value() && name.find('/') == std::string::npos &&
                       name != "." && name != "..";
  if (!is_name) {
    return Fail(ErrorCode::kInvalidArgument,
                "output name " + Quoted(name) + " is not a file name in UTF-8");
  }
  return {};
}

Status CheckGuestPathsDiffer(const WasiConfig& config) {
  std::set<std::string_view> seen;
  for (const Preopen& preopen : config.preopens) {
    if (!seen.insert(preopen.guest_path).second) {
      return Fail(ErrorCode::kInvalidArgument,
                  "guest directory " + Quoted(preopen.guest_path) + " is granted twice");
    }
  }
  if (config.output && seen.contains(config.output->guest_dir)) {
    return Fail(ErrorCode::kInvalidArgument, "guest directory " + Quoted(config.output->guest_dir) +
                                                 " is granted, but it is where the output goes");
  }
  return {};
}

Status CheckFileType(BorrowedFd fd, FileType wanted, const std::string& what) {
  const Answer<struct stat> stat = StatHost(fd);
  if (!stat) {
    return Fail(ErrorCode::kIo, "the descriptor for " + what + " is not usable");
  }
  if (FileTypeOfMode(stat->st_mode) != wanted) {
    return Fail(ErrorCode::kInvalidArgument,
                "the descriptor for " + what + " is of the wrong kind");
  }
  return {};
}

Status MakeNonblocking(BorrowedFd fd) {
  if (!fd.valid()) {
    return {};
  }
  const int flags = fcntl(fd.get(), F_GETFL);
  if (flags < 0 || fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) != 0) {
    return Fail(ErrnoError("fcntl", "a standard stream", errno));
  }
  return {};
}

}  // namespace

Wasi::Wasi(WasiConfig& config)
    : args_(std::move(config.args)),
      env_(std::move(config.env)),
      stop_event_(config.stop_event),
      descriptors_(std::make_unique<DescriptorTable>()) {}

Wasi::~Wasi() = default;

Result<std::unique_ptr<Wasi>> Wasi::Create(WasiConfig config) {
  BH_TRY(CheckStrings(config.args, "argument"));
  BH_TRY(CheckStrings(config.env, "environment entry"));
  BH_TRY(CheckGuestPathsDiffer(config));
  std::unique_ptr<Wasi> wasi(new Wasi(config));
  BH_TRY(wasi->AddStdio(config));
  BH_TRY(wasi->AddDirectories(config));
  return wasi;
}

Status Wasi::AddStdio(WasiConfig& config) {
  using Direction = StdioStream::Direction;
  BH_TRY(MakeNonblocking(config.stdout_fd.borrow()));
  BH_TRY(MakeNonblocking(config.stderr_fd.borrow()));
  stdout_ = std::make_shared<StdioStream>(Direction::kOutput, std::move(config.stdout_fd),
                                          config.stdout_bytes_max);
  stderr_ = std::make_shared<StdioStream>(Direction::kOutput, std::move(config.stderr_fd), 0);
  const auto input =
      std::make_shared<StdioStream>(Direction::kInput, std::move(config.stdin_fd), 0);
  for (const auto& stream : {input, stdout_, stderr_}) {
    BH_TRY(AddDescriptor(stream, stream->applicable_rights(), 0));
  }
  return {};
}

Status Wasi::AddDirectories(WasiConfig& config) {
  for (Preopen& preopen : config.preopens) {
    BH_TRY(CheckGuestPath(preopen.guest_path));
    BH_TRY(CheckFileType(preopen.dir.borrow(), FileType::kDirectory, Quoted(preopen.guest_path)));
    BH_TRY(AddDescriptor(std::make_shared<HostDirectory>(std::move(preopen.dir), preopen.writable,
                                                         std::move(preopen.guest_path)),
                         rights::kDirectory, rights::kAll));
  }
  if (config.output) {
    std::string guest_dir = config.output->guest_dir;
    BH_TRY(CheckGuestPath(guest_dir));
    BH_TRY(CheckOutputName(config.output->name));
    BH_TRY(CheckFileType(config.output->file.borrow(), FileType::kRegularFile, "the output"));
    output_ = std::make_shared<OutputFile>(*std::move(config.output));
    BH_TRY(AddDescriptor(std::make_shared<OutputDirectory>(output_, std::move(guest_dir)),
                         rights::kDirectory, rights::kAll));
  }
  return {};
}

Status Wasi::AddDescriptor(std::shared_ptr<Descriptor> descriptor, std::uint64_t base,
                           std::uint64_t inheriting) {
  if (!descriptors_->Insert({std::move(descriptor), base, inheriting})) {
    return Fail(ErrorCode::kInvalidArgument,
                "more directories are granted than a guest may have descriptors (" +
                    std::to_string(DescriptorTable::kDescriptorsMax) + ")");
  }
  return {};
}

WasiFacts Wasi::Facts() const {
  WasiFacts facts;
  {
    const std::lock_guard lock(mutex_);
    facts.exit_code = exit_code_;
  }
  facts.stdout_bytes = stdout_->bytes();
  facts.stderr_bytes = stderr_->bytes();
  facts.stdout_reader_gone = stdout_->reader_gone();
  facts.stderr_reader_gone = stderr_->reader_gone();
  facts.stdout_limit_hit = stdout_->limit_hit();
  if (output_ != nullptr) {
    facts.output_created = output_->created();
    facts.output_bytes = output_->size();
    facts.output_limit_hit = output_->limit_hit();
  }
  return facts;
}

void Wasi::SetExitCode(std::uint32_t code) {
  const std::lock_guard lock(mutex_);
  if (!exit_code_) {
    exit_code_ = code;
  }
}

}  // namespace bulkhead::wasi
