/* SPDX-License-Identifier: Apache-2.0 */
/* The client's readers of texts: files, parts of JSON, and YAML. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <holdfast/error.h>

#include "base/strbuf.h"
#include "client/file_text.h"
#include "client/json_span.h"
#include "client/yaml.h"

/* ---- files ---- */

static char path[] = "/tmp/holdfast-texts-XXXXXX";

static void write_file(const char *text, size_t n) {
        FILE *file = fopen(path, "w");

        assert_non_null(file);
        assert_int_equal(fwrite(text, 1, n, file), n);
        assert_int_equal(fclose(file), 0);
}

static void test_files_of_every_size_are_read_whole(void **state) {
        static const size_t sizes[] = {0,    1,     8190,  8191,  8192,
                                       8193, 16383, 16384, 70000, HF__FILE_TEXT_MAX};
        static char text[HF__FILE_TEXT_MAX + 1];
        char *back = NULL;
        size_t n = 0;

        assert_true(close(mkstemp(path)) == 0);
        for (size_t i = 0; i < sizeof text; i++)
                text[i] = (char)('a' + i % 23);
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
                write_file(text, sizes[i]);
                errno = EINTR; /* of another call */
                assert_int_equal(hf__file_text(path, &back, &n), 0);
                assert_int_equal(n, sizes[i]);
                assert_int_equal(strlen(back), n);
                assert_memory_equal(back, text, n);
                hf__wipe_free(back);
        }
        write_file(text, sizeof text);
        assert_int_equal(hf__file_text(path, &back, &n), -EFBIG);
        /* A process without standard input gets descriptor 0. */
        int input = dup(0);
        (void)close(0);
        write_file("zero", 4);
        assert_int_equal(hf__file_text(path, &back, &n), 0);
        assert_string_equal(back, "zero");
        hf__wipe_free(back);
        if (input >= 0)
                assert_int_equal(dup2(input, 0), 0);
        (void)close(input);
        write_file("a\0b", 3);
        assert_int_equal(hf__file_text(path, &back, &n), -EINVAL);
        assert_int_equal(hf__file_text("/proc/self/mem", &back, &n), -EIO); /* cannot be read */
        assert_int_equal(hf__file_text("/tmp", &back, &n), -EINVAL);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(hf__file_text(path, &back, &n), -ENOENT);
        assert_int_equal(mkfifo(path, 0600), 0);
        assert_int_equal(hf__file_text(path, &back, &n), -EINVAL);
        assert_int_equal(unlink(path), 0);
}

static void test_only_white_space_at_the_end_is_trimmed(void **state) {
        static const char *const cases[][2] = {{" a b \t\r\n", " a b"},
                                               {"a", "a"},
                                               {" \n", ""},
                                               {"", ""}};

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                char text[32];
                strcpy(text, cases[i][0]);
                hf__trim_end(text);
                assert_string_equal(text, cases[i][1]);
        }
        hf__wipe_free(NULL);
}

/* ---- parts of JSON ---- */

/* Two pages. The second one is not readable. */
static char *pages;
static size_t page;

static int map_pages(void **state) {
        page = (size_t)sysconf(_SC_PAGESIZE);
        pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return pages == MAP_FAILED ? -1 : mprotect(pages + page, page, PROT_NONE);
}

static int unmap_pages(void **state) { return munmap(pages, 2 * page); }

/* Returns a copy of the text that ends at unreadable memory. Valid until the next call. */
static struct hf__span cut_span(const char *text, size_t n) {
        assert_true(n <= page);
        return (struct hf__span){memcpy(pages + page - n, text, n), n};
}

/* Writes the members of an object as key=value; and the elements of an array as value;. Returns the
 * last result. */
static int walk(const char *text, size_t n, bool is_object, char out[256]) {
        struct hf__span span = cut_span(text, n), key = {"", 0}, value;
        size_t at = 0;
        int r;

        out[0] = '\0';
        for (int i = 0;; i++) {
                assert_true(i < 100);
                r = is_object ? hf__span_next_member(span, &at, &key, &value)
                              : hf__span_next(span, &at, &value);
                if (r != 1)
                        break;
                size_t used = strlen(out);
                (void)snprintf(out + used, 256 - used, "%.*s%s%.*s;", (int)key.n, key.data,
                               is_object ? "=" : "", (int)value.n, value.data);
        }
        return r;
}

static void test_parts_are_found_whatever_the_space_around_them(void **state) {
        static const struct {
                const char *text, *parts;
        } objects[] =
                {
                        {"{}", ""},
                        {" { } ", ""},
                        {"\t{\n\r}", ""},
                        {"{\"a\":1,\"b\":[{},\"x\"]}", "a=1;b=[{},\"x\"];"},
                        {" {\n\"a\"\t:\r1 ,\n\"b\" : \"x\" }", "a=1;b=\"x\";"},
                        {"{\"a\":1\t,\"b\":2\n,\"c\":3\r,\"d\":4 }", "a=1;b=2;c=3;d=4;"},
                        {"{\"a\":\"q\\\"}\",\"\\\"b\":true}", "a=\"q\\\"}\";\\\"b=true;"},
                        {"{\"a\":\"\\\\\",\"b\":\"\\\\\\\"\"}", "a=\"\\\\\";b=\"\\\\\\\"\";"},
                        {"{\"a\":{\"a\":[]},\"b\":null}", "a={\"a\":[]};b=null;"},
                },
          arrays[] = {
                  {"[]", ""},
                  {" [ \n] ", ""},
                  {"[1,\"a\",[2,3],{\"b\":4}]", "1;\"a\";[2,3];{\"b\":4};"},
                  {"\n[ 1\t,\r2\n, 3 ]", "1;2;3;"},
          };
        char out[256];

        for (size_t i = 0; i < sizeof objects / sizeof objects[0]; i++) {
                assert_int_equal(walk(objects[i].text, strlen(objects[i].text), true, out), 0);
                assert_string_equal(out, objects[i].parts);
        }
        for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
                assert_int_equal(walk(arrays[i].text, strlen(arrays[i].text), false, out), 0);
                assert_string_equal(out, arrays[i].parts);
        }
}

/* Each span is only the beginning of a longer text, and must not pass as complete. */
static void test_a_text_that_is_cut_is_never_whole(void **state) {
        static const char object[] = " {\"a\" : 1 , \"b\":[{},\"x\\\"\"],\"c\":true}";
        static const char array[] = " [1 , \"a\\\"\",[2,3] , {\"b\":4},true]";
        char out[256];

        for (size_t n = 0; n < sizeof object - 1; n++)
                assert_int_equal(walk(object, n, true, out), -EPROTO);
        for (size_t n = 0; n < sizeof array - 1; n++)
                assert_int_equal(walk(array, n, false, out), -EPROTO);
        assert_int_equal(walk(object, sizeof object - 1, true, out), 0);
        assert_int_equal(walk(array, sizeof array - 1, false, out), 0);
}

static void test_what_is_no_container_is_refused(void **state) {
        static const char *const objects[] = {"",           "[]",       "1",
                                              "x{}",        "{1:2}",    "{\"a\"}",
                                              "{\"a\" 1}",  "{\"a\":}", "{\"a\":1 \"b\":2}",
                                              "{\"a\":1,}", "{,}",      "{\"a\":1]x",
                                              "{\"a\",1}",  "{a:1}",    "{\"a\":1;",
                                              "{ab\":1}"};
        static const char *const arrays[] = {"", "{}", "1", "x[]", "[1 2]", "[1,]", "[,]"};
        char out[256];

        for (size_t i = 0; i < sizeof objects / sizeof objects[0]; i++)
                assert_int_equal(walk(objects[i], strlen(objects[i]), true, out), -EPROTO);
        for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
                assert_int_equal(walk(arrays[i], strlen(arrays[i]), false, out), -EPROTO);
}

static void test_a_member_is_found_by_its_whole_name(void **state) {
        static const char text[] = "{\"ab\":1,\"a\":2,\"abc\":3,\"a\":4}";
        const struct hf__span object = {text, sizeof text - 1};
        struct hf__span value;

        assert_true(hf__span_member(object, "a", &value));
        assert_memory_equal(value.data, "2", 1);
        assert_true(hf__span_member(object, "abc", &value));
        assert_memory_equal(value.data, "3", 1);
        assert_false(hf__span_member(object, "b", &value));
        assert_false(hf__span_member(object, "", &value));
}

/* ---- YAML ---- */

static void assert_json(const char *yaml, const char *json) {
        struct hf__strbuf out = {0};
        struct hf_status status = {0};
        int r = hf__yaml_to_json(yaml, strlen(yaml), &out, &status);

        if (r != 0 || strcmp(out.data, json) != 0 || status.message[0])
                fail_msg("%s: %d %s, not %s: %s", yaml, r, out.data ? out.data : "", json,
                         status.message);
        hf__strbuf_done(&out);
}

/* The rules of JSON decide what a number is, so that every number survives the way through JSON. */
static void test_a_plain_scalar_is_a_number_exactly_if_json_says_so(void **state) {
        static const char *const numbers[] = {"0",          "-0",    "9",   "10",
                                              "1234567890", "-12",   "0.5", "-0.09",
                                              "10.0",       "1e5",   "1E5", "1e+5",
                                              "1e-5",       "1.5e9", "0e0", "-1.25E-09"};
        static const char *const words[] = {"007", "00",  "+1",   "1.",   ".5",    "-.5",   "1e",
                                            "1e+", "1e-", "1.e5", "0x10", "1_000", "1.2.3", "1e5.5",
                                            "1a",  "a1",  "--1",  "1e5e", "01.5",  "-01",   "e5",
                                            "1,5", "1 2", "inf",  ".nan", "1.5f"};
        char yaml[64], json[64];

        for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
                (void)snprintf(yaml, sizeof yaml, "a: %s\n", numbers[i]);
                (void)snprintf(json, sizeof json, "{\"a\":%s}", numbers[i]);
                assert_json(yaml, json);
                (void)snprintf(yaml, sizeof yaml, "a: '%s'\n", numbers[i]);
                (void)snprintf(json, sizeof json, "{\"a\":\"%s\"}", numbers[i]);
                assert_json(yaml, json); /* quoted */
                (void)snprintf(yaml, sizeof yaml, "%s: a\n", numbers[i]);
                (void)snprintf(json, sizeof json, "{\"%s\":\"a\"}", numbers[i]);
                assert_json(yaml, json); /* a key */
        }
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
                (void)snprintf(yaml, sizeof yaml, "a: %s\n", words[i]);
                (void)snprintf(json, sizeof json, "{\"a\":\"%s\"}", words[i]);
                assert_json(yaml, json);
        }
}

static void test_words_and_containers_become_json(void **state) {
        static const char *const cases[][2] = {
                {"a", "\"a\""},
                {"{}", "{}"},
                {"[]", "[]"},
                {"[a, [b], {c: d}, {}, []]", "[\"a\",[\"b\"],{\"c\":\"d\"},{},[]]"},
                {"a: {b: [c, {d: e, f: g}]}\nh: i",
                 "{\"a\":{\"b\":[\"c\",{\"d\":\"e\",\"f\":\"g\"}]},\"h\":\"i\"}"},
                {"[~, null, Null, NULL, nUll]", "[null,null,null,null,\"nUll\"]"},
                {"[true, True, TRUE, tRue, yes]", "[true,true,true,\"tRue\",\"yes\"]"},
                {"[false, False, FALSE, no]", "[false,false,false,\"no\"]"},
                {"a:\nb: ''", "{\"a\":null,\"b\":\"\"}"},
                {"a: !!str 1", "{\"a\":\"1\"}"},
                {"a: |\n  x\n  y\n", "{\"a\":\"x\\ny\\n\"}"},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
                assert_json(cases[i][0], cases[i][1]);
}

static void test_what_json_cannot_say_is_refused(void **state) {
        static const char *const bad[] =
                {"{[a]: b}",        "? {a: b}\n: c", "a: &x 1",  "a: *x",  "a: !t 1",
                 "a: !!int 1",      "[&x a]",        "&x [a]",   "!t [a]", "&x {a: b}",
                 "!t {a: b}",       "a\n---\nb",     "a: [",     "a: 'b",  "\ta: b",
                 "a: &x [b]\nc: 1", "a: !t {b: c}",  "[a]: &y b"};

        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
                struct hf__strbuf out = {0};
                struct hf_status status = {0};
                int r = hf__yaml_to_json(bad[i], strlen(bad[i]), &out, &status);
                if (r != HF_E_INVALID || !strstr(status.message, "line "))
                        fail_msg("%s: %d: %s", bad[i], r, status.message);
                hf__strbuf_done(&out);
        }
}

static void test_an_error_names_its_line(void **state) {
        struct hf__strbuf out = {.max = 4096};
        struct hf_status status = {0};
        static const char yaml[] = "x: 1\ny: 2\na: @\n";

        assert_int_equal(hf__yaml_to_json(yaml, strlen(yaml), &out, &status), HF_E_INVALID);
        assert_non_null(strstr(status.message, "line 3"));
        assert_non_null(strstr(status.message, "found character that cannot start any token"));
        hf__strbuf_reset(&out);
        assert_int_equal(hf__yaml_to_json("x: 1\ny: *x\n", 11, &out, &status), HF_E_INVALID);
        assert_string_equal(status.message, "line 2: aliases are not accepted");
        hf__strbuf_reset(&out);
        assert_int_equal(hf__yaml_to_json("x: 1\ny: 2\nz: \1\n", 15, &out, &status), HF_E_INVALID);
        assert_string_equal(status.message, "line 3: control characters are not allowed");
        hf__strbuf_reset(&out);
        assert_int_equal(hf__yaml_to_json("x: 1\ny: \xff\n", 10, &out, &status), HF_E_INVALID);
        assert_memory_equal(status.message, "line 2: ", 8);
        hf__strbuf_done(&out);
}

static void test_a_json_that_is_too_large_is_refused(void **state) {
        for (size_t max = 2; max < 9; max++) {
                struct hf__strbuf out = {.max = max};
                int r = hf__yaml_to_json("[1, 23]", 7, &out, NULL); /* 6 bytes of JSON */
                assert_true(r == 0 || r == HF_E_TOO_LARGE);
                if (r == 0)
                        assert_string_equal(out.data, "[1,23]");
                hf__strbuf_done(&out);
                assert_true(r != 0 || max >= 6);
                assert_true(r == 0 || max < 8);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_files_of_every_size_are_read_whole),
                cmocka_unit_test(test_only_white_space_at_the_end_is_trimmed),
                cmocka_unit_test(test_parts_are_found_whatever_the_space_around_them),
                cmocka_unit_test(test_a_text_that_is_cut_is_never_whole),
                cmocka_unit_test(test_what_is_no_container_is_refused),
                cmocka_unit_test(test_a_member_is_found_by_its_whole_name),
                cmocka_unit_test(test_a_plain_scalar_is_a_number_exactly_if_json_says_so),
                cmocka_unit_test(test_words_and_containers_become_json),
                cmocka_unit_test(test_what_json_cannot_say_is_refused),
                cmocka_unit_test(test_an_error_names_its_line),
                cmocka_unit_test(test_a_json_that_is_too_large_is_refused),
        };
        return cmocka_run_group_tests(tests, map_pages, unmap_pages);
}
