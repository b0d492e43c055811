#include "wasi/functions.h"

#include <array>
#include <new>

namespace bulkhead::wasi {
namespace {

// Nothing is thrown into the engine: when memory is out, that is the guest's kNomem.
Answer<void> Run(Answer<void> (*function)(Call&), Call& call) noexcept {
  try {
    return function(call);
  } catch (const std::bad_alloc&) {
    return Refuse(Errno::kNomem);
  }
}

template <Answer<void> (*kFunction)(Call&)>
Control Invoke(Wasi& wasi, GuestMemory memory, std::span<Value> slots) {
  Call call(wasi, memory, slots);
  const Answer<void> answer = Run(kFunction, call);
  if (!answer && answer.error().end != Control::kContinue) {
    return answer.error().end;
  }
  slots[0].i32 = static_cast<std::int32_t>(answer ? Errno::kSuccess : answer.error().error);
  return Control::kContinue;
}

constexpr std::array kFunctions = {
    Function{"args_get", "ii:i", Invoke<ArgsGet>},
    Function{"args_sizes_get", "ii:i", Invoke<ArgsSizesGet>},
    Function{"clock_res_get", "ii:i", Invoke<ClockResGet>},
    Function{"clock_time_get", "iIi:i", Invoke<ClockTimeGet>},
    Function{"environ_get", "ii:i", Invoke<EnvironGet>},
    Function{"environ_sizes_get", "ii:i", Invoke<EnvironSizesGet>},
    Function{"fd_advise", "iIIi:i", Invoke<FdAdvise>},
    Function{"fd_allocate", "iII:i", Invoke<FdAllocate>},
    Function{"fd_close", "i:i", Invoke<FdClose>},
    Function{"fd_datasync", "i:i", Invoke<FdDatasync>},
    Function{"fd_fdstat_get", "ii:i", Invoke<FdFdstatGet>},
    Function{"fd_fdstat_set_flags", "ii:i", Invoke<FdFdstatSetFlags>},
    Function{"fd_fdstat_set_rights", "iII:i", Invoke<FdFdstatSetRights>},
    Function{"fd_filestat_get", "ii:i", Invoke<FdFilestatGet>},
    Function{"fd_filestat_set_size", "iI:i", Invoke<FdFilestatSetSize>},
    Function{"fd_filestat_set_times", "iIIi:i", Invoke<FdFilestatSetTimes>},
    Function{"fd_pread", "iiiIi:i", Invoke<FdPread>},
    Function{"fd_prestat_dir_name", "iii:i", Invoke<FdPrestatDirName>},
    Function{"fd_prestat_get", "ii:i", Invoke<FdPrestatGet>},
    Function{"fd_pwrite", "iiiIi:i", Invoke<FdPwrite>},
    Function{"fd_read", "iiii:i", Invoke<FdRead>},
    Function{"fd_readdir", "iiiIi:i", Invoke<FdReaddir>},
    Function{"fd_renumber", "ii:i", Invoke<FdRenumber>},
    Function{"fd_seek", "iIii:i", Invoke<FdSeek>},
    Function{"fd_sync", "i:i", Invoke<FdSync>},
    Function{"fd_tell", "ii:i", Invoke<FdTell>},
    Function{"fd_write", "iiii:i", Invoke<FdWrite>},
    Function{"path_create_directory", "iii:i", Invoke<PathCreateDirectory>},
    Function{"path_filestat_get", "iiiii:i", Invoke<PathFilestatGet>},
    Function{"path_filestat_set_times", "iiiiIIi:i", Invoke<PathFilestatSetTimes>},
    Function{"path_link", "iiiiiii:i", Invoke<PathLink>},
    Function{"path_open", "iiiiiIIii:i", Invoke<PathOpen>},
    Function{"path_readlink", "iiiiii:i", Invoke<PathReadlink>},
    Function{"path_remove_directory", "iii:i", Invoke<PathRemoveDirectory>},
    Function{"path_rename", "iiiiii:i", Invoke<PathRename>},
    Function{"path_symlink", "iiiii:i", Invoke<PathSymlink>},
    Function{"path_unlink_file", "iii:i", Invoke<PathUnlinkFile>},
    Function{"poll_oneoff", "iiii:i", Invoke<PollOneoff>},
    Function{"proc_exit", "i:", Invoke<ProcExit>},
    Function{"proc_raise", "i:i", Invoke<ProcRaise>},
    Function{"random_get", "ii:i", Invoke<RandomGet>},
    Function{"sched_yield", ":i", Invoke<SchedYield>},
    Function{"sock_accept", "iii:i", Invoke<SockAccept>},
    Function{"sock_recv", "iiiiii:i", Invoke<SockRecv>},
    Function{"sock_send", "iiiii:i", Invoke<SockSend>},
    Function{"sock_shutdown", "ii:i", Invoke<SockShutdown>},
};

}  // namespace

std::span<const Function> Functions() {
  return kFunctions;
}

}  // namespace bulkhead::wasi
