/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the query of a request into its options: first each parameter separately, then their
 * combination. A table contains each parameter with the function that sets its option, apart from
 * dryRun, fieldManager, fieldValidation and force (write_options.h).
 *
 * Invariants: if a parameter is repeated, its first value is used, even if it is empty, because the
 * filters authorize by the first value. (Only dryRun is a list, whose values are all checked.)
 * hf__percent_decode refuses text that is not valid UTF-8, because responses repeat it.
 */
#include "server/registry/base/options.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/percent.h"
#include "base/time_format.h"
#include "server/registry/base/request.h"
#include "server/resources/causes.h"

#define TIMEOUT_MAX_S 1000000
#define QUOTED_MAX    300 /* bytes of a quoted value, with the NUL */

void hfd_options_done(struct hfd_options *options) {
        hfd_selector_done(&options->labels);
        hfd_selector_done(&options->fields);
        free(options->continue_token);
        free(options->field_manager);
        hf__strbuf_done(&options->strict.lines);
        *options = (struct hfd_options){0};
}

/* ---- values ---- */

/* Accepts digits only: strtoull alone would also accept "-1" and " 1". */
static bool parse_u64(const char *text, uint64_t *ret_value) {
        char *end;

        if (*text < '0' || *text > '9')
                return false;
        errno = 0;
        *ret_value = strtoull(text, &end, 10);
        return *end == '\0' && errno == 0;
}

/* As in Kubernetes, every value but these two is true, also "". */
static bool parse_bool(const char *text) {
        return strcmp(text, "0") != 0 && strcasecmp(text, "false") != 0;
}

bool hfd_propagation_parse(const char *text, enum hfd_propagation *ret_propagation) {
        static const char *const names[] = {[HFD_PROPAGATE_UNSET] = "",
                                            [HFD_PROPAGATE_ORPHAN] = "Orphan",
                                            [HFD_PROPAGATE_BACKGROUND] = "Background",
                                            [HFD_PROPAGATE_FOREGROUND] = "Foreground"};

        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
                if (strcmp(names[i], text) == 0) {
                        *ret_propagation = (enum hfd_propagation)i;
                        return true;
                }
        return false;
}

/* Whether the text is an integer of any size, with a sign if that is allowed. */
static bool is_integer(const char *text, bool may_have_sign) {
        if (may_have_sign && (*text == '-' || *text == '+'))
                text++;
        return *text && text[strspn(text, "0123456789")] == '\0';
}

/* Parses a number as Go's strconv.ParseInt does. False: response is filled. */
static bool parse_i64(const char *text, int64_t *ret_value, struct hfd_response *response) {
        char quoted[QUOTED_MAX];

        errno = 0;
        *ret_value = strtoll(text, NULL, 10);
        if (is_integer(text, true) && errno == 0)
                return true;
        hfd_quote(text, quoted, sizeof quoted);
        hfd_response_bad_request(response, "strconv.ParseInt: parsing %s: %s", quoted,
                                 is_integer(text, true) ? "value out of range" : "invalid syntax");
        return false;
}

/* ---- the parameters ---- */

/*
 * Each of these functions sets one option from a decoded value ("" if there is none). False:
 * response is filled.
 */

static bool set_selector(struct hfd_request *request, bool fields, const char *value,
                         struct hfd_response *response) {
        struct hfd_selector *selector =
                fields ? &request->options.fields : &request->options.labels;
        char reason[1024]; /* a rule of names is long, and so may a value be */

        hfd_selector_done(selector);
        int r = hfd_selector_parse(value, fields, request->resource, selector, reason,
                                   sizeof reason);
        if (r == -ENOMEM)
                hfd_response_no_memory(response);
        else if (r != 0)
                hfd_response_bad_request(response, "%s", reason);
        return r == 0;
}

static bool set_label_selector(struct hfd_request *request, const char *value,
                               struct hfd_response *response) {
        return set_selector(request, false, value, response);
}

static bool set_field_selector(struct hfd_request *request, const char *value,
                               struct hfd_response *response) {
        return set_selector(request, true, value, response);
}

/* Responds 422 to a watch, and 400 to all other verbs; for a get Kubernetes fails with 500. */
static bool refuse_revision(const struct hfd_request *request, const char *value,
                            struct hfd_response *response) {
        struct hfd_resource by_plural = *request->resource;
        struct hfd_causes causes;
        char quoted[QUOTED_MAX], why[QUOTED_MAX + 80];

        hfd_quote(value, quoted, sizeof quoted);
        (void)snprintf(why, sizeof why, "strconv.ParseUint: parsing %s: %s", quoted,
                       is_integer(value, false) ? "value out of range" : "invalid syntax");
        if (request->verb == HFD_WATCH) {
                hfd_causes_init(&causes);
                hfd_cause_invalid(&causes, "resourceVersion", quoted, why);
                by_plural.kind =
                        by_plural.plural; /* Kubernetes' message contains the plural here */
                hfd_response_invalid(response, &by_plural, "", &causes);
        } else {
                hfd_response_bad_request(response,
                                         "invalid resource version: resourceVersion: Invalid "
                                         "value: %s: %s",
                                         quoted, why);
        }
        return false;
}

static bool set_revision(struct hfd_request *request, const char *value,
                         struct hfd_response *response) {
        struct hfd_options *o = &request->options;

        o->has_revision = *value;
        return !*value || parse_u64(value, &o->revision) ||
               refuse_revision(request, value, response);
}

static bool set_match(struct hfd_request *request, const char *value,
                      struct hfd_response *response) {
        if (strcmp(value, "NotOlderThan") == 0)
                request->options.match = HFD_MATCH_NOT_OLDER;
        else if (strcmp(value, "Exact") == 0)
                request->options.match = HFD_MATCH_EXACT;
        else if (*value)
                request->options.match = HFD_MATCH_UNKNOWN;
        (void)snprintf(request->options.match_text, sizeof request->options.match_text, "%s",
                       value);
        return true;
}

/* As in Kubernetes, a negative value means no limit. */
static bool set_limit(struct hfd_request *request, const char *value,
                      struct hfd_response *response) {
        int64_t limit = 0;

        if (*value && !parse_i64(value, &limit, response))
                return false;
        request->options.limit = limit > 0 ? (uint64_t)limit : 0;
        return true;
}

/* list.c checks the contents of the token. */
static bool set_continue(struct hfd_request *request, const char *value,
                         struct hfd_response *response) {
        if (!*value)
                return true;
        free(request->options.continue_token);
        request->options.continue_token = strdup(value);
        if (!request->options.continue_token)
                hfd_response_no_memory(response);
        return request->options.continue_token != NULL;
}

/* How long the client waits for the response, as kubectl sends it for --request-timeout. Over HTTP,
 * a malformed value was refused before (filters/timeout.h). A watch and a request of the in-process
 * client do not use the option, so there a malformed value is ignored. */
static bool set_timeout(struct hfd_request *request, const char *value,
                        struct hfd_response *response) {
        (void)response;
        (void)hf__duration_parse(value, &request->options.timeout);
        return true;
}

/* Without TIMEOUT_MAX_S the conversion to nanoseconds could overflow later. A negative value counts
 * as not given. */
static bool set_timeout_seconds(struct hfd_request *request, const char *value,
                                struct hfd_response *response) {
        int64_t seconds = 0;

        if (*value && !parse_i64(value, &seconds, response))
                return false;
        if (seconds < 0)
                seconds = 0;
        request->options.timeout_s = seconds < TIMEOUT_MAX_S ? seconds : TIMEOUT_MAX_S;
        return true;
}

static bool set_bookmarks(struct hfd_request *request, const char *value,
                          struct hfd_response *response) {
        request->options.bookmarks = parse_bool(value);
        return true;
}

/* For a watch: whether it begins with all objects that exist. */
static bool set_send_initial(struct hfd_request *request, const char *value,
                             struct hfd_response *response) {
        request->options.has_send_initial = *value;
        request->options.send_initial = parse_bool(value);
        return true;
}

/* An unknown value means the default. */
static bool set_include(struct hfd_request *request, const char *value,
                        struct hfd_response *response) {
        if (strcmp(value, "None") == 0)
                request->options.include = HFD_INCLUDE_NONE;
        else if (strcmp(value, "Object") == 0)
                request->options.include = HFD_INCLUDE_OBJECT;
        else
                request->options.include = HFD_INCLUDE_METADATA;
        return true;
}

static bool set_pretty(struct hfd_request *request, const char *value,
                       struct hfd_response *response) {
        request->options.pretty = parse_bool(value);
        return true;
}

static bool set_propagation(struct hfd_request *request, const char *value,
                            struct hfd_response *response) {
        const struct hfd_resource delete_options = {.group = "meta.k8s.io",
                                                    .kind = "DeleteOptions"};
        struct hfd_causes causes;

        if (hfd_propagation_parse(value, &request->options.propagation))
                return true;
        hfd_causes_init(&causes);
        hfd_cause_unsupported_text(&causes, "propagationPolicy", value,
                                   "\"Foreground\", \"Background\", \"Orphan\", \"nil\"");
        hfd_response_invalid(response, &delete_options, "", &causes);
        return false;
}

/* The older form of propagationPolicy, which clients still send. */
static bool set_orphan(struct hfd_request *request, const char *value,
                       struct hfd_response *response) {
        request->options.has_orphan = *value;
        request->options.orphan = parse_bool(value);
        return true;
}

/* The value has no effect but that admission sees it, because no kind here has a grace period. */
static bool set_grace_period(struct hfd_request *request, const char *value,
                             struct hfd_response *response) {
        request->options.has_grace_period = *value;
        return !*value || parse_i64(value, &request->options.grace_period_s, response);
}

static const struct parameter {
        const char *name;
        bool delete_only; /* verbs other than delete and deletecollection ignore it */
        bool (*set)(struct hfd_request *request, const char *value, struct hfd_response *response);
} parameters[] = {
        {"labelSelector", false, set_label_selector},
        {"fieldSelector", false, set_field_selector},
        {"resourceVersion", false, set_revision},
        {"resourceVersionMatch", false, set_match},
        {"limit", false, set_limit},
        {"continue", false, set_continue},
        {"timeout", false, set_timeout},
        {"timeoutSeconds", false, set_timeout_seconds},
        {"allowWatchBookmarks", false, set_bookmarks},
        {"sendInitialEvents", false, set_send_initial},
        {"includeObject", false, set_include},
        {"pretty", false, set_pretty},
        {"propagationPolicy", true, set_propagation},
        {"orphanDependents", true, set_orphan},
        {"gracePeriodSeconds", true, set_grace_period},
};
#define N_PARAMETERS (sizeof parameters / sizeof parameters[0])

/* Returns the index of a parameter; N_PARAMETERS = it is unknown, or the verb ignores it. */
static size_t find_parameter(const char *name, bool deletes) {
        size_t i = 0;

        while (i < N_PARAMETERS && strcmp(parameters[i].name, name) != 0)
                i++;
        return i < N_PARAMETERS && parameters[i].delete_only && !deletes ? N_PARAMETERS : i;
}

/* ---- combinations (the messages are those of Kubernetes) ---- */

static void check_watch(const struct hfd_options *o, struct hfd_causes *causes) {
        if (o->has_send_initial && o->match != HFD_MATCH_NOT_OLDER)
                hfd_cause_forbidden(causes, "resourceVersionMatch",
                                    "sendInitialEvents requires setting resourceVersionMatch to "
                                    "NotOlderThan");
        if (o->match != HFD_MATCH_UNSET && !o->has_send_initial)
                hfd_cause_forbidden(causes, "resourceVersionMatch",
                                    "resourceVersionMatch is forbidden for watch unless "
                                    "sendInitialEvents is provided");
        if (o->match != HFD_MATCH_UNSET && o->match != HFD_MATCH_NOT_OLDER)
                hfd_cause_unsupported_text(causes, "resourceVersionMatch", o->match_text,
                                           "\"NotOlderThan\"");
        if (o->match != HFD_MATCH_UNSET && o->continue_token)
                hfd_cause_forbidden(causes, "resourceVersionMatch",
                                    "resourceVersionMatch is forbidden when continue is provided");
}

static void check_list(const struct hfd_options *o, struct hfd_causes *causes) {
        if (o->match != HFD_MATCH_UNSET && !o->has_revision)
                hfd_cause_forbidden(causes, "resourceVersionMatch",
                                    "resourceVersionMatch is forbidden unless resourceVersion "
                                    "is provided");
        if (o->match != HFD_MATCH_UNSET && o->continue_token)
                hfd_cause_forbidden(causes, "resourceVersionMatch",
                                    "resourceVersionMatch is forbidden when continue is provided");
        if (o->match == HFD_MATCH_UNKNOWN)
                hfd_cause_unsupported_text(causes, "resourceVersionMatch", o->match_text,
                                           "\"Exact\", \"NotOlderThan\", \"\"");
        if (o->match == HFD_MATCH_EXACT && o->has_revision && !o->revision)
                hfd_cause_forbidden(causes, "resourceVersionMatch",
                                    "resourceVersionMatch \"exact\" is forbidden for "
                                    "resourceVersion \"0\"");
        if (o->has_send_initial)
                hfd_cause_forbidden(causes, "sendInitialEvents",
                                    "sendInitialEvents is forbidden for list");
}

/*
 * Refuses the combinations that Kubernetes' validation of ListOptions refuses, because clients rely
 * on these errors. False: response is filled.
 */
static bool check_combination(const struct hfd_request *request, struct hfd_response *response) {
        static const struct hfd_resource list_options = {.group = "meta.k8s.io",
                                                         .kind = "ListOptions"};
        const struct hfd_options *o = &request->options;
        bool watch = request->verb == HFD_WATCH;
        struct hfd_causes causes;

        if (!watch && request->verb != HFD_LIST && request->verb != HFD_DELETE_COLLECTION)
                return true;
        /* The items stay uninitialized, because touching them would cost 15 KiB of stack. */
        hfd_causes_init(&causes);
        if (watch)
                check_watch(o, &causes);
        else
                check_list(o, &causes);
        if (causes.n) {
                hfd_response_invalid(response, &list_options, "", &causes);
                return false;
        }
        /* As in Kubernetes, this combination is a 400 and not one of the causes of a 422. */
        if (!watch && o->continue_token && o->revision) {
                hfd_response_bad_request(response,
                                         "specifying resource version is not allowed when "
                                         "using continue");
                return false;
        }
        return true;
}

/* ---- the query ---- */

/* Decoding never makes the text longer, so it can replace the original. False: malformed. */
static bool decode_in_place(char *text) {
        size_t n = strlen(text);

        return hf__percent_decode(text, n, true, text, n + 1) >= 0;
}

/*
 * Decodes item ("name=value" or "name") in place and sets its option. *given has a bit for each
 * parameter; the bit is set if the parameter occurred before, and item is then ignored.
 * write_options borrows from item.
 */
static bool set_parameter(struct hfd_request *request, char *item, unsigned *given,
                          struct hfd_write_options *write_options, struct hfd_response *response) {
        bool deletes = request->verb == HFD_DELETE_OBJECT || request->verb == HFD_DELETE_COLLECTION;
        char *value = strchr(item, '=');
        size_t i;

        if (value)
                *value++ = '\0';
        if (!decode_in_place(item) || (value && !decode_in_place(value))) {
                hfd_response_bad_request(response, "malformed query");
                return false;
        }
        if (hfd_write_options_note(write_options, item, value ? value : ""))
                return true;
        i = find_parameter(item, deletes);
        if (i == N_PARAMETERS || *given & 1u << i)
                return true;
        *given |= 1u << i;
        return parameters[i].set(request, value ? value : "", response);
}

static const char *kind_of_options(enum hfd_verb verb) {
        if (verb == HFD_CREATE)
                return "CreateOptions";
        if (verb == HFD_UPDATE)
                return "UpdateOptions";
        return verb == HFD_PATCH ? "PatchOptions" : "DeleteOptions";
}

/* Takes over the options of a write from the query. False: response is filled. */
static bool take_write_options(struct hfd_request *request,
                               const struct hfd_write_options *write_options,
                               struct hfd_response *response) {
        struct hfd_options *o = &request->options;
        const char *manager = write_options->field_manager;

        if (!hfd_write_options_check(write_options, kind_of_options(request->verb),
                                     &o->field_validation, response))
                return false;
        o->dry_run = write_options->n_dry_run > 0;
        o->force = write_options->force;
        if (!manager || !*manager)
                return true;
        o->field_manager = strdup(manager);
        if (!o->field_manager)
                hfd_response_no_memory(response);
        return o->field_manager != NULL;
}

bool hfd_options_parse(struct hfd_request *request, const char *query,
                       struct hfd_response *response) {
        char *copy, *save = NULL;
        bool reads =
                request->verb == HFD_GET || request->verb == HFD_LIST || request->verb == HFD_WATCH;
        struct hfd_write_options write_options = {.is_apply = request->verb == HFD_PATCH &&
                                                              request->patch == HFD_PATCH_APPLY};
        unsigned given = 0;
        bool good = true;

        static_assert(N_PARAMETERS <= 8 * sizeof given, "given has a bit for each parameter");
        assert(request->resource);
        if ((!query || !*query) && !write_options.is_apply)
                return check_combination(request, response);
        copy = strdup(query ? query : "");
        if (!copy) {
                hfd_response_no_memory(response);
                return false;
        }
        /* strtok_r skips empty items ("a=b&&c=d"), as URL parsers usually do. */
        for (char *item = strtok_r(copy, "&", &save); item && good;
             item = strtok_r(NULL, "&", &save))
                good = set_parameter(request, item, &given, &write_options, response);
        if (good && !reads)
                good = take_write_options(request, &write_options, response);
        free(copy);
        return good && check_combination(request, response);
}
