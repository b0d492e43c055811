// One legal message of every kind with every field set to something other than its default, so that
// a field that is lost or swapped on the way shows.
#pragma once

#include <string>
#include <vector>

#include "wire/frame.h"
#include "wire/messages.h"

namespace bulkhead::test {

inline wire::Hello SampleHello() {
  wire::Hello m;
  for (std::size_t i = 0; i < m.nonce.size(); ++i) {
    m.nonce[i] = static_cast<std::uint8_t>(0xF0 + i);
  }
  m.frame_bytes_max = 4711;
  m.build_id = "0.1.0+feed";
  m.directories = {{"/data", false}, {"/work", true}};
  m.scratch_bytes = 1ULL << 33;
  m.compile_memory_bytes = 3ULL << 31;
  m.cpu_seconds = 17;
  m.file_bytes_max = 1ULL << 40;
  m.sandbox = false;
  m.own_mounts = true;
  m.own_user = true;
  m.may_change_user = true;
  return m;
}

inline wire::Execute SampleExecute() {
  wire::Execute m;
  m.mode = wire::Mode::kRun;  // the only one that goes with code
  m.profile = wire::GuestProfile::kSketch;
  m.module_bytes = 123456;
  m.code_bytes = 654321;
  m.code_offset = 128;
  m.remaining_ms = 29999;
  m.fuel = 1ULL << 60;
  m.memory_bytes = 1ULL << 31;
  m.memory_overhead_bytes = 1ULL << 26;
  m.stack_bytes = 1ULL << 21;
  m.threads = {16, 17, 1ULL << 40, 1ULL << 39, true};
  m.blobs = {1ULL << 16, 1ULL << 20, 1ULL << 22, 1ULL << 23, 128, 127, 126, 5'000'001};
  m.cooperative = false;
  m.has_stdin = true;
  m.has_stdout = true;
  m.has_stderr = true;
  m.has_output = true;
  m.output_name = "r\xC3\xA9sult.bin";
  m.output_bytes_max = 1ULL << 34;
  m.arguments = {"prog", "", "two words", std::string("\xFF\xFE", 2)};
  m.environment = {"K=V", "EMPTY="};
  return m;
}

inline wire::HelloAck SampleHelloAck() {
  wire::HelloAck m;
  m.nonce = SampleHello().nonce;
  m.build_id = "0.1.0+beef";
  m.mechanisms = {"no-new-privs", "seccomp"};
  m.failed_mechanism = "landlock";
  m.failed_errno = -38;
  return m;
}

inline wire::Trace SampleTrace() {
  wire::Trace m;
  m.text = "start\nend ~";
  return m;
}

inline wire::Terminal SampleTerminal() {
  wire::Terminal m;
  m.kind = wire::Terminal::Kind::kChildFailure;
  m.status = -9;
  m.diagnostic = "thread 3 failed";
  m.counters = {1, 2, 3, 4, 5};
  m.trap = wire::Terminal::Trap{"unreachable", "wasm trap", 3, {"0x10 f", "0x20 g"}};
  m.facts = {1ULL << 30, true, 99, 12, 34, true};
  return m;
}

inline wire::Terminal CompletedTerminal() {
  wire::Terminal m;
  m.kind = wire::Terminal::Kind::kCompleted;
  m.completed_as = wire::Terminal::CompletedAs::kStartedWithThreadRejections;
  m.rejections = {1, 2, 3, 4};
  return m;
}

inline std::vector<wire::ToWorker> ToWorkerSamples() {
  return {SampleHello(), wire::Hello(), SampleExecute(), wire::Cancel()};
}

inline std::vector<wire::FromWorker> FromWorkerSamples() {
  return {SampleHelloAck(), wire::HelloAck(), wire::Ready{123456}, wire::Started{789},
          SampleTrace(),    SampleTerminal(), CompletedTerminal()};
}

// The header and body of an encoded frame.
inline std::string_view HeaderOf(std::string_view frame) {
  return frame.substr(0, wire::kHeaderBytes);
}

inline std::string_view BodyOf(std::string_view frame) {
  return frame.substr(wire::kHeaderBytes);
}

}  // namespace bulkhead::test
