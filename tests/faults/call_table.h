// Which errors each system call is made to fail with.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::test {

struct CallErrors {
  using List = std::array<int, 7>;  // to the first 0

  // None: it cannot fail, or nobody could tell.
  std::vector<int> errors() const { return {list.begin(), std::ranges::find(list, 0)}; }

  long call;
  std::string_view name;
  List list;
  // The kernel does what was asked for also where it reports an error.
  bool takes_effect = false;
};

// nullptr: the table does not know the call.
const CallErrors* ErrorsOf(long call);

// "ENOSPC".
std::string ErrnoName(int sys_errno);

}  // namespace bulkhead::test
