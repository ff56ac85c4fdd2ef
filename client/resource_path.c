/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the paths of the Kubernetes API.
 *
 * Invariant: every segment that comes from the caller is percent-encoded, so that a name with a
 * slash or a question mark cannot address another object. The caller's `query` is copied unchanged,
 * because the caller has already encoded it.
 */
#include "client/resource_path.h"

#include "base/strbuf.h"

static bool is_given(const char *text) { return text && text[0]; }

static void add_segment(struct hf__strbuf *out, const char *segment) {
        hf__strbuf_putc(out, '/');
        hf__strbuf_urlencode(out, segment);
}

/* The core group has no name and is served under /api; all other groups are under /apis. */
static void add_collection(struct hf__strbuf *out, const struct hf_resource *resource,
                           const char *ns) {
        if (is_given(resource->group)) {
                hf__strbuf_puts(out, "/apis");
                add_segment(out, resource->group);
        } else {
                hf__strbuf_puts(out, "/api");
        }
        add_segment(out, resource->version);
        if (is_given(ns)) {
                hf__strbuf_puts(out, "/namespaces");
                add_segment(out, ns);
        }
        add_segment(out, resource->plural);
}

void hf__resource_path(struct hf__strbuf *out, const struct hf_request *request) {
        const char *query = request->query;

        add_collection(out, &request->resource, request->ns);
        if (is_given(request->name)) {
                add_segment(out, request->name);
                if (is_given(request->subresource))
                        add_segment(out, request->subresource);
        }
        if (is_given(query)) {
                hf__strbuf_putc(out, '?');
                hf__strbuf_puts(out, query);
        }
}

void hf__watch_path(struct hf__strbuf *out, const struct hf_watch_spec *spec, unsigned timeout_s) {
        add_collection(out, &spec->resource, spec->ns);
        hf__strbuf_puts(out, "?watch=1");
        if (is_given(spec->name)) { /* the API watches a single object through its collection */
                hf__strbuf_puts(out, "&fieldSelector=metadata.name%3D");
                hf__strbuf_urlencode(out, spec->name);
        }
        if (is_given(spec->resource_version)) {
                hf__strbuf_puts(out, "&resourceVersion=");
                hf__strbuf_urlencode(out, spec->resource_version);
        }
        if (spec->bookmarks)
                hf__strbuf_puts(out, "&allowWatchBookmarks=true");
        if (is_given(spec->query)) {
                hf__strbuf_putc(out, '&');
                hf__strbuf_puts(out, spec->query);
        }
        if (timeout_s)
                hf__strbuf_printf(out, "&timeoutSeconds=%u", timeout_s);
}
