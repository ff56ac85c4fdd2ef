/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of a container's probes and lifecycle hooks (postStart, preStop). Both have a handler:
 * one action, such as an HTTP request or a command.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. The object has its defaults already: the rule for `scheme`
 * would otherwise refuse an httpGet without it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"

#define NOT_NEGATIVE "must be greater than or equal to 0"

static void validate_exec(const struct hf__json *exec, const char *field,
                          struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];

        if (!hf__json_first(hf__json_get(exec, "command")))
                hfd_cause_required(causes, hfd_field_path(path, field, "command"), "");
}

/* Kubernetes allows fewer characters in the name of a header than HTTP does. */
static bool is_header_name(const char *name) {
        static const char allowed[] =
                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";

        return *name && name[strspn(name, allowed)] == '\0';
}

static void validate_http(const struct hf__json *http, const char *field,
                          struct hfd_causes *causes) {
        static const char *const schemes[] = {"HTTP", "HTTPS", NULL};
        char path[HFD_FIELD_PATH_MAX];

        (void)hfd_require_text(http, field, "path", causes);
        hfd_port_validate(hf__json_get(http, "port"), hfd_field_path(path, field, "port"), causes);
        hfd_require_one_of(http, field, "scheme", schemes, causes);
        hfd_field_path(path, field, "httpHeaders");
        for (const struct hf__json *m = hf__json_first(hf__json_get(http, "httpHeaders")); m;
             m = hf__json_next(m))
                if (!is_header_name(hfd_text_of(m, "name")))
                        hfd_cause_invalid_text(causes, path, hfd_text_of(m, "name"),
                                               "a valid HTTP header must consist of alphanumeric "
                                               "characters or '-' (e.g. 'X-Header-Name', regex "
                                               "used for validation is '[-A-Za-z0-9]+')");
}

/* A hook that sleeps longer than the grace period of the pod would be killed. grace: that period in
 * seconds. */
static void validate_sleep(const struct hf__json *sleep, const char *field, int64_t grace,
                           struct hfd_causes *causes) {
        int64_t seconds = 0;
        char detail[96], text[32];

        (void)hf__json_integer(hf__json_get(sleep, "seconds"), &seconds);
        if (seconds >= 0 && seconds <= grace)
                return;
        (void)snprintf(text, sizeof text, "%" PRId64, seconds);
        (void)snprintf(detail, sizeof detail,
                       "must be non-negative and less than terminationGracePeriodSeconds (%" PRId64
                       ")",
                       grace);
        hfd_cause_invalid(causes, field, text, detail);
}

/* name: the member of the handler that has the action. Of tcpSocket and grpc only the port is
 * checked. */
static void validate_action(const struct hf__json *action, const char *name, const char *field,
                            int64_t grace, struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];

        if (strcmp(name, "exec") == 0)
                validate_exec(action, field, causes);
        else if (strcmp(name, "httpGet") == 0)
                validate_http(action, field, causes);
        else if (strcmp(name, "sleep") == 0)
                validate_sleep(action, field, grace, causes);
        else
                hfd_port_validate(hf__json_get(action, "port"), hfd_field_path(path, field, "port"),
                                  causes);
}

/* A handler must have exactly one action. Only the first one is checked further. */
static void validate_handler(const struct hf__json *handler, const char *field, int64_t grace,
                             struct hfd_causes *causes) {
        static const char *const names[] = {"exec", "httpGet", "tcpSocket", "grpc", "sleep"};
        char path[HFD_FIELD_PATH_MAX];
        bool found = false;

        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
                const struct hf__json *action = hf__json_get(handler, names[i]);
                if (!action)
                        continue;
                hfd_field_path(path, field, names[i]);
                if (found)
                        hfd_cause_forbidden(causes, path,
                                            "may not specify more than 1 handler type");
                else
                        validate_action(action, names[i], path, grace, causes);
                found = true;
        }
        if (!found)
                hfd_cause_required(causes, field, "must specify a handler type");
}

/* A failed liveness or startup probe restarts the container. So such a probe may have a
 * terminationGracePeriodSeconds of its own, and one success must be enough for it. A failed
 * readiness probe stops nothing. */
static void validate_probe(const struct hf__json *probe, const char *field, bool of_readiness,
                           int64_t grace, struct hfd_causes *causes) {
        static const char *const numbers[] = {"initialDelaySeconds", "timeoutSeconds",
                                              "periodSeconds", "successThreshold",
                                              "failureThreshold"};
        const struct hf__json *own = hf__json_get(probe, "terminationGracePeriodSeconds");
        char path[HFD_FIELD_PATH_MAX], text[32];
        int64_t seconds;

        if (!probe)
                return;
        validate_handler(probe, field, grace, causes);
        for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
                hfd_require_range(probe, field, numbers[i], 0, INT64_MAX, NOT_NEGATIVE, causes);
        hfd_require_range(probe, field, "terminationGracePeriodSeconds", 1, INT64_MAX,
                          "must be greater than 0", causes);
        if (!of_readiness) {
                hfd_require_range(probe, field, "successThreshold", 1, 1, "must be 1", causes);
        } else if (hf__json_integer(own, &seconds)) {
                (void)snprintf(text, sizeof text, "%" PRId64, seconds);
                hfd_cause_invalid(causes,
                                  hfd_field_path(path, field, "terminationGracePeriodSeconds"),
                                  text, "must not be set for readinessProbes");
        }
}

void hfd_handlers_validate(const struct hf__json *container, const char *field, int64_t grace,
                           struct hfd_causes *causes) {
        static const char *const probes[] = {"livenessProbe", "readinessProbe", "startupProbe"};
        static const char *const hooks[] = {"postStart", "preStop"};
        const struct hf__json *lifecycle = hf__json_get(container, "lifecycle");
        char path[HFD_FIELD_PATH_MAX], of_lifecycle[HFD_FIELD_PATH_MAX];

        hfd_field_path(of_lifecycle, field, "lifecycle");
        for (size_t i = 0; i < 2; i++) {
                const struct hf__json *hook = hf__json_get(lifecycle, hooks[i]);
                if (hook)
                        validate_handler(hook, hfd_field_path(path, of_lifecycle, hooks[i]), grace,
                                         causes);
        }
        for (size_t i = 0; i < 3; i++)
                validate_probe(hf__json_get(container, probes[i]),
                               hfd_field_path(path, field, probes[i]), i == 1, grace, causes);
}
