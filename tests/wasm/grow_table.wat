;; Grows a table without end; exits 9 when growth is refused, 0 after a billion entries.
(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory (export "memory") 1)
  (table $t 1 funcref)
  (func (export "_start") (local $turns i32)
    (loop $again
      (if (i32.eq (table.grow $t (ref.null func) (i32.const 1000000)) (i32.const -1))
        (then (call $proc_exit (i32.const 9))))
      (local.set $turns (i32.add (local.get $turns) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $turns) (i32.const 1000))))))
