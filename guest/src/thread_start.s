# The first and the last instructions of a thread: its own stack and thread-local storage, then C, then the word for
# those who join; by then nothing uses the stack, which they may give to the next thread.
	.globaltype	__stack_pointer, i32
	.functype	__wasm_init_tls (i32) -> ()
	.functype	bh_thread_main (i32) -> (i32)

	.globl	wasi_thread_start
	.export_name	wasi_thread_start, wasi_thread_start
	.type	wasi_thread_start,@function
wasi_thread_start:
	.functype	wasi_thread_start (i32, i32) -> ()
	local.get	1
	i32.load	0                   # struct start: stack_top
	global.set	__stack_pointer
	local.get	1
	i32.load	4                   # tls
	call	__wasm_init_tls
	local.get	1
	call	bh_thread_main
	local.tee	0
	i32.const	1
	i32.atomic.store	0
	local.get	0
	i32.const	-1
	memory.atomic.notify	0
	drop
	end_function
