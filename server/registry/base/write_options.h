/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Four options of writes: dryRun, fieldManager, fieldValidation and force of CreateOptions,
 * UpdateOptions, PatchOptions and DeleteOptions. As in Kubernetes they are validated together,
 * after the query was read. Pure. Thread: owner only.
 */
#include <stdbool.h>
#include <stddef.h>

struct hfd_response;

/*
 * fieldValidation: whether unknown and duplicate fields in the body cause a Warning header,
 * nothing, or a refusal.
 */
enum hfd_field_validation { HFD_FIELDS_WARN, HFD_FIELDS_IGNORE, HFD_FIELDS_STRICT };

#define HFD_DRY_RUN_VALUES_MAX 8 /* further values are not read, but count as unsupported */

/* The options in the query. The texts are borrowed until the check. */
struct hfd_write_options {
        const char *field_manager, *field_validation; /* NULL = not given */
        const char *dry_run[HFD_DRY_RUN_VALUES_MAX];
        size_t n_dry_run;
        bool has_force, force;
        bool is_apply; /* set by the caller: a server-side apply */
};

/* Takes over the parameter if it is one of these options. False: it is another parameter. value: ""
 * if it has none; borrowed. */
bool hfd_write_options_note(struct hfd_write_options *options, const char *name, const char *value);
/*
 * Checks the options. kind: "CreateOptions", "UpdateOptions", "PatchOptions" or "DeleteOptions",
 * which has only dryRun. False: an option is not allowed, or an apply has no fieldManager; response
 * is a 422 with a cause for each such option.
 */
bool hfd_write_options_check(const struct hfd_write_options *options, const char *kind,
                             enum hfd_field_validation *ret_validation,
                             struct hfd_response *response);
