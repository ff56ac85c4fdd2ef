/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Parses messages whose containers carry JSON values of somebody else, such as the objects in a
 * ConversionReview or the values in a JSON patch. The outer containers, which belong to the
 * protocol, are the envelope. They do not count for the nesting limit of the values inside. Pure.
 * Thread: any.
 */
#include <stddef.h>

#include "base/json.h"

#define HF__JSON_ENVELOPE_MAX (HF__JSON_LEVELS_MAX - HF__JSON_DEPTH_MAX)

/*
 * Parses n bytes like hf__json_parse, except that each value inside of the outer `levels`
 * containers may itself be nested HF__JSON_DEPTH_MAX deep. levels is 1 to HF__JSON_ENVELOPE_MAX.
 * The offset of an error need not be that of the first one. Takes twice the time of hf__json_parse
 * at most, and memory for the parts just inside of the envelope besides: less than 16 bytes for
 * each byte of the text, because the shortest part has 3 bytes with the comma after it.
 */
int hf__json_parse_envelope(const char *data, size_t n, size_t levels, struct hf__json **ret_json,
                            size_t *reterr_offset);
