// What the worker program does with a parent that speaks the protocol well, badly or not at all.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "wasm/guest_run.h"

namespace bulkhead::wasm {
namespace {

using worker::DefaultHello;
using worker::MemoryFile;
using worker::ScriptedParent;
using Kind = wire::Terminal::Kind;

constexpr wire::MessageId kId = ScriptedParent::kId;

std::string Frame(const wire::ToWorker& message, wire::MessageId id = kId) {
  Result<std::string> frame = wire::EncodeFrame(id, message);
  EXPECT_TRUE(frame.has_value());
  return frame ? *std::move(frame) : "";
}

void ExpectNothingThenExit1(ScriptedParent& parent) {
  EXPECT_FALSE(parent.Receive());
  parent.ExpectExit(1);
  EXPECT_NE(parent.Stderr(), "");
}

TEST(Protocol, FirstMessageHasToBeHello) {
  for (const std::string& bytes :
       {Frame(wire::Cancel{}), std::string(24, 'x'), std::string("BKHD")}) {
    ScriptedParent parent(kWasmWorker);
    parent.SendBytes(bytes);
    parent.EndInput();
    ExpectNothingThenExit1(parent);
  }
  ScriptedParent parent(kWasmWorker);
  parent.EndInput();
  ExpectNothingThenExit1(parent);
}

TEST(Protocol, HelloCarriesOneDescriptorPerDirectory) {
  wire::Hello hello = DefaultHello();
  hello.directories = {{"/data", false}};
  ScriptedParent parent(kWasmWorker);
  parent.Send(hello);
  ExpectNothingThenExit1(parent);
}

TEST(Protocol, HelloAckEchoesAndListsWhatWasObtained) {
  ScriptedParent parent(kWasmWorker);
  const wire::HelloAck ack = parent.ShakeHands(DefaultHello());
  EXPECT_EQ(ack.failed_mechanism, "");
  const auto has = [&ack](std::string_view wanted) {
    return std::any_of(ack.mechanisms.begin(), ack.mechanisms.end(),
                       [wanted](const std::string& m) { return m.rfind(wanted, 0) == 0; });
  };
  for (const std::string_view wanted : {"rlimits", "no-new-privs", "not-dumpable", "seccomp"}) {
    EXPECT_TRUE(has(wanted)) << wanted;
  }
  parent.CloseChannel();  // a worker that is not needed after all
  parent.ExpectExit(0);
}

TEST(Protocol, WithoutSandboxOnlyLimitsAreListed) {
  wire::Hello hello = DefaultHello();
  hello.sandbox = false;
  GuestRun run(
      Assemble(R"((module (memory 1) (data (i32.const 0) "x") (func (export "_start"))))"));
  run.SendExecute(hello);
  run.parent().Expect<wire::Started>();
  EXPECT_EQ(run.parent().Expect<wire::Terminal>().kind, Kind::kCompleted);
  run.parent().ExpectExit(0);
}

TEST(OneShot, W5HelloThenCancelIsAProtocolFailure) {
  for (const wire::ToWorker& second :
       {wire::ToWorker(wire::Cancel{}), wire::ToWorker(DefaultHello())}) {
    ScriptedParent parent(kWasmWorker);
    parent.ShakeHands(DefaultHello());
    parent.Send(second);
    const auto terminal = parent.Expect<wire::Terminal>();
    EXPECT_EQ(terminal.kind, Kind::kProtocolFailure);
    EXPECT_TRUE(terminal.counters.zero());
    parent.ExpectExit(0);
  }
}

TEST(OneShot, W5ExecuteOfAnotherRequestIsAProtocolFailure) {
  const UniqueFd module = MemoryFile("module", worker::kAllSeals);
  ScriptedParent parent(kWasmWorker);
  parent.ShakeHands(DefaultHello());
  wire::Execute execute = DefaultExecute();
  execute.module_bytes = 6;
  parent.Send(execute, {module.borrow()}, {kId.generation, kId.request_id + 1});
  EXPECT_EQ(parent.Expect<wire::Terminal>().kind, Kind::kProtocolFailure);
  parent.ExpectExit(0);
}

TEST(OneShot, W5GarbageAfterHelloEndsWithoutTerminal) {
  ScriptedParent parent(kWasmWorker);
  parent.ShakeHands(DefaultHello());
  parent.SendBytes(std::string(24, 'x'));
  ExpectNothingThenExit1(parent);
}

TEST(OneShot, W6HelloAckReadyStartedTerminalInThatOrder) {
  GuestRun run(Assemble(R"((module (func (export "_start"))))"));
  EXPECT_EQ(run.Finish().kind, Kind::kCompleted);
  EXPECT_FALSE(run.parent().Receive());  // and nothing after it
}

TEST(OneShot, W7AModuleThatIsNotWhatWasAnnouncedIsNeverConfirmed) {
  struct Wrong {
    UniqueFd file;
    std::uint64_t bytes;
  };

  constexpr std::string_view kContent = "0123456789";
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd writer(ends[1]);
  std::vector<Wrong> cases;
  cases.push_back({MemoryFile(kContent, worker::kAllSeals), kContent.size() + 1});
  cases.push_back({MemoryFile(kContent, worker::kAllSeals), kContent.size() - 1});
  for (const int missing : {F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE}) {
    cases.push_back({MemoryFile(kContent, worker::kAllSeals & ~missing), kContent.size()});
  }
  cases.push_back({UniqueFd(ends[0]), kContent.size()});
  for (const Wrong& wrong : cases) {
    ScriptedParent parent(kWasmWorker);
    parent.ShakeHands(DefaultHello());
    wire::Execute execute = DefaultExecute();
    execute.module_bytes = wrong.bytes;
    parent.Send(execute, {wrong.file.borrow()});
    ExpectNothingThenExit1(parent);
  }
}

TEST(OneShot, W7ExecuteCarriesTheDescriptorsItAnnounces) {
  const UniqueFd module = MemoryFile("module", worker::kAllSeals);
  ScriptedParent parent(kWasmWorker);
  parent.ShakeHands(DefaultHello());
  wire::Execute execute = DefaultExecute();
  execute.module_bytes = 6;
  execute.has_stdout = true;
  parent.Send(execute, {module.borrow()});
  ExpectNothingThenExit1(parent);
}

TEST(Protocol, BytesMayArriveOneByOne) {
  ScriptedParent parent(kWasmWorker);
  for (const char byte : Frame(DefaultHello())) {
    parent.SendBytes(std::string(1, byte));
  }
  parent.Expect<wire::HelloAck>();
  const std::string module = Assemble(R"((module (func (export "_start"))))");
  const UniqueFd file = MemoryFile(module, worker::kAllSeals);
  wire::Execute execute = DefaultExecute();
  execute.module_bytes = module.size();
  std::vector<BorrowedFd> descriptors = {file.borrow()};
  for (const char byte : Frame(execute)) {
    parent.SendBytes(std::string(1, byte), descriptors);
    descriptors.clear();
  }
  parent.Expect<wire::Ready>();
  parent.Expect<wire::Started>();
  EXPECT_EQ(parent.Expect<wire::Terminal>().kind, Kind::kCompleted);
  parent.ExpectExit(0);
}

TEST(Protocol, AFailedLockDownIsNamed) {
  wire::Hello hello = DefaultHello();
  hello.directories = {{"/data", false}};
  const UniqueFd no_directory = MemoryFile("", 0);
  ScriptedParent parent(kWasmWorker);
  const wire::HelloAck ack = parent.ShakeHands(hello, {no_directory.borrow()});
  EXPECT_EQ(ack.failed_mechanism, "landlock");
  EXPECT_NE(ack.failed_errno, 0);
  EXPECT_FALSE(parent.Receive());
  parent.ExpectExit(0);
}

// ---- conversion of text ----

struct Conversion {
  wire::Terminal terminal;
  std::string binary;
};

Conversion Convert(std::string_view text, std::uint64_t output_bytes_max = 1U << 20) {
  const UniqueFd module = MemoryFile(text, worker::kAllSeals);
  const UniqueFd output = MemoryFile("", 0);
  ScriptedParent parent(kWasmWorker);
  parent.ShakeHands(DefaultHello());
  wire::Execute execute;
  execute.mode = wire::Mode::kConvertText;
  execute.module_bytes = text.size();
  execute.remaining_ms = 60'000;
  execute.has_output = true;
  execute.output_bytes_max = output_bytes_max;
  parent.Send(execute, {module.borrow(), output.borrow()});
  parent.Expect<wire::Ready>();
  Conversion conversion{parent.Expect<wire::Terminal>(), ""};
  parent.ExpectExit(0);
  conversion.binary = worker::ContentOf(output.borrow());
  return conversion;
}

TEST(ConvertText, WritesTheBinary) {
  constexpr std::string_view kText = R"((module (func (export "_start"))))";
  const Conversion conversion = Convert(kText);
  EXPECT_EQ(conversion.terminal.kind, Kind::kCompleted);
  EXPECT_EQ(conversion.binary, Assemble(kText));
}

TEST(ConvertText, SaysWhereTheTextIsWrong) {
  const Conversion conversion = Convert("(module\n  (func $f (bogus)))\n");
  EXPECT_EQ(conversion.terminal.kind, Kind::kModuleRefused);
  EXPECT_EQ(conversion.terminal.reason, "invalid-text");
  EXPECT_NE(conversion.terminal.diagnostic.find("line 2"), std::string::npos)
      << conversion.terminal.diagnostic;
  EXPECT_EQ(conversion.binary, "");
  EXPECT_EQ(Convert("").terminal.reason, "invalid-text");
  EXPECT_EQ(Convert("\xff\xfe").terminal.reason, "invalid-text");
}

TEST(ConvertText, KeepsTheOutputWithinItsLimit) {
  const Conversion conversion =
      Convert(R"((module (memory 1) (data (i32.const 0) "0123456789")))", 20);
  EXPECT_EQ(conversion.terminal.kind, Kind::kLimitReached);
  EXPECT_EQ(conversion.terminal.limit, wire::Terminal::Limit::kOutput);
  EXPECT_EQ(conversion.binary, "");
}

}  // namespace
}  // namespace bulkhead::wasm
