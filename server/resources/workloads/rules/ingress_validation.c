/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of Ingresses and IngressClasses.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. An update that does not change the spec is not checked
 * (hfd_spec_is_kept), so an object that an older server accepted can still be labelled and deleted.
 */
#include <string.h>

#include "base/json.h"
#include "server/resources/custom/schema/formats/formats.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/validation/names.h"
#include "server/resources/workloads/workloads.h"

#define CONTROLLER_MAX 250 /* bytes of spec.controller of an IngressClass */

/* ---- backends ---- */

/* field: the path of the backend. As in kube-apiserver, the causes for a port that has both a name
 * and a number, or neither, have this path, not that of the port. */
static void validate_service(const struct hf__json *service, const char *field,
                             struct hfd_causes *causes) {
        const struct hf__json *port = hf__json_get(service, "port");
        char path[HFD_FIELD_PATH_MAX], member[HFD_FIELD_PATH_MAX], number_path[HFD_FIELD_PATH_MAX];
        const char *name = hfd_text_of(port, "name");
        int64_t number = 0;

        hfd_field_path(path, field, "service");
        hfd_label_name_validate(service, path, "name", causes);
        (void)hf__json_i64(port, "number", &number);
        hfd_field_path(member, path, "port");
        if (*name && number != 0)
                hfd_cause_invalid_text(causes, field, "",
                                       "cannot set both port name & port number");
        else if (*name)
                hfd_port_name_validate(name, hfd_field_path(number_path, member, "name"), causes);
        else if (number != 0)
                hfd_port_validate(hf__json_get(port, "number"),
                                  hfd_field_path(number_path, member, "number"), causes);
        else
                hfd_cause_required(causes, field, "port name or number is required");
}

static void validate_backend(const struct hf__json *backend, const char *field,
                             struct hfd_causes *causes) {
        const struct hf__json *resource = hf__json_get(backend, "resource"),
                              *service = hf__json_get(backend, "service");
        char path[HFD_FIELD_PATH_MAX];

        if (resource && service) {
                hfd_cause_invalid_text(causes, field, "",
                                       "cannot set both resource and service backends");
        } else if (resource) {
                hfd_field_path(path, field, "resource");
                (void)hfd_require_text(resource, path, "kind", causes);
                (void)hfd_require_text(resource, path, "name", causes);
        } else if (service) {
                validate_service(service, field, causes);
        } else {
                hfd_cause_invalid_text(causes, field, "",
                                       "resource or service backend is required");
        }
}

/* ---- paths ---- */

/* The path of a rule of type Exact or Prefix. Parts that programs normalize in different ways are
 * refused, because with them two programs could match different rules. */
static void validate_path_text(const char *text, const char *field, struct hfd_causes *causes) {
        static const struct {
                const char *text, *why;
        } inside[] = {{"//", "must not contain '//'"},
                      {"/./", "must not contain '/./'"},
                      {"/../", "must not contain '/../'"},
                      {"%2f", "must not contain '%2f'"},
                      {"%2F", "must not contain '%2F'"}},
          ends[] = {{"/..", "cannot end with '/..'"}, {"/.", "cannot end with '/.'"}};
        size_t n = strlen(text);

        if (*text != '/')
                hfd_cause_invalid_text(causes, field, text, "must be an absolute path");
        for (size_t i = 0; i < sizeof inside / sizeof inside[0]; i++)
                if (strstr(text, inside[i].text))
                        hfd_cause_invalid_text(causes, field, text, inside[i].why);
        for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
                if (n >= strlen(ends[i].text) &&
                    strcmp(text + n - strlen(ends[i].text), ends[i].text) == 0)
                        hfd_cause_invalid_text(causes, field, text, ends[i].why);
}

/* The syntax of a path depends on its type: a controller defines what ImplementationSpecific means,
 * so then only the first character is checked. */
static void validate_path(const struct hf__json *path, const char *field,
                          struct hfd_causes *causes) {
        const char *type = hfd_text_of(path, "pathType"), *text = hfd_text_of(path, "path");
        char member[HFD_FIELD_PATH_MAX];

        if (!hf__json_get(path, "pathType")) {
                hfd_cause_required(causes, hfd_field_path(member, field, "pathType"),
                                   "pathType must be specified");
                return;
        }
        hfd_field_path(member, field, "path");
        if (strcmp(type, "Exact") == 0 || strcmp(type, "Prefix") == 0)
                validate_path_text(text, member, causes);
        else if (strcmp(type, "ImplementationSpecific") != 0)
                hfd_cause_unsupported_text(causes, hfd_field_path(member, field, "pathType"), type,
                                           "\"Exact\", \"ImplementationSpecific\", \"Prefix\"");
        else if (*text && *text != '/')
                hfd_cause_invalid_text(causes, member, text, "must be an absolute path");
        validate_backend(hf__json_get(path, "backend"), hfd_field_path(member, field, "backend"),
                         causes);
}

/* ---- rules ---- */

/* The host is a DNS name, whose first label may be "*". If what follows "*." is too long by itself,
 * only the length is looked at. */
static void validate_host(const char *host, const char *field, struct hfd_causes *causes) {
        if (!strchr(host, '*')) {
                hfd_subdomain_validate(host, field, causes);
                return;
        }
        if (strlen(host) > HFD_DNS_SUBDOMAIN_MAX)
                hfd_cause_invalid_text(causes, field, host, "must be no more than 253 characters");
        if (strncmp(host, "*.", 2) != 0 ||
            (strlen(host + 2) <= HFD_DNS_SUBDOMAIN_MAX && !hfd_is_dns_subdomain(host + 2)))
                hfd_cause_invalid_text(causes, field, host,
                                       "a wildcard DNS-1123 subdomain must start with '*.', "
                                       "followed by a valid DNS subdomain, which must consist of "
                                       "lower case alphanumeric characters, '-' or '.' and end "
                                       "with an alphanumeric character (e.g. '*.example.com', "
                                       "regex used for validation is "
                                       "'\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]"
                                       "([-a-z0-9]*[a-z0-9])?)*')");
}

static void validate_rule(const struct hf__json *rule, const char *field,
                          struct hfd_causes *causes) {
        const struct hf__json *http = hf__json_get(rule, "http");
        const char *host = hfd_text_of(rule, "host");
        char paths[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        hfd_field_path(path, field, "host");
        if (hfd_is_ipv4(host) || hfd_is_ipv6(host))
                hfd_cause_invalid_text(causes, path, host, "must be a DNS name, not an IP address");
        if (*host)
                validate_host(host, path, causes);
        if (!http)
                return;
        hfd_field_path(path, field, "http");
        hfd_field_path(paths, path, "paths");
        if (!hf__json_first(hf__json_get(http, "paths")))
                hfd_cause_required(causes, paths, "");
        for (const struct hf__json *m = hf__json_first(hf__json_get(http, "paths")); m;
             m = hf__json_next(m))
                validate_path(m, hfd_field_index(path, paths, i++), causes);
}

/* An element of spec.tls. */
static void validate_hosts(const struct hf__json *tls, const char *field,
                           struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX], host[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        hfd_field_path(path, field, "hosts");
        for (const struct hf__json *m = hf__json_first(hf__json_get(tls, "hosts")); m;
             m = hf__json_next(m))
                validate_host(hf__json_is_string(m) ? hf__json_text(m) : "",
                              hfd_field_index(host, path, i++), causes);
        if (*hfd_text_of(tls, "secretName"))
                hfd_subdomain_validate(hfd_text_of(tls, "secretName"),
                                       hfd_field_path(path, field, "secretName"), causes);
}

/* A new Ingress may also name its class in the older annotation, if it is the same class. */
static void validate_class_annotation(const struct hf__json *object, struct hfd_causes *causes) {
        static const char key[] = "kubernetes.io/ingress.class";
        const char *class = hf__json_string(object, "spec.ingressClassName"),
                   *annotation = hf__json_text(
                           hf__json_get(hf__json_path(object, "metadata.annotations"), key));

        if (class && annotation && strcmp(class, annotation) != 0)
                hfd_cause_invalid_text(causes, "annotations.kubernetes.io/ingress.class",
                                       annotation,
                                       "must match `ingressClassName` when both are specified");
}

void hfd_ingress_validate(const struct hf__json *object, const struct hf__json *old,
                          struct hfd_causes *causes) {
        const struct hf__json *spec = hf__json_get(object, "spec"),
                              *rules = hf__json_get(spec, "rules"),
                              *backend = hf__json_get(spec, "defaultBackend");
        char path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        if (hfd_spec_is_kept(&hfd_ingress_schema, object, old, causes))
                return;
        if (!hf__json_first(rules) && !backend)
                hfd_cause_invalid(causes, "spec", "null",
                                  "either `defaultBackend` or `rules` must be specified");
        if (backend)
                validate_backend(backend, "spec.defaultBackend", causes);
        for (const struct hf__json *m = hf__json_first(rules); m; m = hf__json_next(m))
                validate_rule(m, hfd_field_index(path, "spec.rules", i++), causes);
        i = 0;
        for (const struct hf__json *m = hf__json_first(hf__json_get(spec, "tls")); m;
             m = hf__json_next(m))
                validate_hosts(m, hfd_field_index(path, "spec.tls", i++), causes);
        if (hf__json_get(spec, "ingressClassName"))
                hfd_subdomain_validate(hfd_text_of(spec, "ingressClassName"),
                                       "spec.ingressClassName", causes);
        if (!old)
                validate_class_annotation(object, causes);
}

/* ---- classes ---- */

static void validate_controller(const char *name, struct hfd_causes *causes) {
        static const char field[] = "spec.controller";

        if (strlen(name) > CONTROLLER_MAX)
                hfd_cause_too_long(causes, field, "may not be more than 250 bytes");
        else
                hfd_domain_path_validate(name, field, causes);
}

/* The reference to an object with parameters for the controller. Only one with the scope Namespace
 * has a namespace. */
static void validate_parameters(const struct hf__json *parameters, struct hfd_causes *causes) {
        static const char field[] = "spec.parameters";
        const char *scope = hfd_text_of(parameters, "scope");
        const struct hf__json *namespace = hf__json_get(parameters, "namespace");

        if (hf__json_get(parameters, "apiGroup"))
                hfd_subdomain_validate(hfd_text_of(parameters, "apiGroup"),
                                       "spec.parameters.apiGroup", causes);
        if (!*hfd_text_of(parameters, "kind"))
                hfd_cause_required(causes, "spec.parameters.kind", "kind is required");
        if (!*hfd_text_of(parameters, "name"))
                hfd_cause_required(causes, "spec.parameters.name", "name is required");
        if (strcmp(scope, "Namespace") == 0 && !namespace)
                hfd_cause_required(causes, "spec.parameters.namespace",
                                   "`parameters.scope` is set to 'Namespace'");
        else if (strcmp(scope, "Namespace") == 0)
                hfd_label_name_validate(parameters, field, "namespace", causes);
        else if (strcmp(scope, "Cluster") != 0)
                hfd_cause_unsupported_text(causes, "spec.parameters.scope", scope,
                                           "\"Cluster\", \"Namespace\"");
        else if (namespace)
                hfd_cause_forbidden(causes, "spec.parameters.namespace",
                                    "`parameters.scope` is set to 'Cluster'");
}

/* Whether an update leaves the parameters as they are. A class may have been stored before `scope`
 * had a default, so an absent old scope is Cluster. */
static bool keeps_parameters(const struct hf__json *parameters, const struct hf__json *was,
                             struct hfd_causes *causes) {
        static const char *const members[] = {"apiGroup", "kind", "name", "namespace"};
        const char *scope = hfd_text_of(was, "scope");

        if (!was || strcmp(hfd_text_of(parameters, "scope"), *scope ? scope : "Cluster") != 0)
                return false;
        for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
                if (!hfd_causes_equal(causes, hf__json_get(parameters, members[i]),
                                      hf__json_get(was, members[i])))
                        return false;
        return true;
}

/* If an update changes only one of controller and parameters, the other one is not checked: it may
 * be older than the rules. */
void hfd_ingress_class_validate(const struct hf__json *object, const struct hf__json *old,
                                struct hfd_causes *causes) {
        const struct hf__json *spec = hf__json_get(object, "spec"),
                              *was = hf__json_get(old, "spec"),
                              *parameters = hf__json_get(spec, "parameters");
        const char *controller = hfd_text_of(spec, "controller");
        bool is_same = old && strcmp(controller, hfd_text_of(was, "controller")) == 0;

        if (hfd_spec_is_kept(&hfd_ingress_class_schema, object, old, causes))
                return;
        if (old && !is_same)
                hfd_cause_invalid_text(causes, "spec.controller", controller, "field is immutable");
        if (!is_same)
                validate_controller(controller, causes);
        if (parameters && !keeps_parameters(parameters, hf__json_get(was, "parameters"), causes))
                validate_parameters(parameters, causes);
}
