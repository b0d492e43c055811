// What this machine lets a process do with name spaces. Stateless; any thread.
#pragma once

namespace bulkhead::process {

// Whether a child may make itself a user namespace and act in it: 0, or the errno of what failed.
// Only trying tells: a security module may grant the namespace without its capabilities.
int TryUserNamespace();

}  // namespace bulkhead::process
