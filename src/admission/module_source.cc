// ModuleSource and AdmittedModule of <bulkhead/module.h>: handles on a SealedImage.
#include <bulkhead/module.h>

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "admission/admit.h"
#include "admission/sealed_image.h"
#include "base/errno_error.h"
#include "base/strings.h"
#include "base/unique_fd.h"

namespace bulkhead {

using admission::SealedImage;

struct AdmittedModule::State {
  std::shared_ptr<const SealedImage> image;
  ModulePolicy policy;
  ModuleInfo info;
};

int AdmittedModule::descriptor() const {
  return state_->image->descriptor().get();
}

std::uint64_t AdmittedModule::size_bytes() const {
  return state_->image->bytes().size();
}

const ModulePolicy& AdmittedModule::policy() const {
  return state_->policy;
}

const ModuleInfo& AdmittedModule::info() const {
  return state_->info;
}

std::span<const std::uint8_t> AdmittedModule::bytes() const {
  return state_->image->bytes();
}

std::string AdmittedModule::sha256() const {
  return state_->image->Sha256();
}

Result<ModuleSource> ModuleSource::FromFile(const std::string& path, std::uint64_t bytes_max) {
  if (path.empty() || path.find('\0') != std::string::npos) {
    return Fail(ErrorCode::kInvalidArgument,
                path.empty() ? "the module path is empty"
                             : "the module path " + Quoted(path) + " contains a NUL");
  }
  // Opening a FIFO waits for its writer, as everywhere.
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!file.valid()) {
    return Fail(ErrnoError("open", path, errno));
  }
  return FromDescriptor(file.get(), path, bytes_max);
}

Result<ModuleSource> ModuleSource::FromDescriptor(int fd, std::string_view name,
                                                  std::uint64_t bytes_max) {
  return ModuleSource(BH_TRY(SealedImage::ReadFrom(BorrowedFd(fd), name, bytes_max)));
}

Result<ModuleSource> ModuleSource::FromBytes(std::span<const std::uint8_t> bytes,
                                             std::uint64_t bytes_max) {
  return ModuleSource(BH_TRY(SealedImage::CopyOf(bytes, bytes_max)));
}

std::span<const std::uint8_t> ModuleSource::bytes() const {
  return image_->bytes();
}

int ModuleSource::descriptor() const {
  return image_->descriptor().get();
}

bool ModuleSource::LooksLikeText() const {
  return admission::LooksLikeText(bytes());
}

Inspection ModuleSource::Inspect(const ModulePolicy& policy) const {
  return admission::InspectBytes(bytes(), policy);
}

Result<AdmittedModule> ModuleSource::Admit(const ModulePolicy& policy) && {
  Inspection inspection = Inspect(policy);
  if (!inspection.refusals.empty()) {
    Refusal& first = inspection.refusals.front();
    return Fail(ErrorCode::kModuleRefused, std::move(first.detail), 0, std::move(first.code));
  }
  return AdmittedModule(std::make_shared<const AdmittedModule::State>(
      AdmittedModule::State{std::move(image_), policy, std::move(inspection.info)}));
}

}  // namespace bulkhead
