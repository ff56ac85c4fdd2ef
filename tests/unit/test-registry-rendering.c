/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists in pieces: readers of the same state share them, a change ends the sharing, and the pieces
 * together are the list. Work is counted in chunks, never in time.
 */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api_fixture.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "counted_renderings.h"
#include "server/cacher/watch/snapshot.h"
#include "server/registry/list/list_body.h"
#include "server/registry/list/rendering.h"
#include "server/resources/objects/protobuf_response.h"
#include "server/resources/rows/resource_table.h"

static void make_workspaces(struct api_fixture *f, int first, int n, size_t n_data) {
        char *data = malloc(n_data + 1), *body = malloc(n_data + 200);

        assert_true(data && body);
        memset(data, 'x', n_data);
        data[n_data] = '\0';
        for (int i = first; i < first + n; i++) {
                sprintf(body, "{\"metadata\":{\"name\":\"w%05d\"},\"spec\":{\"data\":\"%s\"}}", i,
                        data);
                assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_workspaces, NULL, NULL,
                                                     NULL, body),
                                 0);
        }
        free(data);
        free(body);
        /* The cache contains the last one. */
        (void)api_fixture_n_selected(f, "limit=1");
}

static const struct hfd_resource *workspaces(void) {
        return hfd_resource_find(api_workspaces.group, api_workspaces.version,
                                 api_workspaces.plural);
}

static struct hfd_rendering *get(struct api_fixture *f, const struct hfd_rendering_spec *spec) {
        struct hfd_snapshot snapshot;
        struct hfd_rendering *rendering;

        assert_true(hfd_snapshot_take(f->cacher, workspaces(), 0, &snapshot));
        assert_int_equal(hfd_rendering_get(f->registry->renderings, spec, &snapshot, &rendering),
                         0);
        return rendering;
}

/* Reads to the end. Returns the bytes. */
static size_t read_all(struct hfd_rendering *rendering, struct hf__strbuf *out) {
        struct hfd_rendering_cursor cursor = {0};
        struct hf__buf *chunk;

        while (!cursor.ended) {
                assert_int_equal(hfd_rendering_next(rendering, &cursor, &chunk), 0);
                if (chunk) {
                        assert_true(chunk->n < HFD_CHUNK_BYTES + 10000);
                        hf__strbuf_add(out, chunk->data, chunk->n);
                }
                hf__buf_unref(chunk);
        }
        assert_int_equal(out->error, 0);
        return out->n;
}

static size_t n_renderings(struct api_fixture *f) {
        return counted_renderings_n(f->registry->renderings);
}

static void test_readers_of_the_same_state_share(void **state) {
        struct api_fixture *f = *state;
        const struct hfd_request request = {.resource = workspaces(), .verb = HFD_LIST};
        const struct hfd_rendering_spec spec = {.request = &request};
        struct hf__strbuf first = {0}, second = {0};

        make_workspaces(f, 0, 300, 1000);
        struct hfd_rendering *a = get(f, &spec), *b = get(f, &spec);
        assert_ptr_equal(a, b);
        assert_int_equal(n_renderings(f), 1);
        assert_true(read_all(a, &first) > 300000);
        uint64_t made = counted_renderings_chunks();
        assert_true(made >= 9);
        assert_int_equal(read_all(b, &second), first.n);
        assert_int_equal(counted_renderings_chunks(), made); /* the second reader has made none */
        assert_string_equal(first.data, second.data);

        /* Another format or another state has another rendering. */
        const struct hfd_rendering_spec frames = {.request = &request, .frames = true};
        struct hfd_rendering *c = get(f, &frames);
        assert_ptr_not_equal(a, c);
        make_workspaces(f, 300, 1, 10);
        struct hfd_rendering *d = get(f, &spec);
        assert_ptr_not_equal(a, d);
        hf__strbuf_reset(&second);
        assert_int_equal(read_all(a, &second), first.n); /* the old state does not change */
        hfd_rendering_unref(a);
        hfd_rendering_unref(b);
        hfd_rendering_unref(c);
        hfd_rendering_unref(d);
        assert_int_equal(n_renderings(f), 0);
        hf__strbuf_done(&first);
        hf__strbuf_done(&second);
}

/* A change of another resource moves the revision, but not what a list of this one contains. */
static void test_a_change_of_another_resource_does_not_end_the_sharing(void **state) {
        struct api_fixture *f = *state;
        const struct hfd_request request = {.resource = workspaces(), .verb = HFD_LIST};
        const struct hfd_rendering_spec spec = {.request = &request};

        make_workspaces(f, 0, 40, 10);
        struct hfd_rendering *a = get(f, &spec);
        const struct hf_resource namespaces = {"", "v1", "namespaces"};
        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, namespaces, NULL, NULL, NULL,
                                             "{\"metadata\":{\"name\":\"other\"}}"),
                         0);
        assert_int_equal(api_fixture_request(f, HF_VERB_GET, namespaces, NULL, "other", NULL, NULL),
                         0);
        struct hfd_rendering *b = get(f, &spec);
        assert_ptr_equal(a, b);
        hfd_rendering_unref(a);
        hfd_rendering_unref(b);
}

static void test_selectors_are_part_of_what_is_shared(void **state) {
        static const char *const texts[] = {"parity=odd", "parity in (odd)", "parity=even", "",
                                            "parity,a.b/n>3"};
        struct api_fixture *f = *state;
        const struct hfd_request request = {.resource = workspaces(), .verb = HFD_LIST};
        struct hfd_rendering *renderings[5];
        char reason[256];

        api_fixture_make_workspaces(f, 90);
        (void)api_fixture_n_selected(f, "limit=1");
        for (size_t i = 0; i < 5; i++) {
                struct hfd_selector labels;
                struct hf__strbuf one = {0}, two = {0};
                assert_int_equal(hfd_selector_parse(texts[i], false, workspaces(), &labels, reason,
                                                    sizeof reason),
                                 0);
                const struct hfd_rendering_spec spec = {.request = &request, .labels = &labels};
                renderings[i] = get(f, &spec);
                struct hfd_rendering *again = get(f, &spec);
                assert_ptr_equal(renderings[i], again);
                hfd_selector_done(&labels); /* the rendering has its own copy */
                for (size_t j = 0; j < i; j++)
                        assert_ptr_not_equal(renderings[i], renderings[j]);
                assert_int_equal(read_all(renderings[i], &one), read_all(again, &two));
                hfd_rendering_unref(again);
                hf__strbuf_done(&one);
                hf__strbuf_done(&two);
        }
        for (size_t i = 0; i < 5; i++)
                hfd_rendering_unref(renderings[i]);
}

/* The pieces of a body, together, are one JSON document with all items, for any number of them. */
static void test_the_pieces_of_a_body_are_one_document(void **state) {
        struct api_fixture *f = *state;
        int n = 0;

        for (int more = 0; more <= 64; more = more ? 8 * more : 1) {
                const struct hfd_request request = {.resource = workspaces(), .verb = HFD_LIST};
                const struct hfd_rendering_spec spec = {.request = &request};
                struct hf__strbuf s = {0};
                struct hf__json *json = NULL;
                struct hfd_list_body *body;
                bool ended = false;

                if (more > 0)
                        make_workspaces(f, n, more, 3000);
                n += more;
                assert_int_equal(hfd_list_body_new(&request, "\"resourceVersion\":\"5\"",
                                                   get(f, &spec), &body),
                                 0);
                while (!ended) {
                        struct hf__buf *piece;
                        assert_int_equal(hfd_list_body_next(body, &piece, &ended), 0);
                        if (piece)
                                hf__strbuf_add(&s, piece->data, piece->n);
                        hf__buf_unref(piece);
                }
                hfd_list_body_free(body);
                assert_int_equal(hf__json_parse(s.data, s.n, &json, NULL), 0);
                assert_string_equal(hf__json_string(json, "kind"), "WorkspaceList");
                assert_string_equal(hf__json_string(json, "metadata.resourceVersion"), "5");
                assert_int_equal(hf__json_count(hf__json_get(json, "items")), n);
                hf__json_free(json);
                hf__strbuf_done(&s);
        }
}

/* Namespaces whose metadata is large: they can be sent whole and as metadata. */
static void make_namespaces(struct api_fixture *f, int first, int n) {
        char note[3000], body[sizeof note + 200];

        memset(note, 'x', sizeof note);
        note[sizeof note - 1] = '\0';
        for (int i = first; i < first + n; i++) {
                sprintf(body, "{\"metadata\":{\"name\":\"n%05d\",\"annotations\":{\"k\":\"%s\"}}}",
                        i, note);
                assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_namespaces, NULL, NULL,
                                                     NULL, body),
                                 0);
        }
        /* The cache contains the last one. */
        assert_int_equal(api_fixture_request(f, HF_VERB_LIST, api_namespaces, NULL, NULL, NULL,
                                             NULL),
                         0);
}

/* All pieces of a list of the Namespaces. ret_chunks: how many chunks were made for it. */
static struct hf__buf *read_body(struct api_fixture *f, enum hfd_format format, bool protobuf,
                                 uint64_t *ret_chunks) {
        const struct hfd_request request = {.resource = hfd_resource_namespaces(),
                                            .verb = HFD_LIST,
                                            .format = format,
                                            .protobuf = protobuf};
        const struct hfd_rendering_spec spec = {.request = &request};
        struct hfd_snapshot snapshot;
        struct hfd_rendering *rendering;
        struct hf__strbuf s = {0};
        struct hfd_list_body *body;
        bool ended = false;
        uint64_t before = counted_renderings_chunks();

        assert_true(hfd_snapshot_take(f->cacher, request.resource, 0, &snapshot));
        assert_int_equal(hfd_rendering_get(f->registry->renderings, &spec, &snapshot, &rendering),
                         0);
        assert_int_equal(hfd_list_body_new(&request, "\"resourceVersion\":\"5\"", rendering, &body),
                         0);
        while (!ended) {
                struct hf__buf *piece;
                assert_int_equal(hfd_list_body_next(body, &piece, &ended), 0);
                if (piece)
                        hf__strbuf_add(&s, piece->data, piece->n);
                hf__buf_unref(piece);
        }
        hfd_list_body_free(body);
        *ret_chunks = counted_renderings_chunks() - before;
        struct hf__buf *buf = hf__strbuf_to_buf(&s);
        hf__strbuf_done(&s);
        return buf;
}

/* The pieces in protobuf are the list in JSON, converted at once. A list that fits into the memory
 * that a body keeps is made once, a larger one twice. */
static void test_the_pieces_in_protobuf_are_the_same_list(void **state) {
        static const enum hfd_format formats[] = {HFD_AS_JSON, HFD_AS_PARTIAL};
        struct api_fixture *f = *state;
        int n = 0;

        for (int more = 0; more <= 700; more = more ? 50 * more : 14) {
                make_namespaces(f, n, more);
                n += more;
                for (size_t i = 0; i < 2; i++) {
                        struct hf__buf *converted = NULL;
                        uint64_t plain_chunks, chunks;
                        struct hf__buf *json = read_body(f, formats[i], false, &plain_chunks),
                                       *made = read_body(f, formats[i], true, &chunks);
                        assert_int_equal(hfd_protobuf_convert(hfd_resource_namespaces(), json,
                                                              &converted),
                                         0);
                        assert_int_equal(made->n, converted->n);
                        assert_memory_equal(made->data, converted->data, made->n);
                        assert_true(chunks <= (n < 100 ? 1 : 2) * plain_chunks);
                        hf__buf_unref(json);
                        hf__buf_unref(made);
                        hf__buf_unref(converted);
                }
        }
}

/* A body that is dropped between two pieces leaves nothing behind. */
static void test_a_body_can_be_dropped_after_any_piece(void **state) {
        struct api_fixture *f = *state;
        const struct hfd_request request = {.resource = hfd_resource_namespaces(),
                                            .verb = HFD_LIST,
                                            .protobuf = true};
        const struct hfd_rendering_spec spec = {.request = &request};

        make_namespaces(f, 0, 40);
        for (int steps = 0; steps < 12; steps++) {
                struct hfd_snapshot snapshot;
                struct hfd_rendering *rendering;
                struct hfd_list_body *body;
                struct hf__buf *piece;
                bool ended;

                assert_true(hfd_snapshot_take(f->cacher, request.resource, 0, &snapshot));
                assert_int_equal(hfd_rendering_get(f->registry->renderings, &spec, &snapshot,
                                                   &rendering),
                                 0);
                assert_int_equal(hfd_list_body_new(&request, "", rendering, &body), 0);
                for (int i = 0; i < steps; i++) {
                        assert_int_equal(hfd_list_body_next(body, &piece, &ended), 0);
                        hf__buf_unref(piece);
                }
                hfd_list_body_free(body);
                assert_int_equal(n_renderings(f), 0);
        }
}

/* Twice the objects are twice the chunks, however many readers there are. */
static void test_work_grows_with_the_objects(void **state) {
        struct api_fixture *f = *state;
        const struct hfd_request request = {.resource = workspaces(), .verb = HFD_LIST};
        const struct hfd_rendering_spec spec = {.request = &request};
        uint64_t before = 0;

        for (int n = 256; n <= 1024; n *= 2) {
                struct hfd_rendering *readers[10];
                make_workspaces(f, n == 256 ? 0 : n / 2, n == 256 ? n : n / 2, 500);
                uint64_t begin = counted_renderings_chunks();
                for (size_t i = 0; i < 10; i++) {
                        struct hf__strbuf s = {0};
                        readers[i] = get(f, &spec);
                        (void)read_all(readers[i], &s);
                        hf__strbuf_done(&s);
                }
                for (size_t i = 0; i < 10; i++)
                        hfd_rendering_unref(readers[i]);
                uint64_t made = counted_renderings_chunks() - begin;
                assert_true(before == 0 || made * 2 <= before * 5);
                before = made;
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                API_TEST(test_readers_of_the_same_state_share),
                API_TEST(test_a_change_of_another_resource_does_not_end_the_sharing),
                API_TEST(test_selectors_are_part_of_what_is_shared),
                API_TEST(test_the_pieces_of_a_body_are_one_document),
                API_TEST(test_the_pieces_in_protobuf_are_the_same_list),
                API_TEST(test_a_body_can_be_dropped_after_any_piece),
                API_TEST(test_work_grows_with_the_objects),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
