/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Turns manifests, which are objects in YAML or JSON, into steps. Thread: owner only. */
#include <stddef.h>

#include "bootstrap/steps.h"

/*
 * Reads the manifests in n bytes of text and appends a step for each. text may be NULL if n is 0.
 * `source` names the text in messages. 0, HF_E_INVALID, HF_E_TOO_LARGE, HF_E_UNAVAILABLE (the text
 * is YAML, and libyaml cannot be loaded) or -errno. The message is one line, and names the source;
 * if a document is invalid, also the document and the line, and the field if one is wrong. On
 * failure the steps appended before stay.
 */
int hf__manifest_read_text(struct hf__steps *steps, const struct hf__manifest_kinds *kinds,
                           const char *source, const char *text, size_t n,
                           struct hf_status *reterr_status);
/* Makes the message one line, if r is not 0: paths and texts may contain line breaks. Returns r. */
int hf__manifest_fail_in_one_line(int r, struct hf_status *reterr_status);
