// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "data/shards/picture.h"

namespace tw::data {

/// The values of one field of a sample, by the last part of its name:
///   jpg, jpeg, png   float32 [channels, height, width] in [0, 1]; JPEG or PNG, whichever the bytes are
///   npy              the array: float16, float32 and float64 become float32, integers int64
///   cls, id, index   one int64, shape []
///   txt, json        numbers, in JSON also lists of them: int64 where all are whole, else float32
/// Pure; any thread. The error says what was expected, without the name of the sample. Error::lasting: a txt
/// or json has numbers alone, of which one is too large.
Result<Array> decode_field(std::string_view field, std::string_view bytes, const PictureOptions& picture);

/// "jpg, jpeg, png, ...": the kinds that decode_field() knows.
std::string decoded_fields();
bool is_decoded(std::string_view field);

/// txt and json: programs that do not decode them keep captions and other texts there.
bool may_hold_anything(std::string_view field);

/// Reads a numpy file (NEP 1), versions 1 to 3, of real or whole numbers in any order of axes and bytes.
Result<Array> decode_npy(std::string_view bytes);

/// Reads numbers from JSON: one, or lists of equal lengths (also txt: numbers separated by blanks). A byte
/// order mark at the beginning is skipped.
Result<Array> decode_json(std::string_view bytes);

/// False: the conversion to float32 makes it infinite.
bool fits_float32(double value);

/// The error about a number that does not fit.
std::string beyond_float32(const std::string& number);

}  // namespace tw::data
