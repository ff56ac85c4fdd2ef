/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * JSON values that others have made, in containers of a protocol that carries them. A value may be
 * nested as deep as any other value, however many containers the protocol puts around it. Pure.
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
 * each byte of the text, because the shortest part has 3 with the comma after it.
 */
int hf__json_parse_envelope(const char *data, size_t n, size_t levels, struct hf__json **ret_json,
                            size_t *reterr_offset);
