/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of OpenAPI documents: what it finds, and what it drops. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/handlers/gzip.h"
#include "server/handlers/openapi/document_cache.h"

static const uint8_t old[HFD_DOCUMENT_FINGERPRINT] = {1}, changed[HFD_DOCUMENT_FINGERPRINT] = {2};

static void add(struct hfd_document_cache *cache, const char *name, const uint8_t *fingerprint,
                size_t n) {
        struct hfd_document document = {.packed = hf__buf_new(n), .n = 10 * n, .etag = "\"e\""};

        assert_non_null(document.packed);
        memset(document.packed->data, 'x', n);
        hfd_document_cache_add(cache, name, fingerprint, &document);
        hf__buf_unref(document.packed);
}

static bool has(struct hfd_document_cache *cache, const char *name, const uint8_t *fingerprint) {
        struct hfd_document document;
        bool found = hfd_document_cache_find(cache, name, fingerprint, &document);

        if (found) {
                assert_int_equal(document.n, 10 * document.packed->n);
                assert_string_equal(document.etag, "\"e\"");
                hf__buf_unref(document.packed);
        }
        return found;
}

static void test_a_document_is_found_until_its_source_changes(void **state) {
        struct hfd_document_cache *cache = NULL;

        assert_int_equal(hfd_document_cache_new(100, &cache), 0);
        add(cache, "v2", old, 50);
        assert_true(has(cache, "v2", old));
        assert_false(has(cache, "v3/a/v1", old));
        assert_false(has(cache, "v2", changed));
        add(cache, "v2", changed, 60);
        assert_true(has(cache, "v2", changed));
        assert_false(has(cache, "v2", old));
        hfd_document_cache_free(cache);
}

static void test_what_was_not_used_for_longest_makes_room(void **state) {
        struct hfd_document_cache *cache = NULL;

        assert_int_equal(hfd_document_cache_new(100, &cache), 0);
        add(cache, "a", old, 40);
        add(cache, "b", old, 40);
        assert_true(has(cache, "a", old));
        add(cache, "c", old, 60);
        assert_true(has(cache, "a", old) && has(cache, "c", old));
        assert_false(has(cache, "b", old));
        add(cache, "d", old, 101);
        assert_false(has(cache, "d", old));
        assert_true(has(cache, "a", old) && has(cache, "c", old));
        add(cache, "d", old, 100);
        assert_true(has(cache, "d", old));
        assert_false(has(cache, "a", old) || has(cache, "c", old));
        hfd_document_cache_free(cache);
}

static void test_a_text_is_unpacked_as_it_was(void **state) {
        static const size_t sizes[] = {0, 1, 1000, 300000};

        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
                struct hf__buf *text = hf__buf_new(sizes[i]);
                for (size_t k = 0; k < sizes[i]; k++)
                        text->data[k] = (char)(k * k >> 7);
                struct hf__buf *packed = hfd_gzip_pack(text);
                struct hf__buf *again = hfd_gzip_unpack(packed, text->n);
                assert_int_equal(again->n, text->n);
                assert_memory_equal(again->data, text->data, text->n);
                hf__buf_unref(again);
                hf__buf_unref(packed);
                hf__buf_unref(text);
        }
}

/* Adds a document that can be unpacked, and returns what the cache finds. */
static struct hfd_document add_text(struct hfd_document_cache *cache, const char *name,
                                    const char *text) {
        struct hf__buf *plain = hf__buf_copy(text, strlen(text));
        struct hfd_document document = {.packed = hfd_gzip_pack(plain), .n = plain->n}, found;

        hfd_document_cache_add(cache, name, old, &document);
        assert_true(hfd_document_cache_find(cache, name, old, &found));
        hf__buf_unref(document.packed);
        hf__buf_unref(plain);
        return found;
}

static void test_all_who_use_a_text_share_it(void **state) {
        struct hfd_document_cache *cache = NULL;

        assert_int_equal(hfd_document_cache_new(1000, &cache), 0);
        struct hfd_document a = add_text(cache, "a", "text of a"), b = add_text(cache, "b", "b");
        struct hf__buf *first = hfd_document_cache_unpack(cache, "a", &a);
        assert_string_equal(first->data, "text of a");
        assert_ptr_equal(hfd_document_cache_unpack(cache, "a", &a), first);
        hf__buf_unref(first);
        struct hf__buf *other = hfd_document_cache_unpack(cache, "b", &b);
        assert_string_equal(other->data, "b");
        assert_ptr_equal(hfd_document_cache_unpack(cache, "a", &a), first); /* still in use */
        hf__buf_unref(first);
        add(cache, "a", changed, 10);
        assert_false(hf__buf_is_shared(first)); /* the document has changed: only ours is left */
        struct hf__buf *of_old = hfd_document_cache_unpack(cache, "a", &a);
        assert_ptr_not_equal(of_old, first);
        assert_string_equal(of_old->data, "text of a");
        hfd_document_cache_free(cache);
        struct hf__buf *bufs[] = {first, other, of_old, a.packed, b.packed};
        for (size_t i = 0; i < sizeof bufs / sizeof bufs[0]; i++) {
                assert_false(hf__buf_is_shared(bufs[i]));
                hf__buf_unref(bufs[i]);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_document_is_found_until_its_source_changes),
                cmocka_unit_test(test_what_was_not_used_for_longest_makes_room),
                cmocka_unit_test(test_a_text_is_unpacked_as_it_was),
                cmocka_unit_test(test_all_who_use_a_text_share_it),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
