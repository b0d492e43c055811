;; Creates /output/destination (descriptor 3 is the only preopened directory), writes "guest output", then does END:
;; the test puts an instruction there.
(module
  (import "wasi_snapshot_preview1" "path_open"
    (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 100) "destination")
  (data (i32.const 200) "guest output")
  (func (export "_start")
    (if (call $path_open (i32.const 3) (i32.const 0) (i32.const 100) (i32.const 11) (i32.const 1)
                         (i64.const 64) (i64.const 0) (i32.const 0) (i32.const 8))
      (then (call $proc_exit (i32.const 99))))
    (i32.store (i32.const 0) (i32.const 200))
    (i32.store (i32.const 4) (i32.const 12))
    (if (call $fd_write (i32.load (i32.const 8)) (i32.const 0) (i32.const 1) (i32.const 12))
      (then (call $proc_exit (i32.const 98))))
    END))
