// Processes that have nothing to do with what is tested, and tell whether a signal reached them.
#pragma once

#include <sys/types.h>

#include <deque>
#include <set>

#include "base/unique_fd.h"

namespace bulkhead::test {

// One owner, one thread.
class Bystanders {
 public:
  // Forks `count` of them.
  explicit Bystanders(int count);
  Bystanders(const Bystanders&) = delete;
  Bystanders& operator=(const Bystanders&) = delete;
  ~Bystanders();

  // The oldest one goes home, and a new one comes, with a number that somebody had before. false: a
  // signal had reached it.
  bool Replace();

  // How many came with the number of one that had gone home.
  int reused() const { return reused_; }

 private:
  struct Bystander {
    pid_t pid = -1;
    UniqueFd life;  // its end sends it home
  };

  void Add();
  static bool SendHome(Bystander bystander);

  std::deque<Bystander> bystanders_;
  std::set<pid_t> gone_;
  int reused_ = 0;
};

}  // namespace bulkhead::test
