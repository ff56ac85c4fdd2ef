/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256: the examples of FIPS 180-4, and every length near the limits of the padding. */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/sha256.h"

static void test_the_examples_of_the_standard(void **state) {
        static const char *const examples[][2] = {
                {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
                {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
                {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                 "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        };
        char text[65];

        for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
                hf__sha256_text(examples[i][0], strlen(examples[i][0]), 64, text);
                assert_string_equal(text, examples[i][1]);
        }
        hf__sha256_text("abc", 3, 8, text);
        assert_string_equal(text, "ba7816bf");
}

static void test_a_million_bytes_have_the_published_hash(void **state) {
        char text[65], *million = malloc(1000000);

        assert_non_null(million);
        memset(million, 'a', 1000000);
        hf__sha256_text(million, 1000000, 64, text);
        assert_string_equal(text,
                            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
        free(million);
}

static void test_every_length_has_its_own_hash(void **state) {
        static uint8_t digests[200][32];
        static const uint8_t zeros[200];

        for (size_t n = 0; n < 200; n++) {
                hf__sha256(zeros, n, digests[n]);
                for (size_t i = 0; i < n; i++)
                        assert_memory_not_equal(digests[i], digests[n], 32);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_examples_of_the_standard),
                cmocka_unit_test(test_a_million_bytes_have_the_published_hash),
                cmocka_unit_test(test_every_length_has_its_own_hash),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
