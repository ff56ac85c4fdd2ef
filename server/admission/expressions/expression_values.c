/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the values of the variables that Kubernetes declares for expressions.
 *
 * Invariant: the value of an object (object, oldObject, namespaceObject, params) is paid for before
 * it is made, so that no thread that serves connections converts a large object. The other values
 * are free.
 */
#include "server/admission/expressions/expression_values.h"

#include <assert.h>
#include <errno.h>

#include <holdfast/error.h>

#include "base/arena.h"
#include "server/admission/expressions/expression_input.h"
#include "server/admission/expressions/expression_objects.h"
#include "server/admission/expressions/expression_work.h"
#include "server/admission/expressions/request_value.h"
#include "server/admission/expressions/rights.h"
#include "server/resources/custom/rules/values/rule_value.h"

/* Pays for making the value of JSON. 0, or HF_E_TOO_LARGE: the allowance is spent. */
static int pay_value(struct hfd_expression_maker *maker, const struct hf__json *json) {
        uint64_t used = hfd_expression_value_work(json, maker->allowance);

        maker->used += used;
        return hfd_expression_allow(maker->allowance, used) ? 0 : HF_E_TOO_LARGE;
}

/* The functions that make values return 0, -ENOMEM or HF_E_TOO_LARGE. */

static int params_value(struct hfd_expression_maker *maker, struct hf__cel_value *ret_value) {
        const struct hf__json *params = maker->input->params;
        int r = params ? pay_value(maker, params) : 0;

        *ret_value = hf__cel_null();
        if (r == 0 && params)
                *ret_value = hfd_rule_value(maker->arena, NULL, params);
        return r == 0 && maker->arena->failed ? -ENOMEM : r;
}

/* Makes the value of the object, the old object or the Namespace. */
static int convert_object(struct hfd_expression_maker *maker, enum hfd_expression_shared which,
                          struct hf__arena *arena, const struct hf__json *json,
                          struct hf__cel_value *ret_value) {
        int r = pay_value(maker, json);

        if (r != 0)
                return r;
        *ret_value = which == HFD_SHARED_NAMESPACE ? hfd_namespace_value(arena, json)
                                                   : hfd_rule_value(arena, NULL, json);
        return arena->failed ? -ENOMEM : 0;
}

/* The value of the object, the old object or the Namespace. If the input has `objects`, the value
 * is made there, once, and shared; otherwise it is made in the arena of the maker. */
static int object_value(struct hfd_expression_maker *maker, enum hfd_expression_shared which,
                        const struct hf__json *json, struct hf__cel_value *ret_value) {
        struct hfd_expression_objects *objects = maker->input->objects;

        *ret_value = hf__cel_null();
        if (!json)
                return 0;
        if (!objects)
                return convert_object(maker, which, maker->arena, json, ret_value);
        assert(!objects->of[which] || objects->of[which] == json);
        if (!objects->of[which]) {
                int r = convert_object(maker, which,
                                       which == HFD_SHARED_NAMESPACE ? &objects->namespace_arena
                                                                     : &objects->arena,
                                       json, &objects->values[which]);
                if (r != 0)
                        return r;
                objects->of[which] = json;
        }
        *ret_value = objects->values[which];
        return 0;
}

int hfd_expression_value(struct hfd_expression_maker *maker, enum hfd_expression_slot slot,
                         struct hf__cel_value *ret_value) {
        const struct hfd_expression_input *input = maker->input;

        switch (slot) {
        case HFD_SLOT_OBJECT:
                return object_value(maker, HFD_SHARED_OBJECT, input->object, ret_value);
        case HFD_SLOT_OLD_OBJECT: return object_value(maker, HFD_SHARED_OLD, input->old, ret_value);
        case HFD_SLOT_NAMESPACE_OBJECT:
                return object_value(maker, HFD_SHARED_NAMESPACE, input->namespace_object,
                                    ret_value);
        case HFD_SLOT_REQUEST: *ret_value = hfd_request_value(maker->arena, input); break;
        case HFD_SLOT_PARAMS: return params_value(maker, ret_value);
        case HFD_SLOT_AUTHORIZER:
                *ret_value = hfd_rights_value(maker->arena, maker->authorizer, input);
                break;
        case HFD_SLOT_REQUEST_RESOURCE:
                *ret_value = hfd_rights_resource_value(maker->arena, maker->authorizer, input);
                break;
        case HFD_SLOT_VARIABLES:
        case HFD_SLOTS_OF_EXPRESSION: *ret_value = hf__cel_null(); break;
        }
        return maker->arena->failed ? -ENOMEM : 0;
}
