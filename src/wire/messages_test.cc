#include "wire/messages.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "support/wire_samples.h"
#include "wire/frame.h"

namespace bulkhead::wire {
namespace {

using test::BodyOf;
using test::CompletedTerminal;
using test::SampleExecute;
using test::SampleHello;
using test::SampleHelloAck;
using test::SampleTerminal;

constexpr MessageId kId{1, 7};

struct ToWorkerCodec {
  using Message = ToWorker;

  static std::vector<Message> Samples() { return test::ToWorkerSamples(); }

  static Result<Message> Decode(Kind kind, std::string_view body) {
    return DecodeToWorker(kind, body);
  }
};

struct FromWorkerCodec {
  using Message = FromWorker;

  static std::vector<Message> Samples() { return test::FromWorkerSamples(); }

  static Result<Message> Decode(Kind kind, std::string_view body) {
    return DecodeFromWorker(kind, body);
  }
};

template <class Message>
Kind KindOf(const Message& message) {
  return std::visit([](const auto& m) { return std::decay_t<decltype(m)>::kKind; }, message);
}

template <class Message>
std::string EncodedBody(const Message& message) {
  const Result<std::string> frame = EncodeFrame(kId, message);
  EXPECT_TRUE(frame.has_value());
  return frame ? std::string(BodyOf(*frame)) : "";
}

// Why a message is refused, as the sender and as the receiver see it.
std::string RefusalOf(const FromWorker& message) {
  const Result<std::string> frame = EncodeFrame(kId, message);
  return frame ? "" : frame.error().reason;
}

std::string RefusalOf(const ToWorker& message) {
  const Result<std::string> frame = EncodeFrame(kId, message);
  return frame ? "" : frame.error().reason;
}

// The bytes of a message that an honest encoder would refuse to write.
template <class M>
std::string ForgedBody(const M& message) {
  BinaryWriter writer;
  M::Fields(writer, message);
  return std::move(writer).Take();
}

// The receiver must refuse by itself what the sender refuses: it does not trust it.
template <class M>
void ExpectRefusedBothWays(const M& message, std::string_view reason) {
  EXPECT_EQ(RefusalOf(FromWorker(message)), reason);
  const Result<FromWorker> decoded = DecodeFromWorker(M::kKind, ForgedBody(message));
  ASSERT_FALSE(decoded.has_value());
  EXPECT_EQ(decoded.error().code, ErrorCode::kProtocol);
  EXPECT_EQ(decoded.error().reason, reason);
}

template <class Codec>
class Codecs : public testing::Test {};

using BothWays = testing::Types<ToWorkerCodec, FromWorkerCodec>;
TYPED_TEST_SUITE(Codecs, BothWays);

TYPED_TEST(Codecs, MessagesSurviveTheTrip) {
  for (const auto& message : TypeParam::Samples()) {
    const std::string body = EncodedBody(message);
    const auto decoded = TypeParam::Decode(KindOf(message), body);
    ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
    EXPECT_EQ(decoded->index(), message.index());
    EXPECT_EQ(EncodedBody(*decoded), body);
  }
}

TYPED_TEST(Codecs, EveryProperPrefixIsRefused) {
  for (const auto& message : TypeParam::Samples()) {
    const std::string body = EncodedBody(message);
    for (std::size_t size = 0; size < body.size(); ++size) {
      const auto decoded =
          TypeParam::Decode(KindOf(message), std::string_view(body).substr(0, size));
      ASSERT_FALSE(decoded.has_value()) << "prefix of " << size;
      EXPECT_EQ(decoded.error().reason, "truncated");
    }
  }
}

TYPED_TEST(Codecs, EveryByteTooManyIsRefused) {
  for (const auto& message : TypeParam::Samples()) {
    for (const char extra : {'\0', '\x01', '\xFF'}) {
      const auto decoded = TypeParam::Decode(KindOf(message), EncodedBody(message) + extra);
      ASSERT_FALSE(decoded.has_value());
      EXPECT_EQ(decoded.error().reason, "trailing-bytes");
    }
  }
}

// One encoding per message: whatever is accepted is exactly what an honest sender would have
// written. Also the cheapest search for a decoder that can be confused: every byte is replaced by
// interesting values.
TYPED_TEST(Codecs, AcceptedBytesAreCanonical) {
  for (const auto& message : TypeParam::Samples()) {
    const std::string body = EncodedBody(message);
    for (std::size_t at = 0; at < body.size(); ++at) {
      for (const int value : {0x00, 0x01, 0x02, 0x1B, 0x7F, 0x80, 0xFF}) {
        std::string mutated = body;
        mutated[at] = static_cast<char>(value);
        const auto decoded = TypeParam::Decode(KindOf(message), mutated);
        if (decoded) {
          EXPECT_EQ(EncodedBody(*decoded), mutated) << "byte " << at << " value " << value;
        }
      }
    }
  }
}

TYPED_TEST(Codecs, UnknownKindsAreNotDecoded) {
  for (const int kind : {0, 4, 15, 21, 99, 255}) {
    EXPECT_EQ(TypeParam::Decode(static_cast<Kind>(kind), "").error().reason, "unknown-kind");
  }
}

TEST(OneShot, P1ReadyRoundTripAndOneByteTooMany) {
  const std::string body = EncodedBody(FromWorker(Ready{42}));
  const Result<FromWorker> decoded = DecodeFromWorker(Kind::kReady, body);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(std::get<Ready>(*decoded).module_bytes, 42U);
  EXPECT_EQ(DecodeFromWorker(Kind::kReady, body + "x").error().reason, "trailing-bytes");
}

TEST(OneShot, P3HelloKeepsEveryField) {
  const Hello sent = SampleHello();
  const Hello got = std::get<Hello>(*DecodeToWorker(Kind::kHello, EncodedBody(ToWorker(sent))));
  EXPECT_EQ(got.nonce, sent.nonce);
  EXPECT_EQ(got.frame_bytes_max, sent.frame_bytes_max);
  EXPECT_EQ(got.build_id, sent.build_id);
  ASSERT_EQ(got.directories.size(), 2U);
  EXPECT_EQ(got.directories[0].guest_path, "/data");
  EXPECT_FALSE(got.directories[0].writable);
  EXPECT_EQ(got.directories[1].guest_path, "/work");
  EXPECT_TRUE(got.directories[1].writable);
  EXPECT_EQ(got.scratch_bytes, sent.scratch_bytes);
  EXPECT_EQ(got.compile_memory_bytes, sent.compile_memory_bytes);
  EXPECT_EQ(got.cpu_seconds, sent.cpu_seconds);
  EXPECT_EQ(got.file_bytes_max, sent.file_bytes_max);
  EXPECT_EQ(got.sandbox, sent.sandbox);
  EXPECT_EQ(got.own_mounts, sent.own_mounts);
  EXPECT_EQ(got.own_user, sent.own_user);
  EXPECT_EQ(got.may_change_user, sent.may_change_user);
}

TEST(OneShot, P3ExecuteKeepsEveryField) {
  const Execute sent = SampleExecute();
  const Execute got =
      std::get<Execute>(*DecodeToWorker(Kind::kExecute, EncodedBody(ToWorker(sent))));
  EXPECT_EQ(got.mode, sent.mode);
  EXPECT_EQ(got.profile, sent.profile);
  EXPECT_EQ(got.module_bytes, sent.module_bytes);
  EXPECT_EQ(got.code_bytes, sent.code_bytes);
  EXPECT_EQ(got.code_offset, sent.code_offset);
  EXPECT_EQ(got.remaining_ms, sent.remaining_ms);
  EXPECT_EQ(got.fuel, sent.fuel);
  EXPECT_EQ(got.memory_bytes, sent.memory_bytes);
  EXPECT_EQ(got.memory_overhead_bytes, sent.memory_overhead_bytes);
  EXPECT_EQ(got.stack_bytes, sent.stack_bytes);
  EXPECT_EQ(got.threads, sent.threads);
  EXPECT_EQ(got.blobs, sent.blobs);
  EXPECT_EQ(got.cooperative, sent.cooperative);
  EXPECT_EQ(got.has_stdin, sent.has_stdin);
  EXPECT_EQ(got.has_stdout, sent.has_stdout);
  EXPECT_EQ(got.has_stderr, sent.has_stderr);
  EXPECT_EQ(got.has_output, sent.has_output);
  EXPECT_EQ(got.output_name, sent.output_name);
  EXPECT_EQ(got.output_bytes_max, sent.output_bytes_max);
  EXPECT_EQ(got.arguments, sent.arguments);
  EXPECT_EQ(got.environment, sent.environment);
}

// Neighbouring fields of one type could be swapped without changing a byte count: each flag alone.
TEST(OneShot, P3ExecuteFlagsAreNotMixedUp) {
  bool Execute::* const flags[] = {&Execute::cooperative, &Execute::has_stdin, &Execute::has_stdout,
                                   &Execute::has_stderr, &Execute::has_output};
  for (const auto set : flags) {
    Execute sent = SampleExecute();
    for (const auto flag : flags) {
      sent.*flag = flag == set;
    }
    const Execute got =
        std::get<Execute>(*DecodeToWorker(Kind::kExecute, EncodedBody(ToWorker(sent))));
    for (const auto flag : flags) {
      EXPECT_EQ(got.*flag, flag == set);
    }
  }
}

TEST(OneShot, P3HelloAckKeepsEveryField) {
  const HelloAck sent = SampleHelloAck();
  const HelloAck got =
      std::get<HelloAck>(*DecodeFromWorker(Kind::kHelloAck, EncodedBody(FromWorker(sent))));
  EXPECT_EQ(got.nonce, sent.nonce);
  EXPECT_EQ(got.build_id, sent.build_id);
  EXPECT_EQ(got.mechanisms, sent.mechanisms);
  EXPECT_EQ(got.failed_mechanism, sent.failed_mechanism);
  EXPECT_EQ(got.failed_errno, sent.failed_errno);
}

TEST(OneShot, P3TerminalKeepsEveryField) {
  const Terminal sent = SampleTerminal();
  const Terminal got =
      std::get<Terminal>(*DecodeFromWorker(Kind::kTerminal, EncodedBody(FromWorker(sent))));
  EXPECT_EQ(got.kind, sent.kind);
  EXPECT_EQ(got.completed_as, sent.completed_as);
  EXPECT_EQ(got.status, -9);
  EXPECT_EQ(got.diagnostic, sent.diagnostic);
  EXPECT_EQ(got.counters.active_roots, 1U);
  EXPECT_EQ(got.counters.live_stores, 2U);
  EXPECT_EQ(got.counters.live_instances, 3U);
  EXPECT_EQ(got.counters.epoch_registrations, 4U);
  EXPECT_EQ(got.counters.live_threads, 5U);
  ASSERT_TRUE(got.trap.has_value());
  EXPECT_EQ(got.trap->code, "unreachable");
  EXPECT_EQ(got.trap->message, "wasm trap");
  EXPECT_EQ(got.trap->thread, 3U);
  EXPECT_EQ(got.trap->backtrace, sent.trap->backtrace);
  EXPECT_EQ(got.facts.memory_bytes_peak, sent.facts.memory_bytes_peak);
  EXPECT_TRUE(got.facts.memory_growth_refused);
  EXPECT_EQ(got.facts.fuel_used, 99U);
  EXPECT_EQ(got.facts.instantiate_us, 12U);
  EXPECT_EQ(got.facts.execute_us, 34U);
  EXPECT_TRUE(got.facts.output_created);
}

TEST(OneShot, P8ModulesAboveTheTransportCeilingAreRefused) {
  Execute m = SampleExecute();
  m.module_bytes = 512ULL << 20;
  EXPECT_EQ(RefusalOf(ToWorker(m)), "");
  m.module_bytes += 1;
  EXPECT_EQ(RefusalOf(ToWorker(m)), "module-too-large");
  EXPECT_EQ(DecodeToWorker(Kind::kExecute, ForgedBody(m)).error().reason, "module-too-large");
}

TEST(OneShot, P10DiagnosticsAboveTheirBoundAreRefused) {
  Terminal m = SampleTerminal();
  m.diagnostic = std::string(1024, 'd');
  EXPECT_EQ(RefusalOf(FromWorker(m)), "");
  m.diagnostic += 'd';
  ExpectRefusedBothWays(m, "invalid-payload");
}

TEST(OneShot, P11RejectionCountersAndStatusSurvive) {
  const Terminal got = std::get<Terminal>(
      *DecodeFromWorker(Kind::kTerminal, EncodedBody(FromWorker(CompletedTerminal()))));
  EXPECT_EQ(got.rejections.capacity, 1U);
  EXPECT_EQ(got.rejections.closing, 2U);
  EXPECT_EQ(got.rejections.fuel, 3U);
  EXPECT_EQ(got.rejections.epoch, 4U);
  Terminal nonzero;
  nonzero.kind = Terminal::Kind::kNonzeroExit;
  for (const std::int32_t status : {-9, 0, 1, 255, INT32_MIN, INT32_MAX}) {
    nonzero.status = status;
    EXPECT_EQ(
        std::get<Terminal>(*DecodeFromWorker(Kind::kTerminal, EncodedBody(FromWorker(nonzero))))
            .status,
        status);
  }
}

// The table of section 3.4 row by row, every combination: which outcome, rejections, status, limit
// and reason may go with which kind.
bool LegalBySpecification(const Terminal& m) {
  using K = Terminal::Kind;
  using C = Terminal::CompletedAs;
  if (m.kind == K::kNone) {
    return false;
  }
  const bool with_rejections = m.completed_as == C::kStartedWithThreadRejections ||
                               m.completed_as == C::kExitedWithThreadRejections;
  const bool outcome_fits =
      m.kind == K::kCompleted ? m.completed_as != C::kNone && with_rejections == m.rejections.any()
                              : m.completed_as == C::kNone && !m.rejections.any();
  const bool status_fits = m.kind == K::kNonzeroExit
                               ? m.status.has_value()
                               : (m.kind == K::kChildFailure || !m.status.has_value());
  const bool limit_fits = (m.kind == K::kLimitReached) == (m.limit != Terminal::Limit::kNone);
  const bool reason_fits = (m.kind == K::kModuleRefused) == !m.reason.empty();
  return outcome_fits && status_fits && limit_fits && reason_fits;
}

TEST(OneShot, P12OnlyLegalCombinationsMakeATerminal) {
  int legal = 0;
  for (int kind = 0; kind <= 13; ++kind) {
    for (int as = 0; as <= 4; ++as) {
      for (int bits = 0; bits < 16; ++bits) {
        Terminal m;
        m.kind = static_cast<Terminal::Kind>(kind);
        m.completed_as = static_cast<Terminal::CompletedAs>(as);
        m.rejections.epoch = (bits & 1) != 0 ? 1 : 0;
        m.status = (bits & 2) != 0 ? std::optional<std::int32_t>(3) : std::nullopt;
        m.limit = (bits & 4) != 0 ? Terminal::Limit::kOutput : Terminal::Limit::kNone;
        m.reason = (bits & 8) != 0 ? "invalid-binary" : "";
        if (LegalBySpecification(m)) {
          ++legal;
          EXPECT_EQ(RefusalOf(FromWorker(m)), "") << kind << ' ' << as << ' ' << bits;
        } else {
          ExpectRefusedBothWays(m, "invalid-terminal");
        }
      }
    }
  }
  EXPECT_EQ(legal,
            4 + 1 + 2 + 10);  // Completed, NonzeroExit, ChildFailure, one each of the ten others
}

TEST(OneShot, P12EnumeratorsOutsideTheirRangeAreRefused) {
  const std::string body = EncodedBody(FromWorker(SampleTerminal()));
  for (const int kind : {14, 15, 255}) {
    std::string mutated = body;
    mutated[0] = static_cast<char>(kind);
    EXPECT_EQ(DecodeFromWorker(Kind::kTerminal, mutated).error().reason, "invalid-payload");
  }
  std::string mutated = body;
  mutated[1] = 5;  // CompletedAs
  EXPECT_EQ(DecodeFromWorker(Kind::kTerminal, mutated).error().reason, "invalid-payload");
  std::string execute = EncodedBody(ToWorker(SampleExecute()));
  execute[0] = 3;  // Mode
  EXPECT_EQ(DecodeToWorker(Kind::kExecute, execute).error().reason, "invalid-payload");
}

TEST(OneShot, P13TracesArePrintableAndBounded) {
  Trace m;
  m.text = std::string(65536, 't');
  EXPECT_EQ(RefusalOf(FromWorker(m)), "");
  m.text += 't';
  ExpectRefusedBothWays(m, "invalid-payload");
  m.text.clear();
  ExpectRefusedBothWays(m, "invalid-payload");
  for (int byte = 0; byte < 256; ++byte) {
    m.text = std::string("a") + static_cast<char>(byte) + "b";
    const bool legal = byte == '\n' || (byte >= 32 && byte <= 126);
    EXPECT_EQ(RefusalOf(FromWorker(m)).empty(), legal) << byte;
    EXPECT_EQ(DecodeFromWorker(Kind::kTrace, ForgedBody(m)).has_value(), legal) << byte;
  }
}

TEST(Messages, ExecuteNeedsTimeAndAPlaceForWhatIsMade) {
  Execute m = SampleExecute();
  m.remaining_ms = 0;
  EXPECT_EQ(RefusalOf(ToWorker(m)), "invalid-payload");
  m = SampleExecute();
  m.has_output = false;
  EXPECT_EQ(RefusalOf(ToWorker(m)), "");
  m.code_bytes = m.code_offset = 0;
  for (const Mode mode : {Mode::kConvertText, Mode::kCompile}) {
    m.mode = mode;
    m.has_output = true;
    EXPECT_EQ(std::get<Execute>(*DecodeToWorker(Kind::kExecute, EncodedBody(ToWorker(m)))).mode,
              mode);
    m.has_output = false;
    EXPECT_EQ(RefusalOf(ToWorker(m)), "invalid-payload");
  }
}

TEST(Messages, CodeComesToARunAndHasAPlace) {
  Execute m = SampleExecute();
  m.code_bytes = m.code_offset = kCodeBytesMax;
  EXPECT_EQ(RefusalOf(ToWorker(m)), "");
  for (const auto field : {&Execute::code_bytes, &Execute::code_offset}) {
    Execute beyond = m;
    ++(beyond.*field);
    EXPECT_EQ(RefusalOf(ToWorker(beyond)), "invalid-payload");
    EXPECT_EQ(DecodeToWorker(Kind::kExecute, ForgedBody(beyond)).error().reason, "invalid-payload");
  }
  m = SampleExecute();
  m.code_bytes = 0;
  EXPECT_EQ(RefusalOf(ToWorker(m)), "invalid-payload");
  for (const Mode mode : {Mode::kConvertText, Mode::kCompile}) {
    m = SampleExecute();
    m.mode = mode;
    EXPECT_EQ(RefusalOf(ToWorker(m)), "invalid-payload");
  }
}

TEST(Messages, ArgumentsWithNulAreRefused) {
  Execute m = SampleExecute();
  m.arguments.emplace_back("a\0b", 3);
  EXPECT_EQ(RefusalOf(ToWorker(m)), "invalid-payload");
  EXPECT_EQ(DecodeToWorker(Kind::kExecute, ForgedBody(m)).error().reason, "invalid-payload");
  m = SampleExecute();
  m.environment.emplace_back("\0", 1);
  EXPECT_EQ(RefusalOf(ToWorker(m)), "invalid-payload");
}

TEST(Messages, ArgumentsAreBoundedOneByOneAndTogether) {
  Execute m;
  m.remaining_ms = 1;
  m.arguments = {std::string(kArgumentBytesMax, 'a')};
  EXPECT_EQ(RefusalOf(ToWorker(m)), "");
  m.arguments[0] += 'a';
  EXPECT_EQ(RefusalOf(ToWorker(m)), "invalid-payload");
  m.arguments.assign(3, std::string(kArgumentBytesMax, 'a'));
  EXPECT_EQ(RefusalOf(ToWorker(m)), "");  // exactly the total
  m.environment = {"K"};
  EXPECT_EQ(RefusalOf(ToWorker(m)), "invalid-payload");
  m.arguments.assign(kArgumentsMax, "");
  EXPECT_EQ(RefusalOf(ToWorker(m)), "");
  m.arguments.emplace_back();
  EXPECT_EQ(RefusalOf(ToWorker(m)), "invalid-payload");
}

// The largest Execute that passes its own checks also fits into a frame.
TEST(Messages, TheLargestLegalMessagesFitTheirFrames) {
  Execute execute;
  execute.remaining_ms = 1;
  execute.output_name = std::string(255, 'n');
  execute.arguments.assign(kArgumentsMax, "");
  execute.environment.assign(kArgumentsMax, "");
  for (std::size_t i = 0; i < 3; ++i) {
    execute.arguments[i] = std::string(kArgumentBytesMax, 'a');
  }
  EXPECT_LE(EncodedBody(ToWorker(execute)).size(), kToWorkerBytesMax);

  Hello hello = SampleHello();
  hello.directories.assign(kDirectoryGrantsMax, {std::string(4096, 'p'), true});
  EXPECT_LE(EncodedBody(ToWorker(hello)).size(), kToWorkerBytesMax);

  Terminal terminal = SampleTerminal();
  terminal.diagnostic = std::string(kDiagnosticBytesMax, 'd');
  terminal.trap->message = std::string(kDiagnosticBytesMax, 'm');
  terminal.trap->backtrace.assign(kBacktraceFramesMax,
                                  std::string(kBacktraceBytesMax / kBacktraceFramesMax, 'b'));
  EXPECT_LE(EncodedBody(FromWorker(terminal)).size(), kFromWorkerBytesMax);

  EXPECT_LE(EncodedBody(FromWorker(Trace{std::string(kTraceBytesMax, 't')})).size(),
            kFromWorkerBytesMax);

  HelloAck ack = SampleHelloAck();
  ack.mechanisms.assign(32, std::string(64, 'm'));
  EXPECT_LE(EncodedBody(FromWorker(ack)).size(), kFromWorkerBytesMax);
}

TEST(Messages, BacktracesAreBoundedInFramesAndBytes) {
  Terminal m = SampleTerminal();
  m.trap->backtrace.assign(kBacktraceFramesMax, "f");
  EXPECT_EQ(RefusalOf(FromWorker(m)), "");
  m.trap->backtrace.emplace_back("f");
  ExpectRefusedBothWays(m, "invalid-payload");
  m.trap->backtrace.assign(8, std::string(1024, 'f'));
  EXPECT_EQ(RefusalOf(FromWorker(m)), "");
  m.trap->backtrace.emplace_back("f");
  ExpectRefusedBothWays(m, "invalid-payload");
  m.trap->backtrace = {std::string(1025, 'f')};
  ExpectRefusedBothWays(m, "invalid-payload");
}

TEST(Messages, HelloIsBounded) {
  Hello m = SampleHello();
  m.frame_bytes_max = 0;
  EXPECT_EQ(RefusalOf(ToWorker(m)), "invalid-payload");
  m = SampleHello();
  m.directories.assign(kDirectoryGrantsMax + 1, {"/d", false});
  EXPECT_EQ(RefusalOf(ToWorker(m)), "invalid-payload");
  m = SampleHello();
  m.directories[0].guest_path = std::string(4097, 'p');
  EXPECT_EQ(RefusalOf(ToWorker(m)), "invalid-payload");
  m = SampleHello();
  m.build_id = std::string(65, 'b');
  EXPECT_EQ(RefusalOf(ToWorker(m)), "invalid-payload");
}

}  // namespace
}  // namespace bulkhead::wire
