/* SPDX-License-Identifier: Apache-2.0 */
#include "client/resource_path.h"

#include "base/strbuf.h"

static bool given(const char *text) { return text && text[0]; }

static void add_segment(struct hf__strbuf *out, const char *segment) {
        hf__strbuf_putc(out, '/');
        hf__strbuf_urlencode(out, segment);
}

static void add_collection(struct hf__strbuf *out, const struct hf_resource *resource,
                           const char *ns) {
        if (given(resource->group)) {
                hf__strbuf_puts(out, "/apis");
                add_segment(out, resource->group);
        } else {
                hf__strbuf_puts(out, "/api");
        }
        add_segment(out, resource->version);
        if (given(ns)) {
                hf__strbuf_puts(out, "/namespaces");
                add_segment(out, ns);
        }
        add_segment(out, resource->plural);
}

void hf__resource_path(struct hf__strbuf *out, const struct hf_request *request) {
        const char *query = request->query;

        add_collection(out, &request->resource, request->ns);
        if (given(request->name)) {
                add_segment(out, request->name);
                if (given(request->subresource))
                        add_segment(out, request->subresource);
        }
        if (given(query)) {
                hf__strbuf_putc(out, '?');
                hf__strbuf_puts(out, query);
        }
}

void hf__watch_path(struct hf__strbuf *out, const struct hf_watch_spec *spec, unsigned timeout_s) {
        add_collection(out, &spec->resource, spec->ns);
        hf__strbuf_puts(out, "?watch=1");
        if (given(spec->name)) { /* one object is watched as a collection of one */
                hf__strbuf_puts(out, "&fieldSelector=metadata.name%3D");
                hf__strbuf_urlencode(out, spec->name);
        }
        if (given(spec->resource_version)) {
                hf__strbuf_puts(out, "&resourceVersion=");
                hf__strbuf_urlencode(out, spec->resource_version);
        }
        if (spec->bookmarks)
                hf__strbuf_puts(out, "&allowWatchBookmarks=true");
        if (given(spec->query)) {
                hf__strbuf_putc(out, '&');
                hf__strbuf_puts(out, spec->query);
        }
        if (timeout_s)
                hf__strbuf_printf(out, "&timeoutSeconds=%u", timeout_s);
}
