#include "bulkhead_guest.h"

enum { kPageBytes = 65536, kAlignment = 16, kStackBytes = 128 * 1024, kDigestBytes = 32 };

/* One call moves at most this much; the host's own bound. */
static const size_t kTransferBytes = BH_TRANSFER_BYTES_MAX;

/* ---- memory ---- */

extern unsigned char __heap_base; /* the linker's: where data and the first stack end */

static bh_mutex memory_lock;
static uintptr_t memory_next;
static uintptr_t memory_end;

static bool grow_memory(size_t size) {
  const size_t pages = (size + kPageBytes - 1) / kPageBytes;
  return __builtin_wasm_memory_grow(0, pages) != (size_t)-1;
}

void* bh_allocate(size_t size) {
  void* bytes = NULL;
  bh_mutex_lock(&memory_lock);
  if (memory_next == 0) {
    memory_next = ((uintptr_t)&__heap_base + kAlignment - 1) & ~(uintptr_t)(kAlignment - 1);
    memory_end = __builtin_wasm_memory_size(0) * (uintptr_t)kPageBytes;
  }
  const size_t rounded = (size + kAlignment - 1) & ~(size_t)(kAlignment - 1);
  const bool wraps = rounded < size || rounded > UINTPTR_MAX - memory_next;
  if (!wraps && memory_next + rounded > memory_end &&
      grow_memory(memory_next + rounded - memory_end)) {
    memory_end = __builtin_wasm_memory_size(0) * (uintptr_t)kPageBytes;
  }
  if (!wraps && memory_next + rounded <= memory_end) {
    bytes = (void*)memory_next;
    memory_next += rounded;
  }
  bh_mutex_unlock(&memory_lock);
  return bytes;
}

/* One instruction each: bulk memory is a feature that every sketch has. */
void* memcpy(void* restrict to, const void* restrict from, size_t size) {
  return __builtin_memmove(to, from, size);
}

void* memmove(void* to, const void* from, size_t size) {
  return __builtin_memmove(to, from, size);
}

void* memset(void* bytes, int value, size_t size) {
  return __builtin_memset(bytes, value, size);
}

int memcmp(const void* left, const void* right, size_t size) {
  const unsigned char* a = left;
  const unsigned char* b = right;
  for (; size > 0; --size, ++a, ++b) {
    if (*a != *b) {
      return *a < *b ? -1 : 1;
    }
  }
  return 0;
}

/* ---- waiting inside the guest ---- */

static void wait_while(int32_t* word, int32_t value) {
  __builtin_wasm_memory_atomic_wait32(word, value, -1);
}

static void wake(int32_t* word, uint32_t count) {
  __builtin_wasm_memory_atomic_notify(word, count);
}

/* 0 unlocked, 1 locked, 2 locked and somebody may wait. */
void bh_mutex_lock(bh_mutex* mutex) {
  int32_t seen = 0;
  if (__atomic_compare_exchange_n(&mutex->state, &seen, 1, false, __ATOMIC_ACQUIRE,
                                  __ATOMIC_RELAXED)) {
    return;
  }
  while (__atomic_exchange_n(&mutex->state, 2, __ATOMIC_ACQUIRE) != 0) {
    wait_while(&mutex->state, 2);
  }
}

void bh_mutex_unlock(bh_mutex* mutex) {
  if (__atomic_exchange_n(&mutex->state, 0, __ATOMIC_RELEASE) == 2) {
    wake(&mutex->state, 1);
  }
}

/* ---- operations ---- */

int64_t bh_start(bh_kind kind, int64_t a0, int64_t a1) {
  return bh_operation_submit((int32_t)kind, a0, a1);
}

static bh_result unpack(int64_t packed) {
  bh_result result = {bh_packed_status(packed), bh_packed_value(packed)};
  return result;
}

bh_result bh_wait(int64_t operation) {
  for (;;) {
    const bh_result result = unpack(bh_operation_poll(operation));
    if (result.status != BH_PENDING) {
      return result;
    }
    if (bh_operation_yield(operation) < 0) {
      return unpack(bh_operation_poll(operation));
    }
  }
}

bh_result bh_do(bh_kind kind, int64_t a0, int64_t a1) {
  const int64_t operation = bh_start(kind, a0, a1);
  if (operation == 0) {
    const bh_result refused = {BH_REJECTED, 0};
    return refused;
  }
  return bh_wait(operation);
}

bh_status bh_sleep_ms(uint32_t milliseconds) {
  return bh_do(BH_CLOCK_SLEEP, milliseconds, 0).status;
}

/* ---- blobs ---- */

static int64_t range_of(const void* bytes, size_t size) {
  return (int64_t)((uint64_t)size << 32 | (uint64_t)(uintptr_t)bytes);
}

static size_t at_most(size_t size, size_t limit) {
  return size < limit ? size : limit;
}

bh_blob bh_blob_create(void) {
  const bh_result made = bh_do(BH_BLOB_CREATE, 0, 0);
  return made.status == BH_COMPLETED ? (bh_blob)made.value : 0;
}

bh_status bh_blob_write(bh_blob blob, const void* bytes, size_t size) {
  const unsigned char* next = bytes;
  while (size > 0) {
    const size_t part = at_most(size, kTransferBytes);
    const bh_status status = bh_do(BH_BLOB_WRITE, blob, range_of(next, part)).status;
    if (status != BH_COMPLETED) {
      return status;
    }
    next += part;
    size -= part;
  }
  return BH_COMPLETED;
}

bh_status bh_blob_read(bh_blob blob, void* bytes, size_t size, size_t* got) {
  *got = 0;
  const size_t wanted = at_most(size, kTransferBytes);
  const int64_t operation = bh_start(BH_BLOB_READ, blob, (int64_t)wanted);
  if (operation == 0) {
    return BH_REJECTED;
  }
  for (;;) {
    const bh_result result = unpack(bh_start(BH_COLLECT_READ, operation, range_of(bytes, wanted)));
    if (result.status == BH_COMPLETED) {
      *got = (size_t)result.value;
    }
    if (result.status != BH_PENDING) {
      return result.status;
    }
    if (bh_operation_yield(operation) < 0) {
      return BH_ERROR;
    }
  }
}

bh_status bh_blob_seal(bh_blob blob) {
  return bh_do(BH_BLOB_SEAL, blob, 0).status;
}

bool bh_blob_close(bh_blob blob) {
  return bh_stream_close(blob) == 0;
}

/* ---- output ---- */

int64_t bh_output(void) {
  return bh_start(BH_OUTPUT_GRANT, 0, 0);
}

bh_status bh_output_commit(bh_blob blob, int64_t output) {
  return bh_do(BH_OUTPUT_COMMIT, blob, output).status;
}

/* ---- SHA-256 ---- */

bh_hash bh_hash_create(void) {
  const bh_result made = bh_do(BH_HASH_CREATE, 0, 0);
  return made.status == BH_COMPLETED ? (bh_hash)made.value : 0;
}

bh_status bh_hash_update(bh_hash hash, const void* bytes, size_t size) {
  const unsigned char* next = bytes;
  while (size > 0) {
    const size_t part = at_most(size, kTransferBytes);
    const bh_status status = bh_do(BH_HASH_UPDATE, hash, range_of(next, part)).status;
    if (status != BH_COMPLETED) {
      return status;
    }
    next += part;
    size -= part;
  }
  return BH_COMPLETED;
}

bool bh_hash_finish(bh_hash hash, uint8_t digest[32]) {
  return bh_start(BH_HASH_FINALISE, hash, range_of(digest, kDigestBytes)) == 1;
}

/* ---- threads ---- */

/* What a new thread needs before it can call C; thread_start.s reads the first two words. */
struct start {
  void* stack_top;
  void* tls;
  bh_thread* thread;
};

/* A stack that nobody uses, its first word the next one. Stacks are never given back to the memory.
 */
static bh_mutex stacks_lock;
static void** idle_stacks;

static void* take_stack(void) {
  bh_mutex_lock(&stacks_lock);
  void** stack = idle_stacks;
  if (stack != NULL) {
    idle_stacks = *stack;
  }
  bh_mutex_unlock(&stacks_lock);
  return stack != NULL ? stack : bh_allocate(kStackBytes);
}

static void give_stack(void* stack) {
  bh_mutex_lock(&stacks_lock);
  *(void**)stack = idle_stacks;
  idle_stacks = stack;
  bh_mutex_unlock(&stacks_lock);
}

bool bh_thread_start(bh_thread* thread, void (*body)(void*), void* argument) {
  unsigned char* const stack = take_stack();
  if (stack == NULL) {
    return false;
  }
  const uintptr_t tls_bytes = __builtin_wasm_tls_size();
  const uintptr_t tls_mask = __builtin_wasm_tls_align() > 1 ? __builtin_wasm_tls_align() - 1 : 0;
  /* From the top down: start record, thread-local storage, stack. */
  uintptr_t top =
      ((uintptr_t)stack + kStackBytes - sizeof(struct start)) & ~(uintptr_t)(kAlignment - 1);
  struct start* const start = (struct start*)top;
  top = (top - tls_bytes) & ~tls_mask;
  start->tls = (void*)top;
  start->stack_top = (void*)(top & ~(uintptr_t)(kAlignment - 1));
  start->thread = thread;
  thread->body = body;
  thread->argument = argument;
  thread->stack = stack;
  __atomic_store_n(&thread->state, 0, __ATOMIC_RELEASE);
  const int32_t id = bh_thread_spawn((int32_t)(uintptr_t)start);
  if (id <= 0) {
    give_stack(stack);
    return false;
  }
  thread->id = id;
  return true;
}

/* Called by thread_start.s on the new stack. The answer is the word that says the thread has ended:
 * only when nothing of the stack is in use any more may it be set. */
int32_t* bh_thread_main(const struct start* start);

int32_t* bh_thread_main(const struct start* start) {
  bh_thread* const thread = start->thread;
  thread->body(thread->argument);
  return &thread->state;
}

void bh_thread_join(bh_thread* thread) {
  while (__atomic_load_n(&thread->state, __ATOMIC_ACQUIRE) == 0) {
    wait_while(&thread->state, 0);
  }
  give_stack(thread->stack);
}

/* ---- entry points of the contract ---- */

/* The contract asks for a start section, which the linker writes for memory that has a beginning,
 * and for a function to yield: both are here, however little the program itself does. */
static volatile int32_t initialised = 1;

__attribute__((export_name("bulkhead-run"))) int run(void) {
  if (initialised != 0) {
    bh_kernel_yield();
  }
  return bulkhead_main();
}

__attribute__((export_name("__main_void"))) int main_void(void) {
  return run();
}

__attribute__((export_name("_start"))) void start(void) {
  const int status = run();
  if (status != 0) {
    bh_proc_exit(status);
  }
}
