/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applies a change of a MutatingAdmissionPolicy to an object: a configuration, which is merged as
 * server-side apply does, or a JSON patch. The messages are those of kube-apiserver where they
 * are known.
 *
 * Invariant: after a failure, and after a JSON patch whose test fails, the object is as it was,
 * because changes are made to a copy. With the failurePolicy Ignore the request goes on with that
 * object, and half a change would be stored.
 */
#include "server/admission/policy/mutation.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "base/strbuf_cut.h"
#include "cel/values/type.h"
#include "server/admission/expressions/value_json.h"
#include "server/apply/merge.h"
#include "server/apply/owned_fields.h"
#include "server/patch/json_patch.h"
#include "server/patch/patch.h"
#include "server/resources/resource.h"
#include "server/schema/decode.h"

/* ---- ApplyConfiguration ---- */

/* Appends to `found` the paths of the atomic values in json. Server-side apply replaces such a
 * value as a whole, so a policy would drop members that it does not know. Kubernetes refuses that,
 * too, and also searches only declared fields and the elements of lists, not the values of maps.
 * path: where json is; it is the same afterwards, unless memory ran out. */
static void find_atomic(const struct hfd_schema *schema, const struct hf__json *json,
                        struct hf__strbuf *path, struct hf__strbuf *found) {
        size_t n = path->n;
        size_t i = 0;
        bool atomic = false;

        if (!schema)
                return;
        if (schema->type == HFD_SCHEMA_LIST && hf__json_is_array(json))
                atomic = schema->list_type == HFD_LIST_ATOMIC;
        else if (hf__json_is_object(json) &&
                 (schema->type == HFD_SCHEMA_STRUCT || schema->type == HFD_SCHEMA_MAP))
                atomic = schema->atomic;
        if (atomic) {
                hf__strbuf_puts_cut(found, found->n > 0 ? ", " : "");
                hf__strbuf_puts_cut(found, path->data ? path->data : "");
        }
        if (schema->type != HFD_SCHEMA_STRUCT && schema->type != HFD_SCHEMA_LIST)
                return;
        for (const struct hf__json *m = hf__json_first(json); m; m = hf__json_next(m), i++) {
                if (hf__json_is_array(json))
                        hf__strbuf_printf(path, "[%zu]", i);
                else
                        hf__strbuf_printf(path, ".%s", hf__json_key(m));
                find_atomic(schema->type == HFD_SCHEMA_LIST
                                    ? schema->items
                                    : hfd_schema_of_member(schema, hf__json_key(m)),
                            m, path, found);
                if (path->error != 0)
                        return;
                path->n = n;
                path->data[n] = 0;
        }
}

/* The list of paths in the message is cut, because a configuration may have any number of them. A
 * path has no limit of its own, so that a deep value is found, too. */
static int refuse_atomic(const struct hfd_resource *kind, const struct hf__json *config,
                         struct hf__strbuf *message) {
        struct hf__strbuf path = {0};
        struct hf__strbuf found = {.max = 4096};
        int r;

        find_atomic(kind->schema, config, &path, &found);
        if (found.n > 0)
                hf__strbuf_printf(message,
                                  "error applying patch: invalid ApplyConfiguration: may not "
                                  "mutate atomic arrays, maps or structs: %s",
                                  found.data);
        r = path.error != 0 || found.error == -ENOMEM ? -ENOMEM : 0;
        if (r == 0 && found.n > 0)
                r = HF_E_INVALID;
        hf__strbuf_done(&path);
        hf__strbuf_done(&found);
        return r;
}

/*
 * Brings the configuration into the form of the kind, and checks it. The set of fields is not used:
 * a policy becomes the owner of no field. It is made because that finds list elements with the same
 * keys, which hfd_merge must not get.
 */
static int check_config(const struct hfd_resource *kind, struct hf__json *config,
                        struct hf__arena *scratch, struct hf__strbuf *message) {
        struct hf__strbuf why = {.max = 1024};
        const struct hfd_fields *fields;
        char reason[512];
        int r = hfd_schema_decode_config(kind->schema, config, NULL, reason, sizeof reason);

        if (r == HF_E_INVALID)
                hf__strbuf_printf(message,
                                  "error applying patch: failed to convert patch object to typed "
                                  "object: %s",
                                  reason);
        if (r == 0)
                r = refuse_atomic(kind, config, message);
        if (r == 0) {
                r = hfd_owned_by_applier(scratch, kind->schema, config, &fields, &why);
                if (r == HF_E_INVALID)
                        hf__strbuf_printf(message,
                                          "error applying patch: failed to convert patch object to "
                                          "typed object: %s",
                                          why.data ? why.data : "");
        }
        hf__strbuf_done(&why);
        return r;
}

/* A configuration needs apiVersion and kind, which the Object of an expression need not have. Sets
 * those of the version that the policy sees. */
static int merge_configuration(const struct hfd_resource *kind, struct hf__cel_value value,
                               struct hfd_value_room *room, struct hf__json **object,
                               struct hf__strbuf *message) {
        char api_version[HFD_API_VERSION_MAX];
        struct hf__json *config = NULL;
        struct hf__json *copy = NULL;
        struct hf__strbuf why = {.max = 1024};
        struct hf__arena scratch;
        int r = hfd_value_check_types(value, *room, &why);

        if (r == 0)
                r = hfd_value_to_json(value, room, &config, &why);
        if (r > 0)
                hf__strbuf_printf(message, "type mismatch: %s", why.data ? why.data : "");
        hf__strbuf_done(&why);
        if (r != 0)
                return r;
        hf__arena_init(&scratch);
        hfd_resource_api_version(kind, api_version);
        r = hf__json_put_string(config, "apiVersion", api_version);
        if (r == 0)
                r = hf__json_put_string(config, "kind", kind->kind);
        if (r == 0)
                r = check_config(kind, config, &scratch, message);
        if (r == 0) {
                copy = hf__json_dup(*object);
                r = copy ? hfd_merge(&scratch, kind->schema, copy, config) : -ENOMEM;
        }
        if (r == 0) {
                hf__json_free(*object);
                *object = copy;
                copy = NULL;
        }
        hf__json_free(copy);
        hf__json_free(config);
        hf__arena_deinit(&scratch);
        return r;
}

/* ---- JSONPatch ---- */

/* Copies a text field of a JSONPatch, if it is there. */
static int put_text(struct hf__json *operation, const struct hf__cel_map *map, const char *name,
                    struct hfd_value_room *room, struct hf__strbuf *message) {
        struct hf__cel_value value;
        struct hf__json *json = NULL;
        int r;

        if (!hf__cel_map_find(map, hf__cel_string(name, strlen(name)), &value))
                return 0;
        if (value.kind != HF__CEL_STRING) {
                hf__strbuf_printf(message, "unexpected type for JSONPatchType '%s' field", name);
                return HF_E_INVALID;
        }
        r = hfd_value_to_json(value, room, &json, message);
        return r == 0 ? hf__json_add(operation, name, json) : r;
}

/* Appends one operation to the patch. 0, -ENOMEM, or HF_E_INVALID or HF_E_TOO_MANY with a message.
 */
static int operation_json(const struct hf__cel_map *map, struct hf__json *patch,
                          struct hfd_value_room *room, struct hf__strbuf *message) {
        static const char *const texts[] = {"op", "path", "from"};
        struct hf__json *operation = hf__json_object();
        struct hf__strbuf why = {.max = 1024};
        struct hf__cel_value value;
        struct hf__json *json = NULL;
        int r = operation ? 0 : -ENOMEM;

        for (size_t i = 0; i < 3 && r == 0; i++)
                r = put_text(operation, map, texts[i], room, message);
        if (r == 0 && hf__cel_map_find(map, hf__cel_string("value", 5), &value)) {
                r = hfd_value_check_types(value, *room, &why);
                if (r > 0)
                        hf__strbuf_printf(message, "type mismatch: %s", why.data ? why.data : "");
                if (r == 0) {
                        r = hfd_value_to_json(value, room, &json, &why);
                        if (r > 0)
                                hf__strbuf_printf(message,
                                                  "JSONPath valueExpression evaluated to a type "
                                                  "that could not marshal to JSON: %s",
                                                  why.data ? why.data : "");
                }
                if (r == 0)
                        r = hf__json_add(operation, "value", json);
        }
        hf__strbuf_done(&why);
        if (r == 0)
                return hf__json_append(patch, operation);
        hf__json_free(operation);
        return r;
}

/* The compiler has checked the list, but lets null stand where an object is wanted, and dyn
 * anywhere: [JSONPatch{}] + dyn([1]) has the type of a list of JSONPatch. */
static bool is_operation(struct hf__cel_value item) {
        return item.kind == HF__CEL_OBJECT &&
               strcmp(hf__cel_type_name(hf__cel_value_type(item)), "JSONPatch") == 0;
}

static int refuse_item(struct hf__cel_value item, struct hf__strbuf *message) {
        hf__strbuf_printf(message,
                          "type mismatch: JSONPatchType.expression should evaluate to array of "
                          "JSONPatch: type conversion error from '%s' to '*mutation.JSONPatchVal'",
                          hf__cel_type_name(hf__cel_value_type(item)));
        return HF_E_INVALID;
}

/* The limit is the one for the JSON patches of clients. An expression can make a list of any length
 * within its budget. All operations share one room, because they may all add the same value. */
static int make_patch(struct hf__cel_value value, struct hfd_value_room *room,
                      struct hf__json *patch, struct hf__strbuf *message) {
        int r = 0;

        if (value.as.list->n > HFD_PATCH_OPS_MAX) {
                hf__strbuf_puts(message, "JSON Patch: there are too many operations");
                return HF_E_TOO_MANY;
        }
        for (size_t i = 0; i < value.as.list->n && r == 0; i++) {
                struct hf__cel_value item = hf__cel_list_at(value.as.list, i);

                if (is_operation(item))
                        r = operation_json(item.as.map, patch, room, message);
                else
                        r = refuse_item(item, message);
        }
        return r;
}

/* Returns the result for a patch that could not be applied, and sets the message unless the result
 * is 0. A test that fails is no error (0), because a policy uses tests as conditions for the other
 * operations. HF_E_TOO_MANY: the limit of steps or of levels is exceeded, which Kubernetes does not
 * have. HF_E_INVALID: all other reasons, also the limit of copies, which Kubernetes has too. */
static int judge_failure(const struct hfd_patch_outcome *outcome, struct hf__strbuf *message) {
        if (outcome->test_failed)
                return 0;
        hf__strbuf_printf(message, "JSON Patch: %s", outcome->why);
        return outcome->steps > HFD_PATCH_STEPS_MAX || outcome->too_deep ? HF_E_TOO_MANY
                                                                         : HF_E_INVALID;
}

/* Applies the operations to a copy, and puts it in the place of the object. */
static int apply_operations(const struct hf__json *operations, size_t *steps,
                            struct hf__json **object, struct hf__strbuf *message) {
        struct hf__json *copy = hf__json_dup(*object);
        struct hfd_patch_outcome outcome = {0};
        int r = copy ? hfd_json_patch_apply(&copy, operations, &outcome) : -ENOMEM;

        if (r > 0) {
                r = judge_failure(&outcome, message);
        } else if (r == 0 && outcome.steps > *steps) {
                hf__strbuf_puts(message, "JSON Patch: the policies change too much");
                r = HF_E_TOO_MANY;
        } else if (r == 0 && !hf__json_is_object(copy)) {
                hf__strbuf_puts(message, "JSON Patch: the result is not an object");
                r = HF_E_INVALID;
        } else if (r == 0) {
                hf__json_free(*object);
                *object = copy;
                copy = NULL;
        }
        *steps -= outcome.steps < *steps ? outcome.steps : *steps;
        hf__json_free(copy);
        return r;
}

static int apply_patch(struct hf__cel_value value, struct hfd_value_room *room, size_t *steps,
                       struct hf__json **object, struct hf__strbuf *message) {
        struct hf__json *operations = hf__json_array();
        int r = operations ? make_patch(value, room, operations, message) : -ENOMEM;

        if (r == 0)
                r = apply_operations(operations, steps, object, message);
        hf__json_free(operations);
        return r;
}

/* The compiler has checked the type of the expression. But in CEL null is assignable to the type of
 * any object, and dyn to every type, so the value may be something else. */
int hfd_mutation_apply(const struct hfd_resource *kind, bool apply, struct hf__cel_value value,
                       struct hfd_mutation_room *room, struct hf__json **object,
                       struct hf__strbuf *reterr_message) {
        const struct hfd_value_room most = HFD_VALUE_ROOM;
        struct hfd_value_room own = room->values, before;
        int r;

        assert(*object);
        if (apply && value.kind != HF__CEL_OBJECT) {
                hf__strbuf_printf(reterr_message,
                                  "unsupported return type from ApplyConfiguration expression: %s",
                                  hf__cel_type_name(hf__cel_value_type(value)));
                return HF_E_INVALID;
        }
        if (!apply && value.kind != HF__CEL_LIST) {
                hf__strbuf_puts(reterr_message,
                                "type mismatch: JSONPatchType.expression should evaluate to array");
                return HF_E_INVALID;
        }
        own.parts = own.parts < most.parts ? own.parts : most.parts;
        own.bytes = own.bytes < most.bytes ? own.bytes : most.bytes;
        before = own;
        r = apply ? merge_configuration(kind, value, &own, object, reterr_message)
                  : apply_patch(value, &own, &room->steps, object, reterr_message);
        room->values.parts -= before.parts - own.parts;
        room->values.bytes -= before.bytes - own.bytes;
        return r;
}
