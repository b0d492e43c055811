/* Exercises the whole contract and says what does not hold: exit status N means that the Nth
 * requirement failed. Expects blobs of 1 MiB and chunks of 64 KiB; produces the output "guest exact
 * output" if one is granted. */
#include "bulkhead_guest.h"

enum {
  kChunk = 65536,
  kChunksOfABlob = 16,
  kPairs = 1024, /* 64 MiB through one blob */
  kManyOperations = 128,
  kThreads = 2,
};

static unsigned char written[kChunk];
static unsigned char read_back[kThreads + 1][kChunk];

static void require(bool holds, int requirement) {
  if (!holds) {
    bh_proc_exit(requirement);
  }
}

static int64_t range_of(const void* bytes, uint64_t size) {
  return (int64_t)(size << 32 | (uint64_t)(uintptr_t)bytes);
}

static bool is_pending(int64_t operation) {
  return bh_packed_status(bh_operation_poll(operation)) == BH_PENDING;
}

static int64_t start_write(bh_blob blob, const void* bytes, uint64_t size) {
  return bh_start(BH_BLOB_WRITE, blob, range_of(bytes, size));
}

static void fill_pattern(unsigned char* bytes, uint32_t seed) {
  for (uint32_t i = 0; i < kChunk; ++i) {
    bytes[i] = (unsigned char)((i * 31 + seed * 7 + (i >> 8)) & 0xff);
  }
}

static bool read_chunk(bh_blob blob, unsigned char* to) {
  size_t got = 0;
  return bh_blob_read(blob, to, kChunk, &got) == BH_COMPLETED && got == kChunk;
}

/* Full, blocked, cancelled, freed, sealed: what a queue with a bound owes its users. */
static void cycle_of_a_blob(bh_blob blob, unsigned char* to) {
  for (int i = 0; i < kChunksOfABlob; ++i) {
    require(bh_blob_write(blob, written, kChunk) == BH_COMPLETED, 10);
  }
  const int64_t blocked = start_write(blob, written, kChunk);
  require(blocked != 0 && is_pending(blocked), 11);
  bh_kernel_yield();
  require(is_pending(blocked), 12);
  const int64_t given_up = start_write(blob, written, 1);
  require(given_up != 0 && bh_operation_cancel(given_up) == 1, 13);
  require(bh_wait(given_up).status == BH_CANCELLED, 14);
  require(read_chunk(blob, to) && memcmp(to, written, kChunk) == 0, 15);
  require(bh_wait(blocked).status == BH_COMPLETED, 16);
  for (int i = 0; i < kChunksOfABlob; ++i) {
    require(read_chunk(blob, to), 17);
  }
  const int64_t nothing_there = bh_start(BH_BLOB_READ, blob, 1);
  require(nothing_there != 0 && bh_operation_cancel(nothing_there) == 1, 18);
  unsigned char byte = 0;
  const int64_t collected = bh_start(BH_COLLECT_READ, nothing_there, range_of(&byte, 1));
  require(bh_packed_status(collected) == BH_CANCELLED, 19);
}

static void end_of_a_blob(bh_blob blob) {
  unsigned char byte = 0;
  const int64_t end = bh_start(BH_BLOB_READ, blob, 1);
  require(end != 0, 30);
  require(bh_packed_status(bh_start(BH_COLLECT_READ, end, range_of(&byte, 1))) == BH_PENDING, 31);
  require(bh_blob_seal(blob) == BH_COMPLETED, 32);
  require(bh_operation_yield(end) == 1, 33);
  require(bh_start(BH_COLLECT_READ, end, range_of(&byte, 1)) == BH_COMPLETED, 34); /* 0 bytes */
  require(bh_blob_close(blob), 35);
}

static void root_blob(void) {
  const bh_blob blob = bh_blob_create();
  require(blob != 0, 1);
  for (int i = 0; i < kManyOperations; ++i) {
    const int64_t read = bh_start(BH_BLOB_READ, blob, 1);
    require(read != 0 && bh_start(BH_ABANDON_TRANSFER, read, 0) == 1, 2);
  }
  require(bh_start(BH_BLOB_READ, blob, 0) == 0, 3);
  require(bh_start(BH_BLOB_READ, blob, kChunk + 1) == 0, 4);
  cycle_of_a_blob(blob, read_back[0]);
  for (uint32_t i = 0; i < kPairs; ++i) {
    fill_pattern(written, i);
    require(bh_blob_write(blob, written, kChunk) == BH_COMPLETED, 20);
    require(read_chunk(blob, read_back[0]), 21);
    require(memcmp(read_back[0], written, kChunk) == 0, 22);
  }
  end_of_a_blob(blob);
  for (int i = 0; i < kManyOperations; ++i) {
    const bh_blob another = bh_blob_create();
    require(another != 0 && bh_start(BH_ABANDON_BLOB, another, 0) == 1, 36);
  }
}

static void produce_output(void) {
  const int64_t output = bh_output();
  if (output == 0) {
    return;
  }
  static const char text[] = "guest exact output";
  const bh_blob blob = bh_blob_create();
  require(bh_blob_write(blob, text, sizeof text - 1) == BH_COMPLETED, 40);
  require(bh_output_commit(blob, output) == BH_REJECTED, 41); /* not sealed: nothing is used up */
  require(bh_blob_seal(blob) == BH_COMPLETED, 42);
  require(bh_output_commit(blob, output) == BH_COMPLETED, 43);
  require(bh_output_commit(blob, output) != BH_COMPLETED, 44);
}

static void digest(void) {
  /* Of "abc", FIPS 180-4. */
  static const uint8_t expected[4] = {0xba, 0x78, 0x16, 0xbf};
  uint8_t digest[32];
  const bh_hash hash = bh_hash_create();
  require(hash != 0 && bh_hash_update(hash, "abc", 3) == BH_COMPLETED, 50);
  require(bh_hash_finish(hash, digest), 51);
  require(memcmp(digest, expected, sizeof expected) == 0, 52);
}

/* ---- threads ---- */

static _Thread_local int own = 7;
static bh_mutex lock;
static int guarded;
static int atomic_total;
static int64_t probe; /* a resource that threads may share */

static void thread_body(void* number) {
  const uintptr_t index = (uintptr_t)number;
  require(own == 7, 60);
  own = (int)index;
  bh_kernel_yield();
  require(bh_do(BH_SYNTHETIC_USE, probe, 1).status == BH_COMPLETED, 61);
  for (int i = 0; i < 1000; ++i) {
    bh_mutex_lock(&lock);
    guarded += 1;
    bh_mutex_unlock(&lock);
    __atomic_fetch_add(&atomic_total, 1, __ATOMIC_RELAXED);
  }
  const bh_blob blob = bh_blob_create();
  require(blob != 0, 62);
  cycle_of_a_blob(blob, read_back[index]);
  end_of_a_blob(blob);
  require(own == (int)index, 63);
}

static void threads(void) {
  bh_thread thread[kThreads];
  const bh_result made = bh_do(BH_SYNTHETIC_CREATE, 1, 1);
  require(made.status == BH_COMPLETED, 70);
  probe = (int64_t)made.value;
  for (uintptr_t i = 0; i < kThreads; ++i) {
    require(bh_thread_start(&thread[i], thread_body, (void*)(i + 1)), 71);
  }
  for (int i = 0; i < kThreads; ++i) {
    bh_thread_join(&thread[i]);
  }
  require(guarded == kThreads * 1000 && atomic_total == kThreads * 1000, 72);
  require(own == 7, 73);
}

int bulkhead_main(void) {
  fill_pattern(written, 0);
  require(bh_sleep_ms(10) == BH_COMPLETED, 5);
  root_blob();
  digest();
  produce_output();
  fill_pattern(written, 0);
  threads();
  return 0;
}
