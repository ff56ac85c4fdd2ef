/* SPDX-License-Identifier: Apache-2.0 */
#include "server/controllers/gc_notice.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/time_format.h"
#include "server/controllers/object_client.h"

static const struct hf_resource events = {"", "v1", "events"};

static const char *text_of(const struct hf__json *json, const char *path) {
        const char *text = hf__json_string(json, path);
        return text ? text : "";
}

static int describe(struct hf__json *event, const struct hfd_kind_row *row, const char *ns,
                    const char *name, const char *uid) {
        char version[160];
        int r = hf__json_set_string(event, "involvedObject.kind", row->kind);

        (void)snprintf(version, sizeof version, "%s%s%s", row->resource.group,
                       *row->resource.group ? "/" : "", row->resource.version);
        if (r == 0)
                r = hf__json_set_string(event, "involvedObject.apiVersion", version);
        if (r == 0 && *ns)
                r = hf__json_set_string(event, "involvedObject.namespace", ns);
        if (r == 0)
                r = hf__json_set_string(event, "involvedObject.name", name);
        return r != 0 ? r : hf__json_set_string(event, "involvedObject.uid", uid);
}

static int say(struct hf__json *event, const char *ns, const struct hf__json *reference,
               const char *now) {
        char message[1024];
        int r = hf__json_set_string(event, "reason", "OwnerRefInvalidNamespace");

        (void)snprintf(message, sizeof message,
                       "ownerRef [%.160s/%.100s, namespace: %s, name: %.253s, uid: %.64s] does not "
                       "exist in namespace \"%s\"",
                       text_of(reference, "apiVersion"), text_of(reference, "kind"), ns,
                       text_of(reference, "name"), text_of(reference, "uid"), ns);
        if (r == 0)
                r = hf__json_set_string(event, "message", message);
        if (r == 0)
                r = hf__json_set_string(event, "type", "Warning");
        if (r == 0)
                r = hf__json_set_string(event, "source.component", "garbage-collector-controller");
        if (r == 0)
                r = hf__json_set_string(event, "firstTimestamp", now);
        if (r == 0)
                r = hf__json_set_string(event, "lastTimestamp", now);
        return r != 0 ? r : hf__json_set_i64(event, "count", 1);
}

void hfd_gc_notice(struct hf_term *term, const struct hfd_kind_row *row, const char *ns,
                   const char *name, const char *uid, const struct hf__json *reference) {
        const struct hf_clock *clock = hf_host_clock(hf_term_host(term));
        struct hf__json *event = hf__json_object();
        char full[HF_NAME_MAX + 1], now[HF__MICROTIME_MAX];
        const char *where = *ns ? ns : "default";

        /* The name is the object's and its uid's: the same event again exists already. */
        (void)snprintf(full, sizeof full, "%.180s.%.40s", name, uid);
        hf__time_format(clock->real(clock->ctx) / HF_NSEC_PER_SEC, now);
        int r = event ? hf__json_set_string(event, "kind", "Event") : -1;
        if (r == 0)
                r = hf__json_set_string(event, "apiVersion", "v1");
        if (r == 0)
                r = hf__json_set_string(event, "metadata.name", full);
        if (r == 0)
                r = hf__json_set_string(event, "metadata.namespace", where);
        if (r == 0)
                r = describe(event, row, ns, name, uid);
        if (r == 0)
                r = say(event, ns, reference, now);
        if (r == 0)
                (void)hfd_object_create(term, &events, where, event);
        hf__json_free(event);
}
