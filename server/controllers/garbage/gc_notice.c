/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Event OwnerRefInvalidNamespace. Reason, message, type and source component are those of
 * kube-controller-manager's garbage collector, so that tools that look for that Event work here
 * too.
 *
 * Invariant: the Event's name consists of the object's name and uid only. The object may be checked
 * many times, but a second create fails as long as an Event of that name exists.
 */
#include "server/controllers/garbage/gc_notice.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/time_format.h"
#include "server/controllers/base/object_client.h"
#include "server/controllers/garbage/gc_graph.h"

static const struct hf_resource events = {"", "v1", "events"};

static const char *get_text(const struct hf__json *json, const char *path) {
        const char *text = hf__json_string(json, path);
        return text ? text : "";
}

static int set_object(struct hf__json *event, const struct hfd_gc_node *node) {
        const struct hfd_kind_row *row = &node->kind->row;
        char version[160];
        int r = hf__json_set_string(event, "involvedObject.kind", row->kind);

        (void)snprintf(version, sizeof version, "%s%s%s", row->resource.group,
                       *row->resource.group ? "/" : "", row->resource.version);
        if (r == 0)
                r = hf__json_set_string(event, "involvedObject.apiVersion", version);
        if (r == 0 && *node->ns)
                r = hf__json_set_string(event, "involvedObject.namespace", node->ns);
        if (r == 0)
                r = hf__json_set_string(event, "involvedObject.name", node->name);
        return r != 0 ? r : hf__json_set_string(event, "involvedObject.uid", node->uid);
}

static int set_message(struct hf__json *event, const char *ns, const struct hf__json *reference,
                       const char *now) {
        char message[1024];
        int r = hf__json_set_string(event, "reason", "OwnerRefInvalidNamespace");

        (void)snprintf(message, sizeof message,
                       "ownerRef [%.160s/%.100s, namespace: %s, name: %.253s, uid: %.64s] does not "
                       "exist in namespace \"%s\"",
                       get_text(reference, "apiVersion"), get_text(reference, "kind"), ns,
                       get_text(reference, "name"), get_text(reference, "uid"), ns);
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

void hfd_gc_notice_create(struct hf_term *term, const struct hfd_gc_node *node,
                          const struct hf__json *reference) {
        const struct hf_clock *clock = hf_host_clock(hf_term_host(term));
        struct hf__json *event = hf__json_object();
        char name[HF_NAME_MAX + 1], now[HF__MICROTIME_MAX];
        const char *ns = *node->ns ? node->ns : "default"; /* Events always have a namespace */

        assert(node->uid);
        /* A long name is cut, so that the uid fits and keeps the Event's name unique. */
        (void)snprintf(name, sizeof name, "%.180s.%.40s", node->name, node->uid);
        hf__time_format(clock->real(clock->ctx) / HF_NSEC_PER_SEC, now);
        int r = event ? hf__json_set_string(event, "kind", "Event") : -ENOMEM;
        if (r == 0)
                r = hf__json_set_string(event, "apiVersion", "v1");
        if (r == 0)
                r = hf__json_set_string(event, "metadata.name", name);
        if (r == 0)
                r = hf__json_set_string(event, "metadata.namespace", ns);
        if (r == 0)
                r = set_object(event, node);
        if (r == 0)
                r = set_message(event, node->ns, reference, now);
        if (r == 0)
                (void)hfd_object_client_create(term, &events, ns, event);
        hf__json_free(event);
}
