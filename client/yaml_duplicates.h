/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds keys that occur twice in a mapping of YAML, and reports them with the lines of their
 * values, in the words of go-yaml v2 in strict mode. Reads only the first document. For a text that
 * hf__yaml_body_to_json has accepted: that function limits open brackets, which cost libyaml much
 * time, and this one does not. Thread: any.
 */
#include <stddef.h>

struct hf__strbuf;

/*
 * Appends "yaml: unmarshal errors:" and a line for each repeated key to out, at most n_max of them,
 * in go-yaml's order. Appends nothing if there are none. The search ends early where libyaml
 * rejects the text, where the text is nested too deeply, and after too many values. 0, -ENOMEM or
 * HF_E_UNAVAILABLE (libyaml cannot be loaded). The caller also checks out->error.
 */
int hf__yaml_duplicates(const char *text, size_t n, size_t n_max, struct hf__strbuf *out);
