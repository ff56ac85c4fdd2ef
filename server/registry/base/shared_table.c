/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of conversions that webhooks make (shared_table.h): adds them, finds them, and drops
 * the oldest.
 *
 * Invariants: the list by age (newest, oldest) contains exactly the conversions of the table that
 * have a result. Nothing is freed under the lock, because a conversion may have large objects.
 */
#include "server/registry/base/shared_table.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/thread.h"
#include "server/resources/custom/custom_kind.h"

int hfd_shared_table_init(struct hfd_shared_table *table) {
        *table = (struct hfd_shared_table){0};
        return hf__mutex_init(&table->mu);
}

/* Takes the highest 8 bits of a multiplicative hash, for HFD_SHARED_BUCKETS. The lowest 6 bits of
 * the address are left out: an object takes 64 bytes or more, so the other bits of two objects
 * differ. Clients do not choose addresses, so the hash needs no secret. */
static struct hfd_shared_conversion **bucket_of(struct hfd_shared_table *table,
                                                const struct hfd_object *source) {
        return &table->buckets[((uintptr_t)source >> 6) * UINT64_C(0x9E3779B97F4A7C15) >> 56];
}

/* A conversion without references is in no bucket any more, so `next` links the garbage. */
void hfd_shared_unref_locked(struct hfd_shared_conversion *c,
                             struct hfd_shared_conversion **garbage) {
        assert(c->refs > 0);
        if (--c->refs > 0)
                return;
        assert(!c->waiters); /* each has a reference */
        c->next = *garbage;
        *garbage = c;
}

void hfd_shared_free_garbage(struct hfd_shared_conversion *garbage) {
        while (garbage) {
                struct hfd_shared_conversion *next = garbage->next;
                assert(!garbage->waiters);
                hfd_object_unref(garbage->source);
                hfd_object_unref(garbage->result);
                hfd_resource_unref(garbage->row);
                if (garbage->failure)
                        hfd_response_done(garbage->failure);
                free(garbage->failure);
                free(garbage);
                garbage = next;
        }
}

/* Jobs that still use the conversion keep it alive; only new ones do not find it any more. */
void hfd_shared_drop_locked(struct hfd_shared_table *table, struct hfd_shared_conversion *c,
                            struct hfd_shared_conversion **garbage) {
        struct hfd_shared_conversion **link = bucket_of(table, c->source);

        hf__mutex_assert_held(&table->mu);
        while (*link != c) {
                assert(*link); /* the table has it */
                link = &(*link)->next;
        }
        *link = c->next;
        if (c->result) {
                *(c->newer ? &c->newer->older : &table->newest) = c->older;
                *(c->older ? &c->older->newer : &table->oldest) = c->newer;
                assert(table->n > 0 && table->bytes >= c->bytes);
                table->n--;
                table->bytes -= c->bytes;
        }
        hfd_shared_unref_locked(c, garbage);
}

void hfd_shared_keep_locked(struct hfd_shared_table *table, struct hfd_shared_conversion *c,
                            struct hfd_object *result, struct hfd_shared_conversion **garbage) {
        hf__mutex_assert_held(&table->mu);
        assert(!c->result); /* it is not in the list by age */
        c->result = result;
        /* The source counts too: the table may be all that still keeps this old state. */
        c->bytes = hfd_object_memory(result) + hfd_object_memory(c->source);
        c->older = table->newest;
        *(table->newest ? &table->newest->newer : &table->oldest) = c;
        table->newest = c;
        assert(c->done);
        table->n++;
        table->bytes += c->bytes;
        while (table->n > HFD_SHARED_OBJECTS || table->bytes > HFD_SHARED_BYTES)
                hfd_shared_drop_locked(table, table->oldest, garbage);
}

void hfd_shared_table_join(struct hfd_shared_table *table) {
        pthread_mutex_lock(&table->mu);
        table->n_watches++;
        pthread_mutex_unlock(&table->mu);
}

static void drop_all_locked(struct hfd_shared_table *table,
                            struct hfd_shared_conversion **garbage) {
        hf__mutex_assert_held(&table->mu);
        while (table->oldest)
                hfd_shared_drop_locked(table, table->oldest, garbage);
}

/* Without watches nobody is likely to need the same states again before they are outdated. */
void hfd_shared_table_leave(struct hfd_shared_table *table) {
        struct hfd_shared_conversion *garbage = NULL;

        pthread_mutex_lock(&table->mu);
        assert(table->n_watches > 0);
        if (--table->n_watches == 0)
                drop_all_locked(table, &garbage);
        pthread_mutex_unlock(&table->mu);
        hfd_shared_free_garbage(garbage);
}

void hfd_shared_table_done(struct hfd_shared_table *table) {
        struct hfd_shared_conversion *garbage = NULL;

        assert(table->n_watches == 0);
        pthread_mutex_lock(&table->mu);
        drop_all_locked(table, &garbage);
        assert(table->n == 0 && table->bytes == 0 && !table->newest);
        pthread_mutex_unlock(&table->mu);
        hfd_shared_free_garbage(garbage);
        pthread_mutex_destroy(&table->mu);
}

struct hfd_shared_conversion *hfd_shared_find_locked(struct hfd_shared_table *table,
                                                     const struct hfd_object *source,
                                                     const struct hfd_resource *row) {
        struct hfd_shared_conversion *c = *bucket_of(table, source);

        hf__mutex_assert_held(&table->mu);
        while (c && (c->source != source || c->row != row))
                c = c->next;
        return c;
}

struct hfd_shared_conversion *hfd_shared_add_locked(struct hfd_shared_table *table,
                                                    struct hfd_object *source,
                                                    const struct hfd_resource *row) {
        struct hfd_shared_conversion *c = calloc(1, sizeof *c), **bucket;

        hf__mutex_assert_held(&table->mu);
        if (!c)
                return NULL;
        bucket = bucket_of(table, source);
        c->refs = 1;
        c->row = hfd_resource_ref(row);
        c->source = hfd_object_ref(source);
        c->next = *bucket;
        *bucket = c;
        return c;
}

struct hfd_object *hfd_shared_recall(struct hfd_shared_table *table,
                                     const struct hfd_object *source,
                                     const struct hfd_resource *row) {
        assert(source->resource && row);
        pthread_mutex_lock(&table->mu);
        const struct hfd_shared_conversion *c = hfd_shared_find_locked(table, source, row);
        struct hfd_object *result = c ? hfd_object_ref(c->result) : NULL;
        pthread_mutex_unlock(&table->mu);
        return result;
}

/* If memory is short, the result is not kept, and the next request converts the source again. */
void hfd_shared_remember(struct hfd_shared_table *table, struct hfd_object *source,
                         const struct hfd_resource *row, struct hfd_object *result) {
        struct hfd_shared_conversion *garbage = NULL, *c = NULL;

        pthread_mutex_lock(&table->mu);
        if (!hfd_shared_find_locked(table, source, row))
                c = hfd_shared_add_locked(table, source, row);
        if (c) {
                c->done = true;
                hfd_shared_keep_locked(table, c, hfd_object_ref(result), &garbage);
        }
        pthread_mutex_unlock(&table->mu);
        hfd_shared_free_garbage(garbage);
}
