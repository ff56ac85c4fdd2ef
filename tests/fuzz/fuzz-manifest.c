/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes manifests in YAML and JSON, and the ledger. An accepted manifest must have an identity,
 * and its JSON must be accepted again with the same content. A ledger must not change when it is
 * written and read again.
 */
#undef NDEBUG
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "bootstrap/ledger.h"
#include "bootstrap/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const struct hf_bootstrap_kind kind_list[] = {
        {"v1", "ConfigMap", "configmaps", true},
        {"a/v1", "B", "bs", false},
};

static void again(const struct hf__manifest_kinds *kinds, const struct hf__step *step) {
        struct hf__steps steps = {0};
        struct hf_status status = {0};

        assert(step->id[0] && step->name[0] && strlen(step->hash) == HF__HASH_DIGITS);
        assert(!step->ns == !step->kind->namespaced);
        assert(hf__manifest_read_text(&steps, kinds, "again", step->content, step->n_content,
                                      &status) == 0);
        assert(steps.n == 1 && strcmp(steps.list[0].hash, step->hash) == 0 &&
               strcmp(steps.list[0].id, step->id) == 0);
        hf__steps_done(&steps);
}

static void try_manifests(const char *text, size_t n) {
        struct hf__manifest_kinds kinds;
        struct hf__steps steps = {0};
        struct hf_status status = {0};

        assert(hf__manifest_kinds_copy(kind_list, 2, &kinds) == 0);
        if (hf__manifest_read_text(&steps, &kinds, "f", text, n, &status) != 0)
                assert(status.message[0] && !strchr(status.message, '\n'));
        for (size_t i = 0; i < steps.n; i++)
                again(&kinds, &steps.list[i]);
        hf__steps_done(&steps);
        hf__manifest_kinds_done(&kinds);
}

/* Uses the text as data.steps of a ledger. */
static void try_ledger(const char *text, size_t n) {
        struct hf__json *object = hf__json_object(), *back = NULL;
        char *steps = strndup(text, n);
        struct hf__ledger ledger = {0}, same = {0};
        struct hf__strbuf out = {0};
        struct hf_status status = {0};

        assert(object && steps);
        assert(hf__json_set_string(object, "data.format", "1") == 0 &&
               hf__json_set_string(object, "data.steps", steps) == 0);
        int r = hf__ledger_read(object, NULL, 0, &ledger, &status);
        if (r == 0 && hf__ledger_write(&ledger, object, "n", "l", &out) == 0 &&
            hf__json_parse(out.data, out.n, &back, NULL) == 0) {
                assert(hf__ledger_read(back, NULL, 0, &same, &status) == 0);
                assert(same.n_entries == ledger.n_entries);
        }
        assert(r == 0 || status.message[0]);
        hf__ledger_done(&ledger);
        hf__ledger_done(&same);
        hf__strbuf_done(&out);
        hf__json_free(back);
        hf__json_free(object);
        free(steps);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        if (n == 0)
                return 0;
        if (data[0] == 'L')
                try_ledger((const char *)data + 1, n - 1);
        else
                try_manifests((const char *)data, n);
        return 0;
}
