/* SPDX-License-Identifier: Apache-2.0 */
/* Objects whose bytes are packed (server/resources/packed.h) look as if they were not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/forms/conversion.h"
#include "server/resources/objects/object.h"
#include "server/resources/packed.h"
#include "server/resources/rows/resource_table.h"

static const struct hfd_resource *definitions(void) {
        return hfd_resource_find("apiextensions.k8s.io", "v1", "customresourcedefinitions");
}

/* A definition of about n bytes in its stored form. */
static struct hf__buf *stored_of(size_t n) {
        struct hf__strbuf s = {0};
        struct hf__json *json = NULL;

        hf__strbuf_puts(&s, "{\"metadata\":{\"name\":\"a.b.c\",\"labels\":{\"x\":\"y\"}},"
                            "\"spec\":{\"description\":\"");
        for (unsigned i = 0; s.n < n; i++)
                hf__strbuf_printf(&s, "What the field %u is for. ", i);
        hf__strbuf_puts(&s, "\"}}");
        assert_int_equal(hf__json_parse(s.data, s.n, &json, NULL), 0);
        struct hf__buf *stored = hfd_object_encode(definitions(), json);
        assert_non_null(stored);
        hf__json_free(json);
        hf__strbuf_done(&s);
        return stored;
}

static void test_bytes_come_back_as_they_were(void **state) {
        const size_t sizes[] = {HFD_PACK_MIN, 100000, 1500000};

        (void)state;
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
                struct hf__buf *bytes = stored_of(sizes[i]), *packed = hfd_pack(bytes);
                assert_non_null(packed);
                assert_true(hfd_is_packed(packed) && !hfd_is_packed(bytes));
                assert_true(packed->n < bytes->n / 2);
                assert_int_equal(hfd_unpacked_size(packed), bytes->n);
                struct hf__buf *back = hfd_unpack(packed);
                assert_int_equal(back->n, bytes->n);
                assert_memory_equal(back->data, bytes->data, bytes->n + 1);
                hf__buf_unref(back);
                hf__buf_unref(packed);
                hf__buf_unref(bytes);
        }
}

static void test_what_would_not_get_smaller_is_not_packed(void **state) {
        struct hf__buf *noise = hf__buf_new(8192), *small = stored_of(100);
        uint32_t x = 1;

        (void)state;
        for (size_t i = 0; i < noise->n; i++) {
                x = x * 1664525 + 1013904223;
                noise->data[i] = (char)(x >> 24);
        }
        noise->data[0] = '{';
        assert_null(hfd_pack(noise));
        assert_null(hfd_pack(small));
        struct hf__buf *same = hfd_unpack(small);
        assert_ptr_equal(same, small);
        hf__buf_unref(same);
        hf__buf_unref(small);
        hf__buf_unref(noise);
}

static void test_a_packed_object_looks_as_any_other(void **state) {
        struct hf__buf *stored = stored_of(20000), *other_stored = stored_of(20100);
        struct hfd_object *object = hfd_object_new(definitions(), "a.b.c", 7, stored),
                          *plain = hfd_conversion_object(definitions(), object),
                          *later = hfd_object_at(object, 8);

        (void)state;
        assert_true(hfd_is_packed(object->bytes));
        assert_false(hfd_is_packed(plain->bytes) || hfd_is_packed(later->bytes));
        assert_int_equal(hfd_object_size(object), plain->bytes->n);
        assert_int_equal(plain->revision, 7);
        assert_non_null(strstr(plain->bytes->data, "\"resourceVersion\":\"7\""));
        assert_non_null(strstr(later->bytes->data, "\"resourceVersion\":\"8\""));
        assert_true(hfd_object_has_bytes(object, stored));
        assert_false(hfd_object_has_bytes(object, other_stored));
        assert_false(hfd_object_deleting(object));
        assert_true(hfd_object_memory(object) < 10000);
        assert_int_equal(hfd_object_check(definitions(), plain->bytes), 0);
        assert_string_equal(hf__json_string(hfd_object_selectable(object), "labels.x"), "y");
        struct hf__json *json = hfd_object_parse(object);
        assert_string_equal(hf__json_string(json, "metadata.resourceVersion"), "7");
        struct hf__buf *frame = hfd_object_frame(object, HF_EVENT_ADDED);
        static const char head[] = "{\"type\":\"ADDED\",\"object\":";
        assert_memory_equal(frame->data, head, sizeof head - 1);
        assert_memory_equal(frame->data + sizeof head - 1, plain->bytes->data, plain->bytes->n);
        hf__buf_unref(frame);
        hf__json_free(json);
        hfd_object_unref(object);
        hfd_object_unref(plain);
        hfd_object_unref(later);
        hf__buf_unref(stored);
        hf__buf_unref(other_stored);
}

/* A client of the store can write any bytes: a size of 16, and one that no memory has. */
static void test_a_stored_value_is_never_taken_for_packed_bytes(void **state) {
        static const char *const values[] =
                {"\1\20\0\0\0\0\0\0\0garbage that is no zlib stream",
                 "\1\377\377\377\377\377\377\377\177garbage that is none"};

        (void)state;
        for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
                struct hf__buf *stored = hf__buf_copy(values[i], 30);
                assert_non_null(stored);
                assert_null(hfd_object_new(definitions(), "a.b.c", 7, stored));
                assert_int_equal(hfd_object_check(definitions(), stored), HF_E_INVALID);
                hf__buf_unref(stored);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_bytes_come_back_as_they_were),
                cmocka_unit_test(test_what_would_not_get_smaller_is_not_packed),
                cmocka_unit_test(test_a_packed_object_looks_as_any_other),
                cmocka_unit_test(test_a_stored_value_is_never_taken_for_packed_bytes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
