// A guest for the tests: a memory, a Wasi, and calls by name as an engine would make them.
// Everything it writes to memory goes to fresh addresses, so no call sees what an earlier one left.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/event_fd.h"
#include "wasi/abi.h"
#include "wasi/errno.h"
#include "wasi/test_host.h"
#include "wasi/wasi.h"

namespace bulkhead::wasi {

inline std::ostream& operator<<(std::ostream& out, Errno error) {
  return out << static_cast<int>(error);
}

inline std::ostream& operator<<(std::ostream& out, Control control) {
  return out << "Control " << static_cast<int>(control);
}

class Guest {
 public:
  static constexpr std::uint64_t kMemoryBytes = 4 << 20;
  static constexpr std::uint32_t kFirstPreopen = 3;

  explicit Guest(WasiConfig config) : memory_(kMemoryBytes) {
    static_cast<void>(std::signal(SIGPIPE, SIG_IGN));  // as the worker does
    config.stop_event = stop_.fd();
    auto wasi = Wasi::Create(std::move(config));
    if (!wasi) {
      ADD_FAILURE() << wasi.error().message;
      std::abort();
    }
    wasi_ = *std::move(wasi);
  }

  // Calls by name; integers become slots by the function's signature. `Call` is for calls that
  // return to the guest.
  template <class... Args>
  Errno Call(std::string_view name, Args... args) {
    const auto [control, error] = CallAny(name, args...);
    EXPECT_EQ(control, Control::kContinue) << name;
    return error;
  }

  template <class... Args>
  std::pair<Control, Errno> CallAny(std::string_view name, Args... args) {
    const std::span<const Function> functions = Functions();
    const auto function = std::find_if(functions.begin(), functions.end(),
                                       [&](const Function& f) { return f.name == name; });
    if (function == functions.end()) {
      ADD_FAILURE() << "no function " << name;
      std::abort();
    }
    const std::array<std::int64_t, sizeof...(args) + 1> values = {ToSlot(args)..., 0};
    std::array<Value, 16> slots{};
    EXPECT_EQ(function->signature.find(':'), sizeof...(args)) << name;
    for (std::size_t i = 0; i < sizeof...(args); ++i) {
      if (function->signature[i] == 'i') {
        slots[i].i32 = static_cast<std::int32_t>(values[i]);
      } else {
        slots[i].i64 = values[i];
      }
    }
    const Control control = function->call(*wasi_, memory(), slots);
    return {control, static_cast<Errno>(slots[0].i32)};
  }

  GuestMemory memory() { return {memory_.data(), memory_.size()}; }

  Wasi& wasi() { return *wasi_; }

  WasiFacts Facts() const { return wasi_->Facts(); }

  const EventFd& stop() const { return stop_; }

  // Fresh memory, zeroed, aligned to 8.
  std::uint32_t Allocate(std::size_t bytes) {
    const std::uint32_t address = next_;
    next_ += static_cast<std::uint32_t>((bytes + 7) / 8 * 8);
    if (next_ > memory_.size()) {
      ADD_FAILURE() << "the test's guest has used up its memory";
      std::abort();
    }
    return address;
  }

  std::uint32_t Store(std::string_view text) {
    const std::uint32_t address = Allocate(text.size());
    std::copy(text.begin(), text.end(), memory_.begin() + address);
    return address;
  }

  std::string Text(std::uint32_t address, std::size_t bytes) const {
    return {memory_.begin() + address,
            memory_.begin() + address + static_cast<std::ptrdiff_t>(bytes)};
  }

  template <class T>
  T Load(std::uint32_t address) {
    const std::optional<T> value = memory().Get<T>(address);
    EXPECT_TRUE(value.has_value());
    return value.value_or(T{});
  }

  template <class T>
  std::uint32_t StoreValue(const T& value) {
    const std::uint32_t address = Allocate(sizeof value);
    EXPECT_TRUE(memory().Put(address, value));
    return address;
  }

  // The usual calls, so that tests read like programs.
  struct OpenFlags {
    std::uint32_t fd_flags = 0;
    std::uint32_t lookup = kLookupSymlinkFollow;
  };

  std::pair<Errno, std::uint32_t> Open(std::uint32_t dir, std::string_view path,
                                       std::uint32_t open_flags, Rights base,
                                       const OpenFlags& flags) {
    const std::uint32_t out = Allocate(4);
    const Errno error = Call("path_open", dir, flags.lookup, Store(path), path.size(), open_flags,
                             base, rights::kAll, flags.fd_flags, out);
    return {error, Load<std::uint32_t>(out)};
  }

  std::pair<Errno, std::uint32_t> Open(std::uint32_t dir, std::string_view path,
                                       std::uint32_t open_flags, Rights base) {
    return Open(dir, path, open_flags, base, OpenFlags{});
  }

  std::uint32_t MustOpen(std::uint32_t dir, std::string_view path, std::uint32_t open_flags,
                         Rights base, std::uint32_t fd_flags = 0) {
    const auto [error, fd] = Open(dir, path, open_flags, base, OpenFlags{fd_flags});
    EXPECT_EQ(error, Errno::kSuccess) << path;
    return fd;
  }

  // One buffer in, one count out.
  std::pair<Errno, std::uint32_t> Write(std::uint32_t fd, std::string_view text) {
    const std::uint32_t iovec = OneBuffer(Store(text), text.size());
    const std::uint32_t out = Allocate(4);
    const Errno error = Call("fd_write", fd, iovec, 1, out);
    return {error, Load<std::uint32_t>(out)};
  }

  std::pair<Errno, std::string> Read(std::uint32_t fd, std::size_t bytes) {
    const std::uint32_t buffer = Allocate(bytes);
    const std::uint32_t out = Allocate(4);
    const Errno error = Call("fd_read", fd, OneBuffer(buffer, bytes), 1, out);
    return {error, Text(buffer, Load<std::uint32_t>(out))};
  }

  std::uint32_t OneBuffer(std::uint32_t address, std::size_t bytes) {
    return StoreValue(GuestIovec{address, static_cast<std::uint32_t>(bytes)});
  }

  std::pair<Errno, std::uint64_t> Seek(std::uint32_t fd, std::int64_t offset, std::uint8_t whence) {
    const std::uint32_t out = Allocate(8);
    const Errno error = Call("fd_seek", fd, offset, whence, out);
    return {error, Load<std::uint64_t>(out)};
  }

  std::pair<Errno, Filestat> Stat(std::uint32_t fd) {
    const std::uint32_t out = Allocate(sizeof(Filestat));
    const Errno error = Call("fd_filestat_get", fd, out);
    return {error, Load<Filestat>(out)};
  }

  std::pair<Errno, Filestat> StatPath(std::uint32_t dir, std::string_view path,
                                      bool follow = true) {
    const std::uint32_t out = Allocate(sizeof(Filestat));
    const Errno error =
        Call("path_filestat_get", dir, follow ? 1 : 0, Store(path), path.size(), out);
    return {error, Load<Filestat>(out)};
  }

  Fdstat StatDescriptor(std::uint32_t fd) {
    const std::uint32_t out = Allocate(sizeof(Fdstat));
    EXPECT_EQ(Call("fd_fdstat_get", fd, out), Errno::kSuccess);
    return Load<Fdstat>(out);
  }

  // path_create_directory, path_remove_directory, path_unlink_file.
  Errno OnPath(std::string_view name, std::uint32_t dir, std::string_view path) {
    return Call(name, dir, Store(path), path.size());
  }

  Errno Rename(std::uint32_t dir, std::string_view from, std::uint32_t to_dir,
               std::string_view to) {
    return Call("path_rename", dir, Store(from), from.size(), to_dir, Store(to), to.size());
  }

  Errno Link(std::uint32_t dir, std::string_view from, std::uint32_t to_dir, std::string_view to) {
    return Call("path_link", dir, 0, Store(from), from.size(), to_dir, Store(to), to.size());
  }

  Errno Symlink(std::string_view text, std::uint32_t dir, std::string_view path) {
    return Call("path_symlink", Store(text), text.size(), dir, Store(path), path.size());
  }

  std::pair<Errno, std::string> ReadLink(std::uint32_t dir, std::string_view path,
                                         std::size_t bytes = 256) {
    const std::uint32_t buffer = Allocate(bytes);
    const std::uint32_t out = Allocate(4);
    const Errno error = Call("path_readlink", dir, Store(path), path.size(), buffer, bytes, out);
    return {error, Text(buffer, Load<std::uint32_t>(out))};
  }

  struct Entry {
    std::string name;
    Dirent dirent;
  };

  // The whole directory, through a buffer of `bytes`.
  std::vector<Entry> List(std::uint32_t dir, std::size_t bytes = 4096) {
    std::vector<Entry> entries;
    const std::uint32_t buffer = Allocate(bytes);
    const std::uint32_t out = Allocate(4);
    std::uint64_t cookie = 0;
    while (true) {
      EXPECT_EQ(Call("fd_readdir", dir, buffer, bytes, cookie, out), Errno::kSuccess);
      const std::uint32_t used = Load<std::uint32_t>(out);
      const std::size_t before = entries.size();
      std::uint32_t at = 0;
      while (at + sizeof(Dirent) <= used) {
        const auto dirent = Load<Dirent>(buffer + at);
        if (at + sizeof(Dirent) + dirent.name_bytes > used) {
          break;
        }
        at += static_cast<std::uint32_t>(sizeof(Dirent));
        entries.push_back({Text(buffer + at, dirent.name_bytes), dirent});
        at += dirent.name_bytes;
        cookie = dirent.next;
      }
      if (used < bytes || entries.size() == before) {
        return entries;
      }
    }
  }

 private:
  template <class T>
  static std::int64_t ToSlot(T value) {
    return static_cast<std::int64_t>(value);
  }

  EventFd stop_ = *EventFd::Create();
  std::vector<std::uint8_t> memory_;
  std::uint32_t next_ = 64;
  std::unique_ptr<Wasi> wasi_;
};

// A guest with one granted directory, descriptor 3.
inline WasiConfig WithDirectory(const TempDir& dir, bool writable = true) {
  WasiConfig config;
  config.preopens.push_back({dir.Open(), "/data", writable});
  return config;
}

// What open(2) with O_RDWR asks for in the usual C library.
inline constexpr Rights kReadWrite = rights::kFile;
inline constexpr Rights kReadOnly =
    rights::kFile & ~(rights::kFdWrite | rights::kFdAllocate | rights::kFdFilestatSetSize);

}  // namespace bulkhead::wasi
