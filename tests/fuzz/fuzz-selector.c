/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes selectors. The first byte says whether it is a label or a field selector, and for which
 * kind; the rest is its text. What is refused must say why. What is accepted must be within the
 * limits and the same when it is parsed again, and a requirement and its opposite must not both
 * hold.
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "server/resources/rows/resource_table.h"
#include "server/resources/selection/selector.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char stored[] =
        "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\","
        "\"namespace\":\"default\",\"labels\":{\"a\":\"b\",\"app\":\"web\",\"n\":\"7\"}}}";

static bool matches(const struct hfd_selector *selector, struct hfd_object *object) {
        bool holds;

        assert(hfd_selector_matches(selector, object, &holds) == 0);
        return holds;
}

static void check(struct hfd_selector *selector) {
        const struct hfd_resource *resource = hfd_resource_find("", "v1", "configmaps");
        struct hf__buf *bytes = hf__buf_copy(stored, sizeof stored - 1);
        struct hfd_object *object = hfd_object_new(resource, "default/a", 7, bytes);
        bool all = true;

        assert(object && selector->n <= HFD_REQUIREMENTS_MAX);
        for (size_t i = 0; i < selector->n; i++) {
                struct hfd_requirement one = selector->requirements[i], opposite = one;
                struct hfd_selector of_one = *selector;
                bool holds;

                assert(one.key && *one.key);
                of_one.requirements = &one;
                of_one.n = 1;
                holds = matches(&of_one, object);
                all = all && holds;
                if (one.op == HFD_EQUALS || one.op == HFD_IN || one.op == HFD_EXISTS) {
                        if (one.op == HFD_EQUALS)
                                opposite.op = HFD_NOT_EQUALS;
                        else
                                opposite.op = one.op == HFD_IN ? HFD_NOT_IN : HFD_NOT_EXISTS;
                        of_one.requirements = &opposite;
                        assert(matches(&of_one, object) == !holds);
                }
        }
        assert(matches(selector, object) == all);
        hfd_object_unref(object);
        hf__buf_unref(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        static const char *const plurals[] = {"configmaps", "secrets", "namespaces", "events"};
        struct hfd_selector selector, again;
        char reason[256] = "";

        if (n == 0)
                return 0;
        const struct hfd_resource *resource = hfd_resource_find("", "v1", plurals[data[0] / 2 % 4]);
        bool fields = data[0] % 2;
        char *text = strndup((const char *)data + 1, n - 1);
        if (!text)
                return 0;
        int r = hfd_selector_parse(text, fields, resource, &selector, reason, sizeof reason);
        assert(r == 0 || r == HF_E_INVALID || r == -ENOMEM);
        if (r == 0) {
                check(&selector);
                assert(hfd_selector_parse(text, fields, resource, &again, reason, sizeof reason) ==
                       0);
                assert(again.n == selector.n);
                hfd_selector_done(&again);
                hfd_selector_done(&selector);
        } else {
                assert(r != HF_E_INVALID || (*reason && strlen(reason) < sizeof reason));
        }
        free(text);
        return 0;
}
