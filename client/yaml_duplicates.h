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
 * in go-yaml's order. Appends nothing if there are none. If libyaml rejects the text at some place,
 * or the text is nested too deeply there or has too many values before it, only the part before
 * that place is searched. 0, -ENOMEM or HF_E_UNAVAILABLE (libyaml cannot be loaded). The caller
 * also checks out->error.
 */
int hf__yaml_duplicates(const char *text, size_t n, size_t n_max, struct hf__strbuf *out);
