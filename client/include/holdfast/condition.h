/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Conditions: the list status.conditions, in which controllers report what is true of an object.
 * Objects are JSON text (<holdfast/upsert.h> says why). Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/api.h>
#include <holdfast/error.h>
#include <holdfast/host.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Borrowed for the call. */
struct hf_condition {
        size_t size;         /* sizeof(struct hf_condition) */
        const char *type;    /* required: "Ready" */
        const char *status;  /* required: "True", "False" or "Unknown" */
        const char *reason;  /* required: one word in CamelCase */
        const char *message; /* for people; NULL = "" */
        /* The object's metadata.generation for which the condition was found. 0 = not set: an
         * existing condition keeps its observedGeneration. */
        int64_t observed_generation;
};

/*
 * Sets one condition of `object`, JSON of n bytes, and leaves the others. lastTransitionTime is
 * now, by the host's real clock, if the condition is new, its status has changed, or it has no
 * lastTransitionTime; else it stays.
 *
 * *ret_object is the object with the condition, malloc'ed and NUL-terminated, and the caller frees
 * it. *ret_changed (may be NULL): whether anything differs; if not, do not write. Returns 0,
 * -ENOMEM, -EINVAL (an argument or a required member is missing, the status is another word, or a
 * size is wrong), or HF_E_INVALID: the text is not a JSON object, its status is not an object, or
 * its conditions are not a list.
 */
HF_MUST_CHECK int hf_condition_set(const struct hf_host *host, const char *object, size_t n,
                                   const struct hf_condition *condition, char **ret_object,
                                   bool *ret_changed);

#ifdef __cplusplus
}
#endif
