/* SPDX-License-Identifier: Apache-2.0 */
/* See text_asserts.h. */
#undef NDEBUG
#include "text_asserts.h"

#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

void assert_in(const char *text, const char *part) {
        if (!strstr(text, part))
                fail_msg("no \"%s\" in:\n%s", part, text);
}

static void add_text(void *ctx, const char *text, size_t n) {
        char *all = ctx;
        size_t used = strlen(all);

        assert(used + n < 16384);
        memcpy(all + used, text, n);
        all[used + n] = '\0';
}

void assert_metric(struct hf_metrics *metrics, const char *line) {
        static char all[16384];

        all[0] = '\0';
        hf_metrics_write(metrics, add_text, all);
        assert_in(all, line);
}
