#include "admission/test_modules.h"
#include "seeds.h"

namespace bulkhead::fuzz {
namespace {

using admission::Bytes;

std::string TextOf(const Bytes& bytes) {
  return {bytes.begin(), bytes.end()};
}

}  // namespace

std::vector<std::string> Seeds() {
  using namespace std::string_literals;
  const Bytes memory = admission::Section(5, {1, 1, 1, 2});
  const Bytes imports =
      admission::Section(2, admission::Join({{2},
                                             admission::Name("wasi_snapshot_preview1"),
                                             admission::Name("fd_write"),
                                             {0, 0},
                                             admission::Name("env"),
                                             admission::Name("memory"),
                                             {2, 3, 1, 2}}));
  return {TextOf(admission::SmallestCommand()),
          TextOf(admission::Module({admission::StartType(), imports, admission::StartFunction(),
                                    admission::StartExport(), admission::StartCode()})),
          TextOf(admission::Module({admission::Custom("name", {1, 2, 3}), admission::StartType(),
                                    admission::StartFunction(), memory, admission::StartExport(),
                                    admission::StartCode()})),
          "\0asm\1\0\0\0"s, "(module)"s};
}

}  // namespace bulkhead::fuzz
