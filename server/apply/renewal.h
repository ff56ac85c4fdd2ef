/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Updates that leave the fields of every manager as they are: a writer changes the values of fields
 * that it alone owns, as a leader does when it renews its Lease, or changes nothing that a manager
 * may own. Such updates are frequent. They are recognized without making a set of fields. Thread:
 * owner only.
 */
#include <stdbool.h>
#include <stddef.h>

struct hf__json;
struct hfd_manager;
struct hfd_schema;

struct hfd_renewal {
        bool changed;    /* a value is different */
        bool is_renewed; /* the writer has changed fields of its own, so its time changes */
        /* If it is renewed: the position of the writer's entry in the list, and where the text of
         * the list has the time of this entry. */
        size_t self;
        size_t time_at, n_time;
};

/*
 * self: the writer, with the time of the write. Compares object, which has no list of managers,
 * with live, whose list of managers is `list`; text, of n bytes, is the same list as JSON. True:
 * the list applies to object, too, apart from the time of one entry. False: that is not certain.
 */
bool hfd_renewal_find(const struct hfd_schema *schema, const struct hf__json *live,
                      const struct hf__json *object, const struct hf__json *list, const char *text,
                      size_t n, const struct hfd_manager *self, struct hfd_renewal *ret_renewal);
