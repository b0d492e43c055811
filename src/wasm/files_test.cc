// What reaches a guest's files through the lock-down: granted directories, scratch space, the
// output file.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "wasm/guest_run.h"

namespace bulkhead::wasm {
namespace {

using Kind = wire::Terminal::Kind;

class TempDirectory {
 public:
  TempDirectory() {
    std::string pattern = testing::TempDir() + "bulkhead-files-XXXXXX";
    EXPECT_NE(mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
    fd_ = UniqueFd(open(pattern.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    EXPECT_TRUE(fd_.valid());
  }

  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;

  ~TempDirectory() { std::filesystem::remove_all(path_); }

  BorrowedFd fd() const { return fd_.borrow(); }

  const std::filesystem::path& path() const { return path_; }

  void Write(const std::string& name, std::string_view content) const {
    std::ofstream(path_ / name) << content;
  }

 private:
  std::filesystem::path path_;
  UniqueFd fd_;
};

struct WasiFunction {
  std::string_view name;
  std::string_view parameters;
};

constexpr WasiFunction kFunctions[] = {
    {"path_open", "i32 i32 i32 i32 i32 i64 i64 i32 i32"},
    {"fd_write", "i32 i32 i32 i32"},
    {"fd_read", "i32 i32 i32 i32"},
    {"fd_readdir", "i32 i32 i32 i64 i32"},
    {"fd_filestat_get", "i32 i32"},
    {"fd_filestat_set_size", "i32 i64"},
    {"fd_allocate", "i32 i64 i64"},
    {"fd_sync", "i32"},
    {"path_filestat_get", "i32 i32 i32 i32 i32"},
    {"path_create_directory", "i32 i32 i32"},
    {"path_rename", "i32 i32 i32 i32 i32 i32"},
    {"path_link", "i32 i32 i32 i32 i32 i32 i32"},
    {"path_symlink", "i32 i32 i32 i32 i32"},
    {"path_readlink", "i32 i32 i32 i32 i32 i32"},
    {"path_unlink_file", "i32 i32 i32"},
    {"path_remove_directory", "i32 i32 i32"},
    {"path_filestat_set_times", "i32 i32 i32 i32 i64 i64 i32"},
};

// A guest that makes calls of WASI and exits with the first error number, or 0. Names lie at 1024,
// 1088, 1152.
std::string FileGuest(std::string_view body) {
  std::string imports;
  for (const WasiFunction& function : kFunctions) {
    imports += WasiImport(function.name, function.parameters);
  }
  return Assemble(fmt::format(R"((module {}
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (memory (export "memory") 4)
    (data (i32.const 0) "\00\08\00\00\00\04\00\00")  ;; one buffer: 1024 bytes at 2048
    (data (i32.const 1024) "file")
    (data (i32.const 1088) "directory")
    (data (i32.const 1152) "directory/other")
    (data (i32.const 1216) "../secret")
    (data (i32.const 1280) "link")
    (data (i32.const 2048) "content")
    (func $check (param i32) (if (local.get 0) (then (call $exit (local.get 0)))))
    ;; Opens "file" in directory 3 with the given flags; the number is 4 or higher, at 16.
    (func $open_file (param $flags i32) (result i32)
      (call $path_open (i32.const 3) (i32.const 0) (i32.const 1024) (i32.const 4) (local.get $flags)
        (i64.const 0xe001ff) (i64.const 0) (i32.const 0) (i32.const 16)))
    (func $open_for_reading (result i32)
      (call $path_open (i32.const 3) (i32.const 0) (i32.const 1024) (i32.const 4) (i32.const 0)
        (i64.const 0x200002) (i64.const 0) (i32.const 0) (i32.const 16)))
    (func $fd (result i32) (i32.load (i32.const 16)))
    (func (export "_start") {})))",
                              imports, body));
}

constexpr std::int32_t kNotCapable = 76;

wire::Hello HelloWith(std::vector<wire::Hello::Directory> directories,
                      std::uint64_t scratch_bytes = 0) {
  wire::Hello hello = worker::DefaultHello();
  hello.directories = std::move(directories);
  hello.scratch_bytes = scratch_bytes;
  return hello;
}

// Nothing but reading.
constexpr std::string_view kReadFile =
    "(call $check (call $open_for_reading))"
    "(call $check (call $fd_read (call $fd) (i32.const 0) (i32.const 1) (i32.const 8)))"
    "(call $check (call $fd_filestat_get (call $fd) (i32.const 512)))"
    "(call $check (call $path_filestat_get (i32.const 3) (i32.const 0) (i32.const 1024) (i32.const "
    "4) "
    "(i32.const 512)))"
    "(call $check (call $fd_readdir (i32.const 3) (i32.const 4096) (i32.const 1000) (i64.const 0) "
    "(i32.const 8)))"
    "(i32.store (i32.const 4) (i32.const 7))"
    "(drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))";

// Every kind of change, also across directories.
constexpr std::string_view kChangeFiles =
    "(i32.store (i32.const 4) (i32.const 7))"
    "(call $check (call $open_file (i32.const 1)))"
    "(call $check (call $fd_write (call $fd) (i32.const 0) (i32.const 1) (i32.const 8)))"
    "(call $check (call $fd_sync (call $fd)))"
    "(call $check (call $path_create_directory (i32.const 3) (i32.const 1088) (i32.const 9)))"
    "(call $check (call $path_rename (i32.const 3) (i32.const 1024) (i32.const 4)"
    "  (i32.const 3) (i32.const 1152) (i32.const 15)))"
    "(call $check (call $path_link (i32.const 3) (i32.const 0) (i32.const 1152) (i32.const 15)"
    "  (i32.const 3) (i32.const 1024) (i32.const 4)))"
    "(call $check (call $path_symlink (i32.const 1024) (i32.const 4) (i32.const 3) (i32.const "
    "1280) "
    "(i32.const 4)))"
    "(call $check (call $path_readlink (i32.const 3) (i32.const 1280) (i32.const 4) (i32.const "
    "4096) "
    "(i32.const 100)"
    "  (i32.const 8)))"
    "(call $check (call $path_filestat_set_times (i32.const 3) (i32.const 0) (i32.const 1024) "
    "(i32.const 4) "
    "(i64.const 0)"
    "  (i64.const 0) (i32.const 5)))"
    "(call $check (call $path_unlink_file (i32.const 3) (i32.const 1280) (i32.const 4)))"
    "(call $check (call $path_unlink_file (i32.const 3) (i32.const 1152) (i32.const 15)))"
    "(call $check (call $path_remove_directory (i32.const 3) (i32.const 1088) (i32.const 9)))";

TEST(Files, AReadOnlyDirectoryIsReadable) {
  const TempDirectory directory;
  directory.Write("file", "content");
  GuestRun run(FileGuest(kReadFile));
  const wire::Terminal terminal = run.Finish(HelloWith({{"/data", false}}), {directory.fd()});
  EXPECT_EQ(terminal.kind, Kind::kCompleted) << terminal.status.value_or(0);
  EXPECT_EQ(run.Stdout(), "content");
}

TEST(Files, AReadOnlyDirectoryStaysAsItIs) {
  const TempDirectory directory;
  directory.Write("file", "content");
  for (const std::string_view attempt :
       {"(call $check (call $open_file (i32.const 0)))",
        "(call $check (call $open_file (i32.const 9)))",
        "(call $check (call $path_create_directory (i32.const 3) (i32.const 1088) (i32.const 9)))",
        "(call $check (call $path_unlink_file (i32.const 3) (i32.const 1024) (i32.const 4)))"}) {
    GuestRun run(FileGuest(attempt));
    const wire::Terminal terminal = run.Finish(HelloWith({{"/data", false}}), {directory.fd()});
    EXPECT_EQ(terminal.kind, Kind::kNonzeroExit) << attempt;
  }
  EXPECT_EQ(std::filesystem::file_size(directory.path() / "file"), 7U);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 1);
}

TEST(Files, AWritableDirectoryCanBeChanged) {
  const TempDirectory directory;
  GuestRun run(FileGuest(kChangeFiles));
  const wire::Terminal terminal = run.Finish(HelloWith({{"/data", true}}), {directory.fd()});
  EXPECT_EQ(terminal.kind, Kind::kCompleted) << terminal.status.value_or(0);
  EXPECT_EQ(std::filesystem::file_size(directory.path() / "file"), 7U);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 1);
}

TEST(Files, NothingBesideAGrantIsReached) {
  const TempDirectory outside;
  outside.Write("secret", "secret");
  std::filesystem::create_directory(outside.path() / "inside");
  const UniqueFd inside(
      open((outside.path() / "inside").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  GuestRun run(FileGuest(
      "(call $check (call $path_open (i32.const 3) (i32.const 1) (i32.const 1216) (i32.const 9)"
      " (i32.const 0) (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 16)))"));
  EXPECT_EQ(run.Finish(HelloWith({{"/data", true}}), {inside.borrow()}).status, kNotCapable);
}

TEST(Files, ScratchIsWritable) {
  GuestRun run(FileGuest(kChangeFiles));
  const wire::Terminal terminal = run.Finish(HelloWith({}, 1U << 20));
  EXPECT_EQ(terminal.kind, Kind::kCompleted) << terminal.status.value_or(0);
}

TEST(Files, ScratchIsBounded) {
  // Writes 1 KiB pieces; 16 KiB hold fewer than 100 of them.
  GuestRun run(FileGuest(
      "(local i32) (call $check (call $open_file (i32.const 1)))"
      "(loop $l (call $check (call $fd_write (call $fd) (i32.const 0) (i32.const 1) (i32.const 8)))"
      "(br_if $l (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 1))) (i32.const "
      "100))))"));
  constexpr std::int32_t kNoSpace = 51;
  EXPECT_EQ(run.Finish(HelloWith({}, 16U << 10)).status, kNoSpace);
}

TEST(Files, ScratchComesAfterTheGrants) {
  const TempDirectory directory;
  directory.Write("file", "content");
  GuestRun run(FileGuest(kReadFile));
  EXPECT_EQ(run.Finish(HelloWith({{"/data", false}}, 1U << 20), {directory.fd()}).kind,
            Kind::kCompleted);
}

TEST(Files, TheOutputFileIsProduced) {
  const UniqueFd output = worker::MemoryFile("", 0);
  wire::Execute execute = DefaultExecute();
  execute.output_name = "file";
  execute.output_bytes_max = 100;
  GuestRun run(
      FileGuest(
          "(i32.store (i32.const 4) (i32.const 7))"
          "(call $check (call $open_file (i32.const 1)))"
          "(call $check (call $fd_write (call $fd) (i32.const 0) (i32.const 1) (i32.const 8)))"
          "(call $check (call $fd_filestat_set_size (call $fd) (i64.const 3)))"
          "(call $check (call $fd_allocate (call $fd) (i64.const 0) (i64.const 10)))"
          "(call $check (call $fd_sync (call $fd)))"),
      std::move(execute));
  run.UseOutput(output.borrow());
  const wire::Terminal terminal = run.Finish();
  EXPECT_EQ(terminal.kind, Kind::kCompleted) << terminal.status.value_or(0);
  EXPECT_TRUE(terminal.facts.output_created);
  EXPECT_EQ(worker::ContentOf(output.borrow()), std::string("con\0\0\0\0\0\0\0", 10));
}

TEST(Files, AnOutputFileThatIsTooLargeSpoilsSuccess) {
  const UniqueFd output = worker::MemoryFile("", 0);
  wire::Execute execute = DefaultExecute();
  execute.output_name = "file";
  execute.output_bytes_max = 1500;
  GuestRun run(
      FileGuest("(call $check (call $open_file (i32.const 1)))"
                "(drop (call $fd_write (call $fd) (i32.const 0) (i32.const 1) (i32.const 8)))"
                "(drop (call $fd_write (call $fd) (i32.const 0) (i32.const 1) (i32.const 8)))"
                "(drop (call $fd_write (call $fd) (i32.const 0) (i32.const 1) (i32.const 8)))"),
      std::move(execute));
  run.UseOutput(output.borrow());
  const wire::Terminal terminal = run.Finish();
  EXPECT_EQ(terminal.kind, Kind::kLimitReached);
  EXPECT_EQ(terminal.limit, wire::Terminal::Limit::kOutput);
  EXPECT_LE(worker::ContentOf(output.borrow()).size(), 1500U);
}

TEST(Files, FilesMayNotOutgrowTheFileLimit) {
  const TempDirectory directory;
  wire::Hello hello = HelloWith({{"/data", true}});
  hello.file_bytes_max = 2048;
  GuestRun run(FileGuest(
      "(call $check (call $open_file (i32.const 1)))"
      "(loop $l (call $check (call $fd_write (call $fd) (i32.const 0) (i32.const 1) (i32.const 8)))"
      "(br $l))"));
  constexpr std::int32_t kFileTooLarge = 22;
  EXPECT_EQ(run.Finish(hello, {directory.fd()}).status, kFileTooLarge);
  EXPECT_EQ(std::filesystem::file_size(directory.path() / "file"), 2048U);
}

}  // namespace
}  // namespace bulkhead::wasm
