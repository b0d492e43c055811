/* For programs of the sketch profile: calls that look blocking, over the operations of the guest
 * contract (bulkhead_guest_abi.h). A call that waits suspends its own thread only; the host ends
 * the wait when the run stops. Freestanding C11: no C library is needed, and none is expected.
 *
 *   int bulkhead_main(void) {
 *     bh_blob blob = bh_blob_create();
 *     bh_blob_write(blob, "hello", 5);
 *     bh_blob_seal(blob);
 *     return bh_output_commit(blob, bh_output()) == BH_COMPLETED ? 0 : 1;
 *   }
 *
 * What a thread makes belongs to it: no other thread can use its blobs or hashes. Every function
 * here may be called by any thread. */
#ifndef BULKHEAD_GUEST_H
#define BULKHEAD_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bulkhead_guest_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The program. Defined by you; 0 is success, anything else ends the run as nonzero-exit. */
int bulkhead_main(void);

/* ---- operations ---- */

/* How an operation ended, and its result: a token, a count, or 1. */
typedef struct {
  bh_status status;
  uint64_t value;
} bh_result;

/* Starts an operation; 0 if it is refused. */
int64_t bh_start(bh_kind kind, int64_t a0, int64_t a1);
/* Waits for its end. BH_PENDING never comes back; BH_ERROR for what is no operation of this thread.
 */
bh_result bh_wait(int64_t operation);
/* Both; BH_REJECTED if it is refused. */
bh_result bh_do(bh_kind kind, int64_t a0, int64_t a1);

/* ---- time ---- */

bh_status bh_sleep_ms(uint32_t milliseconds);

/* ---- blobs: byte queues of the host, drained by reading ---- */

typedef int64_t bh_blob; /* 0: none */

bh_blob bh_blob_create(void);
/* All of it, waiting for room as often as necessary. */
bh_status bh_blob_write(bh_blob blob, const void* bytes, size_t size);
/* What is there, at least one byte and at most `size`, waiting for the first; *got is 0 at the end
 * of a sealed blob. */
bh_status bh_blob_read(bh_blob blob, void* bytes, size_t size, size_t* got);
/* No more will be written. */
bh_status bh_blob_seal(bh_blob blob);
/* The blob and what is in it are gone. false if it was none of this thread's. */
bool bh_blob_close(bh_blob blob);

/* ---- the output file ---- */

/* The one file the run may produce; 0 if it was granted none. First thread only. */
int64_t bh_output(void);
/* The content of a sealed blob becomes the output. Uses up both, unless the answer is BH_REJECTED
 * because the blob is not sealed or still in use. */
bh_status bh_output_commit(bh_blob blob, int64_t output);

/* ---- SHA-256 ---- */

typedef int64_t bh_hash; /* 0: none */

bh_hash bh_hash_create(void);
bh_status bh_hash_update(bh_hash hash, const void* bytes, size_t size);
/* Ends the computation. */
bool bh_hash_finish(bh_hash hash, uint8_t digest[32]);

/* ---- threads ---- */

typedef struct {
  int32_t state; /* 0 running, 1 ended; what joiners wait for */
  int32_t id;    /* > 0 */
  void (*body)(void*);
  void* argument;
  void* stack;
} bh_thread;

/* `thread` must stay where it is until it has been joined. false if there cannot be one more. */
bool bh_thread_start(bh_thread* thread, void (*body)(void*), void* argument);
void bh_thread_join(bh_thread* thread);

/* Zero is unlocked. Not recursive. */
typedef struct {
  int32_t state;
} bh_mutex;

void bh_mutex_lock(bh_mutex* mutex);
void bh_mutex_unlock(bh_mutex* mutex);

/* ---- memory ---- */

/* Zeroed bytes, aligned to 16, that are never given back; NULL when there are no more. */
void* bh_allocate(size_t size);

/* The compiler calls these. */
void* memcpy(void* restrict to, const void* restrict from, size_t size);
void* memmove(void* to, const void* from, size_t size);
void* memset(void* bytes, int value, size_t size);
int memcmp(const void* left, const void* right, size_t size);

#ifdef __cplusplus
}
#endif

#endif
