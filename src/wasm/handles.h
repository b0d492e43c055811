// Owners of the engine's C objects; the only file that deletes them.
#pragma once

#include <wasm.h>
#include <wasmtime.h>

#include <memory>
#include <string_view>

namespace bulkhead::wasm {

template <auto kDelete>
struct Deleter {
  void operator()(auto* object) const { kDelete(object); }
};

using Config = std::unique_ptr<wasm_config_t, Deleter<wasm_config_delete>>;
using EngineHandle = std::unique_ptr<wasm_engine_t, Deleter<wasm_engine_delete>>;
using Module = std::unique_ptr<wasmtime_module_t, Deleter<wasmtime_module_delete>>;
using Store = std::unique_ptr<wasmtime_store_t, Deleter<wasmtime_store_delete>>;
using InstancePre = std::unique_ptr<wasmtime_instance_pre_t, Deleter<wasmtime_instance_pre_delete>>;
using Linker = std::unique_ptr<wasmtime_linker_t, Deleter<wasmtime_linker_delete>>;
using FunctionType = std::unique_ptr<wasm_functype_t, Deleter<wasm_functype_delete>>;
using SharedMemory =
    std::unique_ptr<wasmtime_sharedmemory_t, Deleter<wasmtime_sharedmemory_delete>>;
using MemoryType = std::unique_ptr<wasm_memorytype_t, Deleter<wasm_memorytype_delete>>;
using TrapHandle = std::unique_ptr<wasm_trap_t, Deleter<wasm_trap_delete>>;
using ErrorHandle = std::unique_ptr<wasmtime_error_t, Deleter<wasmtime_error_delete>>;

// The imports or exports of a module.
template <class Vector, auto kDelete>
class TypeVector {
 public:
  TypeVector() = default;
  TypeVector(const TypeVector&) = delete;
  TypeVector& operator=(const TypeVector&) = delete;

  ~TypeVector() { kDelete(&types_); }

  Vector* get() { return &types_; }

  auto begin() const { return types_.data; }

  auto end() const { return types_.data + types_.size; }

 private:
  Vector types_{};
};

using ImportTypes = TypeVector<wasm_importtype_vec_t, wasm_importtype_vec_delete>;
using ExportTypes = TypeVector<wasm_exporttype_vec_t, wasm_exporttype_vec_delete>;

inline std::string_view ViewOf(const wasm_name_t* name) {
  return {name->data, name->size};
}

// A byte vector that an engine call fills.
class ByteVector {
 public:
  ByteVector() = default;
  ByteVector(const ByteVector&) = delete;
  ByteVector& operator=(const ByteVector&) = delete;

  ~ByteVector() { wasm_byte_vec_delete(&bytes_); }

  wasm_byte_vec_t* get() { return &bytes_; }

  std::string_view view() const { return {bytes_.data, bytes_.size}; }

 private:
  wasm_byte_vec_t bytes_{};
};

// The frames of a trap, innermost first.
class FrameVector {
 public:
  FrameVector() = default;
  FrameVector(const FrameVector&) = delete;
  FrameVector& operator=(const FrameVector&) = delete;

  ~FrameVector() { wasm_frame_vec_delete(&frames_); }

  wasm_frame_vec_t* get() { return &frames_; }

  std::size_t size() const { return frames_.size; }

  const wasm_frame_t* at(std::size_t index) const { return frames_.data[index]; }

 private:
  wasm_frame_vec_t frames_{};
};

}  // namespace bulkhead::wasm
