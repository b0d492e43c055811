// Metadata of host objects in the guest's form. One system call each, all of them on descriptors
// only: O_PATH ones are welcome where they are read.
#pragma once

#include <sys/stat.h>

#include "wasi/descriptor.h"

namespace bulkhead::wasi {

FileType FileTypeOfMode(mode_t mode);
// fstat(2) itself: the C library's fstat may use newfstatat, which the worker's filter refuses.
Answer<struct stat> StatHost(BorrowedFd fd);
Filestat ToFilestat(const struct stat& host);
Answer<void> SetHostTimes(BorrowedFd fd, const FileTimes& times);

}  // namespace bulkhead::wasi
