#include "wire/channel.h"

#include <fmt/core.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/errno_error.h"

namespace bulkhead::wire {
namespace {

constexpr std::size_t kControlBytes = CMSG_SPACE(sizeof(int) * kDescriptorsPerFrameMax);

bool WouldBlock(int sys_errno) {
  return sys_errno == EAGAIN || sys_errno == EWOULDBLOCK;
}

}  // namespace

Channel::Channel(UniqueFd socket, Direction incoming)
    : socket_(std::move(socket)), incoming_(incoming) {}

Status Channel::Send(std::string frame, const std::vector<BorrowedFd>& descriptors) {
  BH_CHECK(!frame.empty());
  BH_CHECK(descriptors.size() <= kDescriptorsPerFrameMax);
  Outgoing outgoing{std::move(frame), {}};
  for (const BorrowedFd fd : descriptors) {
    outgoing.descriptors.push_back(fd.get());
  }
  out_.push_back(std::move(outgoing));
  return Flush();
}

Status Channel::Flush() {
  while (!out_.empty()) {
    Outgoing& front = out_.front();
    iovec piece{front.bytes.data(), front.bytes.size()};
    alignas(cmsghdr) char control[kControlBytes] = {};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    if (!front.descriptors.empty()) {
      const std::size_t bytes = sizeof(int) * front.descriptors.size();
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(bytes);
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(bytes);
      std::memcpy(CMSG_DATA(header), front.descriptors.data(), bytes);
    }
    const ssize_t sent = sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (errno == EINTR) {
        continue;
      }
      if (WouldBlock(errno)) {
        return {};
      }
      return Fail(ErrnoError(ErrorCode::kIo, "sendmsg", "worker channel", errno));
    }
    front.descriptors.clear();  // they travelled with the first byte
    front.bytes.erase(0, static_cast<std::size_t>(sent));
    if (front.bytes.empty()) {
      out_.pop_front();
    }
  }
  return {};
}

Status Channel::KeepDescriptors(msghdr& message) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
      descriptors_.emplace_back(fd);
    }
  }
  if ((message.msg_flags & MSG_CTRUNC) != 0 || descriptors_.size() > 2 * kDescriptorsPerFrameMax) {
    return Fail(ErrorCode::kProtocol, "more descriptors than a message may carry", 0,
                "invalid-payload");
  }
  return {};
}

Result<ssize_t> Channel::Fill(std::size_t want) {
  const std::size_t old_size = in_.size();
  in_.resize(old_size + want);
  for (;;) {
    iovec piece{in_.data() + old_size, want};
    alignas(cmsghdr) char control[kControlBytes];
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    if (incoming_ == Direction::kToWorker) {
      message.msg_control = control;
      message.msg_controllen = sizeof control;
    }
    const ssize_t got = recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    const int sys_errno = errno;
    if (got < 0 && sys_errno == EINTR) {
      continue;
    }
    in_.resize(old_size + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got >= 0) {
      if (incoming_ == Direction::kToWorker) {
        BH_TRY(KeepDescriptors(message));
      }
      return got;
    }
    if (WouldBlock(sys_errno)) {
      return -1;
    }
    if (sys_errno ==
        ECONNRESET) {  // the peer died with our bytes unread: for us the same as its end of stream
      return 0;
    }
    return Fail(ErrnoError(ErrorCode::kIo, "recvmsg", "worker channel", sys_errno));
  }
}

Result<Channel::Read> Channel::Receive(Frame* frame) {
  for (;;) {
    std::size_t want = kHeaderBytes;
    if (in_.size() >= kHeaderBytes) {
      frame->header = BH_TRY(DecodeHeader(in_, incoming_));
      want += frame->header.length;
      if (in_.size() == want) {
        frame->body = in_.substr(kHeaderBytes);
        in_.clear();
        return Read::kFrame;
      }
    }
    const ssize_t got = BH_TRY(Fill(want - in_.size()));
    if (got < 0) {
      return Read::kWouldBlock;
    }
    if (got == 0) {
      if (!in_.empty()) {
        return Fail(ErrorCode::kProtocol,
                    fmt::format("the stream ended {} bytes into a frame", in_.size()), 0,
                    "truncated");
      }
      return Read::kEnd;
    }
  }
}

std::vector<UniqueFd> Channel::TakeDescriptors(std::size_t count) {
  std::vector<UniqueFd> taken;
  while (taken.size() < count && !descriptors_.empty()) {
    taken.push_back(std::move(descriptors_.front()));
    descriptors_.pop_front();
  }
  return taken;
}

Result<ChannelPair> MakeChannelPair() {
  int fds[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0) {
    return Fail(ErrnoError("socketpair", "", errno));
  }
  return ChannelPair{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

}  // namespace bulkhead::wire
