/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps everything. */
#include "server/resources/custom/schema/custom_schema.h"

#include <errno.h>
#include <stdlib.h>

#include "server/schema/common.h"

static const struct hfd_schema_field fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA,
};
static const struct hfd_schema open_schema = {HFD_STRUCT("dev.holdfast.custom", fields),
                                              .preserve_unknown = true};
struct hfd_custom_schema {
        int unused;
};
int hfd_custom_schema_new(const struct hf__json *props, struct hfd_custom_schema **ret) {
        (void)props;
        *ret = calloc(1, sizeof **ret);
        return *ret ? 0 : -ENOMEM;
}
struct hfd_custom_schema *hfd_custom_schema_free(struct hfd_custom_schema *schema) {
        free(schema);
        return NULL;
}
const struct hfd_schema *hfd_custom_schema_fields(const struct hfd_custom_schema *schema) {
        (void)schema;
        return &open_schema;
}
int hfd_custom_schema_prune(const struct hfd_custom_schema *schema, struct hf__json *object,
                            struct hfd_strict *strict) {
        (void)schema;
        (void)object;
        (void)strict;
        return 0;
}
int hfd_custom_schema_default(const struct hfd_custom_schema *schema, struct hf__json *object) {
        (void)schema;
        (void)object;
        return 0;
}
void hfd_custom_schema_validate(const struct hfd_custom_schema *schema,
                                const struct hf__json *object, const struct hf__json *old,
                                struct hfd_causes *causes) {
        (void)schema;
        (void)object;
        (void)old;
        (void)causes;
}
