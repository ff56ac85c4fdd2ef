/* SPDX-License-Identifier: Apache-2.0 */
#undef NDEBUG
#include "pod_spec_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"

struct hf__json *pod_spec_parse(const char *begin, const char *members, const char *end) {
        struct hf__json *json = NULL;
        char *text = NULL;

        assert_true(asprintf(&text, "%s%s%s", begin, members, end) > 0);
        for (char *c = text; *c; c++)
                if (*c == '\'')
                        *c = '"';
        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        free(text);
        return json;
}

struct hfd_causes pod_spec_causes(const char *members) {
        struct hf__json *spec = pod_spec_parse("{", members, "," VALID "}");
        static struct hfd_causes causes;

        hfd_causes_init(&causes);
        hfd_pod_spec_validate(spec, "spec", false, &causes);
        assert_int_equal(causes.error, 0);
        hf__json_free(spec);
        return causes;
}

void pod_spec_expect(const char *members, const char *wanted) {
        const struct hfd_causes causes = pod_spec_causes(members);
        struct hf__strbuf found = {0};

        for (size_t i = 0; i < causes.n; i++)
                hf__strbuf_printf(&found, "%s: %s\n", causes.items[i].field, causes.items[i].text);
        if (strcmp(found.data ? found.data : "", wanted) != 0)
                fail_msg("%s:\n%snot\n%s", members, found.data ? found.data : "", wanted);
        hf__strbuf_done(&found);
}

void pod_spec_expect_all(const struct spec_case *cases, size_t n) {
        for (size_t i = 0; i < n; i++)
                pod_spec_expect(cases[i].members, cases[i].causes);
}
