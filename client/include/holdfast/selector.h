/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Selectors: the part of a request's query that chooses objects by labels and fields. They are
 * checked and escaped here, so that a value cannot add a requirement of its own. Pure. Thread: any.
 */
#include <stddef.h>

#include <holdfast/api.h>
#include <holdfast/error.h>

#ifdef __cplusplus
extern "C" {
#endif

enum hf_selector_op {
        HF_SELECTOR_EQUALS = 0,
        HF_SELECTOR_NOT_EQUALS, /* objects without the label match too */
        HF_SELECTOR_IN,         /* labels only, like all that follow */
        HF_SELECTOR_NOT_IN,     /* objects without the label match too */
        HF_SELECTOR_EXISTS,
        HF_SELECTOR_NOT_EXISTS
};

/* One requirement, about a label ("app.kubernetes.io/name") or a field ("metadata.name"). Frozen: a
 * requirement of Kubernetes is a key, an operator and values. */
struct hf_selector_term {
        const char *key;
        enum hf_selector_op op;
        /* EQUALS and NOT_EQUALS have one value, IN and NOT_IN at least one, the others none. */
        const char *const *values;
        size_t n_values;
};

/* An object matches if it meets all requirements. All is borrowed for the call. */
struct hf_selector {
        size_t size; /* sizeof(struct hf_selector) */
        const struct hf_selector_term *labels;
        size_t n_labels;
        const struct hf_selector_term *fields;
        size_t n_fields;
};

/*
 * Writes the selector as hf_request.query, hf_watch_spec.query and hf_informer_config.query want
 * it: "labelSelector=app%3Da&fieldSelector=...". The text is "" for a selector without
 * requirements. *ret_query is malloc'ed, and the caller frees it; append "&limit=1" and the like
 * yourself.
 *
 * Returns 0, -ENOMEM, -EINVAL (wrong size, or selector or ret_query is NULL), or HF_E_INVALID with
 * a message: a key or a label's value has characters that are not allowed, a field cannot have the
 * operator, or the number of values does not fit it. Only the server checks whether the resource
 * has a field of that name.
 */
HF_MUST_CHECK int hf_selector_query(const struct hf_selector *selector, char **ret_query,
                                    struct hf_status *reterr_status);

#ifdef __cplusplus
}
#endif
