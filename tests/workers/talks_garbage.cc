// Stays alive and sends what its name says. Outcome: worker-protocol at once (N10), with reason:
//   garbage_magic bad-magic, garbage_version unsupported-version, garbage_kind unknown-kind,
//   garbage_flags invalid-payload, garbage_request, garbage_generation, huge_announcement
//   frame-too-large, upstream_execute unknown-kind, trailing_byte trailing-bytes, short_body
//   truncated, and messages that come too early or twice.
#include <cstring>
#include <functional>
#include <map>

#include "support/worker_end.h"
#include "wire/handshake.h"

namespace bulkhead::test {
namespace {

std::string Header(wire::FrameHeader header) {
  const auto bytes = wire::EncodeHeader(header);
  return {bytes.data(), bytes.size()};
}

// A Started frame with `value` written over its header at `offset`.
template <class T>
std::string Broken(const WorkerEnd& worker, std::size_t offset, T value) {
  std::string frame = worker.Frame(wire::Started{1});
  std::memcpy(frame.data() + offset, &value, sizeof value);
  return frame;
}

wire::HelloAck Ack(const WorkerEnd& worker) {
  wire::HelloAck ack;
  ack.nonce = worker.hello().nonce;
  ack.build_id = std::string(wire::BuildId());
  return ack;
}

void ToReady(WorkerEnd& worker) {
  worker.Begin();
  worker.AwaitExecute();
  worker.SendReady();
}

void ToExecute(WorkerEnd& worker) {
  worker.Begin();
  worker.AwaitExecute();
}

void SendBroken(WorkerEnd& worker, std::size_t offset, std::uint8_t value) {
  ToReady(worker);
  worker.SendBytes(Broken(worker, offset, value));
}

using Script = std::function<void(WorkerEnd&)>;

const std::map<std::string_view, Script> kScripts = {
    {"garbage_magic", [](WorkerEnd& w) { SendBroken(w, 0, 'X'); }},
    {"garbage_version", [](WorkerEnd& w) { SendBroken(w, 4, 9); }},
    {"garbage_kind", [](WorkerEnd& w) { SendBroken(w, 6, 99); }},
    {"garbage_flags", [](WorkerEnd& w) { SendBroken(w, 7, 1); }},
    {"garbage_request",
     [](WorkerEnd& w) {
       ToReady(w);
       w.SendBytes(Broken(w, 16, w.id().request_id + 1));
     }},
    {"garbage_request_zero",
     [](WorkerEnd& w) {
       ToReady(w);
       w.SendBytes(Broken(w, 16, std::uint64_t{0}));
     }},
    {"garbage_generation",
     [](WorkerEnd& w) {
       ToReady(w);
       w.SendBytes(Broken(w, 12, w.id().generation + 1));
     }},
    {"huge_announcement",
     [](WorkerEnd& w) {
       ToReady(w);
       w.SendBytes(Broken(w, 8, 0xFFFFFFFFU));
     }},
    {"upstream_execute",
     [](WorkerEnd& w) {
       ToReady(w);
       w.SendBytes(Header({wire::Kind::kExecute, 0, w.id().generation, w.id().request_id}));
     }},
    {"trailing_byte",
     [](WorkerEnd& w) {
       ToReady(w);
       w.SendBytes(Broken(w, 8, std::uint32_t{9}) + "x");
     }},
    {"short_body",
     [](WorkerEnd& w) {
       ToReady(w);
       w.SendBytes(Broken(w, 8, std::uint32_t{7}));
     }},
    {"ready_before_hello_ack",
     [](WorkerEnd& w) {
       w.AwaitHello();
       w.Send(wire::Ready{1});
     }},
    {"terminal_before_hello_ack",
     [](WorkerEnd& w) {
       w.AwaitHello();
       w.Send(Completed());
     }},
    {"terminal_before_ready",
     [](WorkerEnd& w) {
       ToExecute(w);
       w.Send(Completed());
     }},
    {"started_before_ready",
     [](WorkerEnd& w) {
       ToExecute(w);
       w.Send(wire::Started{1});
     }},
    {"trace_before_started",
     [](WorkerEnd& w) {
       ToReady(w);
       w.Send(wire::Trace{"early"});
     }},
    {"second_hello_ack",
     [](WorkerEnd& w) {
       w.Begin();
       w.Send(Ack(w));
     }},
    {"second_ready",
     [](WorkerEnd& w) {
       ToReady(w);
       w.SendReady();
     }},
    {"second_started",
     [](WorkerEnd& w) {
       w.StartGuest();
       w.Send(wire::Started{1});
     }},
    {"second_trace",
     [](WorkerEnd& w) {
       w.StartGuest();
       w.Send(wire::Trace{"one"});
       w.Send(wire::Trace{"two"});
     }},
    {"message_flood",
     [](WorkerEnd& w) {
       w.StartGuest();
       for (int i = 0; i < 1000; ++i) {
         w.Send(Ack(w));
       }
     }},
};

}  // namespace
}  // namespace bulkhead::test

int main(int /*argc*/, char** argv) {
  const auto script = bulkhead::test::kScripts.find(bulkhead::test::VariantName(argv[0]));
  if (script == bulkhead::test::kScripts.end()) {
    bulkhead::test::Die("unknown variant");
  }
  bulkhead::test::WorkerEnd worker;
  script->second(worker);
  bulkhead::test::HangForever();
}
