#include <bulkhead/observer.h>

namespace bulkhead {

std::string_view StageName(Stage stage) {
  switch (stage) {
    case Stage::kAdmit:
      return "admit";
    case Stage::kLaunch:
      return "launch";
    case Stage::kHandshake:
      return "handshake";
    case Stage::kHandOver:
      return "hand-over";
    case Stage::kCompile:
      return "compile";
    case Stage::kExecute:
      return "execute";
    case Stage::kStop:
      return "stop";
    case Stage::kReap:
      return "reap";
    case Stage::kPublish:
      return "publish";
    case Stage::kDone:
      return "done";
  }
  return "done";
}

}  // namespace bulkhead
