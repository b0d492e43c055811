/* A picture drawn by four threads: the escape times of a Julia set, as a PNG of 512 x 512 pixels.
 *
 *   bulkhead run picture.wasm --fuel 1e10 --output picture.png
 *
 * The pixels lie in the memory that all threads share; the file leaves through a blob. */
#include "bulkhead_guest.h"

enum {
  kSide = 512,
  kThreads = 4,
  kRowBytes = 1 + 3 * kSide, /* a filter byte, then red, green, blue */
  kPixelBytes = kSide * kRowBytes,
  kIterationsMax = 200,
  kStoredBytesMax = 65535, /* of one block of the deflate format that is not compressed */
};

static unsigned char* pixels;

/* ---- drawing ---- */

static void colour(int iterations, unsigned char* rgb) {
  if (iterations == kIterationsMax) {
    rgb[0] = rgb[1] = rgb[2] = 0;
    return;
  }
  const double t = (double)iterations / kIterationsMax;
  const double u = 1 - t;
  rgb[0] = (unsigned char)(9 * u * t * t * t * 255);
  rgb[1] = (unsigned char)(15 * u * u * t * t * 255);
  rgb[2] = (unsigned char)(8.5 * u * u * u * t * 255);
}

static int escape_time(double x, double y) {
  for (int i = 0; i < kIterationsMax; ++i) {
    const double xx = x * x;
    const double yy = y * y;
    if (xx + yy > 16) {
      return i;
    }
    y = 2 * x * y + 0.156;
    x = xx - yy - 0.8;
  }
  return kIterationsMax;
}

/* Every fourth row, so that all threads have the same share of the costly middle. */
static void draw_rows(void* first_row) {
  for (int row = (int)(uintptr_t)first_row; row < kSide; row += kThreads) {
    unsigned char* to = pixels + row * kRowBytes;
    *to++ = 0;
    for (int column = 0; column < kSide; ++column, to += 3) {
      colour(escape_time((column - kSide / 2) * 3.2 / kSide, (row - kSide / 2) * 3.2 / kSide), to);
    }
  }
}

/* ---- the PNG format ---- */

static uint32_t crc_table[256];

static void make_crc_table(void) {
  for (uint32_t n = 0; n < 256; ++n) {
    uint32_t c = n;
    for (int k = 0; k < 8; ++k) {
      c = c & 1 ? 0xedb88320 ^ (c >> 1) : c >> 1;
    }
    crc_table[n] = c;
  }
}

struct writer {
  bh_blob blob;
  uint32_t crc;
  bool ok;
};

static void put(struct writer* out, const void* bytes, size_t size) {
  const unsigned char* byte = bytes;
  for (size_t i = 0; i < size; ++i) {
    out->crc = crc_table[(out->crc ^ byte[i]) & 0xff] ^ (out->crc >> 8);
  }
  out->ok = out->ok && bh_blob_write(out->blob, bytes, size) == BH_COMPLETED;
}

static void put_u32(struct writer* out, uint32_t value) {
  const unsigned char bytes[4] = {(unsigned char)(value >> 24), (unsigned char)(value >> 16),
                                  (unsigned char)(value >> 8), (unsigned char)value};
  put(out, bytes, sizeof bytes);
}

static void begin_chunk(struct writer* out, uint32_t size, const char* type) {
  put_u32(out, size);
  out->crc = 0xffffffff;
  put(out, type, 4);
}

static void end_chunk(struct writer* out) {
  put_u32(out, out->crc ^ 0xffffffff);
}

static uint32_t adler32(const unsigned char* bytes, size_t size) {
  uint32_t a = 1;
  uint32_t b = 0;
  for (size_t i = 0; i < size; ++i) {
    a = (a + bytes[i]) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

static void put_pixels(struct writer* out) {
  const uint32_t blocks = (kPixelBytes + kStoredBytesMax - 1) / kStoredBytesMax;
  begin_chunk(out, 2 + blocks * 5 + kPixelBytes + 4, "IDAT");
  put(out, "\x78\x01", 2);
  for (uint32_t at = 0; at < kPixelBytes; at += kStoredBytesMax) {
    const uint32_t left = kPixelBytes - at;
    const uint32_t size = left < kStoredBytesMax ? left : kStoredBytesMax;
    const unsigned char header[5] = {size == left, (unsigned char)size, (unsigned char)(size >> 8),
                                     (unsigned char)~size, (unsigned char)(~size >> 8)};
    put(out, header, sizeof header);
    put(out, pixels + at, size);
  }
  put_u32(out, adler32(pixels, kPixelBytes));
  end_chunk(out);
}

static bool write_png(bh_blob blob) {
  struct writer out = {blob, 0, true};
  make_crc_table();
  put(&out, "\x89PNG\r\n\x1a\n", 8);
  begin_chunk(&out, 13, "IHDR");
  put_u32(&out, kSide);
  put_u32(&out, kSide);
  put(&out, "\x08\x02\0\0\0", 5); /* 8 bits of each of three colours */
  end_chunk(&out);
  put_pixels(&out);
  begin_chunk(&out, 0, "IEND");
  end_chunk(&out);
  return out.ok;
}

int bulkhead_main(void) {
  bh_thread thread[kThreads];
  pixels = bh_allocate(kPixelBytes);
  if (pixels == NULL) {
    return 1;
  }
  for (uintptr_t i = 0; i < kThreads; ++i) {
    if (!bh_thread_start(&thread[i], draw_rows, (void*)i)) {
      return 2;
    }
  }
  for (int i = 0; i < kThreads; ++i) {
    bh_thread_join(&thread[i]);
  }
  const bh_blob blob = bh_blob_create();
  if (!write_png(blob) || bh_blob_seal(blob) != BH_COMPLETED) {
    return 3;
  }
  return bh_output_commit(blob, bh_output()) == BH_COMPLETED ? 0 : 4;
}
