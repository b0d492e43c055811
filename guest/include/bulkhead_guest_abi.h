/* The guest contract of the sketch profile in C. Written from src/contract/guest_abi.cc:
 * `make guest-abi`. */
/* clang-format off */
#ifndef BULKHEAD_GUEST_ABI_H
#define BULKHEAD_GUEST_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BH_OPERATIONS_MAX 64 /* started and not consumed, of the whole run */
#define BH_TRANSFER_BYTES_MAX 65536 /* moved by one call */
#define BH_HASH_BYTES 32 /* of a digest */
#define BH_THREADS_MAX 16 /* started over the whole run; the host may allow fewer */
#define BH_MEMORY_PAGES_MIN 17 /* of 64 KiB */
#define BH_MEMORY_PAGES_MAX 16384 /* declared; the host may allow fewer */

/* What operation_submit understands. */
typedef enum {
  BH_SYNTHETIC_YIELD = 1,
  BH_SYNTHETIC_CREATE = 2,
  BH_SYNTHETIC_USE = 3,
  BH_SYNTHETIC_CLOSE = 4,
  BH_BLOB_CREATE = 5,
  BH_BLOB_WRITE = 6,
  BH_BLOB_READ = 7,
  BH_COLLECT_READ = 8,
  BH_BLOB_SEAL = 9,
  BH_OUTPUT_COMMIT = 10,
  BH_OUTPUT_GRANT = 11,
  BH_CLOCK_SLEEP = 12,
  BH_URL_GRANT = 13, /* always refused */
  BH_VIEW_OPEN = 14, /* always refused */
  BH_VIEW_WAIT_LOAD = 15, /* always refused */
  BH_VIEW_CAPTURE = 16, /* always refused */
  BH_VIEW_CLOSE = 17, /* always refused */
  BH_ABANDON_TRANSFER = 18,
  BH_ABANDON_BLOB = 19,
  /* 20-29: encrypted-archives, always refused */
  BH_HASH_CREATE = 30,
  BH_HASH_UPDATE = 31,
  BH_HASH_FINALISE = 32,
  BH_ABANDON_HASH = 33,
  BH_ABANDON_HASH_OPERATION = 34,
  /* 35-48: compiler-processes, always refused */
} bh_kind;

/* How an operation is, or ended. */
typedef enum {
  BH_PENDING = 0, /* not yet */
  BH_COMPLETED = 1, /* the result is there */
  BH_CANCELLED = 2, /* by the guest, or the run was cancelled */
  BH_TIMED_OUT = 3, /* no byte moved for too long, or the run's deadline passed */
  BH_TRAPPED = 4, /* a host function refused the guest's arguments for good */
  BH_OWNER_EXITED = 5, /* the thread that started it is gone */
  BH_CLOSED = 6, /* what it worked on was closed or sealed, or the run ended */
  BH_REJECTED = 7, /* its conditions do not hold, or the system has no thread for it */
  BH_ERROR = 128, /* no such operation for this thread, or a bad destination */
} bh_status;

/* Does nothing: a point at which other threads may run. */
__attribute__((import_module("bulkhead:v1"), import_name("kernel_yield")))
void bh_kernel_yield(void);

/* Starts the operation of this kind with two arguments. A token, for some kinds the result
 * itself; 0: refused. */
__attribute__((import_module("bulkhead:v1"), import_name("operation_submit")))
int64_t bh_operation_submit(int32_t, int64_t, int64_t);

/* The result << 8 | status, which this consumes unless it is pending. Status 0x80 for what is
 * no operation of this thread, was consumed, or is a read. */
__attribute__((import_module("bulkhead:v1"), import_name("operation_poll")))
int64_t bh_operation_poll(int64_t);

/* Suspends this thread until the operation has ended: 1. -1 for what is no operation of this
 * thread. */
__attribute__((import_module("bulkhead:v1"), import_name("operation_yield")))
int32_t bh_operation_yield(int64_t);

/* Ends the operation as cancelled, unless it has ended: 1. 0 if it is none of this thread. */
__attribute__((import_module("bulkhead:v1"), import_name("operation_cancel")))
int32_t bh_operation_cancel(int64_t);

/* Takes what is there from a blob, at most this many bytes and one chunk: the number. -1:
 * refused. Does not wait. Traps for a range outside the memory or above 65536. */
__attribute__((import_module("bulkhead:v1"), import_name("stream_read")))
int32_t bh_stream_read(int64_t, int32_t, int32_t);

/* Appends to a blob what fits, at most one chunk: the number. -1: refused. Traps as
 * stream_read. */
__attribute__((import_module("bulkhead:v1"), import_name("stream_write")))
int32_t bh_stream_write(int64_t, int32_t, int32_t);

/* Gives a blob back: 0. 1: refused. */
__attribute__((import_module("bulkhead:v1"), import_name("stream_close")))
int32_t bh_stream_close(int64_t);

/* 1: there is no such capability. */
__attribute__((import_module("bulkhead:v1"), import_name("resource_release_encrypted_archive")))
int32_t bh_resource_release_encrypted_archive(int64_t);

/* 1: there is no such capability. */
__attribute__((import_module("bulkhead:v1"), import_name("resource_release_authenticated_archive")))
int32_t bh_resource_release_authenticated_archive(int64_t);

/* 1: there is no such capability. */
__attribute__((import_module("bulkhead:v1"), import_name("resource_release_archive_entry")))
int32_t bh_resource_release_archive_entry(int64_t);

/* Starts a thread in wasi_thread_start with its identity and this argument: the identity,
 * above 0. -1: there cannot be one more. */
__attribute__((import_module("wasi"), import_name("thread-spawn")))
int32_t bh_thread_spawn(int32_t);

/* Stores 0: there is no clock to read. 21 for an address outside the memory. */
__attribute__((import_module("wasi_snapshot_preview1"), import_name("clock_time_get")))
int32_t bh_clock_time_get(int32_t, int64_t, int32_t);

/* The environment is empty. */
__attribute__((import_module("wasi_snapshot_preview1"), import_name("environ_get")))
int32_t bh_environ_get(int32_t, int32_t);

/* Stores 0 and 0. 21 for an address outside the memory; then nothing is stored. */
__attribute__((import_module("wasi_snapshot_preview1"), import_name("environ_sizes_get")))
int32_t bh_environ_sizes_get(int32_t, int32_t);

/* Accepts and forgets: stores 0 as the number written. 21 for an address outside the memory or
 * more than 1024 parts; then nothing is stored. */
__attribute__((import_module("wasi_snapshot_preview1"), import_name("fd_write")))
int32_t bh_fd_write(int32_t, int32_t, int32_t, int32_t);

/* Ends this thread: 0 is success, anything else is a failure of the run. */
__attribute__((import_module("wasi_snapshot_preview1"), import_name("proc_exit")))
void bh_proc_exit(int32_t);

/* As kernel_yield; 0. */
__attribute__((import_module("wasi_snapshot_preview1"), import_name("sched_yield")))
int32_t bh_sched_yield(void);

/* What operation_poll and collect-read answer. */
static inline bh_status bh_packed_status(int64_t packed) { return (bh_status)(packed & 0xff); }
static inline uint64_t bh_packed_value(int64_t packed) { return (uint64_t)packed >> 8; }

#ifdef __cplusplus
}
#endif

#endif
