#include "wire/handshake.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace bulkhead::wire {
namespace {

HelloAck AnswerTo(const Hello& hello) {
  HelloAck ack;
  ack.nonce = hello.nonce;
  ack.build_id = std::string(BuildId());
  return ack;
}

Hello FreshHello() {
  Hello hello;
  hello.nonce = MakeNonce();
  hello.build_id = std::string(BuildId());
  return hello;
}

TEST(Handshake, BuildIdFitsTheMessage) {
  EXPECT_FALSE(BuildId().empty());
  EXPECT_LE(BuildId().size(), 64U);
}

TEST(Handshake, NoncesDoNotRepeat) {
  std::set<Nonce> seen;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(seen.insert(MakeNonce()).second);
  }
  EXPECT_FALSE(seen.contains(Nonce{}));
}

TEST(Handshake, TheHonestAnswerIsAccepted) {
  const Hello hello = FreshHello();
  EXPECT_TRUE(CheckHelloAck(hello, AnswerTo(hello), std::string(BuildId())).has_value());
}

TEST(Handshake, EveryFlippedNonceBitIsAMismatch) {
  const Hello hello = FreshHello();
  for (std::size_t bit = 0; bit < hello.nonce.size() * 8; ++bit) {
    HelloAck ack = AnswerTo(hello);
    ack.nonce[bit / 8] = static_cast<std::uint8_t>(ack.nonce[bit / 8] ^ (1U << (bit % 8)));
    const Status status = CheckHelloAck(hello, ack, std::string(BuildId()));
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, ErrorCode::kProtocol);
    EXPECT_EQ(status.error().reason, "nonce-mismatch");
  }
}

TEST(Handshake, AnotherBuildIsAMismatchThatNamesBoth) {
  const Hello hello = FreshHello();
  HelloAck ack = AnswerTo(hello);
  ack.build_id = "9.9.9+other\x1B[31m";
  const Status status = CheckHelloAck(hello, ack, std::string("1.0+mine"));
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().reason, "build-mismatch");
  EXPECT_NE(status.error().message.find("9.9.9+other"), std::string::npos);
  EXPECT_NE(status.error().message.find("1.0+mine"), std::string::npos);
  EXPECT_EQ(status.error().message.find('\x1B'), std::string::npos);  // the worker chose that text
  EXPECT_TRUE(CheckHelloAck(hello, ack, std::nullopt).has_value());
}

// A worker that knows neither is told about the nonce: it was not even meant to answer this Hello.
TEST(Handshake, NonceComesBeforeBuild) {
  const Hello hello = FreshHello();
  HelloAck ack;
  ack.build_id = "other";
  EXPECT_EQ(CheckHelloAck(hello, ack, std::string("mine")).error().reason, "nonce-mismatch");
}

}  // namespace
}  // namespace bulkhead::wire
