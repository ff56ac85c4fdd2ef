/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a request as it arrives (server/http/request/request_body.h). */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include <holdfast/error.h>

#include "server/http/request/request_body.h"

#define MAX ((size_t)3 << 20)

static bool realloc_fails, mmap_fails, mremap_fails;

void *__real_realloc(void *memory, size_t n);
void *__wrap_realloc(void *memory, size_t n);
void *__wrap_realloc(void *memory, size_t n) {
        return realloc_fails ? NULL : __real_realloc(memory, n);
}

/* mmap with a 64-bit off_t, which the build asks for. */
void *__real_mmap64(void *at, size_t n, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t n, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t n, int protection, int flags, int fd, off_t offset) {
        return mmap_fails ? MAP_FAILED : __real_mmap64(at, n, protection, flags, fd, offset);
}

void *__real_mremap(void *at, size_t before, size_t after, int flags, ...);
void *__wrap_mremap(void *at, size_t before, size_t after, int flags, ...);
void *__wrap_mremap(void *at, size_t before, size_t after, int flags, ...) {
        return mremap_fails ? MAP_FAILED : __real_mremap(at, before, after, flags);
}

static char byte_at(size_t i) { return (char)('a' + i % 23); }

/* Adds the bytes from body->n on. */
static int add(struct hfd_request_body *body, size_t n) {
        char *data = malloc(n + 1);

        assert_non_null(data);
        for (size_t i = 0; i < n; i++)
                data[i] = byte_at(body->n + i);
        int r = hfd_request_body_add(body, data, n, MAX);
        free(data);
        return r;
}

static void expect_whole(const struct hfd_request_body *body, size_t n) {
        assert_true(body->n == n && n < body->space && strlen(body->data) == n);
        for (size_t i = 0; i < n; i++)
                assert_int_equal(body->data[i], byte_at(i));
}

static void test_pieces_of_any_size_make_one_text(void **state) {
        static const size_t pieces[] = {1, 100, 511, 512, 4095, 16384, 65535, 200000, 1048576, MAX};

        for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
                struct hfd_request_body body = {0};
                size_t most = pieces[i] < 512 ? 100000 : MAX; /* single bytes take long */

                while (body.n < most) {
                        size_t n = most - body.n < pieces[i] ? most - body.n : pieces[i];
                        assert_int_equal(add(&body, n), 0);
                }
                expect_whole(&body, most);
                hfd_request_body_done(&body);
                assert_true(body.data == NULL && body.n == 0 && body.space == 0);
        }
}

static void test_a_body_beyond_the_limit_stays_as_it_was(void **state) {
        struct hfd_request_body body = {0};

        assert_int_equal(add(&body, 1000), 0);
        assert_int_equal(hfd_request_body_add(&body, "x", 1, 1000), HF_E_TOO_LARGE);
        assert_int_equal(hfd_request_body_add(&body, "x", SIZE_MAX, MAX), HF_E_TOO_LARGE);
        expect_whole(&body, 1000);
        hfd_request_body_done(&body);
}

/* A large body grows without a copy: not even its first page is touched again. */
static void test_a_large_body_is_moved_by_the_kernel(void **state) {
        struct hfd_request_body body = {0};

        assert_int_equal(add(&body, HFD_REQUEST_BODY_MAPPED), 0);
        assert_int_equal((uintptr_t)body.data % 4096, 0);
        realloc_fails = true;
        assert_int_equal(add(&body, MAX - HFD_REQUEST_BODY_MAPPED), 0);
        realloc_fails = false;
        expect_whole(&body, MAX);
        hfd_request_body_done(&body);
}

static void expect_no_memory(size_t before, size_t more, bool *fails) {
        struct hfd_request_body body = {0};

        if (before > 0)
                assert_int_equal(add(&body, before), 0);
        *fails = true;
        assert_int_equal(add(&body, more), -ENOMEM);
        *fails = false;
        if (before > 0)
                expect_whole(&body, before);
        assert_int_equal(add(&body, more), 0);
        expect_whole(&body, before + more);
        hfd_request_body_done(&body);
}

static void test_without_memory_a_body_stays_as_it_was(void **state) {
        expect_no_memory(0, 1, &realloc_fails);
        expect_no_memory(500, 500, &realloc_fails);
        expect_no_memory(0, HFD_REQUEST_BODY_MAPPED, &mmap_fails);
        expect_no_memory(1000, HFD_REQUEST_BODY_MAPPED, &mmap_fails);
        expect_no_memory(HFD_REQUEST_BODY_MAPPED, HFD_REQUEST_BODY_MAPPED, &mremap_fails);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_pieces_of_any_size_make_one_text),
                cmocka_unit_test(test_a_body_beyond_the_limit_stays_as_it_was),
                cmocka_unit_test(test_a_large_body_is_moved_by_the_kernel),
                cmocka_unit_test(test_without_memory_a_body_stays_as_it_was),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
