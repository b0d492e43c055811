// Modules for the tests: made from text with wat2wasm or from C with clang, or assembled byte by
// byte.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/testing.h"

namespace bulkhead::admission {

using Bytes = std::vector<std::uint8_t>;

inline Bytes& operator+=(Bytes& bytes, const Bytes& more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
  return bytes;
}

inline Bytes Leb(std::uint64_t value) {
  Bytes out;
  do {
    const auto group = static_cast<std::uint8_t>(value & 0x7F);
    value >>= 7;
    out.push_back(static_cast<std::uint8_t>(group | (value != 0 ? 0x80 : 0)));
  } while (value != 0);
  return out;
}

inline Bytes Name(std::string_view text) {
  Bytes out = Leb(text.size());
  out.insert(out.end(), text.begin(), text.end());
  return out;
}

inline Bytes Header() {
  return {0x00, 0x61, 0x73, 0x6D, 0x01, 0x00, 0x00, 0x00};
}

inline Bytes Join(std::initializer_list<Bytes> parts) {
  Bytes out;
  for (const Bytes& part : parts) {
    out += part;
  }
  return out;
}

inline Bytes Section(std::uint8_t id, const Bytes& payload) {
  return Join({{id}, Leb(payload.size()), payload});
}

inline Bytes Custom(std::string_view name, const Bytes& payload = {}) {
  return Section(0, Join({Name(name), payload}));
}

// A module of these sections.
inline Bytes Module(std::initializer_list<Bytes> sections) {
  return Join({Header(), Join(sections)});
}

// The sections of the smallest command: one function () -> (), exported as _start.
inline Bytes StartType() {
  return Section(1, {1, 0x60, 0, 0});
}

inline Bytes StartFunction() {
  return Section(3, {1, 0});
}

inline Bytes StartExport() {
  return Section(7, Join({{1}, Name("_start"), {0, 0}}));
}

inline Bytes StartCode() {
  return Section(10, {1, 2, 0, 0x0B});
}

inline Bytes SmallestCommand() {
  return Module({StartType(), StartFunction(), StartExport(), StartCode()});
}

using bulkhead::WriteFile;

inline void WriteFile(const std::string& path, const Bytes& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

inline Bytes ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

// Whether the program ended with status 0. PATH has the linker that clang looks for.
inline bool RunTool(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  std::string path = "PATH=/usr/lib/llvm-14/bin:/usr/local/bin:/usr/bin:/bin";
  char* envp[] = {path.data(), nullptr};
  pid_t pid = 0;
  int status = 0;
  return posix_spawnp(&pid, argv[0], nullptr, nullptr, argv.data(), envp) == 0 &&
         waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Fails the test (empty bytes) if wat2wasm is missing or refuses the text.
inline Bytes Wat(std::string_view text) {
  const TempDir dir;
  WriteFile(dir / "m.wat", text);
  return RunTool({"wat2wasm", "--enable-all", "--no-check", "-o", dir / "m.wasm", dir / "m.wat"})
             ? ReadFile(dir / "m.wasm")
             : Bytes();
}

inline bool HasClangForWasi() {
  const TempDir dir;
  WriteFile(dir / "m.c", "#include <stdio.h>\nint main(void) { return puts(\"\"); }\n");
  return RunTool(
      {"clang-14", "--target=wasm32-wasi", "--sysroot=/usr", "-o", dir / "m.wasm", dir / "m.c"});
}

inline Bytes CompileC(std::string_view text) {
  const TempDir dir;
  WriteFile(dir / "m.c", text);
  return RunTool({"clang-14", "--target=wasm32-wasi", "--sysroot=/usr", "-O1", "-o", dir / "m.wasm",
                  dir / "m.c"})
             ? ReadFile(dir / "m.wasm")
             : Bytes();
}

// A command with something in most sections.
inline constexpr std::string_view kRichCommand = R"((module
  (type $f (func (param i32 i64 f32 f64 funcref externref) (result i32 i64)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (table $t 4 9 funcref)
  (table $u 1 externref)
  (memory (export "memory") 2 5)
  (memory $second 1)
  (tag $e (param i32))
  (global $g (mut i32) (i32.const -7))
  (global $h f64 (f64.const 1.5))
  (global $r funcref (ref.null func))
  (global $x i32 (i32.add (i32.const 40) (i32.const 2)))
  (export "table" (table $t))
  (export "global" (global $g))
  (export "tag" (tag $e))
  (export "_start" (func $start))
  (start $main)
  (elem (i32.const 0) $main $start)
  (elem declare func $start)
  (elem $p funcref (ref.func $main) (ref.null func))
  (elem (table $t) (i32.const 2) funcref (ref.func $main))
  (func $main)
  (func $start (call $exit (i32.const 3)))
  (data (i32.const 16) "hello\n")
  (data $passive "never")
  (data (memory $second) (i32.const 0) "second")
))";

}  // namespace bulkhead::admission
