;; One poll_oneoff on the monotonic clock, an hour long.
(module
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll_oneoff (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start")
    (i32.store8 (i32.const 8) (i32.const 0))                  ;; a clock subscription
    (i32.store (i32.const 16) (i32.const 1))                  ;; monotonic
    (i64.store (i32.const 24) (i64.const 3600000000000))      ;; relative time-out in ns
    (drop (call $poll_oneoff (i32.const 0) (i32.const 64) (i32.const 1) (i32.const 128)))))
