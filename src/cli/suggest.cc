#include "cli/suggest.h"

#include <algorithm>
#include <vector>

namespace bulkhead::cli {
namespace {

// Longer words are no typo of anything; also bounds the work, which is quadratic.
constexpr std::size_t kTypedBytesMax = 64;

std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) {
    last[j] = j;
  }
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::string_view Nearest(std::string_view typed, std::span<const std::string_view> candidates) {
  if (typed.size() > kTypedBytesMax) {
    return {};
  }
  std::string_view nearest;
  // One slip in three characters is a typo, more is another word.
  std::size_t distance = std::max<std::size_t>(1, typed.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t found = EditDistance(typed, candidate);
    if (found < distance) {
      distance = found;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace bulkhead::cli
