// The guest of `make run`: an ordinary C program that renders a picture and writes it as a PNG.
//
//   demo.wasm NAME     writes /output/NAME
//
// It marches rays through a scene given as a signed distance function: three spheres, each in its
// own compartment. It knows nothing of Bulkhead beyond the folder /output, needs no library but
// libc, and stores the PNG's pixels uncompressed so that no compressor is needed either.
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kWidth = 640, kHeight = 400, kChannels = 3 };

enum { kRowBytes = 1 + kWidth * kChannels };  // a PNG row starts with its filter type

enum { kMarchSteps = 256, kShadowSteps = 40, kProgressRows = 80 };

enum { kSamples = 2 };  // rays per pixel and axis

static const float kHitDistance = 0.001F;
static const float kFarDistance = 24.0F;

// ---- vectors ----

typedef struct {
  float x, y, z;
} Vec;

static Vec Add(Vec a, Vec b) {
  return (Vec){a.x + b.x, a.y + b.y, a.z + b.z};
}

static Vec Sub(Vec a, Vec b) {
  return (Vec){a.x - b.x, a.y - b.y, a.z - b.z};
}

static Vec Scale(Vec a, float s) {
  return (Vec){a.x * s, a.y * s, a.z * s};
}

static float Dot(Vec a, Vec b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}

static Vec Unit(Vec a) {
  return Scale(a, 1.0F / sqrtf(Dot(a, a)));
}

static Vec Mix(Vec a, Vec b, float t) {
  return Add(Scale(a, 1.0F - t), Scale(b, t));
}

static float Min(float a, float b) {
  return a < b ? a : b;
}

static float Max(float a, float b) {
  return a > b ? a : b;
}

static float Clamp01(float v) {
  return Min(Max(v, 0.0F), 1.0F);
}

// ---- the scene ----

typedef enum { kFloor, kWall, kBallLeft, kBallMiddle, kBallRight } Thing;

static float BoxDistance(Vec p, Vec centre, Vec half) {
  Vec q = Sub(p, centre);
  q = (Vec){fabsf(q.x) - half.x, fabsf(q.y) - half.y, fabsf(q.z) - half.z};
  Vec outside = {Max(q.x, 0.0F), Max(q.y, 0.0F), Max(q.z, 0.0F)};
  return sqrtf(Dot(outside, outside)) + Min(Max(q.x, Max(q.y, q.z)), 0.0F);
}

static void Nearest(float candidate, Thing what, float* distance, Thing* thing) {
  if (candidate < *distance) {
    *distance = candidate;
    *thing = what;
  }
}

// Distance from p to the nearest surface, and whose surface it is.
static float SceneDistance(Vec p, Thing* thing) {
  float distance = p.y;
  *thing = kFloor;
  Nearest(BoxDistance(p, (Vec){0.0F, 1.0F, 1.9F}, (Vec){3.9F, 1.0F, 0.06F}), kWall, &distance,
          thing);
  for (int i = 0; i < 4; ++i) {
    Vec centre = {-3.9F + 2.6F * (float)i, 1.0F, 0.6F};
    Nearest(BoxDistance(p, centre, (Vec){0.06F, 1.0F, 1.3F}), kWall, &distance, thing);
  }
  for (int i = 0; i < 3; ++i) {
    Vec to_centre = Sub(p, (Vec){-2.6F + 2.6F * (float)i, 0.8F, 0.7F});
    Nearest(sqrtf(Dot(to_centre, to_centre)) - 0.8F, (Thing)(kBallLeft + i), &distance, thing);
  }
  return distance;
}

static Vec Normal(Vec p) {
  const float step = 0.0015F;
  Thing unused;
  float here = SceneDistance(p, &unused);
  return Unit((Vec){SceneDistance(Add(p, (Vec){step, 0, 0}), &unused) - here,
                    SceneDistance(Add(p, (Vec){0, step, 0}), &unused) - here,
                    SceneDistance(Add(p, (Vec){0, 0, step}), &unused) - here});
}

// Marches from origin; returns the distance to the hit, or a negative number for the sky.
static float March(Vec origin, Vec direction, Thing* thing) {
  float travelled = 0.0F;
  for (int i = 0; i < kMarchSteps && travelled < kFarDistance; ++i) {
    float step = SceneDistance(Add(origin, Scale(direction, travelled)), thing);
    if (step < kHitDistance) {
      return travelled;
    }
    travelled += step;
  }
  return -1.0F;
}

// 1 in full light, 0 in full shadow; near misses give the soft edge.
static float Light(Vec p, Vec to_light) {
  float light = 1.0F;
  float travelled = 0.03F;
  for (int i = 0; i < kShadowSteps && travelled < 8.0F; ++i) {
    Thing unused;
    float distance = SceneDistance(Add(p, Scale(to_light, travelled)), &unused);
    if (distance < kHitDistance) {
      return 0.0F;
    }
    light = Min(light, 10.0F * distance / travelled);
    travelled += Max(distance, 0.02F);
  }
  return light;
}

static Vec Sky(Vec direction) {
  return Mix((Vec){0.86F, 0.90F, 0.95F}, (Vec){0.22F, 0.42F, 0.70F}, Clamp01(direction.y * 1.6F));
}

static Vec Paint(Vec p, Thing thing) {
  switch (thing) {
    case kFloor: {
      int odd = ((int)floorf(p.x) + (int)floorf(p.z)) & 1;
      return odd ? (Vec){0.62F, 0.64F, 0.66F} : (Vec){0.36F, 0.39F, 0.43F};
    }
    case kWall:
      return (Vec){0.80F, 0.78F, 0.72F};
    case kBallLeft:
      return (Vec){0.85F, 0.25F, 0.18F};
    case kBallMiddle:
      return (Vec){0.95F, 0.70F, 0.18F};
    case kBallRight:
      return (Vec){0.15F, 0.52F, 0.46F};
  }
  return (Vec){0, 0, 0};
}

// Colour seen along a ray; mirrors are followed for `bounces` more rays.
static Vec Trace(Vec origin, Vec direction, int bounces) {
  Thing thing;
  float distance = March(origin, direction, &thing);
  if (distance < 0.0F) {
    return Sky(direction);
  }
  Vec p = Add(origin, Scale(direction, distance));
  Vec normal = Normal(p);
  Vec to_light = Unit((Vec){-0.55F, 0.85F, -0.65F});
  Vec above = Add(p, Scale(normal, 4.0F * kHitDistance));
  float diffuse = Clamp01(Dot(normal, to_light)) * Light(above, to_light);
  float ambient = 0.30F + 0.14F * normal.y;
  Vec colour = Scale(Paint(p, thing), ambient + 0.85F * diffuse);
  Vec mirrored = Sub(direction, Scale(normal, 2.0F * Dot(direction, normal)));
  if (thing >= kBallLeft) {
    float glint = powf(Clamp01(Dot(mirrored, to_light)), 48.0F) * diffuse;
    colour = Add(colour, (Vec){glint, glint, glint});
    if (bounces > 0) {
      colour = Mix(colour, Trace(above, mirrored, bounces - 1), 0.22F);
    }
  }
  return Mix(colour, Sky(direction), Clamp01(distance / kFarDistance - 0.35F));
}

static uint8_t ToByte(float linear) {
  return (uint8_t)(255.0F * sqrtf(Clamp01(linear)) + 0.5F);
}

// Average colour of one pixel.
static Vec RenderPixel(int x, int y) {
  const Vec eye = {0.0F, 2.9F, -6.0F};
  Vec sum = {0, 0, 0};
  for (int sample = 0; sample < kSamples * kSamples; ++sample) {
    float column = (float)x + ((float)(sample % kSamples) + 0.5F) / kSamples;
    float line = (float)y + ((float)(sample / kSamples) + 0.5F) / kSamples;
    float right = (column - kWidth / 2.0F) / kHeight;
    float up = (kHeight / 2.0F - line) / kHeight;
    sum = Add(sum, Trace(eye, Unit((Vec){right, up - 0.30F, 1.0F}), 2));
  }
  return Scale(sum, 1.0F / (kSamples * kSamples));
}

static void RenderRow(int y, uint8_t* row) {
  *row++ = 0;  // filter type "none"
  for (int x = 0; x < kWidth; ++x) {
    Vec colour = RenderPixel(x, y);
    *row++ = ToByte(colour.x);
    *row++ = ToByte(colour.y);
    *row++ = ToByte(colour.z);
  }
}

// ---- PNG ----

static uint32_t Crc32(uint32_t crc, const uint8_t* data, size_t size) {
  crc = ~crc;
  for (size_t i = 0; i < size; ++i) {
    crc ^= data[i];
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ (0xEDB88320U & (0U - (crc & 1U)));
    }
  }
  return ~crc;
}

static uint32_t Adler32(const uint8_t* data, size_t size) {
  uint32_t a = 1;
  uint32_t b = 0;
  for (size_t i = 0; i < size; ++i) {
    a = (a + data[i]) % 65521U;
    b = (b + a) % 65521U;
  }
  return b << 16 | a;
}

static uint8_t* PutBig32(uint8_t* out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    *out++ = (uint8_t)(value >> shift);
  }
  return out;
}

static void WriteChunk(FILE* file, const char* type, const uint8_t* data, size_t size) {
  uint8_t head[8];
  memcpy(PutBig32(head, (uint32_t)size), type, 4);
  uint8_t tail[4];
  PutBig32(tail, Crc32(Crc32(0, head + 4, 4), data, size));
  fwrite(head, 1, sizeof head, file);
  fwrite(data, 1, size, file);
  fwrite(tail, 1, sizeof tail, file);
}

// Wraps data in a zlib stream of stored blocks; the caller frees it. Null when memory is short.
static uint8_t* StoreZlib(const uint8_t* data, size_t size, size_t* out_size) {
  const size_t block_max = 65535;
  size_t blocks = (size + block_max - 1) / block_max;
  uint8_t* stream = malloc(2 + blocks * 5 + size + 4);
  if (stream == NULL) {
    return NULL;
  }
  uint8_t* out = stream;
  *out++ = 0x78;  // deflate, 32 KiB window
  *out++ = 0x01;  // makes the two bytes a multiple of 31
  for (size_t done = 0; done < size;) {
    size_t length = size - done < block_max ? size - done : block_max;
    *out++ = done + length == size;
    *out++ = (uint8_t)length;
    *out++ = (uint8_t)(length >> 8);
    *out++ = (uint8_t)~length;
    *out++ = (uint8_t)(~length >> 8);
    memcpy(out, data + done, length);
    out += length;
    done += length;
  }
  out = PutBig32(out, Adler32(data, size));
  *out_size = (size_t)(out - stream);
  return stream;
}

// Returns 0, or -1 with errno set.
static int WritePng(const char* path, const uint8_t* rows, size_t size) {
  static const uint8_t kSignature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  size_t stream_size = 0;
  uint8_t* stream = StoreZlib(rows, size, &stream_size);
  if (stream == NULL) {
    return -1;
  }
  FILE* file = fopen(path, "wb");
  if (file == NULL) {
    free(stream);
    return -1;
  }
  uint8_t header[13] = {0};
  PutBig32(PutBig32(header, kWidth), kHeight);
  header[8] = 8;  // bits per channel
  header[9] = 2;  // red, green, blue
  fwrite(kSignature, 1, sizeof kSignature, file);
  WriteChunk(file, "IHDR", header, sizeof header);
  WriteChunk(file, "IDAT", stream, stream_size);
  WriteChunk(file, "IEND", NULL, 0);
  free(stream);
  int failed = ferror(file);
  return fclose(file) != 0 || failed ? -1 : 0;
}

int main(int argc, char** argv) {
  static uint8_t rows[kHeight * kRowBytes];
  if (argc != 2) {
    fprintf(stderr, "usage: demo NAME\n");
    return 2;
  }
  char path[256];
  int length = snprintf(path, sizeof path, "/output/%s", argv[1]);
  if (length < 0 || (size_t)length >= sizeof path) {
    fprintf(stderr, "demo: the name is too long\n");
    return 2;
  }
  for (int y = 0; y < kHeight; ++y) {
    RenderRow(y, rows + (size_t)y * kRowBytes);
    if ((y + 1) % kProgressRows == 0) {
      printf("rendered %d of %d rows\n", y + 1, kHeight);
      fflush(stdout);
    }
  }
  if (WritePng(path, rows, sizeof rows) != 0) {
    fprintf(stderr, "demo: cannot write %s: %s\n", path, strerror(errno));
    return 1;
  }
  printf("wrote %s, %d x %d pixels\n", path, kWidth, kHeight);
  return 0;
}
