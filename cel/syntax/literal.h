/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The values of literals. Pure. Thread: the owner of the arena. */
#include <stdbool.h>
#include <stddef.h>

#include "cel/syntax/lexer.h"
#include "cel/values/value.h"

struct hf__arena;

/*
 * The value of an INT, UINT, FLOAT, STRING or BYTES token of the text; the text of a string is
 * allocated in the arena. `negative`: a minus stands before the INT or FLOAT; it means nothing for
 * other tokens. 0, -ENOMEM, or HF_E_INVALID with the message of Kubernetes, which is static.
 */
int hf__cel_literal(struct hf__arena *arena, const char *text, struct hf__cel_token token,
                    bool negative, struct hf__cel_value *ret_value, const char **reterr_message);
