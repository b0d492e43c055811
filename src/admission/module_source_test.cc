#include <bulkhead/module.h>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "admission/module_policy.h"
#include "admission/sealed_image.h"
#include "admission/test_modules.h"
#include "base/unique_fd.h"

namespace bulkhead::admission {
namespace {

constexpr std::uint64_t kCeiling = ModulePolicy::kModuleBytesCeiling;
constexpr std::string_view kSha256OfAbc =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr std::string_view kSha256OfNothing =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

Bytes BytesOf(const ModuleSource& source) {
  return Bytes(source.bytes().begin(), source.bytes().end());
}

AdmittedModule AdmitOrDie(const Bytes& bytes, const ModulePolicy& policy = {}) {
  Result<ModuleSource> source = ModuleSource::FromBytes(bytes, policy.module_bytes_max);
  Result<AdmittedModule> module = std::move(source).value().Admit(policy);
  return std::move(module).value();
}

// What `writer` writes into one end, read from the other.
template <class Writer>
Result<ModuleSource> FromPipe(std::uint64_t bytes_max, int flags, Writer writer) {
  int ends[2] = {-1, -1};
  EXPECT_EQ(pipe2(ends, O_CLOEXEC | flags), 0);
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  std::thread thread([&] {
    writer(write_end.get());
    write_end.Reset();
  });
  Result<ModuleSource> source = ModuleSource::FromDescriptor(read_end.get(), "the pipe", bytes_max);
  thread.join();
  return source;
}

void WriteFully(int fd, const Bytes& bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t written = write(fd, bytes.data() + at, bytes.size() - at);
    if (written < 0) {
      ASSERT_EQ(errno, EAGAIN);
      std::this_thread::yield();
      continue;
    }
    at += static_cast<std::size_t>(written);
  }
}

TEST(ModuleSource, ReadsAFile) {
  const TempDir dir;
  const Bytes bytes = SmallestCommand();
  WriteFile(dir / "m.wasm", bytes);
  const Result<ModuleSource> source = ModuleSource::FromFile(dir / "m.wasm", kCeiling);
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ(BytesOf(*source), bytes);
  EXPECT_TRUE(source->Inspect({}).refusals.empty());
}

TEST(ModuleSource, TheImageIsSealedReadOnlyAndClosedOnExec) {
  const Result<ModuleSource> source = ModuleSource::FromBytes(SmallestCommand(), kCeiling);
  const int fd = source.value().descriptor();
  EXPECT_EQ(fcntl(fd, F_GET_SEALS), F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
  EXPECT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(pwrite(fd, "x", 1, 0), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(ftruncate(fd, 0), -1);
  EXPECT_EQ(mmap(nullptr, 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
  struct stat status = {};
  ASSERT_EQ(fstat(fd, &status), 0);
  EXPECT_EQ(static_cast<std::uint64_t>(status.st_size), SmallestCommand().size());
}

TEST(ModuleSource, ReadsPipesOfAnySize) {
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{65'536}, std::size_t{300'001}}) {
    Bytes bytes(size);
    for (std::size_t i = 0; i < size; ++i) {
      bytes[i] = static_cast<std::uint8_t>(i * 7);
    }
    for (const int flags : {0, O_NONBLOCK}) {
      const Result<ModuleSource> source =
          FromPipe(size, flags, [&](int fd) { WriteFully(fd, bytes); });
      ASSERT_TRUE(source) << source.error().message;
      EXPECT_EQ(BytesOf(*source), bytes);
    }
  }
}

TEST(ModuleSource, StopsReadingAPipeAtTheLimit) {
  signal(SIGPIPE, SIG_IGN);
  int ends[2] = {-1, -1};
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  // The writer never ends by itself: only a reader that stops ends this test.
  std::thread thread([&] {
    const Bytes chunk(4096, 'x');
    while (write(write_end.get(), chunk.data(), chunk.size()) > 0) {
    }
  });
  const Result<ModuleSource> source =
      ModuleSource::FromDescriptor(read_end.get(), "the pipe", 10'000);
  read_end.Reset();
  thread.join();
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().code, ErrorCode::kModuleRefused);
  EXPECT_EQ(source.error().reason, "module-too-large");
  EXPECT_EQ(source.error().message, "module 'the pipe' has more than 10000 bytes");
}

TEST(ModuleSource, ReadsSocketsAndFilesWithoutASize) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  WriteFully(write_end.get(), SmallestCommand());
  write_end.Reset();
  const Result<ModuleSource> socket = ModuleSource::FromDescriptor(read_end.get(), "s", kCeiling);
  ASSERT_TRUE(socket) << socket.error().message;
  EXPECT_EQ(BytesOf(*socket), SmallestCommand());
  // Files of /proc say that they have no bytes.
  const Result<ModuleSource> proc = ModuleSource::FromFile("/proc/self/status", kCeiling);
  ASSERT_TRUE(proc) << proc.error().message;
  EXPECT_FALSE(proc->bytes().empty());
}

TEST(ModuleSource, AnEmptyFileIsASourceButNoModule) {
  Result<ModuleSource> source = ModuleSource::FromFile("/dev/null", kCeiling);
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_TRUE(source->bytes().empty());
  const Result<AdmittedModule> module = std::move(*source).Admit({});
  ASSERT_FALSE(module);
  EXPECT_EQ(module.error().code, ErrorCode::kModuleRefused);
  EXPECT_EQ(module.error().reason, "empty-module");
}

TEST(ModuleSource, SaysWhyAFileCannotBeRead) {
  const TempDir dir;
  const Result<ModuleSource> missing = ModuleSource::FromFile(dir / "none.wasm", kCeiling);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(missing.error().sys_errno, ENOENT);
  const Result<ModuleSource> directory = ModuleSource::FromFile(dir / "", kCeiling);
  ASSERT_FALSE(directory);
  EXPECT_EQ(directory.error().code, ErrorCode::kIo);
  EXPECT_NE(directory.error().message.find("is a directory, not a file"), std::string::npos);
  WriteFile(dir / "file", std::string_view("x"));
  const Result<ModuleSource> below = ModuleSource::FromFile(dir / "file/m.wasm", kCeiling);
  ASSERT_FALSE(below);
  EXPECT_EQ(below.error().sys_errno, ENOTDIR);
  const UniqueFd write_only(open((dir / "file").c_str(), O_WRONLY | O_CLOEXEC));
  const Result<ModuleSource> unreadable =
      ModuleSource::FromDescriptor(write_only.get(), "w", kCeiling);
  ASSERT_FALSE(unreadable);
  EXPECT_EQ(unreadable.error().code, ErrorCode::kIo);
  EXPECT_EQ(unreadable.error().message, "read 'w': Bad file descriptor");
  EXPECT_FALSE(ModuleSource::FromDescriptor(-1, "none", kCeiling));
}

TEST(Case, G35OddPathsNameTheExactFile) {
  const TempDir dir;
  for (const std::string& name :
       {std::string("a b"), std::string("a\"b"), std::string("a\nb"), std::string("\xE2\x98\x83"),
        std::string("\xFF"), std::string(255, 'n')}) {
    WriteFile(dir / name, SmallestCommand());
    EXPECT_TRUE(ModuleSource::FromFile(dir / name, kCeiling)) << name;
  }
  WriteFile(dir / "short", SmallestCommand());
  const Result<ModuleSource> nul =
      ModuleSource::FromFile((dir / "short") + std::string("\0x", 2), kCeiling);
  ASSERT_FALSE(nul);
  EXPECT_EQ(nul.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(nul.error().message.find('\0'), std::string::npos);
  EXPECT_EQ(ModuleSource::FromFile("", kCeiling).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(ModuleSource::FromFile(dir / std::string(256, 'n'), kCeiling).error().sys_errno,
            ENAMETOOLONG);
}

TEST(OneShot, U17ModuleCeilingHoldsWithoutReadingOrAllocating) {
  EXPECT_TRUE(CheckModuleBytes(kCeiling, kCeiling));
  EXPECT_FALSE(CheckModuleBytes(kCeiling + 1, kCeiling));
  // A larger limit does not lift the ceiling.
  EXPECT_FALSE(CheckModuleBytes(kCeiling + 1, ~std::uint64_t{0}));
  EXPECT_TRUE(CheckModuleBytes(kCeiling, ~std::uint64_t{0}));

  const TempDir dir;
  const UniqueFd file(open((dir / "large").c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  ASSERT_EQ(ftruncate(file.get(), static_cast<off_t>(kCeiling + 1)), 0);
  const Result<ModuleSource> source =
      ModuleSource::FromDescriptor(file.get(), "large", ~std::uint64_t{0});
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().code, ErrorCode::kModuleRefused);
  EXPECT_EQ(source.error().reason, "module-too-large");
  EXPECT_EQ(source.error().message,
            "'large': the module has 536870913 bytes, at most 536870912 are allowed");
  EXPECT_EQ(lseek(file.get(), 0, SEEK_CUR), 0) << "something was read";
}

TEST(ModuleSource, SizeLimitsHoldForFilesAndBytes) {
  const TempDir dir;
  const Bytes bytes = SmallestCommand();
  WriteFile(dir / "m", bytes);
  EXPECT_TRUE(ModuleSource::FromFile(dir / "m", bytes.size()));
  EXPECT_EQ(ModuleSource::FromFile(dir / "m", bytes.size() - 1).error().reason, "module-too-large");
  EXPECT_TRUE(ModuleSource::FromBytes(bytes, bytes.size()));
  EXPECT_EQ(ModuleSource::FromBytes(bytes, bytes.size() - 1).error().reason, "module-too-large");
  // A file that says 0 bytes and has more.
  EXPECT_EQ(ModuleSource::FromFile("/proc/self/status", 3).error().reason, "module-too-large");
}

TEST(OneShot, U19CopiesShareOneImage) {
  ModulePolicy policy;
  policy.memory_bytes_max = 12'345'678;
  const AdmittedModule module = AdmitOrDie(SmallestCommand(), policy);
  const AdmittedModule copy =
      module;  // NOLINT(performance-unnecessary-copy-initialization): the copy is the subject
  EXPECT_EQ(module.bytes().data(), copy.bytes().data());
  EXPECT_EQ(module.bytes().data(), module.bytes().data());
  EXPECT_EQ(module.descriptor(), copy.descriptor());
  EXPECT_EQ(copy.policy().memory_bytes_max, policy.memory_bytes_max);
  EXPECT_EQ(copy.policy().profile, policy.profile);
  EXPECT_EQ(copy.policy().module_bytes_max, policy.module_bytes_max);
  EXPECT_EQ(copy.size_bytes(), SmallestCommand().size());
  EXPECT_EQ(copy.info().profile, Profile::kWasi);
}

TEST(ModuleSource, AdmissionKeepsTheImageThatWasRead) {
  Result<ModuleSource> source = ModuleSource::FromBytes(SmallestCommand(), kCeiling);
  const std::uint8_t* const address = source.value().bytes().data();
  const int descriptor = source->descriptor();
  const Result<AdmittedModule> module = std::move(*source).Admit({});
  ASSERT_TRUE(module);
  EXPECT_EQ(module->bytes().data(), address);
  EXPECT_EQ(module->descriptor(), descriptor);
}

TEST(ModuleSource, TheLastHandleClosesTheImage) {
  int descriptor = -1;
  {
    const AdmittedModule module = AdmitOrDie(SmallestCommand());
    descriptor = module.descriptor();
    ASSERT_GE(fcntl(descriptor, F_GETFD), 0);
  }
  EXPECT_EQ(fcntl(descriptor, F_GETFD), -1);
}

TEST(ModuleSource, AdmitReportsTheFirstRefusal) {
  Result<ModuleSource> source = ModuleSource::FromBytes(
      Wat("(module (import \"env\" \"f\" (func)) (memory 1 2 shared))"), kCeiling);
  const Inspection inspection = source.value().Inspect({});
  const Result<AdmittedModule> module = std::move(*source).Admit({});
  ASSERT_FALSE(module);
  EXPECT_EQ(module.error().code, ErrorCode::kModuleRefused);
  EXPECT_EQ(module.error().reason, "defined-shared-memory");
  EXPECT_EQ(module.error().reason, inspection.refusals.front().code);
  EXPECT_EQ(module.error().message, inspection.refusals.front().detail);
  EXPECT_GT(inspection.refusals.size(), 1U);
}

TEST(ModuleSource, DigestIsSha256AndComputedOnceForAllThreads) {
  const AdmittedModule module = AdmitOrDie(SmallestCommand());
  std::vector<std::string> digests(4);
  std::vector<std::thread> threads;
  for (std::string& digest : digests) {
    threads.emplace_back([&module, &digest] { digest = module.sha256(); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const std::string& digest : digests) {
    EXPECT_EQ(digest, digests.front());
    EXPECT_EQ(digest.size(), 64U);
  }
}

TEST(SealedImage, DigestsOfKnownBytes) {
  const Bytes abc = {'a', 'b', 'c'};
  EXPECT_EQ(SealedImage::CopyOf(abc, kCeiling).value()->Sha256(), kSha256OfAbc);
  EXPECT_EQ(SealedImage::CopyOf({}, kCeiling).value()->Sha256(), kSha256OfNothing);
}

}  // namespace
}  // namespace bulkhead::admission
