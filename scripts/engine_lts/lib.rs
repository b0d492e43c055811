//! Every function of the C API, kept for the linker of the worker.
pub use wasmtime_c_api::*;
