/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration of a server-side apply, as the client has sent it.
 *
 * Invariant: its manager will own every field that hfd_write_apply_body_accept has left in it,
 * apart from those that no manager owns (server/apply/sets/unowned.c).
 */
#include "server/registry/write/apply_body.h"

#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/registry/write/body.h"
#include "server/resources/meta.h"

/* Removes all members of object but those with one of the n keys. */
static void keep_members(struct hf__json *object, const char *const *keys, size_t n) {
        struct hf__json *next;

        for (struct hf__json *m = hf__json_first(object); m; m = next) {
                bool keep = false;
                next = hf__json_next(m);
                for (size_t i = 0; i < n; i++)
                        keep = keep || strcmp(hf__json_key(m), keys[i]) == 0;
                if (!keep)
                        hf__json_free(hf__json_detach(object, m));
        }
}

/* Removes the fields that a request to this subresource does not write, so that its manager will
 * not own them. For a subresource such as status, only a few fields of metadata stay, which say
 * which version of which object the client means, and which no manager owns. 0 or -ENOMEM. */
static int remove_other_parts(const struct hfd_request *request, struct hf__json *config) {
        const struct hfd_part_rules *rules =
                hfd_resource_part_rules(request->resource, request->subresource);
        const char *const kept[] = {"apiVersion", "kind", "metadata", rules ? "spec" : "status"};
        static const char *const kept_metadata[] = {"name", "resourceVersion", "uid"};

        if (request->subresource == HFD_SUB_NONE || request->subresource == HFD_SUB_SCALE) {
                if (request->resource->subresources & HFD_SUB_STATUS)
                        hf__json_remove(config, "status");
                return 0;
        }
        keep_members(config, kept, sizeof kept / sizeof kept[0]);
        keep_members(hf__json_get(config, "metadata"), kept_metadata,
                     sizeof kept_metadata / sizeof kept_metadata[0]);
        return rules ? rules->restrict_config(request->subresource, config) : 0;
}

/*
 * A configuration must not have fields that the kind does not have, whatever fieldValidation says:
 * nobody could own them. options.strict has these fields alone. False: response is filled, with
 * Kubernetes' message.
 */
static bool refuse_unknown(struct hfd_write *w, struct hfd_response *response) {
        static const char unknown[] = "unknown field \"";
        struct hfd_strict *strict = &w->request->options.strict;
        const struct hfd_resource *resource = w->request->resource;
        size_t n = strict->n;
        struct hf__strbuf message = {0};

        if (strict->lines.error != 0) {
                hfd_response_no_memory(response);
                return false;
        }
        if (n == 0)
                return true;
        hf__strbuf_printf(&message,
                          "failed to create typed patch object (%s/%s; %s%s%s, Kind=%s): ",
                          w->request->ns, w->request->name, resource->group, "/", resource->version,
                          resource->kind);
        hf__strbuf_puts(&message, n > 1 ? "errors:" : "");
        for (const char *at = strict->lines.data; *at;) {
                size_t n_line = strcspn(at, "\n");
                /* sizeof counts the NUL, so the path has sizeof unknown bytes fewer than the line:
                 * its closing quote is left out too. */
                if (n_line > sizeof unknown && memcmp(at, unknown, sizeof unknown - 1) == 0)
                        hf__strbuf_printf(&message, "%s.%.*s: field not declared in schema",
                                          n > 1 ? "\n  " : "", (int)(n_line - sizeof unknown),
                                          at + sizeof unknown - 1);
                at += n_line + (at[n_line] == '\n');
        }
        if (message.error != 0)
                hfd_response_no_memory(response);
        else
                hfd_response_status(response, HF_E_INVALID, 500, "", message.data, NULL);
        hf__strbuf_done(&message);
        return false;
}

/* Converts the configuration to the normal form of its kind. A configuration of another kind than
 * the object, such as a Scale (registry/parts/), need not name the object, because the path does;
 * but it must not name another one. False: response is filled. */
static bool convert_config(struct hfd_write *w, struct hfd_response *response) {
        const struct hfd_request *request = w->request;

        if (!request->part_of || request->part_of == request->resource)
                return hfd_write_body_accept(w, w->body, response);
        if (!hfd_write_body_decode(w, w->body, response))
                return false;
        const char *name = hf__json_path(w->body, "metadata.name") ? request->name : "";
        return hfd_meta_accept(request->resource, request->ns, name, w->body, response);
}

/*
 * Decodes the configuration. Its unknown fields are not collected together with its duplicate ones,
 * because the number of mistakes is limited: duplicate fields, which only fieldValidation=Strict
 * refuses (patches/apply.c), could reach the limit alone and hide the unknown ones. False: response
 * is filled.
 */
static bool accept_config(struct hfd_write *w, struct hfd_response *response) {
        struct hfd_strict *strict = &w->request->options.strict, of_body = *strict;
        struct hfd_strict_mark mark = w->strict_of_body;

        *strict = (struct hfd_strict){0};
        w->strict_of_body = hfd_strict_mark(strict);
        w->accepts_config = true;
        bool accepted = convert_config(w, response) && refuse_unknown(w, response);
        w->accepts_config = false;
        hf__strbuf_done(&strict->lines);
        *strict = of_body;
        w->strict_of_body = mark;
        return accepted;
}

bool hfd_write_apply_body_accept(struct hfd_write *w, struct hfd_response *response) {
        const char *kind = hf__json_string(w->body, "kind"),
                   *version = hf__json_string(w->body, "apiVersion");
        const struct hf__json *managers;

        if (!kind || !version) {
                hfd_response_bad_request(response, "invalid object type: %.100s, Kind=%.100s",
                                         version ? version : "/", kind ? kind : "");
                return false;
        }
        managers = hf__json_path(w->body, "metadata.managedFields");
        if (managers && !hf__json_is_null(managers)) {
                hfd_response_bad_request(response, "metadata.managedFields must be nil");
                return false;
        }
        if (!accept_config(w, response))
                return false;
        if (remove_other_parts(w->request, w->body) == 0)
                return true;
        hfd_response_no_memory(response);
        return false;
}

bool hfd_write_apply_body_is_strict(const struct hfd_write *w, struct hfd_response *response) {
        const struct hfd_options *o = &w->request->options;
        struct hf__strbuf message = {0};

        if (w->strict_of_body.n == 0 || o->field_validation != HFD_FIELDS_STRICT)
                return true;
        hf__strbuf_puts(&message, "error strict decoding YAML: error converting YAML to JSON: ");
        hf__strbuf_add(&message, o->strict.lines.data, w->strict_of_body.n_bytes);
        if (message.error != 0)
                hfd_response_no_memory(response);
        else
                hfd_response_status(response, HF_E_INVALID, 400, "BadRequest", message.data, NULL);
        hf__strbuf_done(&message);
        return false;
}
