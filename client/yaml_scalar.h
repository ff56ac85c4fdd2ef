/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The meaning of a plain scalar of YAML 1.1 in go-yaml v2, which Kubernetes uses. Pure.
 * Thread: any. */
#include <stddef.h>

#define HF__YAML_SCALAR_MAX 48 /* bytes of its JSON, with the NUL */

enum hf__yaml_scalar {
        HF__YAML_TEXT,       /* a string */
        HF__YAML_VALUE,      /* null, a boolean or a number */
        HF__YAML_UNSUPPORTED /* a number that JSON cannot express */
};

/* Writes the JSON of a value, or the name of an unsupported number ("+Inf"), to json. */
enum hf__yaml_scalar hf__yaml_scalar_resolve(const char *text, size_t n,
                                             char json[HF__YAML_SCALAR_MAX]);
