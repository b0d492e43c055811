#include "process/cgroup_location.h"

#include <algorithm>
#include <optional>

namespace bulkhead::process {
namespace {

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

bool Contains(std::string_view list, std::string_view item) {
  const std::vector<std::string_view> items = Split(list, ',');
  return std::find(items.begin(), items.end(), item) != items.end();
}

// mountinfo writes space, tab, newline and backslash as \ooo.
std::string Unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto octal = [&](std::size_t at) {
      return at < text.size() && text[at] >= '0' && text[at] <= '7' ? text[at] - '0' : -1;
    };
    if (text[i] == '\\' && octal(i + 1) >= 0 && octal(i + 2) >= 0 && octal(i + 3) >= 0) {
      out += static_cast<char>(octal(i + 1) * 64 + octal(i + 2) * 8 + octal(i + 3));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

struct Mount {
  std::string root;
  std::string point;
  bool v2 = false;
  std::string controllers;  // version 1: the super options, which name them
};

// "31 23 0:28 /root /point rw - cgroup2 cgroup2 rw" (proc_pid_mountinfo(5)); optional fields end at
// "-".
std::optional<Mount> ParseMount(std::string_view line) {
  const std::vector<std::string_view> fields = Split(line, ' ');
  const auto dash = std::find(fields.begin(), fields.end(), "-");
  if (fields.size() < 5 || fields.end() - dash < 4) {
    return std::nullopt;
  }
  const std::string_view type = dash[1];
  if ((type != "cgroup2" && type != "cgroup") || !fields[4].starts_with('/')) {
    return std::nullopt;
  }
  return Mount{Unescape(fields[3]), Unescape(fields[4]), type == "cgroup2", std::string(dash[3])};
}

// Path of this process's cgroup in the hierarchy with `controller` (empty: version 2).
std::optional<std::string> OwnCgroup(std::string_view self_cgroup, std::string_view controller) {
  for (const std::string_view line : Split(self_cgroup, '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) {
      continue;
    }
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const bool match =
        controller.empty() ? line.starts_with("0::") : Contains(controllers, controller);
    if (match) {
      return std::string(line.substr(second + 1));
    }
  }
  return std::nullopt;
}

std::optional<std::string> Directory(const Mount& mount, std::string_view cgroup) {
  const std::string_view root = mount.root == "/" ? std::string_view() : mount.root;
  const bool inside =
      cgroup.starts_with(root) && (cgroup.size() == root.size() || cgroup[root.size()] == '/');
  if (!inside || cgroup.find("/..") != std::string_view::npos) {
    return std::nullopt;  // the cgroup lies outside what is mounted here
  }
  std::string_view below = cgroup.substr(root.size());
  if (below == "/") {
    below = {};
  }
  return mount.point + std::string(below);
}

}  // namespace

std::vector<CgroupLocation> FindCgroupLocations(std::string_view self_cgroup,
                                                std::string_view mountinfo) {
  struct Candidate {
    CgroupKind kind;
    std::string_view controller;
  };

  constexpr Candidate kBestFirst[] = {{CgroupKind::kV2, ""},
                                      {CgroupKind::kV1Freezer, "freezer"},
                                      {CgroupKind::kV1Pids, "pids"},
                                      {CgroupKind::kV1Memory, "memory"}};

  std::vector<Mount> mounts;
  for (const std::string_view line : Split(mountinfo, '\n')) {
    if (std::optional<Mount> mount = ParseMount(line)) {
      mounts.push_back(*std::move(mount));
    }
  }
  std::vector<CgroupLocation> locations;
  for (const Candidate& candidate : kBestFirst) {
    const bool v2 = candidate.kind == CgroupKind::kV2;
    const std::optional<std::string> cgroup = OwnCgroup(self_cgroup, candidate.controller);
    for (const Mount& mount : mounts) {
      if (!cgroup || mount.v2 != v2 ||
          (!v2 && !Contains(mount.controllers, candidate.controller))) {
        continue;
      }
      if (std::optional<std::string> directory = Directory(mount, *cgroup)) {
        locations.push_back({candidate.kind, *std::move(directory)});
        break;
      }
    }
  }
  return locations;
}

}  // namespace bulkhead::process
