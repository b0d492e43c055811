#include "wasi/errno.h"

#include <algorithm>
#include <array>
#include <cerrno>

namespace bulkhead::wasi {
namespace {

struct Pair {
  int host;
  Errno guest;
};

// EAGAIN and EWOULDBLOCK, ENOTSUP and EOPNOTSUPP, EDEADLK and EDEADLOCK are one number each on
// Linux.
constexpr std::array kPairs = {
    Pair{0, Errno::kSuccess},
    Pair{E2BIG, Errno::k2big},
    Pair{EACCES, Errno::kAcces},
    Pair{EADDRINUSE, Errno::kAddrinuse},
    Pair{EADDRNOTAVAIL, Errno::kAddrnotavail},
    Pair{EAFNOSUPPORT, Errno::kAfnosupport},
    Pair{EAGAIN, Errno::kAgain},
    Pair{EALREADY, Errno::kAlready},
    Pair{EBADF, Errno::kBadf},
    Pair{EBADMSG, Errno::kBadmsg},
    Pair{EBUSY, Errno::kBusy},
    Pair{ECANCELED, Errno::kCanceled},
    Pair{ECHILD, Errno::kChild},
    Pair{ECONNABORTED, Errno::kConnaborted},
    Pair{ECONNREFUSED, Errno::kConnrefused},
    Pair{ECONNRESET, Errno::kConnreset},
    Pair{EDEADLK, Errno::kDeadlk},
    Pair{EDESTADDRREQ, Errno::kDestaddrreq},
    Pair{EDOM, Errno::kDom},
    Pair{EDQUOT, Errno::kDquot},
    Pair{EEXIST, Errno::kExist},
    Pair{EFAULT, Errno::kFault},
    Pair{EFBIG, Errno::kFbig},
    Pair{EHOSTUNREACH, Errno::kHostunreach},
    Pair{EIDRM, Errno::kIdrm},
    Pair{EILSEQ, Errno::kIlseq},
    Pair{EINPROGRESS, Errno::kInprogress},
    Pair{EINTR, Errno::kIntr},
    Pair{EINVAL, Errno::kInval},
    Pair{EIO, Errno::kIo},
    Pair{EISCONN, Errno::kIsconn},
    Pair{EISDIR, Errno::kIsdir},
    Pair{ELOOP, Errno::kLoop},
    Pair{EMFILE, Errno::kMfile},
    Pair{EMLINK, Errno::kMlink},
    Pair{EMSGSIZE, Errno::kMsgsize},
    Pair{EMULTIHOP, Errno::kMultihop},
    Pair{ENAMETOOLONG, Errno::kNametoolong},
    Pair{ENETDOWN, Errno::kNetdown},
    Pair{ENETRESET, Errno::kNetreset},
    Pair{ENETUNREACH, Errno::kNetunreach},
    Pair{ENFILE, Errno::kNfile},
    Pair{ENOBUFS, Errno::kNobufs},
    Pair{ENODEV, Errno::kNodev},
    Pair{ENOENT, Errno::kNoent},
    Pair{ENOEXEC, Errno::kNoexec},
    Pair{ENOLCK, Errno::kNolck},
    Pair{ENOLINK, Errno::kNolink},
    Pair{ENOMEM, Errno::kNomem},
    Pair{ENOMSG, Errno::kNomsg},
    Pair{ENOPROTOOPT, Errno::kNoprotoopt},
    Pair{ENOSPC, Errno::kNospc},
    Pair{ENOSYS, Errno::kNosys},
    Pair{ENOTCONN, Errno::kNotconn},
    Pair{ENOTDIR, Errno::kNotdir},
    Pair{ENOTEMPTY, Errno::kNotempty},
    Pair{ENOTRECOVERABLE, Errno::kNotrecoverable},
    Pair{ENOTSOCK, Errno::kNotsock},
    Pair{ENOTSUP, Errno::kNotsup},
    Pair{ENOTTY, Errno::kNotty},
    Pair{ENXIO, Errno::kNxio},
    Pair{EOVERFLOW, Errno::kOverflow},
    Pair{EOWNERDEAD, Errno::kOwnerdead},
    Pair{EPERM, Errno::kPerm},
    Pair{EPIPE, Errno::kPipe},
    Pair{EPROTO, Errno::kProto},
    Pair{EPROTONOSUPPORT, Errno::kProtonosupport},
    Pair{EPROTOTYPE, Errno::kPrototype},
    Pair{ERANGE, Errno::kRange},
    Pair{EROFS, Errno::kRofs},
    Pair{ESPIPE, Errno::kSpipe},
    Pair{ESRCH, Errno::kSrch},
    Pair{ESTALE, Errno::kStale},
    Pair{ETIMEDOUT, Errno::kTimedout},
    Pair{ETXTBSY, Errno::kTxtbsy},
    Pair{EXDEV, Errno::kXdev},
};

}  // namespace

Errno FromHost(int sys_errno) {
  const auto* found = std::find_if(kPairs.begin(), kPairs.end(),
                                   [&](const Pair& pair) { return pair.host == sys_errno; });
  return found == kPairs.end() ? Errno::kIo : found->guest;
}

}  // namespace bulkhead::wasi
