#include "support/wat.h"

#include <gtest/gtest.h>

#include "support/program.h"
#include "support/temp_dir.h"

namespace bulkhead::test {

bool HaveWat2Wasm() {
  return InPath("wat2wasm");
}

std::vector<std::uint8_t> AssembleText(std::string_view text) {
  const TempDir dir;
  const std::string binary = dir.Path("guest.wasm");
  Program assembler({"wat2wasm", "--enable-threads", "-o", binary, dir.Write("guest.wat", text)});
  EXPECT_EQ(assembler.Wait(), 0) << "wat2wasm refuses\n" << text;
  const std::string bytes = ReadFile(binary);
  return {bytes.begin(), bytes.end()};
}

std::vector<std::uint8_t> AssembleFile(std::string_view name) {
  const std::string path = std::string(BH_SOURCE_DIR) + "/tests/wasm/" + std::string(name) + ".wat";
  const std::string text = ReadFile(path);
  EXPECT_FALSE(text.empty()) << path;
  return AssembleText(text);
}

}  // namespace bulkhead::test
