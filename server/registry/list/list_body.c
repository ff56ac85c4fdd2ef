/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The body of a list in JSON: `{...,"items":[`, the items with commas between them, `]}`.
 *
 *      HEAD -> FIRST (no item was sent) -> ITEMS -> TAIL -> ENDED
 *
 * If there are no items, TAIL follows FIRST. Items in chunks begin with a comma. The comma of the
 * first one is dropped, which costs a copy of one chunk.
 *
 * The body in protobuf: an envelope, in which the length of the whole list precedes it.
 *
 *      MEASURE -> HEAD -> ITEMS -> TAIL -> ENDED
 *
 * So the items are made twice: MEASURE counts their bytes. It keeps the first chunks, up to
 * KEPT_CHUNKS and KEPT_BYTES, so smaller lists are made once. A larger one costs twice the work,
 * but no more memory, which is the scarce resource here: a list can have any size. Both passes use
 * the chunks that other readers of the same rendering have made.
 *
 * Invariant: both passes see the same bytes, because a rendering never changes.
 */
#include "server/registry/list/list_body.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "server/resources/custom/custom_kind.h"
#include "server/resources/objects/protobuf_response.h"

#define KEPT_CHUNKS 32
#define KEPT_BYTES  ((size_t)512 << 10)

enum state { MEASURE, HEAD, FIRST, ITEMS, TAIL, ENDED };

struct hfd_list_body {
        enum state state;
        struct hf__buf *head;            /* owned; NULL = sent, or not yet made */
        struct hfd_rendering *rendering; /* owned reference */
        struct hfd_rendering_cursor cursor;

        /* of protobuf */
        bool protobuf, partial;
        const struct hfd_resource *resource;
        struct hf__json *meta;                  /* owned */
        struct hfd_rendering_cursor measured;   /* where MEASURE is */
        size_t n_items, n_sent;                 /* bytes of the items */
        struct hf__buf *kept[KEPT_CHUNKS];      /* owned; those between the start and cursor */
        size_t n_kept, next_kept, n_kept_bytes; /* next_kept: the first that was not sent */
        bool keeps;                             /* MEASURE has kept all chunks so far */
};

static int make_head(struct hfd_list_body *body, const struct hfd_request *request,
                     const char *meta) {
        struct hf__strbuf s = {0};

        hfd_rendering_put_head(&s, request, meta);
        body->head = hf__strbuf_to_buf(&s);
        hf__strbuf_done(&s);
        return body->head ? 0 : -ENOMEM;
}

/* Prepares for MEASURE, after which the head can be made. */
static int prepare_protobuf(struct hfd_list_body *body, const struct hfd_request *request,
                            const char *meta) {
        struct hf__strbuf s = {0};

        body->protobuf = true;
        body->partial = request->format == HFD_AS_PARTIAL;
        body->resource = hfd_resource_ref(request->resource);
        body->keeps = true;
        hf__strbuf_printf(&s, "{%s}", meta);
        int r = s.error == 0 ? hf__json_parse(s.data, s.n, &body->meta, NULL) : s.error;
        hf__strbuf_done(&s);
        assert(r == 0 || r == -ENOMEM);
        return r;
}

HF__CLEANUP_DEFINE(body_cleanup, struct hfd_list_body *, hfd_list_body_free)

int hfd_list_body_new(const struct hfd_request *request, const char *meta,
                      struct hfd_rendering *rendering, struct hfd_list_body **ret_body) {
        HF__CLEANUP(body_cleanup) struct hfd_list_body *body = calloc(1, sizeof *body);
        int r;

        if (!body) {
                hfd_rendering_unref(rendering);
                return -ENOMEM;
        }
        body->rendering = rendering;
        body->state = request->protobuf ? MEASURE : HEAD;
        if (request->protobuf)
                r = prepare_protobuf(body, request, meta);
        else
                r = make_head(body, request, meta);
        if (r != 0)
                return r;
        *ret_body = HF__TAKE(body);
        return 0;
}

struct hfd_list_body *hfd_list_body_free(struct hfd_list_body *body) {
        if (!body)
                return NULL;
        hf__buf_unref(body->head);
        hfd_rendering_unref(body->rendering);
        hf__json_free(body->meta);
        hfd_resource_unref(body->resource);
        while (body->next_kept < body->n_kept)
                hf__buf_unref(body->kept[body->next_kept++]);
        free(body);
        return NULL;
}

/* ---- protobuf ---- */

static int make_protobuf_head(struct hfd_list_body *body) {
        struct hf__strbuf s = {0};

        hfd_protobuf_put_list_head(&s, body->resource, body->partial, body->meta, body->n_items);
        body->head = hf__strbuf_to_buf(&s);
        hf__strbuf_done(&s);
        return body->head ? 0 : -ENOMEM;
}

/* Counts one chunk. Keeps it if there was room for all chunks so far. Consumes chunk. */
static void count_chunk(struct hfd_list_body *body, struct hf__buf *chunk) {
        size_t n = chunk ? chunk->n : 0;

        body->n_items += n;
        if (body->keeps && chunk)
                body->keeps = body->n_kept < KEPT_CHUNKS && body->n_kept_bytes + n <= KEPT_BYTES;
        if (!body->keeps) {
                hf__buf_unref(chunk);
                return;
        }
        if (chunk)
                body->kept[body->n_kept++] = chunk;
        body->n_kept_bytes += n;
        body->cursor = body->measured;
}

static int measure_body(struct hfd_list_body *body) {
        struct hf__buf *chunk;
        int r = hfd_rendering_next(body->rendering, &body->measured, &chunk);

        if (r != 0)
                return r;
        count_chunk(body, chunk);
        if (!body->measured.ended)
                return 0;
        body->state = HEAD;
        return make_protobuf_head(body);
}

/* ---- pieces ---- */

/* Sets *chunk to its copy without the comma at the start. */
static int drop_comma(struct hf__buf **chunk) {
        assert((*chunk)->data[0] == ',');
        struct hf__buf *copy = hf__buf_copy((*chunk)->data + 1, (*chunk)->n - 1);

        hf__buf_unref(*chunk);
        *chunk = copy;
        return copy ? 0 : -ENOMEM;
}

static int next_items(struct hfd_list_body *body, struct hf__buf **ret_piece) {
        struct hf__buf *chunk = NULL;
        int r = 0;

        if (body->next_kept < body->n_kept)
                chunk = body->kept[body->next_kept++];
        else
                r = hfd_rendering_next(body->rendering, &body->cursor, &chunk);
        if (r == 0 && chunk && body->state == FIRST) {
                r = drop_comma(&chunk);
                body->state = ITEMS;
        }
        if (r != 0)
                return r;
        body->n_sent += chunk ? chunk->n : 0;
        if (body->cursor.ended && body->next_kept == body->n_kept) {
                assert(!body->protobuf || body->n_sent == body->n_items);
                body->rendering = hfd_rendering_unref(body->rendering);
                body->state = TAIL;
        }
        *ret_piece = chunk;
        return 0;
}

static struct hf__buf *make_tail(const struct hfd_list_body *body) {
        struct hf__strbuf s = {0};

        if (body->protobuf)
                hfd_protobuf_put_list_end(&s);
        else
                hf__strbuf_puts(&s, "]}");
        struct hf__buf *tail = hf__strbuf_to_buf(&s);
        hf__strbuf_done(&s);
        return tail;
}

int hfd_list_body_next(struct hfd_list_body *body, struct hf__buf **ret_piece, bool *ret_ended) {
        *ret_piece = NULL;
        *ret_ended = body->state == ENDED;
        switch (body->state) {
        case MEASURE: return measure_body(body);
        case HEAD:
                *ret_piece = body->head;
                body->head = NULL;
                body->state = body->protobuf ? ITEMS : FIRST;
                return 0;
        case FIRST:
        case ITEMS: return next_items(body, ret_piece);
        case TAIL:
                *ret_piece = make_tail(body);
                body->state = ENDED;
                return *ret_piece ? 0 : -ENOMEM;
        case ENDED: return 0;
        }
        return 0;
}
