/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rule that the containers of a pod use no port of the node twice: only one of them could
 * listen on it. An init container is looked at alone, because it ends before the others start. As
 * in Kubernetes, a sidecar is looked at alone too, although it runs beside them. In a pod with
 * hostNetwork every containerPort is a port of the node (presets.c).
 *
 * Invariant: the time grows with n log n, because a client chooses the number of ports.
 */
#include <errno.h>
#include <stdio.h>

#include "base/json.h"
#include "base/json_index.h"
#include "base/strbuf.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"

/* Appends the port as "TCP//80": protocol, address and number, which together must be unique. A
 * port that is not one of the node is appended as "", so that the positions stay those of the
 * ports. 0 or -ENOMEM. */
static int append_port(struct hf__json *all, const struct hf__json *port) {
        struct hf__strbuf text = {0};
        int64_t number = 0;

        if (!hf__json_integer(hf__json_get(port, "hostPort"), &number) || number == 0)
                return hf__json_append_string(all, "");
        hf__strbuf_printf(&text, "%s/%s/%lld", hfd_text_of(port, "protocol"),
                          hfd_text_of(port, "hostIP"), (long long)number);
        int r = text.error == 0 ? hf__json_append_string(all, text.data) : -ENOMEM;
        hf__strbuf_done(&text);
        return r;
}

static int append_ports(struct hf__json *all, const struct hf__json *container) {
        int r = 0;

        for (const struct hf__json *port = hf__json_first(hf__json_get(container, "ports"));
             port && r == 0; port = hf__json_next(port))
                r = append_port(all, port);
        return r;
}

/* A cause for each port of the container that repeats an earlier one. next: the text that
 * append_ports made of the container's first port. Returns the text after that of its last port. */
static const struct hf__json *refuse_repeated(const struct hf__json *container, const char *field,
                                              const struct hf__json *next,
                                              const struct hf__json_index *index,
                                              struct hfd_causes *causes) {
        char ports[HFD_FIELD_PATH_MAX], port[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        hfd_field_path(ports, field, "ports");
        for (const struct hf__json *m = hf__json_first(hf__json_get(container, "ports")); m;
             m = hf__json_next(m), next = hf__json_next(next), i++) {
                const char *text = hf__json_text(next);
                if (*text && hf__json_index_find(index, text)->item != next)
                        hfd_cause_duplicate_text(causes,
                                                 hfd_field_path(path,
                                                                hfd_field_index(port, ports, i),
                                                                "hostPort"),
                                                 text);
        }
        return next;
}

/* With only_first the path names element 0, whichever one `first` is, as in kube-apiserver. */
void hfd_host_ports_validate(const struct hf__json *first, bool only_first, const char *field,
                             struct hfd_causes *causes) {
        struct hf__json *all = hf__json_array();
        struct hf__json_index index = {0};
        char path[HFD_FIELD_PATH_MAX];
        int r = all ? 0 : -ENOMEM;
        size_t i = 0;

        for (const struct hf__json *m = first; m && r == 0;
             m = only_first ? NULL : hf__json_next(m))
                r = append_ports(all, m);
        if (r == 0)
                r = hf__json_index_init(&index, all, NULL);
        if (hfd_causes_check(causes, r)) {
                const struct hf__json *next = hf__json_first(all);
                for (const struct hf__json *m = first; m; m = only_first ? NULL : hf__json_next(m))
                        next = refuse_repeated(m, hfd_field_index(path, field, i++), next, &index,
                                               causes);
        }
        hf__json_index_done(&index);
        hf__json_free(all);
}

/* A port of a template may leave hostPort out: the pod gets it (presets.c). */
void hfd_host_network_validate(const struct hf__json *spec, const char *field,
                               struct hfd_causes *causes) {
        char of[HFD_FIELD_PATH_MAX], ports[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];
        char list[HFD_FIELD_PATH_MAX], shown[24];
        size_t i = 0;

        if (!hf__json_bool(spec, "hostNetwork", false))
                return;
        hfd_field_path(list, field, "containers");
        for (const struct hf__json *c = hf__json_first(hf__json_get(spec, "containers")); c;
             c = hf__json_next(c)) {
                size_t k = 0;
                hfd_field_path(ports, hfd_field_index(of, list, i++), "ports");
                for (const struct hf__json *m = hf__json_first(hf__json_get(c, "ports")); m;
                     m = hf__json_next(m), k++) {
                        int64_t of_host = 0, number = 0;
                        (void)hf__json_i64(m, "hostPort", &of_host);
                        (void)hf__json_i64(m, "containerPort", &number);
                        if (of_host == 0 || of_host == number)
                                continue;
                        (void)snprintf(shown, sizeof shown, "%lld", (long long)of_host);
                        hfd_cause_invalid(causes,
                                          hfd_field_path(path, hfd_field_index(of, ports, k),
                                                         "hostPort"),
                                          shown,
                                          "must match `containerPort` when `hostNetwork` is true");
                }
        }
}
