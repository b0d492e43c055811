// What a worker must not touch: files, listeners, a terminal, a sibling process. Made before the
// attempts, asked after each.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "support/temp_dir.h"

namespace bulkhead::test {

class OutsideWorld {
 public:
  // Aborts the test program if something cannot be had. Made for the calling user, in its
  // namespaces.
  OutsideWorld();
  OutsideWorld(const OutsideWorld&) = delete;
  OutsideWorld& operator=(const OutsideWorld&) = delete;
  ~OutsideWorld();

  std::string secret() const { return dir_.Path("secret"); }

  std::string new_path() const { return dir_.Path("new"); }

  std::string socket_path() const { return dir_.Path("socket"); }

  std::string read_only() const { return dir_.Path("read-only"); }

  std::string writable() const { return dir_.Path("writable"); }

  unsigned short tcp_port() const { return tcp_port_; }

  pid_t sibling() const { return sibling_; }

  BorrowedFd terminal() const { return terminal_.borrow(); }

  // One line for each thing that is not as it was.
  std::vector<std::string> Signs();

 private:
  void MakeFiles();
  void MakeListeners();
  void MakeTerminal();
  void MakeSibling();
  void FindConnections(std::vector<std::string>& signs) const;
  void FindChangedFiles(std::vector<std::string>& signs) const;
  void FindTracesOnProcesses(std::vector<std::string>& signs) const;

  TempDir dir_;
  struct stat secret_before_{};
  std::string host_name_;
  UniqueFd tcp_;
  unsigned short tcp_port_ = 0;
  UniqueFd unix_;
  UniqueFd terminal_master_;
  UniqueFd terminal_;
  UniqueFd sibling_life_;  // its end ends the sibling
  pid_t sibling_ = -1;
  std::string sibling_before_;
};

}  // namespace bulkhead::test
