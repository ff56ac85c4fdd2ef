/* SPDX-License-Identifier: Apache-2.0 */
#include "server/registry/options.h"

#include "server/registry/request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/utf8.h"
#include "server/resources/causes.h"

static int hex(char c) {
        return c >= '0' && c <= '9'   ? c - '0'
               : c >= 'a' && c <= 'f' ? c - 'a' + 10
               : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                      : -1;
}

static bool url_decode(char *text, bool plus) {
        char *out = text;

        for (char *c = text; *c; c++) {
                if (*c == '%') {
                        int high = hex(c[1]), low = high < 0 ? -1 : hex(c[2]);
                        if (low < 0 || (high == 0 && low == 0))
                                return false;
                        *out++ = (char)(high * 16 + low);
                        c += 2;
                } else {
                        *out++ = plus && *c == '+' ? ' ' : *c;
                }
        }
        *out = '\0';
        return hf__utf8_valid(text,
                              (size_t)(out -
                                       text)); /* what is asked for is said again in answers */
}

void hfd_options_done(struct hfd_options *options) {
        hfd_selector_done(&options->labels);
        hfd_selector_done(&options->fields);
        free(options->continue_token);
        free(options->unknown_fields);
        *options = (struct hfd_options){0};
}

static bool read_u64(const char *text, uint64_t *ret_value) {
        char *end;

        if (*text < '0' || *text > '9')
                return false;
        errno = 0;
        *ret_value = strtoull(text, &end, 10);
        return !*end && !errno;
}

/* As Kubernetes reads it. */
static bool read_bool(const char *text) {
        return strcmp(text, "0") != 0 && strcasecmp(text, "false") != 0;
}

static bool bad(struct hfd_response *response, const char *name, const char *value) {
        hfd_response_bad_request(response, "invalid value for query parameter %s: \"%.200s\"", name,
                                 value);
        return false;
}

static bool set_selector(struct hfd_request *request, bool fields, const char *value,
                         struct hfd_response *response) {
        struct hfd_selector *selector =
                fields ? &request->options.fields : &request->options.labels;
        char reason[320];

        hfd_selector_done(selector);
        int r = hfd_selector_parse(value, fields, request->resource, selector, reason,
                                   sizeof reason);
        if (r == -ENOMEM)
                hfd_response_no_memory(response);
        else if (r != 0)
                hfd_response_bad_request(response, "%s", reason);
        return r == 0;
}

static bool set_match(struct hfd_options *o, const char *value, struct hfd_response *response) {
        if (strcmp(value, "NotOlderThan") == 0)
                o->match = HFD_MATCH_NOT_OLDER;
        else if (strcmp(value, "Exact") == 0)
                o->match = HFD_MATCH_EXACT;
        else if (*value)
                return bad(response, "resourceVersionMatch", value);
        return true;
}

static bool set_field_validation(struct hfd_request *request, const char *value,
                                 struct hfd_response *response) {
        struct hfd_options *o = &request->options;

        if (!*value || strcmp(value, "Warn") == 0)
                o->field_validation = HFD_FIELDS_WARN;
        else if (strcmp(value, "Ignore") == 0)
                o->field_validation = HFD_FIELDS_IGNORE;
        else if (strcmp(value, "Strict") == 0)
                o->field_validation = HFD_FIELDS_STRICT;
        else
                return bad(response, "fieldValidation", value);
        return true;
}

static bool propagation_parse(const char *text, enum hfd_propagation *ret_propagation) {
        static const char *const names[] = {"", "Orphan", "Background", "Foreground"};

        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
                if (strcmp(names[i], text) == 0) {
                        *ret_propagation = (enum hfd_propagation)i;
                        return true;
                }
        return false;
}

/* What a delete says without a body. True: name was one of these, and *ret_good says whether it was
 * good. */
static bool set_delete_option(struct hfd_request *request, const char *name, const char *value,
                              struct hfd_response *response, bool *ret_good) {
        struct hfd_options *o = &request->options;
        uint64_t seconds;

        if (request->verb != HFD_DELETE_ONE && request->verb != HFD_DELETE_MANY)
                return false;
        if (strcmp(name, "propagationPolicy") == 0) {
                *ret_good = propagation_parse(value, &o->propagation) || bad(response, name, value);
        } else if (strcmp(name, "orphanDependents") == 0) {
                o->has_orphan = *value;
                o->orphan = read_bool(value);
        } else if (strcmp(name, "gracePeriodSeconds") == 0) {
                *ret_good = !*value || read_u64(value, &seconds) || bad(response, name, value);
        } else {
                return false;
        }
        return true;
}

static bool set_option(struct hfd_request *request, const char *name, const char *value,
                       struct hfd_response *response) {
        struct hfd_options *o = &request->options;
        uint64_t number = 0;
        bool good = true;

        if (set_delete_option(request, name, value, response, &good))
                return good;
        if (strcmp(name, "labelSelector") == 0)
                return set_selector(request, false, value, response);
        if (strcmp(name, "fieldSelector") == 0)
                return set_selector(request, true, value, response);
        if (strcmp(name, "resourceVersionMatch") == 0)
                return set_match(o, value, response);
        if (strcmp(name, "fieldValidation") == 0)
                return set_field_validation(request, value, response);
        if (strcmp(name, "resourceVersion") == 0) {
                o->has_revision = *value;
                return !*value || read_u64(value, &o->revision) || bad(response, name, value);
        }
        if (strcmp(name, "limit") == 0)
                return !*value || read_u64(value, &o->limit) || bad(response, name, value);
        if (strcmp(name, "timeoutSeconds") == 0) {
                if (*value && (!read_u64(value, &number) || number > 1000000))
                        return bad(response, name, value);
                o->timeout_s = (int64_t)number;
        } else if (strcmp(name, "continue") == 0 && *value) {
                free(o->continue_token);
                o->continue_token = strdup(value);
                if (!o->continue_token) {
                        hfd_response_no_memory(response);
                        return false;
                }
        } else if (strcmp(name, "allowWatchBookmarks") == 0) {
                o->bookmarks = read_bool(value);
        } else if (strcmp(name, "sendInitialEvents") == 0) {
                o->has_send_initial = *value;
                o->send_initial = read_bool(value);
        } else if (strcmp(name, "dryRun") == 0) {
                o->dry_run = true;
                return strcmp(value, "All") == 0 || bad(response, name, value);
        } else if (strcmp(name, "includeObject") == 0) {
                o->include = strcmp(value, "None") == 0     ? HFD_INCLUDE_NONE
                             : strcmp(value, "Object") == 0 ? HFD_INCLUDE_OBJECT
                                                            : HFD_INCLUDE_METADATA;
        } else if (strcmp(name, "pretty") == 0) {
                o->pretty = read_bool(value);
        }
        return true;
}

/* The combinations the field forbids (apiserver.md 3.6). */
static bool check_options(struct hfd_request *request, struct hfd_response *response) {
        const struct hfd_options *o = &request->options;
        bool watch = request->verb == HFD_WATCH;
        struct hfd_causes causes; /* 15 KiB, of which only what is counted is looked at: each page
                                     touched stays with the thread */

        causes.n = 0;
        if (request->verb != HFD_LIST && request->verb != HFD_WATCH &&
            request->verb != HFD_DELETE_MANY)
                return true;
        if (watch && o->match != HFD_MATCH_UNSET && !o->has_send_initial)
                hfd_cause_forbidden(&causes, "resourceVersionMatch",
                                    "resourceVersionMatch is forbidden for watch unless "
                                    "sendInitialEvents is provided");
        if (watch && o->has_send_initial && o->match != HFD_MATCH_NOT_OLDER)
                hfd_cause_forbidden(&causes, "resourceVersionMatch",
                                    "sendInitialEvents requires setting resourceVersionMatch to "
                                    "NotOlderThan");
        if (!watch && o->has_send_initial)
                hfd_cause_forbidden(&causes, "sendInitialEvents",
                                    "sendInitialEvents is forbidden for list");
        if (!watch && o->match != HFD_MATCH_UNSET && !o->has_revision)
                hfd_cause_forbidden(&causes, "resourceVersionMatch",
                                    "resourceVersionMatch is forbidden unless resourceVersion is "
                                    "provided");
        if (!watch && o->match != HFD_MATCH_UNSET && o->continue_token)
                hfd_cause_forbidden(&causes, "resourceVersionMatch",
                                    "resourceVersionMatch is forbidden when continue is provided");
        if (!watch && o->match == HFD_MATCH_EXACT && o->has_revision && !o->revision)
                hfd_cause_forbidden(&causes, "resourceVersionMatch",
                                    "resourceVersionMatch \"Exact\" is forbidden for "
                                    "resourceVersion \"0\"");
        if (causes.n) {
                static const struct hfd_resource list_options = {.group = "meta.k8s.io",
                                                                 .kind = "ListOptions"};
                hfd_response_invalid(response, &list_options, "", &causes);
                return false;
        }
        if (!watch && o->continue_token && o->revision) {
                hfd_response_bad_request(response,
                                         "specifying resource version is not allowed when "
                                         "using continue");
                return false;
        }
        return true;
}

/* Whether it was given before: the first counts, here as in the filters, so that what is authorized
 * is what is done. */
static bool given_before(const char *name, unsigned *given) {
        static const char *const names[] = {"labelSelector",
                                            "fieldSelector",
                                            "resourceVersionMatch",
                                            "resourceVersion",
                                            "limit",
                                            "timeoutSeconds",
                                            "continue",
                                            "watch",
                                            "dryRun",
                                            "pretty",
                                            "allowWatchBookmarks",
                                            "sendInitialEvents",
                                            "includeObject",
                                            "propagationPolicy",
                                            "orphanDependents",
                                            "gracePeriodSeconds"};

        for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
                if (strcmp(name, names[i]) == 0) {
                        bool before = *given & 1u << i;
                        *given |= 1u << i;
                        return before;
                }
        return false;
}

bool hfd_options_parse(struct hfd_request *request, const char *query,
                       struct hfd_response *response) {
        char *copy = strdup(query ? query : ""), *save = NULL;
        bool good = copy != NULL;
        unsigned given = 0;

        if (!copy)
                hfd_response_no_memory(response);
        for (char *item = good ? strtok_r(copy, "&", &save) : NULL; item && good;
             item = strtok_r(NULL, "&", &save)) {
                char *value = strchr(item, '=');
                if (value)
                        *value++ = '\0';
                if (!url_decode(item, true) || (value && !url_decode(value, true))) {
                        hfd_response_bad_request(response, "malformed query");
                        good = false;
                } else if (!given_before(item, &given)) {
                        good = set_option(request, item, value ? value : "", response);
                }
        }
        free(copy);
        return good && check_options(request, response);
}

/* ---- DeleteOptions ---- */

/* An option of a type that cannot be read is refused, never passed over: a delete must not go
 * further than was meant. */
static const char *unreadable(const struct hf__json *sent) {
        static const char *const texts[] = {"kind", "apiVersion", "preconditions.uid",
                                            "preconditions.resourceVersion", "propagationPolicy"};
        const struct hf__json *dry = hf__json_get(sent, "dryRun"),
                              *pre = hf__json_get(sent, "preconditions"),
                              *orphan = hf__json_get(sent, "orphanDependents"),
                              *grace = hf__json_get(sent, "gracePeriodSeconds");
        int64_t seconds;

        if (dry && !hf__json_is_null(dry) && !hf__json_is_array(dry))
                return "dryRun";
        for (const struct hf__json *m = hf__json_first(dry); m; m = hf__json_next(m))
                if (!hf__json_is_string(m))
                        return "dryRun";
        if (pre && !hf__json_is_null(pre) && !hf__json_is_object(pre))
                return "preconditions";
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
                const struct hf__json *value = hf__json_path(sent, texts[i]);
                if (value && !hf__json_is_null(value) && !hf__json_is_string(value))
                        return texts[i];
        }
        if (orphan && !hf__json_is_null(orphan) && !hf__json_is_bool(orphan))
                return "orphanDependents";
        if (grace && !hf__json_is_null(grace) &&
            !hf__json_i64(sent, "gracePeriodSeconds", &seconds))
                return "gracePeriodSeconds";
        return NULL;
}

static void check_dry_run(const struct hf__json *dry, struct hfd_causes *causes) {
        char value[300];

        for (const struct hf__json *m = hf__json_first(dry); m; m = hf__json_next(m)) {
                if (strcmp(hf__json_text(m), "All") == 0)
                        continue;
                hfd_quote_list(dry, value, sizeof value);
                hfd_cause_unsupported(causes, "dryRun", value, "\"All\"");
                return;
        }
}

bool hfd_options_read_delete(struct hfd_options *options, const struct hf__json *sent,
                             struct hfd_response *response) {
        static const struct hfd_resource delete_options = {.group = "meta.k8s.io",
                                                           .kind = "DeleteOptions"};
        const struct hf__json *orphan = hf__json_get(sent, "orphanDependents"),
                              *dry = hf__json_get(sent, "dryRun");
        const char *bad = unreadable(sent), *policy = hf__json_string(sent, "propagationPolicy");
        struct hfd_causes causes;
        char quoted[300];

        if (bad) {
                hfd_response_bad_request(response,
                                         "DeleteOptions in version \"v1\" cannot be handled: the "
                                         "field %s cannot be read",
                                         bad);
                return false;
        }
        const char *kind = hf__json_string(sent, "kind");
        if (kind && *kind &&
            strcmp(kind, "DeleteOptions") != 0) { /* somebody meant something else */
                hfd_response_bad_request(response,
                                         "%s cannot be handled as a DeleteOptions: the kind in the "
                                         "data does not match",
                                         kind);
                return false;
        }
        causes.n = 0;
        options->dry_run |= hf__json_count(dry) > 0;
        if (sent) { /* a body says all, as upstream has it */
                options->has_orphan = hf__json_is_bool(orphan);
                options->orphan = hf__json_bool(sent, "orphanDependents", false);
                options->propagation = HFD_PROPAGATE_UNSET;
                if (policy && !propagation_parse(policy, &options->propagation)) {
                        hfd_quote(policy, quoted, sizeof quoted);
                        hfd_cause_unsupported(&causes, "propagationPolicy", quoted,
                                              "\"Foreground\", \"Background\", \"Orphan\", "
                                              "\"nil\"");
                }
                check_dry_run(dry, &causes);
        }
        if (options->has_orphan && options->propagation != HFD_PROPAGATE_UNSET) {
                static const char *const names[] = {"", "\"Orphan\"", "\"Background\"",
                                                    "\"Foreground\""};
                hfd_cause_invalid(&causes, "propagationPolicy", names[options->propagation],
                                  "orphanDependents and deletionPropagation cannot be both set");
        }
        if (causes.n)
                hfd_response_invalid(response, &delete_options, "", &causes);
        return !causes.n;
}
