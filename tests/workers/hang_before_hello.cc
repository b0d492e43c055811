// Never answers Hello. Outcome: forced-containment, without a Cancel (N3).
#include "support/worker_end.h"

int main() {
  bulkhead::test::HangForever();
}
