/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRADEWIND_DATA_H
#define TRADEWIND_DATA_H

/*
 * Samples in shards (docs/data.md) for a program with its own loop: tar files in folders or object stores,
 * and an index of `tw data index` that says where each sample lies.
 *
 * Threads. Each tw_data has threads of its own, which read and decode. Its functions may be called by any
 * thread, but by one at a time.
 *
 * Forks. A forked child has none of these threads: there every call for what the parent opened is
 * TW_MISUSE, and tw_data_close does nothing. The child opens the index for itself.
 *
 * Units. Sizes are bytes, unless they are said to be values. Times are milliseconds.
 */

#if __has_include("bind/tradewind.h")
#include "bind/tradewind.h"
#else
#include <tradewind.h> /* where it is installed */
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_data tw_data;

/* Reads the index. Settings, as text, everything but the first with a value where it is left out:
 *   index        file of tw data index
 *   field        once for each: "jpg", or "jpg;png" for the first that a sample has; each sample has to have
 *                one. None: all fields
 *   decode       true: fields are decoded by their kind, as docs/data.md says; false: bytes (false)
 *   image        squares of so many pixels a side, 0 to 4096; 0: pictures stay as they are (0)
 *   channels     of pictures: 1 grey, 3 colours, 0 as they are (0)
 *   threads      decoders, 1 to 256 (1)
 *   memory       samples that are read ahead, such as 256MiB, at least 1MiB (256MiB)
 *   cache        folder that keeps what came over the network (none)
 *   cache_limit  with cache: beyond it what was used longest ago goes (10GiB)
 * TW_MISUSE names the setting, the file or the field. */
TW_API int tw_data_open(const tw_setting* settings, size_t count, tw_data** data);

/* One JSON object: samples, fields (those of each sample, in the order of tw_data_read), shards, bytes,
 * identity (docs/data.md). The caller frees it with tw_free. */
TW_API char* tw_data_facts(tw_data* data);

/* One JSON object: key, object (the shard), fields: {name: [offset, bytes]}. Null: no such sample. The caller
 * frees it with tw_free. */
TW_API char* tw_data_sample(tw_data* data, uint64_t sample);

/* These samples will be read next, in this order, and no others: time to fetch them. Does not wait. */
TW_API int tw_data_expect(tw_data* data, const uint64_t* samples, size_t count);

enum tw_content {
  TW_ABSENT = 0, /* the sample has no such field, where all fields were asked for */
  TW_BYTES = 1,
  TW_ARRAY_FLOAT32 = 2,
  TW_ARRAY_INT64 = 3,
};

/* Memory of the library. */
typedef struct {
  const void* data;      /* aligned for its kind; row-major */
  const uint64_t* shape; /* of an array */
  uint64_t dimensions;   /* of an array; 0: one value */
  uint64_t size;         /* bytes */
  uint32_t content;      /* tw_content */
  uint32_t reserved;
} tw_value;

/* Samples, each of which may come twice. values: for each sample its key (TW_BYTES), then its fields; so
 * count x (1 + fields). They are valid until the next tw_data_read or tw_data_close.
 * TW_TIMEOUT: not there yet; call again. TW_FAILED: a sample cannot be had; the text names object and bytes,
 * or sample and field. */
TW_API int tw_data_read(tw_data* data, const uint64_t* samples, size_t count, uint32_t limit_ms,
                        tw_value* values);

/* Sentences for the user since the last call, one a line: the first trouble of each store that does not
 * answer and is asked again. The caller frees it with tw_free. */
TW_API char* tw_data_warnings(tw_data* data);

/* Null: nothing. */
TW_API void tw_data_close(tw_data* data);

#ifdef __cplusplus
}
#endif

#endif
