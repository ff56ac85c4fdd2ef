/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The extra values of a user as text (user_extra.h): in audit events, in what webhooks are sent,
 * and in messages.
 *
 * Invariant: a key is printed once, with all of its values, even if the pairs of the user have
 * other keys in between.
 */
#include "server/auth/user_extra.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"

#define PAIRS_MAX (HFD_USER_EXTRA / 2) /* each takes two bytes at least: its NULs */

/* For qsort. Equal keys keep the order of their pairs: all are in one array, so that is the order
 * of the addresses. */
static int compare_keys(const void *a, const void *b) {
        const char *x = *(const char *const *)a, *y = *(const char *const *)b;
        int order = strcmp(x, y);

        if (order != 0)
                return order;
        return x < y ? -1 : 1;
}

/* Fills keys with the sorted keys of all pairs, so a key of several pairs occurs several times.
 * Each points into user->extra, where its value follows. Returns the number of pairs. */
static size_t sort_keys(const struct hfd_requester *user, const char *keys[PAIRS_MAX]) {
        const char *end = user->extra + user->n_extra;
        size_t n = 0;

        for (const char *at = user->extra; at < end;) {
                assert(n < PAIRS_MAX);
                keys[n++] = at;
                at += strlen(at) + 1;
                at += strlen(at) + 1;
        }
        if (n > 0)
                qsort(keys, n, sizeof keys[0], compare_keys);
        return n;
}

static void put_text(struct hf__strbuf *out, const char *text, enum hfd_extra_form form) {
        if (form == HFD_EXTRA_JSON)
                hf__strbuf_json(out, text, strlen(text));
        else
                hf__strbuf_puts(out, text);
}

void hfd_user_put_extra(struct hf__strbuf *out, const struct hfd_requester *user,
                        enum hfd_extra_form form) {
        const char *keys[PAIRS_MAX], *separator = form == HFD_EXTRA_JSON ? "," : " ";
        size_t n = sort_keys(user, keys);

        hf__strbuf_puts(out, form == HFD_EXTRA_JSON ? "{" : "map[");
        for (size_t i = 0; i < n; i++) {
                if (i > 0 && strcmp(keys[i - 1], keys[i]) == 0) {
                        hf__strbuf_puts(out, separator);
                } else {
                        hf__strbuf_puts(out, i > 0 ? "]" : "");
                        hf__strbuf_puts(out, i > 0 ? separator : "");
                        put_text(out, keys[i], form);
                        hf__strbuf_puts(out, ":[");
                }
                put_text(out, keys[i] + strlen(keys[i]) + 1, form);
        }
        hf__strbuf_puts(out, n > 0 ? "]" : "");
        hf__strbuf_puts(out, form == HFD_EXTRA_JSON ? "}" : "]");
}
