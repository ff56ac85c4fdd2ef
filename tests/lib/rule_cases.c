/* SPDX-License-Identifier: Apache-2.0 */
#include "rule_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/causes.h"

struct hf__json *parse_quoted_json(const char *text) {
        struct hf__json *json = NULL;
        struct hf__strbuf quoted = {0};

        hf__strbuf_puts(&quoted, text);
        assert_int_equal(quoted.error, 0);
        for (size_t i = 0; i < quoted.n; i++)
                if (quoted.data[i] == '\'')
                        quoted.data[i] = '"';
        if (hf__json_parse(quoted.data, quoted.n, &json, NULL) != 0)
                fail_msg("not JSON: %s", text);
        hf__strbuf_done(&quoted);
        return json;
}

void check_rule_cases(const struct rule_case *cases, size_t n) {
        for (size_t i = 0; i < n; i++) {
                struct hf__json *object = parse_quoted_json(cases[i].object),
                                *old = cases[i].old ? parse_quoted_json(cases[i].old) : NULL;
                const char *wanted = cases[i].causes ? cases[i].causes : "";
                struct hf__strbuf found = {0};
                struct hfd_causes causes;

                hfd_causes_init(&causes);
                cases[i].rules(object, old, &causes);
                assert_int_equal(causes.error, 0);
                hf__strbuf_puts(&found, "");
                for (size_t k = 0; k < causes.n; k++)
                        hf__strbuf_printf(&found, "%s: %s\n", causes.items[k].field,
                                          causes.items[k].text);
                assert_int_equal(found.error, 0);
                if (strcmp(found.n > 0 ? found.data : "", wanted) != 0)
                        fail_msg("%s\nhas the causes\n%sand not\n%s", cases[i].object,
                                 found.n > 0 ? found.data : "", wanted);
                hf__strbuf_done(&found);
                hf__json_free(object);
                hf__json_free(old);
        }
}
