// Guests that do not end by themselves, each in a way of its own, as WebAssembly text. For what
// must hold whatever a guest does.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::test {

// The innermost of many loops changes many variables, each of which every loop has to carry: with
// 300 of each half a minute of compiling for five kilobytes.
inline std::string NestedLoops(int depth, int variables) {
  std::string loops;
  std::string ends;
  for (int i = 0; i < depth; ++i) {
    loops += fmt::format("(loop $l{}\n", i);
    ends += fmt::format("(br_if $l{} (local.get {})))\n", depth - 1 - i, i % variables);
  }
  std::string locals;
  std::string changes;
  for (int i = 0; i < variables; ++i) {
    locals += " i32";
    changes += fmt::format("(local.set {0} (i32.add (local.get {0}) (local.get {1})))\n", i,
                           (i + 1) % variables);
  }
  return fmt::format("(module (func (export \"_start\") (local{}) {}{}{}))", locals, loops, changes,
                     ends);
}

// _start is `body`, with a local $i, one page of memory and poll and write to call.
inline std::string PlainGuest(std::string_view body, int pages = 1) {
  return fmt::format(
      R"((module
        (import "wasi_snapshot_preview1" "poll_oneoff"
          (func $poll (param i32 i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "fd_write"
          (func $write (param i32 i32 i32 i32) (result i32)))
        (memory (export "memory") {}) (func (export "_start") (local $i i32) {})))",
      pages, body);
}

// The same with shared memory; $spawn starts a thread, which runs `thread`.
inline std::string ThreadedGuest(std::string_view start, std::string_view thread) {
  return fmt::format(
      R"((module
        (import "wasi" "thread-spawn" (func $spawn (param i32) (result i32)))
        (import "env" "memory" (memory 1 1 shared))
        (func (export "_start") (local $i i32) {})
        (func (export "wasi_thread_start") (param $id i32) (param $argument i32) {})))",
      start, thread);
}

struct BusyGuest {
  std::string name;
  std::string text;
  bool stop_worker = false;   // its worker is to get SIGSTOP once the guest runs
  bool deaf_stdout = false;   // its stdout is to be a pipe that nobody reads
  bool never_starts = false;  // in any reasonable time
};

// What gtest calls a guest.
inline void PrintTo(const BusyGuest& guest, std::ostream* stream) {
  *stream << guest.name;
}

// In the form that names of tests have.
inline std::string TestNameOf(const testing::TestParamInfo<BusyGuest>& guest) {
  std::string name = guest.param.name;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

inline std::vector<BusyGuest> BusyGuests() {
  const std::string wait_for_ever =
      "(drop (memory.atomic.wait32 (i32.const 0) (i32.const 0) (i64.const -1)))";
  const std::string spin = "(loop $for_ever (br $for_ever))";
  const std::string sleep =
      "(i32.store (i32.const 16) (i32.const 1)) (i64.store (i32.const 24) (i64.const "
      "3600000000000)) (drop (call $poll (i32.const 0) (i32.const 64) (i32.const 1) (i32.const "
      "128)))";
  const std::string write_for_ever =
      "(i32.store (i32.const 4) (i32.const 4096)) (loop $for_ever (drop (call $write (i32.const 1) "
      "(i32.const 0) (i32.const 1) (i32.const 16))) (br $for_ever))";
  // 512 MiB, a page at a time, again and again.
  const std::string fault =
      "(loop $for_ever (i32.store (local.get $i) (i32.const 1)) (local.set $i (i32.and (i32.add "
      "(local.get $i) (i32.const 4096)) (i32.const 0x1FFFFFFF))) (br $for_ever))";
  const std::string spawn_63 =
      "(local.set $i (i32.const 63)) (loop $again (drop (call $spawn (i32.const 0))) (br_if $again "
      "(local.tee $i (i32.sub (local.get $i) (i32.const 1)))))";
  return {
      {.name = "spins", .text = PlainGuest(spin)},
      {.name = "waits for ever", .text = ThreadedGuest(wait_for_ever, "")},
      {.name = "sleeps in the host", .text = PlainGuest(sleep)},
      {.name = "writes to a full pipe", .text = PlainGuest(write_for_ever), .deaf_stdout = true},
      {.name = "has a stopped worker", .text = PlainGuest(spin), .stop_worker = true},
      {.name = "faults page after page", .text = PlainGuest(fault, 8192)},
      {.name = "takes long to compile", .text = NestedLoops(300, 300), .never_starts = true},
      {.name = "spins in 64 threads", .text = ThreadedGuest(spawn_63 + spin, spin)},
      {.name = "waits in 64 threads",
       .text = ThreadedGuest(spawn_63 + wait_for_ever, wait_for_ever)},
  };
}

}  // namespace bulkhead::test
