/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shares one library of functions: it takes some 50 KiB, and there may be a thousand definitions.
 *
 * Invariant: the mutex guards all variables here. While it is held, the library is made or freed,
 * and nothing else is called.
 */
#include "server/resources/custom/rules/rule_library.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>

#include "base/thread.h"
#include "cel/library.h"
#include "server/resources/custom/rules/values/format_functions.h"
#include "server/resources/custom/rules/values/json_patch_functions.h"
#include "server/resources/custom/rules/values/quantity_functions.h"
#include "server/resources/custom/rules/values/url_functions.h"

#define ROWS_MAX 64 /* rows of the server's own functions, with the one that ends them */

static pthread_mutex_t library_mu = PTHREAD_MUTEX_INITIALIZER;
static struct hf__cel_library *shared_library;
static size_t n_library_users;

/* Appends rows, without the one that ends them. Returns the new number of rows. */
static size_t append_rows(struct hf__cel_row *rows, size_t n, const struct hf__cel_row *more) {
        for (; more->name; more++) {
                assert(n + 1 < ROWS_MAX);
                rows[n++] = *more;
        }
        return n;
}

static int make_library(void) {
        struct hf__cel_row rows[ROWS_MAX] = {{NULL}};
        size_t n = append_rows(rows, 0, hfd_quantity_functions);

        n = append_rows(rows, n, hfd_format_functions);
        n = append_rows(rows, n, hfd_url_functions);
        append_rows(rows, n, hfd_json_patch_functions);
        return hf__cel_library_new(rows, &shared_library);
}

int hfd_rule_library_ref(const struct hf__cel_library **ret_library) {
        int r = 0;

        pthread_mutex_lock(&library_mu);
        if (!shared_library)
                r = make_library();
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
