/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Writes the paths of fields, for causes. A path that does not fit becomes "". Both functions
 * return out, which must not be one of the texts. Pure. Thread: any. */
#include <stddef.h>

#define HFD_RULE_PATH_MAX 160 /* bytes, with the NUL: as in a cause */

/* "field.name" */
const char *hfd_rule_path(char out[HFD_RULE_PATH_MAX], const char *field, const char *name);
/* "field.name[i]"; name NULL: "field[i]" */
const char *hfd_rule_path_at(char out[HFD_RULE_PATH_MAX], const char *field, const char *name,
                             size_t i);
