/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The body of a list: `{...,"items":[`, the items with commas between them, `]}`.
 *
 *      HEAD -> FIRST (no item was sent) -> ITEMS -> TAIL -> ENDED
 *
 * Items in chunks begin with a comma. The comma of the first one is dropped, which costs a copy of
 * one chunk.
 */
#include "server/registry/list/list_body.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum state { HEAD, FIRST, ITEMS, TAIL, ENDED };

struct hfd_list_body {
        enum state state;
        struct hf__buf *head;            /* owned */
        struct hfd_rendering *rendering; /* owned reference */
        struct hfd_rendering_cursor cursor;
};

int hfd_list_body_new(const struct hfd_request *request, const char *meta,
                      struct hfd_rendering *rendering, struct hfd_list_body **ret_body) {
        struct hfd_list_body *body = calloc(1, sizeof *body);
        struct hf__strbuf s = {0};

        if (!body) {
                hfd_rendering_unref(rendering);
                return -ENOMEM;
        }
        body->rendering = rendering;
        hfd_rendering_put_head(&s, request, meta);
        body->head = hf__strbuf_to_buf(&s);
        hf__strbuf_done(&s);
        if (!body->head) {
                hfd_list_body_free(body);
                return -ENOMEM;
        }
        *ret_body = body;
        return 0;
}

struct hfd_list_body *hfd_list_body_free(struct hfd_list_body *body) {
        if (!body)
                return NULL;
        hf__buf_unref(body->head);
        hfd_rendering_unref(body->rendering);
        free(body);
        return NULL;
}

static int next_items(struct hfd_list_body *body, struct hf__buf **ret_piece) {
        struct hf__buf *chunk;
        int r = hfd_rendering_next(body->rendering, &body->cursor, &chunk);

        if (r != 0)
                return r;
        bool is_first = chunk && body->state == FIRST;
        if (is_first) {
                assert(chunk->data[0] == ',');
                struct hf__buf *copy = hf__buf_copy(chunk->data + 1, chunk->n - 1);
                hf__buf_unref(chunk);
                if (!copy)
                        return -ENOMEM;
                chunk = copy;
        }
        if (body->cursor.ended) {
                body->rendering = hfd_rendering_unref(body->rendering);
                body->state = TAIL;
        } else if (is_first) {
                body->state = ITEMS;
        }
        *ret_piece = chunk;
        return 0;
}

int hfd_list_body_next(struct hfd_list_body *body, struct hf__buf **ret_piece, bool *ret_ended) {
        *ret_piece = NULL;
        *ret_ended = body->state == ENDED;
        switch (body->state) {
        case HEAD:
                *ret_piece = body->head;
                body->head = NULL;
                body->state = FIRST;
                return 0;
        case FIRST:
        case ITEMS: return next_items(body, ret_piece);
        case TAIL:
                *ret_piece = hf__buf_copy("]}", 2);
                body->state = ENDED;
                return *ret_piece ? 0 : -ENOMEM;
        case ENDED: return 0;
        }
        return 0;
}
