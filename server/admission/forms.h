/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The objects of one request in the versions that rules name (matchPolicy Equivalent). Most are
 * converted at once (form.h). If a conversion webhook (of a CustomResourceDefinition) converts
 * between the versions of the kind, the result comes later. Here "the webhook" is this one, never
 * an admission webhook.
 *
 *      find -> -EAGAIN -> the caller drops its unfinished work -> fetch .. the webhook responds ..
 *           -> resume -> the caller starts over -> find -> the object
 *
 * So a caller that asks again for the same conversion has it at once, however often it starts over.
 * A webhook converts an object only once for each version, whichever plug-in asks. Memory: at most
 * HFD_FORMS_MAX conversions are kept.
 *
 * Owner: the admission. Thread: that of the admission.
 */
#include <stdbool.h>

struct hf__json;
struct hfd_admission_forms;
struct hfd_resource;
struct hfd_response;

/* Conversions by the webhook that one admission may need; more are a failure. Each other version
 * that rules name needs one of the old object, and one of the new object, which is made again after
 * each change of the new object. A change that is made in another version needs one more, back to
 * the version of the request. */
#define HFD_FORMS_MAX 64

/* result: the converted object, which the callee owns. NULL: failure is why, borrowed; if failure
 * is NULL too, memory ran out. */
typedef void hfd_forms_converted(void *ctx, struct hf__json *result,
                                 const struct hfd_response *failure);
/* Converts source, which is not changed and lives until done, by the webhook of the kind, and calls
 * done once, perhaps before it returns. */
typedef void hfd_forms_convert(void *ctx, const struct hfd_resource *from,
                               const struct hfd_resource *to, const struct hf__json *source,
                               hfd_forms_converted *done, void *done_ctx);

/*
 * Converts the object from the form of the row `from` to that of the row `to`; a row is one version
 * of a kind. *ret_object is a new object that the caller owns. *forms is made when needed; NULL at
 * first. 0; -ENOMEM; -EAGAIN: the webhook must be called (hfd_forms_fetch); or HF_E_INVALID: the
 * object cannot be converted, or HFD_FORMS_MAX conversions were made; then hfd_forms_failure says
 * why.
 */
int hfd_forms_find(struct hfd_admission_forms **forms, const struct hfd_resource *from,
                   const struct hfd_resource *to, const struct hf__json *object,
                   struct hf__json **ret_object);
/* Whether a conversion is wanted: hfd_forms_find has returned -EAGAIN, and the webhook has not
 * responded since. Accepts NULL. */
bool hfd_forms_is_wanted(const struct hfd_admission_forms *forms);
/* Calls the webhook for what is wanted, and then resume, perhaps before this returns. convert NULL:
 * there is no webhook, and the conversion fails as if memory had run out. The caller must not touch
 * the request afterwards, unless resume leaves it to the caller. */
void hfd_forms_fetch(struct hfd_admission_forms *forms, hfd_forms_convert *convert,
                     void *convert_ctx, void (*resume)(void *ctx), void *ctx);
/* What the failure of a conversion is: -ENOMEM; HF_E_TOO_MANY: a limit that Kubernetes does not
 * have, so no failurePolicy decides about it; or HF_E_INVALID: any other. */
int hfd_forms_error(const struct hfd_response *failure);
/* Why hfd_forms_find has returned HF_E_INVALID. Call it right after that failure: a later call of
 * hfd_forms_find may keep, clear or replace the reason. Borrowed. NULL: there was no such failure.
 * Accepts NULL. */
const struct hfd_response *hfd_forms_failure(const struct hfd_admission_forms *forms);
/* Accepts NULL; returns NULL. */
struct hfd_admission_forms *hfd_forms_free(struct hfd_admission_forms *forms);
