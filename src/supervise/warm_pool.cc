#include "supervise/warm_pool.h"

#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "supervise/runtime_impl.h"

namespace bulkhead::supervise {
namespace {

constexpr int kWakeKey = 0;

// Time to end one spare that is not needed any more; the keeper goes on with what is left.
constexpr std::chrono::seconds kEndMax{5};

// It waits for work: it has not exited, and it has said nothing.
bool IsWaiting(const StartedWorker& worker) {
  std::array<pollfd, 2> fds{pollfd{worker.process->pidfd().get(), POLLIN, 0},
                            pollfd{worker.socket.get(), POLLIN, 0}};
  return poll(fds.data(), fds.size(), 0) == 0;
}

}  // namespace

WarmPool::~WarmPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) {
    wake_->Signal();
    thread_.join();
  }
  for (std::deque<Spare>* spares : {&spares_, &unwanted_}) {
    for (Spare& spare : *spares) {
      End(std::move(spare));
    }
  }
}

Status WarmPool::Keep(WorkerStart start, std::size_t count) {
  std::string key = start.Key();
  {
    const std::lock_guard lock(mutex_);
    if (count != 0) {
      BH_TRY(StartThread());
    }
    if (key != key_) {
      std::move(spares_.begin(), spares_.end(), std::back_inserter(unwanted_));
      spares_.clear();
    }
    start_ = std::move(start);
    key_ = std::move(key);
    wanted_ = count;
  }
  if (wake_) {
    wake_->Signal();
  }
  return {};
}

// Under the lock.
Status WarmPool::StartThread() {
  if (thread_.joinable()) {
    return {};
  }
  wake_ = BH_TRY(EventFd::Create());
  try {
    thread_ = std::thread([this] { Loop(); });
  } catch (const std::system_error& error) {
    return Fail(ErrorCode::kResourceExhausted,
                std::string("starting the warm pool's thread: ") + error.what(),
                error.code().value());
  }
  return {};
}

std::optional<StartedWorker> WarmPool::Take(const WorkerStart& start) {
  const std::lock_guard lock(mutex_);
  if (spares_.empty() || start.Key() != key_) {
    return std::nullopt;
  }
  const auto spare = std::find_if(spares_.begin(), spares_.end(),
                                  [](const Spare& s) { return s.ready() && IsWaiting(s.worker); });
  if (spare == spares_.end()) {
    return std::nullopt;
  }
  StartedWorker worker = std::move(spare->worker);
  spares_.erase(spare);
  ++counts_.used;
  replace_at_ = Deadline::After(clock_.Now(), kReplacePause);
  wake_->Signal();
  return worker;
}

WarmCounts WarmPool::counts() const {
  const std::lock_guard lock(mutex_);
  WarmCounts counts = counts_;
  counts.idle = static_cast<std::uint64_t>(std::count_if(
      spares_.begin(), spares_.end(), [](const Spare& spare) { return spare.ready(); }));
  return counts;
}

void WarmPool::Loop() {
  while (std::optional<Step> step = NextStep()) {
    for (Spare& spare : step->to_end) {
      End(std::move(spare));
    }
    if (step->to_start) {
      Start(*step->to_start, step->key);
      continue;
    }
    WaitForEvents();
    LookAfter();
  }
}

std::optional<WarmPool::Step> WarmPool::NextStep() {
  wake_->Drain();
  const std::lock_guard lock(mutex_);
  if (stopping_) {
    return std::nullopt;
  }
  Step step;
  step.to_end = std::exchange(unwanted_, {});
  while (spares_.size() > wanted_) {
    step.to_end.push_back(std::move(spares_.back()));
    spares_.pop_back();
  }
  const Deadline start_at = StartAt();
  const bool may_start = start_at.never() || start_at.PassedAt(clock_.Now());
  if (spares_.size() < wanted_ && may_start) {
    step.to_start = start_;
    step.key = key_;
    retry_at_ = Deadline::Never();
  }
  return step;
}

Deadline WarmPool::StartAt() const {
  if (retry_at_.never() || replace_at_.never()) {
    return std::min(retry_at_, replace_at_);  // the other one, if it is set
  }
  return std::max(retry_at_, replace_at_);
}

void WarmPool::Start(const WorkerStart& start, const std::string& key) {
  Result<Spare> spare = MakeSpare(start);
  if (!spare) {
    NoteBroken(std::move(spare).error().message);
    return;
  }
  const std::lock_guard lock(mutex_);
  ++counts_.started;
  (key == key_ ? spares_ : unwanted_).push_back(*std::move(spare));
}

Result<WarmPool::Spare> WarmPool::MakeSpare(const WorkerStart& start) {
  Spare spare;
  spare.number = next_number_++;
  spare.worker = BH_TRY(StartWorker(keeper_, start, NextRunId()));
  spare.channel =
      std::make_unique<wire::Channel>(std::move(spare.worker.socket), wire::Direction::kFromWorker);
  spare.answer_by = Deadline::After(clock_.Now(), kGreetingMax);
  auto frame = wire::EncodeFrame(spare.worker.id, wire::ToWorker(spare.worker.hello));
  BH_CHECK(frame.has_value());  // the request was validated
  BH_TRY(spare.channel->Send(std::move(*frame), {}));
  return spare;
}

void WarmPool::WaitForEvents() {
  waits_.Clear();
  waits_.Add(wake_->fd(), POLLIN, kWakeKey);
  Deadline next = Deadline::Never();
  {
    const std::lock_guard lock(mutex_);
    int key = kWakeKey;
    for (const Spare& spare : spares_) {
      waits_.Add(spare.worker.process->pidfd(), POLLIN, ++key);
      waits_.Add(spare.ready() ? spare.worker.socket.borrow() : spare.channel->fd(), POLLIN, ++key);
      next = std::min(next, spare.answer_by);
    }
    if (spares_.size() < wanted_) {
      next = std::min(next, StartAt());
    }
  }
  // Somebody may take a spare and close its descriptors meanwhile: what is found then is looked at
  // again.
  (void)waits_.Wait(clock_, next).has_value();
}

void WarmPool::LookAfter() {
  std::deque<Spare> broken;
  std::string problem;
  {
    const std::lock_guard lock(mutex_);
    for (auto spare = spares_.begin(); spare != spares_.end();) {
      if (std::optional<std::string> why = Examine(*spare)) {
        problem = *std::move(why);
        broken.push_back(std::move(*spare));
        spare = spares_.erase(spare);
      } else {
        ++spare;
      }
    }
  }
  for (Spare& spare : broken) {
    End(std::move(spare));
    NoteBroken(problem);
  }
}

std::optional<std::string> WarmPool::Examine(Spare& spare) {
  if (!spare.ready()) {
    return TakeAnswer(spare);
  }
  return IsWaiting(spare.worker)
             ? std::nullopt
             : std::optional<std::string>("a spare worker ended before it was used");
}

std::optional<std::string> WarmPool::TakeAnswer(Spare& spare) {
  wire::Frame frame;
  const auto read = spare.channel->Receive(&frame);
  if (!read) {
    return read.error().message;
  }
  if (*read == wire::Channel::Read::kEnd) {
    return "a spare worker ended before it answered";
  }
  if (*read == wire::Channel::Read::kWouldBlock) {
    return spare.answer_by.PassedAt(clock_.Now())
               ? std::optional<std::string>("a spare worker did not answer in time")
               : std::nullopt;
  }
  auto message = wire::DecodeFromWorker(frame.header.kind, frame.body);
  auto* const ack = message ? std::get_if<wire::HelloAck>(&*message) : nullptr;
  if (ack == nullptr ||
      wire::MessageId{frame.header.generation, frame.header.request_id} != spare.worker.id) {
    return message ? "a spare worker did not answer with HelloAck" : message.error().message;
  }
  AckJudgement judgement =
      JudgeHelloAck(spare.worker.hello, *ack, start_.expected, spare.worker.walls);
  if (judgement.state != AckJudgement::State::kFine) {
    return std::move(judgement.problem);
  }
  spare.worker.ack = std::move(*ack);
  spare.worker.socket = spare.channel->Release();
  spare.channel.reset();
  spare.answer_by = Deadline::Never();
  pause_ = kRetryFirst;
  return std::nullopt;
}

void WarmPool::End(Spare spare) {
  const auto reaped = spare.worker.process->KillAndReap(Deadline::After(clock_.Now(), kEndMax));
  if (!reaped || !*reaped) {
    ledger_.Add(&WorkerLedger::spawned);  // the keeper counts its end
    keeper_.HandOff({std::move(spare.worker.process), {}});
  }
}

void WarmPool::NoteBroken(std::string problem) {
  retry_at_ = Deadline::After(clock_.Now(), pause_);
  pause_ = std::min(pause_ * 2, kRetryLast);
  const std::lock_guard lock(mutex_);
  ++counts_.broken;
  counts_.problem = std::move(problem);
}

}  // namespace bulkhead::supervise
