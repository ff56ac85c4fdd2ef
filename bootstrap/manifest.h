/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Turns manifests, which are objects in YAML or JSON, into steps. Thread: owner only. */
#include <stddef.h>

#include "bootstrap/steps.h"

/*
 * Reads the manifests in n bytes of text and appends a step for each. `source` names the text in
 * messages. 0, HF_E_INVALID, HF_E_TOO_LARGE or -errno; the message is one line that names the
 * source and the document, line or field. On failure the steps appended before stay.
 */
int hf__manifest_read_text(struct hf__steps *steps, const struct hf__manifest_kinds *kinds,
                           const char *source, const char *text, size_t n,
                           struct hf_status *reterr_status);
