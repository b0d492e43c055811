// For tests: plays the parent of a real worker program, message by message. One thread; the
// destructor kills and reaps.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "wire/channel.h"
#include "wire/handshake.h"

namespace bulkhead::worker {

// How long a test waits for something that has to happen; far above what a loaded machine needs.
inline constexpr int kPatienceMs = 60'000;

inline constexpr int kAllSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

inline UniqueFd MemoryFile(std::string_view content, int seals) {
  UniqueFd file(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(write(file.get(), content.data(), content.size()),
            static_cast<ssize_t>(content.size()));
  EXPECT_EQ(lseek(file.get(), 0, SEEK_SET), 0);
  EXPECT_TRUE(seals == 0 || fcntl(file.get(), F_ADD_SEALS, seals) == 0);
  return file;
}

inline std::string ContentOf(BorrowedFd file) {
  std::string content;
  char piece[4096];
  off_t at = 0;
  for (ssize_t got = 0; (got = pread(file.get(), piece, sizeof piece, at)) > 0; at += got) {
    content.append(piece, static_cast<std::size_t>(got));
  }
  return content;
}

class ScriptedParent {
 public:
  static constexpr wire::MessageId kId{1, 7};

  explicit ScriptedParent(const std::string& program) : stderr_(MemoryFile("", 0)) {
    Result<wire::ChannelPair> pair = wire::MakeChannelPair();
    EXPECT_TRUE(pair.has_value());
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, stderr_.get(), STDERR_FILENO);
    posix_spawn_file_actions_adddup2(&actions, pair->worker.get(), 3);
    std::string name = program;
    char* const arguments[] = {name.data(), nullptr};
    char* const environment[] = {nullptr};
    EXPECT_EQ(posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments, environment), 0)
        << program;
    posix_spawn_file_actions_destroy(&actions);
    socket_ = pair->parent.borrow();
    channel_.emplace(std::move(pair->parent), wire::Direction::kFromWorker);
  }

  ScriptedParent(const ScriptedParent&) = delete;
  ScriptedParent& operator=(const ScriptedParent&) = delete;

  ~ScriptedParent() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }

  pid_t pid() const { return pid_; }

  void Send(const wire::ToWorker& message, const std::vector<BorrowedFd>& descriptors = {},
            wire::MessageId id = kId) {
    Result<std::string> frame = wire::EncodeFrame(id, message);
    ASSERT_TRUE(frame.has_value()) << frame.error().message;
    SendBytes(*std::move(frame), descriptors);
  }

  void SendBytes(std::string bytes, const std::vector<BorrowedFd>& descriptors = {}) {
    ASSERT_TRUE(channel_->Send(std::move(bytes), descriptors).has_value());
    while (channel_->pending()) {
      ASSERT_TRUE(Poll(POLLOUT));
      ASSERT_TRUE(channel_->Flush().has_value());
    }
  }

  // The next message; nullopt at the end of the stream.
  std::optional<wire::FromWorker> Receive() {
    wire::Frame frame;
    for (;;) {
      const Result<wire::Channel::Read> read = channel_->Receive(&frame);
      if (!read || *read == wire::Channel::Read::kEnd) {
        EXPECT_TRUE(read.has_value()) << read.error().message;
        return std::nullopt;
      }
      if (*read == wire::Channel::Read::kFrame) {
        break;
      }
      if (!Poll(POLLIN)) {
        ADD_FAILURE() << "the worker says nothing; its stderr: " << Stderr();
        return std::nullopt;
      }
    }
    EXPECT_EQ(frame.header.request_id, kId.request_id);
    Result<wire::FromWorker> message = wire::DecodeFromWorker(frame.header.kind, frame.body);
    EXPECT_TRUE(message.has_value()) << message.error().message;
    return message ? std::optional(*std::move(message)) : std::nullopt;
  }

  template <class Message>
  Message Expect() {
    std::optional<wire::FromWorker> message = Receive();
    if (!message || !std::holds_alternative<Message>(*message)) {
      const auto* const terminal = message ? std::get_if<wire::Terminal>(&*message) : nullptr;
      ADD_FAILURE() << "another message than expected: index "
                    << (message ? message->index() : std::variant_npos)
                    << (terminal != nullptr ? " " + terminal->diagnostic : "")
                    << "; stderr: " << Stderr();
      return {};
    }
    return std::get<Message>(*std::move(message));
  }

  wire::HelloAck ShakeHands(const wire::Hello& hello,
                            const std::vector<BorrowedFd>& directories = {}) {
    Send(hello, directories);
    auto ack = Expect<wire::HelloAck>();
    EXPECT_TRUE(wire::CheckHelloAck(hello, ack, std::string(wire::BuildId())).has_value());
    return ack;
  }

  void CloseChannel() { channel_.reset(); }

  // The worker sees the end of the stream and can still be heard.
  void EndInput() { shutdown(socket_.get(), SHUT_WR); }

  // The wait status, once the worker is gone.
  int WaitForExit() {
    int status = -1;
    EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
    pid_ = -1;
    return status;
  }

  void ExpectExit(int code) {
    const int status = WaitForExit();
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == code)
        << "wait status " << status << "; stderr: " << Stderr();
  }

  std::string Stderr() const { return ContentOf(stderr_.borrow()); }

 private:
  bool Poll(short events) const {
    pollfd entry{socket_.get(), events, 0};
    return poll(&entry, 1, kPatienceMs) == 1;
  }

  std::optional<wire::Channel> channel_;
  BorrowedFd socket_;
  UniqueFd stderr_;
  pid_t pid_ = -1;
};

// A Hello as `bulkhead run` sends it by default.
inline wire::Hello DefaultHello() {
  wire::Hello hello;
  hello.nonce = wire::MakeNonce();
  hello.build_id = wire::BuildId();
  hello.compile_memory_bytes = 2ULL << 30;
  hello.file_bytes_max = 1ULL << 30;
  return hello;
}

}  // namespace bulkhead::worker
