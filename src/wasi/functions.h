// The 46 functions, each with the arguments and the effect the WASI preview 1 document gives it.
// functions.cc makes the table of them; the error number of a refused call becomes its result
// there.
#pragma once

#include "wasi/answer.h"
#include "wasi/call.h"

namespace bulkhead::wasi {

// system_functions.cc
Answer<void> ArgsGet(Call& call);
Answer<void> ArgsSizesGet(Call& call);
Answer<void> ClockResGet(Call& call);
Answer<void> ClockTimeGet(Call& call);
Answer<void> EnvironGet(Call& call);
Answer<void> EnvironSizesGet(Call& call);
Answer<void> ProcExit(Call& call);
Answer<void> ProcRaise(Call& call);
Answer<void> RandomGet(Call& call);
Answer<void> SchedYield(Call& call);
// There are no sockets: an open descriptor is kNotsock, any other kBadf.
Answer<void> SockAccept(Call& call);
Answer<void> SockRecv(Call& call);
Answer<void> SockSend(Call& call);
Answer<void> SockShutdown(Call& call);

// fd_functions.cc
Answer<void> FdAdvise(Call& call);
Answer<void> FdAllocate(Call& call);
Answer<void> FdClose(Call& call);
Answer<void> FdDatasync(Call& call);
Answer<void> FdFdstatGet(Call& call);
Answer<void> FdFdstatSetFlags(Call& call);
Answer<void> FdFdstatSetRights(Call& call);
Answer<void> FdFilestatGet(Call& call);
Answer<void> FdFilestatSetSize(Call& call);
Answer<void> FdFilestatSetTimes(Call& call);
Answer<void> FdPread(Call& call);
Answer<void> FdPrestatDirName(Call& call);
Answer<void> FdPrestatGet(Call& call);
Answer<void> FdPwrite(Call& call);
Answer<void> FdRead(Call& call);
Answer<void> FdReaddir(Call& call);
Answer<void> FdRenumber(Call& call);
Answer<void> FdSeek(Call& call);
Answer<void> FdSync(Call& call);
Answer<void> FdTell(Call& call);
Answer<void> FdWrite(Call& call);

// path_functions.cc
Answer<void> PathCreateDirectory(Call& call);
Answer<void> PathFilestatGet(Call& call);
Answer<void> PathFilestatSetTimes(Call& call);
Answer<void> PathLink(Call& call);
Answer<void> PathOpen(Call& call);
Answer<void> PathReadlink(Call& call);
Answer<void> PathRemoveDirectory(Call& call);
Answer<void> PathRename(Call& call);
Answer<void> PathSymlink(Call& call);
Answer<void> PathUnlinkFile(Call& call);

// poll_functions.cc
Answer<void> PollOneoff(Call& call);

}  // namespace bulkhead::wasi
