/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shares one library of functions: it takes some 50 KiB, and there may be a thousand definitions.
 *
 * Invariant: the mutex guards all variables here; nothing else is called with it held than the
 * making and freeing of the library.
 */
#include "server/resources/custom/rules/rule_library.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>

#include "cel/library.h"

static pthread_mutex_t library_mu = PTHREAD_MUTEX_INITIALIZER;
static struct hf__cel_library *shared_library;
static size_t n_library_users;

int hfd_rule_library_ref(const struct hf__cel_library **ret_library) {
        int r = 0;

        pthread_mutex_lock(&library_mu);
        if (!shared_library)
                r = hf__cel_library_new(NULL, &shared_library);
        assert(r == 0 || r == -ENOMEM);
        if (r == 0) {
                n_library_users++;
                *ret_library = shared_library;
        }
        pthread_mutex_unlock(&library_mu);
        return r;
}

void hfd_rule_library_unref(void) {
        pthread_mutex_lock(&library_mu);
        assert(n_library_users > 0);
        if (--n_library_users == 0) {
                hf__cel_library_free(shared_library);
                shared_library = NULL;
        }
        pthread_mutex_unlock(&library_mu);
}
