/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Decides which mutating webhooks are called again in the second round. A webhook with the policy
 * IfNeeded is due once more if another webhook or another plug-in has changed the object after its
 * call. One that was not called in the first round is not called in the second. Pure.
 */
#include <stdbool.h>
#include <stddef.h>

struct hfd_reinvocation {
        size_t n; /* webhooks; both arrays have an element for each */
        /* Owned; it was called, is reinvocable, and the object has not changed since. */
        bool *earlier;
        bool *due; /* owned; it is called in the second round */
};
/* n: webhooks. 0 or -ENOMEM. */
int hfd_reinvocation_init(struct hfd_reinvocation *reinvocation, size_t n);
void hfd_reinvocation_done(struct hfd_reinvocation *reinvocation);
/* The i-th webhook was called. reinvocable: its reinvocationPolicy is IfNeeded. changed: its
 * response has changed the object. */
void hfd_reinvocation_called(struct hfd_reinvocation *reinvocation, size_t i, bool reinvocable,
                             bool changed);
/* Another plug-in has changed the object since the last webhook was called. */
void hfd_reinvocation_object_changed(struct hfd_reinvocation *reinvocation);
/* Whether the i-th webhook is called in the second round. */
bool hfd_reinvocation_is_due(const struct hfd_reinvocation *reinvocation, size_t i);
/* Whether a later change would make a webhook due. */
bool hfd_reinvocation_has_earlier(const struct hfd_reinvocation *reinvocation);
