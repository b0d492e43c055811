;; Writes to stdout for ever, or until a write fails; then exits 3.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory (export "memory") 2)
  (func (export "_start")
    (i32.store (i32.const 0) (i32.const 1024))
    (i32.store (i32.const 4) (i32.const 65536))
    (block $failed
      (loop $again
        (br_if $failed (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
        (br $again)))
    (call $proc_exit (i32.const 3))))
