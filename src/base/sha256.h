// SHA-256, piece by piece. One thread. By OpenSSL, so for the parent's side alone: worker programs
// load no libcrypto.so (src/sketch/sha256.h is theirs).
#pragma once

#include <bulkhead/result.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

struct evp_md_ctx_st;  // OpenSSL's context

namespace bulkhead {

using Sha256Digest = std::array<std::uint8_t, 32>;

class Sha256 {
 public:
  // kUnsupported if the library cannot compute it.
  static Result<Sha256> Create();

  void Update(std::span<const std::uint8_t> bytes);
  // Once.
  Sha256Digest Finish();

 private:
  struct FreeContext {
    void operator()(evp_md_ctx_st* context) const;
  };

  using Context = std::unique_ptr<evp_md_ctx_st, FreeContext>;

  explicit Sha256(Context context) : context_(std::move(context)) {}

  Context context_;
};

}  // namespace bulkhead
