/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts between the versions of a kind.
 *
 * Invariant: the object that was passed in is not changed: it may be the object of the request,
 * which other webhooks and policies read in their own version.
 */
#include "server/admission/form.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/custom/custom_kind.h"
#include "server/resources/forms/conversion.h"

/* Converts through the form in which the objects are stored. The stored form has no
 * resourceVersion, so the revision is passed beside it. The result always has a resourceVersion,
 * which is removed if the object had none. "x" stands for the path, which is not needed here. */
static int convert_built_in(const struct hfd_resource *from, const struct hfd_resource *to,
                            const struct hf__json *object, struct hf__json **ret_object) {
        const char *text = hf__json_string(object, "metadata.resourceVersion");
        uint64_t revision = text ? strtoull(text, NULL, 10) : 0;
        struct hf__buf *stored = hfd_conversion_encode(from, object);
        struct hfd_object *version =
                stored ? hfd_object_new(hfd_resource_stored(from), "x", revision, stored) : NULL;

        *ret_object = version ? hfd_conversion_parse(to, version) : NULL;
        if (*ret_object && !text)
                hf__json_remove(*ret_object, "metadata.resourceVersion");
        hfd_object_unref(version);
        hf__buf_unref(stored);
        return *ret_object ? 0 : -ENOMEM;
}

bool hfd_form_is_elsewhere(const struct hfd_resource *from, const struct hfd_resource *to) {
        return from != to && from->custom && from->custom->kind->is_converted_elsewhere &&
               strcmp(from->version, to->version) != 0;
}

/* The versions of a custom resource without a webhook differ in apiVersion only. */
int hfd_form_convert(const struct hfd_resource *from, const struct hfd_resource *to,
                     const struct hf__json *object, struct hf__json **ret_object) {
        char version[HFD_API_VERSION_MAX];

        if (from != to && !from->custom)
                return convert_built_in(from, to, object, ret_object);
        *ret_object = hf__json_dup(object);
        if (!*ret_object)
                return -ENOMEM;
        if (from == to)
                return 0;
        int r = hfd_form_is_elsewhere(from, to) ? HF_E_INVALID : 0;
        hfd_resource_api_version(to, version);
        if (r == 0)
                r = hf__json_set_string(*ret_object, "apiVersion", version);
        if (r != 0)
                *ret_object = hf__json_free(*ret_object);
        return r;
}
