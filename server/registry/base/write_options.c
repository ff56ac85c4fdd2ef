/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Validates the options of writes. The texts, and the order of the causes, are those of Kubernetes'
 * validation of CreateOptions, UpdateOptions, PatchOptions and DeleteOptions.
 *
 * Invariant: the first value of a repeated option counts, as in Kubernetes. Of dryRun all values
 * count: if there are more than are kept, the request is refused, because the others are unchecked.
 */
#include "server/registry/base/write_options.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/quote.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "server/resources/causes.h"
#include "server/resources/resource.h"
#include "server/resources/response.h"
#include "server/resources/validation/manager_names.h"

bool hfd_write_options_note(struct hfd_write_options *options, const char *name,
                            const char *value) {
        if (strcmp(name, "dryRun") == 0) {
                if (options->n_dry_run < HFD_DRY_RUN_VALUES_MAX)
                        options->dry_run[options->n_dry_run] = value;
                options->n_dry_run++;
        } else if (strcmp(name, "fieldManager") == 0) {
                if (!options->field_manager)
                        options->field_manager = value;
        } else if (strcmp(name, "fieldValidation") == 0) {
                if (!options->field_validation)
                        options->field_validation = value;
        } else if (strcmp(name, "force") == 0) {
                if (!options->has_force)
                        options->force = strcmp(value, "0") != 0 && strcasecmp(value, "false") != 0;
                options->has_force = true;
        } else {
                return false;
        }
        return true;
}

/* ---- dryRun and fieldValidation ---- */

/* One unsupported value refuses all of them, and its message lists them, as JSON. */
static void check_dry_run(const struct hfd_write_options *options, struct hfd_causes *causes) {
        struct hf__strbuf list = {0};
        bool supported = true;

        for (size_t i = 0; i < options->n_dry_run && i < HFD_DRY_RUN_VALUES_MAX; i++) {
                hf__strbuf_putc(&list, i > 0 ? ',' : '[');
                hf__strbuf_json(&list, options->dry_run[i], strlen(options->dry_run[i]));
                supported = supported && strcmp(options->dry_run[i], "All") == 0;
        }
        hf__strbuf_putc(&list, ']');
        if (!supported || options->n_dry_run > HFD_DRY_RUN_VALUES_MAX)
                hfd_cause_unsupported(causes, "dryRun", list.error == 0 ? list.data : "",
                                      "\"All\"");
        hf__strbuf_done(&list);
}

static void set_field_validation(enum hfd_field_validation *ret_validation, const char *value,
                                 struct hfd_causes *causes) {
        if (!*value || strcmp(value, "Warn") == 0)
                *ret_validation = HFD_FIELDS_WARN;
        else if (strcmp(value, "Ignore") == 0)
                *ret_validation = HFD_FIELDS_IGNORE;
        else if (strcmp(value, "Strict") == 0)
                *ret_validation = HFD_FIELDS_STRICT;
        else
                hfd_cause_unsupported_text(causes, "fieldValidation", value,
                                           "\"\", \"Ignore\", \"Strict\", \"Warn\"");
}

/* ---- all of them ---- */

bool hfd_write_options_check(const struct hfd_write_options *options, const char *kind,
                             enum hfd_field_validation *ret_validation,
                             struct hfd_response *response) {
        const struct hfd_resource invalid = {.group = "meta.k8s.io", .kind = kind};
        bool deletes = strcmp(kind, "DeleteOptions") == 0;
        struct hfd_causes causes;

        hfd_causes_init(&causes); /* touching the items would cost 15 KiB of stack */
        *ret_validation = HFD_FIELDS_WARN;
        if (options->is_apply && (!options->field_manager || !*options->field_manager))
                hfd_cause_required(&causes, "fieldManager", "is required for apply patch");
        if (!options->is_apply && options->has_force && strcmp(kind, "PatchOptions") == 0)
                hfd_cause_forbidden(&causes, "force", "may not be specified for non-apply patch");
        if (options->field_manager && !deletes)
                hfd_manager_name_validate(options->field_manager, "fieldManager", &causes);
        if (options->n_dry_run > 0)
                check_dry_run(options, &causes);
        if (options->field_validation && !deletes)
                set_field_validation(ret_validation, options->field_validation, &causes);
        if (causes.n > 0)
                hfd_response_invalid(response, &invalid, "", &causes);
        return causes.n == 0;
}
