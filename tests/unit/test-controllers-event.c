/* SPDX-License-Identifier: Apache-2.0 */
/* When an Event expires. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "server/controllers/event_time.h"

#define NOW INT64_C(1000000) /* 1970-01-12T13:46:40Z */

static void expect(const char *text, int64_t seen) {
        struct hf__json *json = NULL;
        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        assert_int_equal(hfd_event_time_last(json, NOW), seen);
        hf__json_free(json);
}

static void test_the_latest_time_counts(void **state) {
        (void)state;
        expect("{\"metadata\":{\"creationTimestamp\":\"1970-01-12T13:46:30Z\"}}", NOW - 10);
        expect("{\"metadata\":{\"creationTimestamp\":\"1970-01-12T13:46:30Z\"},\"lastTimestamp\":"
               "\"1970-01-12T13:46:35Z\"}",
               NOW - 5);
        expect("{\"metadata\":{\"creationTimestamp\":\"1970-01-12T13:46:30Z\"},\"eventTime\":"
               "\"1970-01-12T13:46:36.500000Z\"}",
               NOW - 4);
        expect("{\"metadata\":{\"creationTimestamp\":\"1970-01-12T13:46:30Z\"},\"series\":{"
               "\"lastObservedTime\":\"1970-01-12T13:46:40."
               "000000Z\"},"
               "\"lastTimestamp\":\"1970-01-12T13:46:35Z\"}",
               NOW);
        /* An older time does not make the Event older. */
        expect("{\"metadata\":{\"creationTimestamp\":\"1970-01-12T13:46:30Z\"},\"firstTimestamp\":"
               "\"1970-01-01T00:00:00Z\"}",
               NOW - 10);
}

static void test_times_that_are_future_or_invalid_are_ignored(void **state) {
        (void)state;
        expect("{\"metadata\":{\"creationTimestamp\":\"1970-01-12T13:46:30Z\"},\"lastTimestamp\":"
               "\"1970-01-12T13:46:41Z\"}",
               NOW - 10);
        expect("{\"metadata\":{\"creationTimestamp\":\"1970-01-12T13:46:30Z\"},\"lastTimestamp\":"
               "\"soon\",\"eventTime\":null}",
               NOW - 10);
        expect("{\"metadata\":{}}", NOW);
        expect("{\"metadata\":{\"creationTimestamp\":7}}", NOW);
}

int main(void) {
        const struct CMUnitTest tests[] =
                {cmocka_unit_test(test_the_latest_time_counts),
                 cmocka_unit_test(test_times_that_are_future_or_invalid_are_ignored)};
        return cmocka_run_group_tests(tests, NULL, NULL);
}
