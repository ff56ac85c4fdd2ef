/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The bodies of the requests that apply a step. Pure. Thread: any. */
#include <stddef.h>

#include "bootstrap/steps.h"

struct hf__strbuf;

/* Appends the request body that creates the step's object: the content with the stamp. 0, -ENOMEM,
 * HF_E_TOO_LARGE. */
int hf__step_body_new(const struct hf__step *step, struct hf__strbuf *out);
/* Appends the body of an update that replaces the content of `present`, an object that the server
 * sent, by the step's content. Identity, finalizers, owners and status of `present` stay. 0,
 * -ENOMEM, HF_E_TOO_LARGE, or HF_E_INVALID: `present` is not an object with metadata. */
int hf__step_body_replacement(const struct hf__step *step, const char *present, size_t n,
                              struct hf__strbuf *out);
