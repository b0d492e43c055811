// The honest half of a worker program, for programs that misbehave at exactly one point: answers
// the handshake, takes the work, reports. Blocking, one thread, on descriptor 3. Whatever goes
// wrong ends the process with kBrokenScript and a line on stderr, so that a broken test program is
// never taken for the sin it plays.
//
// If the run grants a directory, the program holds a lock on the file "alive" in its first one from
// the handshake on, as do all processes forked from it: whoever can take the lock knows that every
// one of them is gone.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "wire/channel.h"
#include "wire/frame.h"

namespace bulkhead::test {

inline constexpr int kBrokenScript = 70;

[[noreturn]] void Die(std::string_view why);

// Blocks all signals that can be blocked and sleeps: ends by SIGKILL only.
[[noreturn]] void HangForever();

// The name the program was started under: one program may play several variants of a sin.
std::string_view VariantName(const char* argv0);

void WriteFully(BorrowedFd fd, std::string_view bytes);

wire::Terminal Completed();
wire::Terminal OfKind(wire::Terminal::Kind kind);

class WorkerEnd {
 public:
  WorkerEnd();

  // One step each; Begin and StartGuest are all steps up to HelloAck and up to Started.
  void AwaitHello();
  void AwaitExecute();
  void SendHelloAck();
  void Begin();
  void SendReady();
  void StartGuest();
  // Cancel, or the end of the stream, which means the same.
  void AwaitCancel();

  void Send(const wire::FromWorker& message) { SendBytes(Frame(message)); }

  // The bytes of a legal frame of this run.
  std::string Frame(const wire::FromWorker& message) const;
  // Anything at all.
  void SendBytes(std::string_view bytes);
  void CloseChannel();

  const wire::Hello& hello() const { return hello_; }

  const wire::Execute& execute() const { return execute_; }

  wire::MessageId id() const { return id_; }

  // Invalid if the run did not grant the stream.
  BorrowedFd guest_stdin() const { return stdin_.borrow(); }

  BorrowedFd guest_stdout() const { return stdout_.borrow(); }

  BorrowedFd guest_stderr() const { return stderr_.borrow(); }

  BorrowedFd output() const { return output_.borrow(); }

  BorrowedFd module() const { return module_.borrow(); }

  BorrowedFd directory(std::size_t index) const { return directories_.at(index).borrow(); }

  std::size_t directory_count() const { return directories_.size(); }

 private:
  // The next frame; kEnd when the parent has closed.
  wire::Channel::Read Receive(wire::Frame* frame);
  wire::ToWorker AwaitMessage();
  UniqueFd TakeOne(std::string_view what);
  void HoldAliveLock();

  wire::Channel channel_;
  wire::MessageId id_;
  wire::Hello hello_;
  wire::Execute execute_;
  std::vector<UniqueFd> directories_;
  UniqueFd alive_;
  UniqueFd module_;
  UniqueFd stdin_;
  UniqueFd stdout_;
  UniqueFd stderr_;
  UniqueFd output_;
};

}  // namespace bulkhead::test
