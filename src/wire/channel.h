// A framed, non-blocking stream socket: bounded buffers both ways, descriptors by SCM_RIGHTS.
// One thread. Owns the socket; the destructor closes it (which the peer sees as end of stream).
#pragma once

#include <bulkhead/result.h>

#include <sys/socket.h>

#include <deque>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "wire/frame.h"

namespace bulkhead::wire {

// More descriptors than any message carries: directory grants, or module + standard streams +
// output.
inline constexpr std::size_t kDescriptorsPerFrameMax = kDirectoryGrantsMax;

struct Frame {
  FrameHeader header;
  std::string body;
};

class Channel {
 public:
  enum class Read : std::uint8_t { kFrame, kWouldBlock, kEnd };

  // `incoming` is the direction of the frames this side receives. The side that receives kToWorker
  // frames accepts descriptors with them; the parent never does (the kernel closes what a worker
  // attaches).
  Channel(UniqueFd socket, Direction incoming);

  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel() = default;

  BorrowedFd fd() const { return socket_.borrow(); }

  // Gives the socket to another owner. Only between frames: nothing pending, none begun.
  UniqueFd Release() { return std::move(socket_); }

  // Queues a frame and writes what the socket takes now. The descriptors stay the caller's: they
  // are passed on with the frame's first byte, at once or, if the socket is full, by a later Flush
  // (they must live until !pending()).
  Status Send(std::string frame, const std::vector<BorrowedFd>& descriptors);
  // Writes more of what is queued. kIo with EPIPE or ECONNRESET when the peer is gone.
  Status Flush();

  bool pending() const { return !out_.empty(); }

  // One frame if it has arrived completely. Never blocks. kEnd: the peer closed, with no partial
  // frame left unread; a partial frame at the end is kProtocol "truncated". Errors are final:
  // nothing is read after one.
  Result<Read> Receive(Frame* frame);

  // Descriptors that came with frames so far and were not taken, oldest first.
  std::vector<UniqueFd> TakeDescriptors(std::size_t count);

  std::size_t descriptor_count() const { return descriptors_.size(); }

 private:
  struct Outgoing {
    std::string bytes;
    std::vector<int> descriptors;
  };

  // Receives at most `want` more bytes into in_; 0 at the end of stream, -1 when it would block.
  Result<ssize_t> Fill(std::size_t want);
  Status KeepDescriptors(msghdr& message);

  UniqueFd socket_;
  Direction incoming_;
  std::deque<Outgoing> out_;
  std::string in_;  // the frame being assembled: never more than header + declared length
  std::deque<UniqueFd> descriptors_;
};

// The two ends of a fresh close-on-exec, non-blocking stream socket pair.
struct ChannelPair {
  UniqueFd parent;
  UniqueFd worker;
};

Result<ChannelPair> MakeChannelPair();

}  // namespace bulkhead::wire
