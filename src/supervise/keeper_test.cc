#include "supervise/keeper.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

namespace bulkhead::supervise {
namespace {

// A worker whose containment fails until it is released; remembers on which threads it was touched.
struct Script {
  std::mutex mutex;
  std::condition_variable changed;
  int failures_left = 0;
  bool gate_open = true;
  int attempts = 0;
  bool destroyed = false;
  std::thread::id destroyed_on;

  void WaitForAttempts(int count) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return attempts >= count; });
  }
};

class ScriptedProcess final : public process::WorkerProcess {
 public:
  explicit ScriptedProcess(std::shared_ptr<Script> script) : script_(std::move(script)) {}

  ~ScriptedProcess() override {
    const std::lock_guard lock(script_->mutex);
    script_->destroyed = true;
    script_->destroyed_on = std::this_thread::get_id();
    script_->changed.notify_all();
  }

  BorrowedFd pidfd() const override { return BorrowedFd(); }

  ProcessIdentity identity() const override { return {1, 1}; }

  Result<std::optional<process::ExitStatus>> Observe() override { return std::nullopt; }

  Status KillTree() override { return {}; }

  Result<std::optional<process::ExitStatus>> KillAndReap(Deadline /*deadline*/) override {
    std::unique_lock lock(script_->mutex);
    ++script_->attempts;
    script_->changed.notify_all();
    script_->changed.wait(lock, [&] { return script_->gate_open; });
    if (script_->failures_left > 0) {
      --script_->failures_left;
      return std::nullopt;
    }
    return process::ExitStatus{process::ExitStatus::How::kSignalled, 9};
  }

  Status LimitGrowth(const process::MemoryGrowth& /*growth*/) override { return {}; }

  process::ResourceUse resource_use() const override { return {}; }

 private:
  std::shared_ptr<Script> script_;
};

class ThreadNamingLauncher final : public process::Launcher {
 public:
  explicit ThreadNamingLauncher(std::thread::id* spawned_on) : spawned_on_(spawned_on) {}

  Result<std::unique_ptr<process::WorkerProcess>> Spawn(const process::SpawnSpec& spec) override {
    *spawned_on_ = std::this_thread::get_id();
    if (spec.program.empty()) {
      return Fail(ErrorCode::kLaunch, "no program");
    }
    return std::unique_ptr<process::WorkerProcess>(new ScriptedProcess(std::make_shared<Script>()));
  }

 private:
  std::thread::id* spawned_on_;
};

// Something that must live as long as the worker, like staging.
struct Held {
  explicit Held(std::atomic<int>* count) : count_(count) { count_->fetch_add(1); }

  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  ~Held() { count_->fetch_sub(1); }

  std::atomic<int>* count_;
};

class KeeperTest : public testing::Test {
 protected:
  KeeperTest() {
    keeper_ = *Keeper::Start(std::make_unique<ThreadNamingLauncher>(&spawned_on_), clock_, ledger_);
  }

  CleanupBundle Bundle(const std::shared_ptr<Script>& script) {
    return {std::make_unique<ScriptedProcess>(script),
            {std::make_shared<Held>(&held_),
             std::make_shared<GaugeHold>(ledger_, &WorkerLedger::live_workers),
             std::make_shared<GaugeHold>(ledger_, &WorkerLedger::pending_root_leases)}};
  }

  bool DrainSoon() {
    return keeper_->Drain(Deadline::After(clock_.Now(), std::chrono::seconds(30)));
  }

  MonotonicClock clock_;
  Ledger ledger_;
  std::atomic<int> held_{0};
  std::thread::id spawned_on_;
  std::unique_ptr<Keeper> keeper_;
};

TEST_F(KeeperTest, SpawnsOnItsOwnThread) {
  process::SpawnSpec spec;
  spec.program = "/bin/true";
  auto process = keeper_->Spawn(spec);
  ASSERT_TRUE(process.has_value());
  EXPECT_NE(spawned_on_, std::this_thread::get_id());
  EXPECT_NE(spawned_on_, std::thread::id());
}

TEST_F(KeeperTest, SpawnFailureReachesTheCaller) {
  auto process = keeper_->Spawn({});
  ASSERT_FALSE(process.has_value());
  EXPECT_EQ(process.error().code, ErrorCode::kLaunch);
}

TEST_F(KeeperTest, U5HandOffNeitherBlocksNorDestroysOnTheCaller) {
  auto script = std::make_shared<Script>();
  script->gate_open = false;
  keeper_->HandOff(Bundle(script));  // returns although containment cannot make progress
  script->WaitForAttempts(1);
  {
    const std::lock_guard lock(script->mutex);
    EXPECT_FALSE(script->destroyed);
    EXPECT_EQ(held_.load(), 1);
    script->gate_open = true;
    script->changed.notify_all();
  }
  ASSERT_TRUE(DrainSoon());
  EXPECT_TRUE(script->destroyed);
  EXPECT_NE(script->destroyed_on, std::this_thread::get_id());
}

TEST_F(KeeperTest, U6RetryReleasesEverythingOnce) {
  auto script = std::make_shared<Script>();
  script->failures_left = 1;
  keeper_->HandOff(Bundle(script));
  ASSERT_TRUE(DrainSoon());
  EXPECT_EQ(script->attempts, 2);
  EXPECT_TRUE(script->destroyed);
  EXPECT_EQ(held_.load(), 0);
  const WorkerLedger ledger = ledger_.Read();
  EXPECT_EQ(ledger.forced, 1U);
  EXPECT_EQ(ledger.reaped, 1U);
  EXPECT_EQ(ledger.live_workers, 0U);
  EXPECT_EQ(ledger.pending_root_leases, 0U);
}

TEST_F(KeeperTest, U7DeadServiceLeaksTheBundleOnPurpose) {
  keeper_->Stop();
  auto script = std::make_shared<Script>();
  keeper_->HandOff(Bundle(script));
  EXPECT_FALSE(script->destroyed);
  EXPECT_EQ(script->attempts, 0);
  EXPECT_EQ(held_.load(), 1);
  const WorkerLedger ledger = ledger_.Read();
  EXPECT_EQ(ledger.live_workers, 1U);
  EXPECT_EQ(ledger.pending_root_leases, 1U);
}

TEST_F(KeeperTest, StoppedKeeperRefusesToSpawn) {
  keeper_->Stop();
  auto process = keeper_->Spawn({});
  ASSERT_FALSE(process.has_value());
  EXPECT_EQ(process.error().code, ErrorCode::kShutdown);
}

TEST_F(KeeperTest, PendingIsVisibleUntilContained) {
  auto script = std::make_shared<Script>();
  script->gate_open = false;
  keeper_->HandOff(Bundle(script));
  script->WaitForAttempts(1);
  EXPECT_EQ(keeper_->pending().count, 1U);
  EXPECT_FALSE(keeper_->Drain(Deadline::At(clock_.Now())));
  {
    const std::lock_guard lock(script->mutex);
    script->gate_open = true;
    script->changed.notify_all();
  }
  ASSERT_TRUE(DrainSoon());
  EXPECT_EQ(keeper_->pending().count, 0U);
}

TEST(OneShot, U18LedgerRecordsTouchOnlyTheirField) {
  using Field = Ledger::Field;
  const Field fields[] = {&WorkerLedger::spawned,
                          &WorkerLedger::cancel_sent,
                          &WorkerLedger::grace_expired,
                          &WorkerLedger::forced,
                          &WorkerLedger::reaped,
                          &WorkerLedger::protocol_failures,
                          &WorkerLedger::live_workers,
                          &WorkerLedger::live_protocol_tasks,
                          &WorkerLedger::pending_root_leases};
  for (const Field field : fields) {
    Ledger ledger;
    ledger.Add(field);
    WorkerLedger expected;
    expected.*field = 1;
    EXPECT_EQ(ledger.Read(), expected);
    ledger.Sub(field);
    EXPECT_EQ(ledger.Read(), WorkerLedger());
  }
}

}  // namespace
}  // namespace bulkhead::supervise
