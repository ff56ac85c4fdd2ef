/* SPDX-License-Identifier: Apache-2.0 */
/* See core_texts.h. */
#include "core_texts.h"

#include <stdlib.h>
#include <string.h>

struct core_text {
        struct core_text *next;
        char text[];
};

static struct core_text *buckets[256];

static const char *copy_of(struct hf__core_texts_port *self, const char *text) {
        size_t size = strlen(text) + 1, hash = 0;

        for (const char *at = text; *at; at++)
                hash = hash * 31 + (unsigned char)*at;
        struct core_text **bucket = &buckets[hash % 256], *known = *bucket;
        while (known && strcmp(known->text, text) != 0)
                known = known->next;
        if (known)
                return known->text;
        known = malloc(sizeof *known + size);
        if (!known)
                abort();
        memcpy(known->text, text, size);
        known->next = *bucket;
        *bucket = known;
        return known->text;
}

struct hf__core_texts_port *core_texts(void) {
        static struct hf__core_texts_port port = {copy_of};

        return &port;
}
