#include "hostile/attempts.h"

#include <string.h>

namespace bulkhead::hostile {

const Attempt* FindAttempt(const char* name) {
  const AttemptTable* const tables[] = {&kNetwork, &kFiles, &kProcesses, &kMemory, &kKernel};
  for (const AttemptTable* table : tables) {
    for (size_t i = 0; i < table->count; ++i) {
      if (strcmp(table->rows[i].name, name) == 0) {
        return &table->rows[i];
      }
    }
  }
  return nullptr;
}

const PathAttempt* FindPathAttempt(const char* name) {
  for (size_t i = 0; i < kPaths.count; ++i) {
    if (strcmp(kPaths.rows[i].name, name) == 0) {
      return &kPaths.rows[i];
    }
  }
  return nullptr;
}

}  // namespace bulkhead::hostile
