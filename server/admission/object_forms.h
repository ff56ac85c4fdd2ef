/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Stored objects, the params of policies, in the version that a policy names. As in forms.h, if
 * only a webhook can convert them, the caller drops its unfinished work and starts over when the
 * webhook has responded. Here all params of a binding are one batch, converted as a whole.
 *
 * A batch is found by the addresses of its objects. If one of them has changed meanwhile, it is
 * another batch. Memory: at most HFD_OBJECT_FORMS_MAX batches are kept.
 *
 * Owner: the admission. Thread: that of the admission.
 */
#include <stdbool.h>
#include <stddef.h>

struct hfd_object;
struct hfd_object_forms;
struct hfd_resource;
struct hfd_response;

/* Batches that one request may need; more are a failure. */
#define HFD_OBJECT_FORMS_MAX 64

/* results: n converted objects, borrowed. NULL: failure is why, borrowed; if failure is NULL too,
 * memory ran out. */
typedef void hfd_objects_converted(void *ctx, struct hfd_object *const *results,
                                   const struct hfd_response *failure);
/* Converts the sources, which live until done, to the version of `to`, and calls done once, perhaps
 * before it returns. */
typedef void hfd_objects_convert(void *ctx, const struct hfd_resource *to,
                                 struct hfd_object *const *sources, size_t n,
                                 hfd_objects_converted *done, void *done_ctx);

/*
 * The n sources in the version of `to`; *ret_results is borrowed, and lives as long as *forms,
 * which is made when needed. 0; -ENOMEM; -EAGAIN: the webhook must be called
 * (hfd_object_forms_fetch); HF_E_TOO_MANY: a limit that Kubernetes does not have; or HF_E_INVALID:
 * they cannot be converted. For the last two *ret_failure says why (borrowed, like *ret_results;
 * NULL: there are too many batches).
 */
int hfd_object_forms_find(struct hfd_object_forms **forms, const struct hfd_resource *to,
                          struct hfd_object *const *sources, size_t n,
                          struct hfd_object *const **ret_results,
                          const struct hfd_response **ret_failure);
/* Whether a conversion is wanted: hfd_object_forms_find has returned -EAGAIN, and the webhook has
 * not responded since. Accepts NULL. */
bool hfd_object_forms_is_wanted(const struct hfd_object_forms *forms);
/* Converts what is wanted and then calls resume, perhaps before this returns. convert NULL: there
 * is no webhook, and the conversion fails as if memory had run out. The caller must not touch the
 * request afterwards, unless resume leaves it to the caller. */
void hfd_object_forms_fetch(struct hfd_object_forms *forms, hfd_objects_convert *convert,
                            void *convert_ctx, void (*resume)(void *ctx), void *ctx);
/* Accepts NULL; returns NULL. */
struct hfd_object_forms *hfd_object_forms_free(struct hfd_object_forms *forms);
