/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records which mutating webhooks must be called again (reinvocationPolicy).
 *
 * Invariant: a webhook that is due stays due. There are only two rounds, so its call in the second
 * one is its last.
 */
#include "server/admission/webhooks/reinvocation.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

/* + 1: calloc of no elements may return NULL. */
int hfd_reinvocation_init(struct hfd_reinvocation *reinvocation, size_t n) {
        *reinvocation = (struct hfd_reinvocation){.n = n,
                                                  .earlier = calloc(n + 1, sizeof(bool)),
                                                  .due = calloc(n + 1, sizeof(bool))};
        if (reinvocation->earlier && reinvocation->due)
                return 0;
        hfd_reinvocation_done(reinvocation);
        return -ENOMEM;
}

void hfd_reinvocation_done(struct hfd_reinvocation *reinvocation) {
        free(reinvocation->earlier);
        free(reinvocation->due);
        *reinvocation = (struct hfd_reinvocation){0};
}

void hfd_reinvocation_object_changed(struct hfd_reinvocation *reinvocation) {
        for (size_t i = 0; i < reinvocation->n; i++) {
                reinvocation->due[i] |= reinvocation->earlier[i];
                reinvocation->earlier[i] = false;
        }
}

/*
 * A webhook's own change does not make it due, so `earlier` is set after the change has been noted.
 */
void hfd_reinvocation_called(struct hfd_reinvocation *reinvocation, size_t i, bool reinvocable,
                             bool changed) {
        assert(i < reinvocation->n);
        if (changed)
                hfd_reinvocation_object_changed(reinvocation);
        reinvocation->earlier[i] |= reinvocable;
}

bool hfd_reinvocation_is_due(const struct hfd_reinvocation *reinvocation, size_t i) {
        assert(i < reinvocation->n);
        return reinvocation->due[i];
}

bool hfd_reinvocation_has_earlier(const struct hfd_reinvocation *reinvocation) {
        for (size_t i = 0; i < reinvocation->n; i++)
                if (reinvocation->earlier[i])
                        return true;
        return false;
}
