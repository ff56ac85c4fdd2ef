/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finalizers: the list metadata.finalizers. While the list is not empty, the server keeps a deleted
 * object, which then has a metadata.deletionTimestamp. So a controller adds its name to the list
 * before it creates anything that nobody else would clean up, and removes the name when it has
 * cleaned up.
 * Objects are JSON text (<holdfast/upsert.h> says why). Pure. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/api.h>
#include <holdfast/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Finds out whether `object`, JSON of n bytes, has the finalizer, and whether it is being deleted.
 * The server refuses a new finalizer for an object that is being deleted. Both results may be NULL.
 * Returns 0, -ENOMEM, -EINVAL (an argument is NULL), or HF_E_INVALID: `object` is not JSON.
 */
HF_MUST_CHECK int hf_finalizer_check(const char *object, size_t n, const char *finalizer,
                                     bool *ret_has, bool *ret_is_deleted);
/*
 * Adds the finalizer to `object`, or removes it; other finalizers stay. Send the result as an
 * update: its resourceVersion then makes sure that no other change is lost.
 *
 * *ret_object is the result, malloc'ed and NUL-terminated, and the caller frees it. It is set on
 * each success, even if nothing has changed. *ret_changed (may be NULL): whether anything differs;
 * if not, do not write. Returns 0, -ENOMEM, -EINVAL (an argument is NULL), or HF_E_INVALID:
 * `object` is not a JSON object, its metadata is missing or not an object, or its finalizers are
 * neither a list nor null.
 */
HF_MUST_CHECK int hf_finalizer_set(const char *object, size_t n, const char *finalizer,
                                   bool present, char **ret_object, bool *ret_changed);

#ifdef __cplusplus
}
#endif
