/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cells of pods, services, nodes and other kinds in a Table. kubectl prints them as they are,
 * so scripts depend on each text. kube-apiserver has no common word for a missing value: some
 * columns show "<none>", others "<unset>", "<unknown>" or "N/A".
 *
 * Invariants: a cell is what kube-apiserver shows. Each put_fn appends plain text to an empty
 * buffer, which hfd_workload_put_cell turns into a string of JSON, so no put_fn escapes anything.
 */
#include "server/registry/list/cells/workload_cells.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/time_format.h"
#include "server/registry/list/cells/pod_cells.h"
#include "server/registry/list/cells/target_cells.h"
#include "server/resources/label_selector.h"

/* Appends the text of a cell. arg: what follows the ':' in the path of the column. now_s: seconds
 * since 1970. */
typedef void put_fn(struct hf__strbuf *out, const struct hf__json *object, const char *arg,
                    int64_t now_s);

/* Appends `otherwise` if nothing has been appended since n. */
static void put_otherwise(struct hf__strbuf *out, size_t n, const char *otherwise) {
        if (out->n == n)
                hf__strbuf_puts(out, otherwise);
}

/* Appends one more element of a list. n: the length of out before the list. */
static void put_element(struct hf__strbuf *out, size_t n, const char *separator, const char *text) {
        hf__strbuf_puts(out, out->n > n ? separator : "");
        hf__strbuf_puts(out, text);
}

/* ---- texts and numbers. arg: the path of the member ---- */

/* put_none and put_known differ only in the word for a missing value; so do put_applicable and
 * put_unset, which also show numbers. */
static void put_none(struct hf__strbuf *out, const struct hf__json *object, const char *arg,
                     int64_t now_s) {
        hf__strbuf_puts(out, hf__json_string_or_empty(object, arg));
        put_otherwise(out, 0, "<none>");
}

static void put_known(struct hf__strbuf *out, const struct hf__json *object, const char *arg,
                      int64_t now_s) {
        hf__strbuf_puts(out, hf__json_string_or_empty(object, arg));
        put_otherwise(out, 0, "<unknown>");
}

static void put_number_or_text(struct hf__strbuf *out, const struct hf__json *object,
                               const char *path, const char *otherwise) {
        int64_t number;

        if (hf__json_i64(object, path, &number))
                hf__strbuf_printf(out, "%" PRId64, number);
        else
                hf__strbuf_puts(out, hf__json_string_or_empty(object, path));
        put_otherwise(out, 0, otherwise);
}

static void put_applicable(struct hf__strbuf *out, const struct hf__json *object, const char *arg,
                           int64_t now_s) {
        put_number_or_text(out, object, arg, "N/A");
}

static void put_unset(struct hf__strbuf *out, const struct hf__json *object, const char *arg,
                      int64_t now_s) {
        put_number_or_text(out, object, arg, "<unset>");
}

static void put_truth(struct hf__strbuf *out, const struct hf__json *object, const char *arg,
                      int64_t now_s) {
        if (!hf__json_is_bool(hf__json_path(object, arg)))
                hf__strbuf_puts(out, "<unset>");
        else
                hf__strbuf_puts(out, hf__json_bool(object, arg, false) ? "True" : "False");
}

/* arg: two paths with a slash between them; neither path contains one. A missing number is 0, as in
 * Go: a controller leaves out the zeros of a status. */
static void put_ratio(struct hf__strbuf *out, const struct hf__json *object, const char *arg,
                      int64_t now_s) {
        size_t n = strcspn(arg, "/");
        char path[80];
        int64_t a = 0, b = 0;

        (void)snprintf(path, sizeof path, "%.*s", (int)n, arg);
        (void)hf__json_i64(object, path, &a);
        (void)hf__json_i64(object, arg + n + 1, &b);
        hf__strbuf_printf(out, "%" PRId64 "/%" PRId64, a, b);
}

/* Elements that are no strings are left out: the store may have objects that nobody has checked. */
static void put_texts(struct hf__strbuf *out, const struct hf__json *object, const char *arg,
                      int64_t now_s) {
        for (const struct hf__json *m = hf__json_first(hf__json_path(object, arg)); m;
             m = hf__json_next(m))
                if (hf__json_is_string(m))
                        put_element(out, 0, ",", hf__json_text(m));
        put_otherwise(out, 0, "<none>");
}

static void put_since(struct hf__strbuf *out, const struct hf__json *object, const char *arg,
                      int64_t now_s) {
        char age[HF__AGE_MAX] = "<none>";
        int64_t then;

        if (hf__time_parse(hf__json_string_or_empty(object, arg), &then) == 0)
                hf__age_format(now_s - then, age);
        hf__strbuf_puts(out, age);
}

/* ---- selectors ---- */

static void put_selector(struct hf__strbuf *out, const struct hf__json *object, const char *arg,
                         int64_t now_s) {
        hfd_label_selector_print(hf__json_path(object, arg), out);
        put_otherwise(out, 0, "<none>");
}

/* ---- sorted texts ---- */

static int compare_texts(const void *a, const void *b) {
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Appends n texts sorted, each once and the empty ones not at all, so that the order in an object,
 * which means nothing, does not show. texts: consumed; NULL = there was no memory for them. */
static void put_sorted(struct hf__strbuf *out, const char **texts, size_t n) {
        if (!texts)
                out->error = -ENOMEM;
        else
                qsort(texts, n, sizeof *texts, compare_texts);
        for (size_t i = 0; i < n && texts; i++)
                if (*texts[i] && (i == 0 || strcmp(texts[i], texts[i - 1]) != 0))
                        put_element(out, 0, ",", texts[i]);
        free(texts);
}

/* Room for a text of each child of the container. + 1: calloc(0) may return NULL. */
static const char **new_texts(const struct hf__json *container) {
        return calloc(hf__json_count(container) + 1, sizeof(const char *));
}

/* ---- services and their endpoints ---- */

/* The addresses of a load balancer. */
static void put_addresses(struct hf__strbuf *out, const struct hf__json *object) {
        const struct hf__json *list = hf__json_path(object, "status.loadBalancer.ingress");
        const char **texts = new_texts(list);
        size_t n = 0;

        for (const struct hf__json *m = hf__json_first(list); m && texts; m = hf__json_next(m))
                texts[n++] = *hf__json_string_or_empty(m, "ip")
                                     ? hf__json_string_or_empty(m, "ip")
                                     : hf__json_string_or_empty(m, "hostname");
        put_sorted(out, texts, n);
}

/* A load balancer without an address shows "<pending>", as users of kubectl expect who watch this
 * column until an address appears. */
static void put_external(struct hf__strbuf *out, const struct hf__json *service) {
        const char *type = hf__json_string_or_empty(service, "spec.type");

        if (strcmp(type, "ExternalName") == 0) {
                hf__strbuf_puts(out, hf__json_string_or_empty(service, "spec.externalName"));
                return;
        }
        if (strcmp(type, "LoadBalancer") == 0)
                put_addresses(out, service);
        for (const struct hf__json *m = hf__json_first(hf__json_path(service, "spec.externalIPs"));
             m; m = hf__json_next(m))
                if (hf__json_is_string(m))
                        put_element(out, 0, ",", hf__json_text(m));
        put_otherwise(out, 0, strcmp(type, "LoadBalancer") == 0 ? "<pending>" : "<none>");
}

/* arg: "external", or "ports" as in "80:30080/TCP", with the port of nodes if there is one. */
static void put_service(struct hf__strbuf *out, const struct hf__json *object, const char *arg,
                        int64_t now_s) {
        if (strcmp(arg, "external") == 0) {
                put_external(out, object);
                return;
        }
        for (const struct hf__json *m = hf__json_first(hf__json_path(object, "spec.ports")); m;
             m = hf__json_next(m)) {
                int64_t port = 0, node_port = 0;
                (void)hf__json_i64(m, "port", &port);
                hf__strbuf_printf(out, "%s%" PRId64, out->n > 0 ? "," : "", port);
                if (hf__json_i64(m, "nodePort", &node_port) && node_port > 0)
                        hf__strbuf_printf(out, ":%" PRId64, node_port);
                hf__strbuf_printf(out, "/%s", hf__json_string_or_empty(m, "protocol"));
        }
        put_otherwise(out, 0, "<none>");
}

/* Puts at most `max` of the addresses, each with the port. port NULL = without one. */
static void put_host_ports(struct hf__strbuf *out, const struct hf__json *addresses,
                           const struct hf__json *port, size_t max) {
        int64_t number = 0;

        (void)hf__json_i64(port, "port", &number);
        for (const struct hf__json *m = hf__json_first(addresses); m && max > 0;
             m = hf__json_next(m), max--) {
                const char *ip = hf__json_string_or_empty(m, "ip");

                put_element(out, 0, ",", port && strchr(ip, ':') ? "[" : "");
                hf__strbuf_puts(out, ip);
                if (port)
                        hf__strbuf_printf(out, strchr(ip, ':') ? "]:%" PRId64 : ":%" PRId64,
                                          number);
        }
}

/* Shows at most three pairs of an address and a port, and the number of the others. Endpoints
 * without a subset have "<none>"; those whose addresses are not ready have an empty cell, as in
 * Kubernetes. */
static void put_endpoints(struct hf__strbuf *out, const struct hf__json *object, const char *arg,
                          int64_t now_s) {
        const struct hf__json *subsets = hf__json_get(object, "subsets");
        size_t n = 0;

        for (const struct hf__json *subset = hf__json_first(subsets); subset;
             subset = hf__json_next(subset)) {
                const struct hf__json *addresses = hf__json_get(subset, "addresses");
                const struct hf__json *port = hf__json_first(hf__json_get(subset, "ports"));
                size_t n_addresses = hf__json_count(addresses);

                do {
                        put_host_ports(out, addresses, port, n < 3 ? 3 - n : 0);
                        n += n_addresses;
                        port = hf__json_next(port);
                } while (port);
        }
        if (n > 3)
                hf__strbuf_printf(out, " + %zu more...", n - 3);
        if (!hf__json_first(subsets))
                hf__strbuf_puts(out, "<none>");
}

/* arg: "ports" or "endpoints". Shows at most three of them. A port without a number shows its name;
 * one without both shows "*", any port. */
static void put_slice(struct hf__strbuf *out, const struct hf__json *object, const char *arg,
                      int64_t now_s) {
        size_t n = 0;

        if (strcmp(arg, "ports") == 0) {
                for (const struct hf__json *m = hf__json_first(hf__json_get(object, "ports")); m;
                     m = hf__json_next(m), n++) {
                        int64_t port;
                        const char *name = hf__json_string(m, "name");
                        if (n >= 3)
                                continue;
                        hf__strbuf_puts(out, n > 0 ? "," : "");
                        if (hf__json_i64(m, "port", &port))
                                hf__strbuf_printf(out, "%" PRId64, port);
                        else
                                hf__strbuf_puts(out, name ? name : "*");
                }
        } else {
                for (const struct hf__json *m = hf__json_first(hf__json_get(object, "endpoints"));
                     m; m = hf__json_next(m))
                        for (const struct hf__json *address =
                                     hf__json_first(hf__json_get(m, "addresses"));
                             address; address = hf__json_next(address), n++)
                                if (n < 3 && hf__json_is_string(address))
                                        put_element(out, 0, ",", hf__json_text(address));
        }
        if (n > 3)
                hf__strbuf_printf(out, " + %zu more...", n - 3);
        put_otherwise(out, 0, "<unset>");
}

/* arg: "address", "ports" or "hosts". */
static void put_ingress(struct hf__strbuf *out, const struct hf__json *object, const char *arg,
                        int64_t now_s) {
        if (strcmp(arg, "address") == 0) {
                put_addresses(out, object);
                return;
        }
        if (strcmp(arg, "ports") == 0) {
                hf__strbuf_puts(out, hf__json_first(hf__json_path(object, "spec.tls")) ? "80, 443"
                                                                                       : "80");
                return;
        }
        const struct hf__json *rules = hf__json_path(object, "spec.rules");
        size_t n = 0;
        for (const struct hf__json *m = hf__json_first(rules); m; m = hf__json_next(m)) {
                if (n == 3) { /* as in Kubernetes, also if no other rule has a host */
                        hf__strbuf_printf(out, " + %zu more...", hf__json_count(rules) - n);
                        return;
                }
                if (*hf__json_string_or_empty(m, "host")) {
                        put_element(out, 0, ",", hf__json_string_or_empty(m, "host"));
                        n++;
                }
        }
        put_otherwise(out, 0, "*");
}

/* ---- nodes and volumes ---- */

static void put_node_status(struct hf__strbuf *out, const struct hf__json *node) {
        for (const struct hf__json *m = hf__json_first(hf__json_path(node, "status.conditions")); m;
             m = hf__json_next(m))
                if (hf__json_has_text(m, "type", "Ready"))
                        put_element(out, 0, ",",
                                    hf__json_has_text(m, "status", "True") ? "Ready" : "NotReady");
        put_otherwise(out, 0, "Unknown");
        if (hf__json_bool(node, "spec.unschedulable", false))
                put_element(out, 0, ",", "SchedulingDisabled");
}

/* A role is the end of the key of a label, or the value of one older label. */
static void put_node_roles(struct hf__strbuf *out, const struct hf__json *node) {
        static const char prefix[] = "node-role.kubernetes.io/";
        const struct hf__json *labels = hf__json_path(node, "metadata.labels");
        const char **texts = new_texts(labels);
        size_t n = 0;

        for (const struct hf__json *m = hf__json_first(labels); m && texts; m = hf__json_next(m))
                if (strncmp(hf__json_key(m), prefix, sizeof prefix - 1) == 0)
                        texts[n++] = hf__json_key(m) + sizeof prefix - 1;
                else if (strcmp(hf__json_key(m), "kubernetes.io/role") == 0 &&
                         hf__json_is_string(m)) /* the store may have a label that is no text */
                        texts[n++] = hf__json_text(m);
        put_sorted(out, texts, n);
        put_otherwise(out, 0, "<none>");
}

/* arg: "status", "roles", or the type of an address, of which the first one is shown. */
static void put_node(struct hf__strbuf *out, const struct hf__json *object, const char *arg,
                     int64_t now_s) {
        if (strcmp(arg, "status") == 0) {
                put_node_status(out, object);
                return;
        }
        if (strcmp(arg, "roles") == 0) {
                put_node_roles(out, object);
                return;
        }
        for (const struct hf__json *m = hf__json_first(hf__json_path(object, "status.addresses"));
             m && out->n == 0; m = hf__json_next(m))
                if (hf__json_has_text(m, "type", arg))
                        hf__strbuf_puts(out, hf__json_string_or_empty(m, "address"));
        put_otherwise(out, 0, "<none>");
}

/* In the order of this table, whatever the order in the object, and each mode once. */
static void put_modes(struct hf__strbuf *out, const struct hf__json *object, const char *arg,
                      int64_t now_s) {
        static const char *const names[][2] = {{"ReadWriteOnce", "RWO"},
                                               {"ReadOnlyMany", "ROX"},
                                               {"ReadWriteMany", "RWX"},
                                               {"ReadWriteOncePod", "RWOP"}};

        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
                if (hf__json_has_element(hf__json_path(object, arg), names[i][0]))
                        put_element(out, 0, ",", names[i][1]);
}

/* Empty for a volume without a claim. */
static void put_claim(struct hf__strbuf *out, const struct hf__json *object, const char *arg,
                      int64_t now_s) {
        if (hf__json_path(object, "spec.claimRef"))
                hf__strbuf_printf(out, "%s/%s",
                                  hf__json_string_or_empty(object, "spec.claimRef.namespace"),
                                  hf__json_string_or_empty(object, "spec.claimRef.name"));
}

/* ---- references ---- */

static void put_lower(struct hf__strbuf *out, const char *text) {
        for (; *text; text++)
                hf__strbuf_putc(out, (char)tolower((unsigned char)*text));
}

/* The owner that is the controller, as kubectl names objects: "replicaset.apps/web". */
static void put_owner(struct hf__strbuf *out, const struct hf__json *object, const char *arg,
                      int64_t now_s) {
        for (const struct hf__json *m =
                     hf__json_first(hf__json_path(object, "metadata.ownerReferences"));
             m && out->n == 0; m = hf__json_next(m)) {
                if (!hf__json_bool(m, "controller", false))
                        continue;
                const char *version = hf__json_string_or_empty(m, "apiVersion"),
                           *slash = strchr(version, '/');
                put_lower(out, hf__json_string_or_empty(m, "kind"));
                if (slash)
                        hf__strbuf_printf(out, ".%.*s", (int)(slash - version), version);
                hf__strbuf_printf(out, "/%s", hf__json_string_or_empty(m, "name"));
        }
        put_otherwise(out, 0, "<none>");
}

/* The kind keeps its capitals here, unlike in put_owner. */
static void put_scaled(struct hf__strbuf *out, const struct hf__json *object, const char *arg,
                       int64_t now_s) {
        hf__strbuf_printf(out, "%s/%s",
                          hf__json_string_or_empty(object, "spec.scaleTargetRef.kind"),
                          hf__json_string_or_empty(object, "spec.scaleTargetRef.name"));
}

static void put_parameters(struct hf__strbuf *out, const struct hf__json *object, const char *arg,
                           int64_t now_s) {
        const struct hf__json *parameters = hf__json_path(object, "spec.parameters");

        if (parameters) {
                hf__strbuf_puts(out, hf__json_string_or_empty(parameters, "kind"));
                if (*hf__json_string_or_empty(parameters, "apiGroup"))
                        hf__strbuf_printf(out, ".%s",
                                          hf__json_string_or_empty(parameters, "apiGroup"));
                hf__strbuf_printf(out, "/%s", hf__json_string_or_empty(parameters, "name"));
        }
        put_otherwise(out, 0, "<none>");
}

/* Only the resource and its group are in lower case. */
static void put_parent(struct hf__strbuf *out, const struct hf__json *object, const char *arg,
                       int64_t now_s) {
        const struct hf__json *parent = hf__json_path(object, "spec.parentRef");

        if (!hf__json_is_object(parent)) {
                hf__strbuf_puts(out, "<none>");
                return;
        }
        put_lower(out, hf__json_string_or_empty(parent, "resource"));
        if (*hf__json_string_or_empty(parent, "group")) {
                hf__strbuf_putc(out, '.');
                put_lower(out, hf__json_string_or_empty(parent, "group"));
        }
        if (*hf__json_string_or_empty(parent, "namespace"))
                hf__strbuf_printf(out, "/%s", hf__json_string_or_empty(parent, "namespace"));
        hf__strbuf_printf(out, "/%s", hf__json_string_or_empty(parent, "name"));
}

/* ---- classes and drivers ---- */

/* arg: the kind in the key of the annotation that marks the default class. */
static void put_class(struct hf__strbuf *out, const struct hf__json *object, const char *arg,
                      int64_t now_s) {
        static const char *const domains[] = {".kubernetes.io", ".beta.kubernetes.io"};
        const struct hf__json *annotations = hf__json_path(object, "metadata.annotations");
        size_t n = strcmp(arg, "storageclass") == 0 ? 2 : 1; /* others have had no beta */
        bool is_default = false;
        char key[64];

        for (size_t i = 0; i < n; i++) {
                (void)snprintf(key, sizeof key, "%s%s/is-default-class", arg, domains[i]);
                const struct hf__json *value = hf__json_get(annotations, key);
                is_default = is_default || (hf__json_is_string(value) &&
                                            strcmp(hf__json_text(value), "true") == 0);
        }
        hf__strbuf_printf(out, "%s%s", hf__json_string_or_empty(object, "metadata.name"),
                          is_default ? " (default)" : "");
}

static void put_audiences(struct hf__strbuf *out, const struct hf__json *object, const char *arg,
                          int64_t now_s) {
        const struct hf__json *requests = hf__json_path(object, "spec.tokenRequests");
        size_t n = 0;

        for (const struct hf__json *m = hf__json_first(requests); m; m = hf__json_next(m), n++) {
                hf__strbuf_puts(out, n > 0 ? "," : "");
                /* An empty audience, which means that of the API server, is shown as it is. */
                hf__strbuf_puts(out, hf__json_string_or_empty(m, "audience"));
        }
        if (n == 0)
                hf__strbuf_puts(out, "<unset>");
}

static void put_pod(struct hf__strbuf *out, const struct hf__json *object, const char *arg,
                    int64_t now_s) {
        hfd_pod_put_cell(out, object, arg, now_s);
}

static void put_job(struct hf__strbuf *out, const struct hf__json *object, const char *arg,
                    int64_t now_s) {
        hfd_job_put_cell(out, object, arg, now_s);
}

static void put_targets(struct hf__strbuf *out, const struct hf__json *object, const char *arg,
                        int64_t now_s) {
        hfd_target_put_cell(out, object);
}

/* ---- all of them ---- */

/* Searched linearly: a Table has a dozen columns, and a walk over this table costs less than the
 * parsing of one object. */
static const struct {
        const char *name;
        put_fn *put;
} cells[] = {{"@audiences", put_audiences},
             {"@claim", put_claim},
             {"@class", put_class},
             {"@endpoints", put_endpoints},
             {"@ingress", put_ingress},
             {"@job", put_job},
             {"@known", put_known},
             {"@modes", put_modes},
             {"@n/a", put_applicable},
             {"@node", put_node},
             {"@none", put_none},
             {"@owner", put_owner},
             {"@parameters", put_parameters},
             {"@parent", put_parent},
             {"@pod", put_pod},
             {"@ratio", put_ratio},
             {"@scaled", put_scaled},
             {"@selector", put_selector},
             {"@service", put_service},
             {"@since", put_since},
             {"@slice", put_slice},
             {"@targets", put_targets},
             {"@texts", put_texts},
             {"@truth", put_truth},
             {"@unset", put_unset}};

bool hfd_workload_put_cell(struct hf__strbuf *s, const struct hf__json *object, const char *path,
                           int64_t now_s) {
        size_t n = strcspn(path, ":"), i = 0;
        struct hf__strbuf text = {0};

        while (i < sizeof cells / sizeof cells[0] &&
               (strlen(cells[i].name) != n || memcmp(cells[i].name, path, n) != 0))
                i++;
        if (i == sizeof cells / sizeof cells[0])
                return false;
        cells[i].put(&text, object, path[n] == ':' ? path + n + 1 : "", now_s);
        hf__strbuf_json(s, text.data ? text.data : "", text.n);
        if (text.error != 0)
                s->error = text.error;
        hf__strbuf_done(&text);
        return true;
}
