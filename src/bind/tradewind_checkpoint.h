/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRADEWIND_CHECKPOINT_H
#define TRADEWIND_CHECKPOINT_H

/*
 * The model in a checkpoint of a run, for programs that evaluate it, write it in another format, or begin
 * with it. The run may be over, or live and write newer ones meanwhile.
 *
 * Threads. Any; one checkpoint by one at a time.
 */

#if __has_include("bind/tradewind.h")
#include "bind/tradewind.h"
#else
#include <tradewind.h> /* where it is installed */
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_checkpoint tw_checkpoint;

/* Texts are valid until tw_checkpoint_close. */
typedef struct {
  uint64_t round;
  uint64_t samples;    /* of all rounds up to it */
  const char* run;     /* 32 digits, the same in all checkpoints of a run */
  const char* layout;  /* tw_model.layout of the program */
  const char* skipped; /* newer files of the folder that cannot be used, each with the reason, one a line */
} tw_stored;

/* Reads a file of any name, also as file:/PATH, or the newest checkpoint of a folder. s3://BUCKET/KEY is in a
 * store (docs/run_file.md): an object whose name ends with .tw, else a folder. Every byte is verified.
 * TW_MISUSE: there is none. TW_FAILED: it cannot be used; the text names file and reason. */
TW_API int tw_checkpoint_open(const char* path, tw_checkpoint** checkpoint, tw_stored* stored);

/* Copies the values of the model, as many as all of tw_model.tensor_sizes, in their order. TW_MISUSE: the
 * model has another number of values. */
TW_API int tw_checkpoint_values(tw_checkpoint* checkpoint, float* values, size_t count);

/* Null: nothing. */
TW_API void tw_checkpoint_close(tw_checkpoint* checkpoint);

#ifdef __cplusplus
}
#endif

#endif
