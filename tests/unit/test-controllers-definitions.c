/* SPDX-License-Identifier: Apache-2.0 */
/* The status of a CustomResourceDefinition, as tables. Texts have ' in place of ". */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "rbac_fixture.h"
#include "server/controllers/kinds/definition_core.h"

#define N(array) (sizeof(array) / sizeof(array)[0])

#define ALL_NAMES                                                                                  \
        "'plural':'widgets','singular':'widget','kind':'Widget','listKind':'WidgetList',"          \
        "'shortNames':['wd','wid'],'categories':['all']"
#define ACCEPTED(time)                                                                             \
        "{'type':'NamesAccepted','status':'True','lastTransitionTime':'" time "',"                 \
        "'reason':'NoConflicts','message':'no conflicts found'}"
#define ESTABLISHED(time)                                                                          \
        "{'type':'Established','status':'True','lastTransitionTime':'" time "',"                   \
        "'reason':'InitialNamesAccepted','message':'the initial names have been accepted'}"
#define NOT_ACCEPTED(time)                                                                         \
        "{'type':'Established','status':'False','lastTransitionTime':'" time "',"                  \
        "'reason':'NotAccepted','message':'not all names are accepted'}"
#define CONFLICT(time, reason, message)                                                            \
        "{'type':'NamesAccepted','status':'False','lastTransitionTime':'" time "',"                \
        "'reason':'" reason "','message':'" message "'}"

/* The names that other definitions use. Spaces separate and enclose them. */
struct used {
        const char *resources, *kinds;
};

static bool has_word(const char *words, const char *group, const char *name) {
        char word[64];

        assert_string_equal(group, "example.com");
        (void)snprintf(word, sizeof word, " %s ", name);
        return strstr(words, word) != NULL;
}

static bool is_resource(void *ctx, const char *group, const char *name) {
        return has_word(((const struct used *)ctx)->resources, group, name);
}

static bool is_kind(void *ctx, const char *group, const char *name) {
        return has_word(((const struct used *)ctx)->kinds, group, name);
}

static void expect_json(const struct hf__json *json, const char *wanted) {
        struct hf__json *expected = rbac_fixture_json(wanted);
        struct hf__strbuf out = {0};

        hf__json_print(json, &out);
        if (!hf__json_equal(json, expected))
                fail_msg("%s instead of %s", out.data, wanted);
        hf__strbuf_done(&out);
        hf__json_free(expected);
}

/* Sets the conditions of the definition, and frees it. after NULL = nothing must change. */
static void expect_status(const char *definition, struct used used, const char *after) {
        struct hf__json *json = rbac_fixture_json(definition),
                        *before = hf__json_dup(hf__json_get(json, "status"));
        const struct hfd_definition_uses uses = {is_resource, is_kind, &used};
        bool changed;

        assert_int_equal(hfd_definition_set_conditions(json, &uses, "now", &changed), 0);
        assert_int_equal(changed, after != NULL);
        if (after)
                expect_json(hf__json_get(json, "status"), after);
        else
                assert_true(hf__json_equal(hf__json_get(json, "status"), before));
        /* The same conditions are not written again. */
        assert_int_equal(hfd_definition_set_conditions(json, &uses, "later", &changed), 0);
        assert_false(changed);
        hf__json_free(before);
        hf__json_free(json);
}

#define SPEC(names) "'spec':{'group':'example.com','names':{" names "}}"
/* A status with names and two conditions. */
#define STATUS(names, first, second)                                                               \
        "{'acceptedNames':{" names "},'conditions':[" first "," second "]}"
#define WITH(names, status) "{" SPEC(names) ",'status':" status "}"

#define P_K "'plural':'p','kind':'K'"

static void test_free_names_are_accepted_and_established_at_once(void **state) {
        static const struct used none = {"", ""};
        static const struct used own = {" widgets widget wd ", " Widget WidgetList "};

        expect_status("{" SPEC(ALL_NAMES) "}", none,
                      STATUS(ALL_NAMES, ACCEPTED("now"), ESTABLISHED("now")));
        expect_status(WITH(P_K, "{'storedVersions':['v1'],'conditions':null}"), none,
                      "{'storedVersions':['v1'],'acceptedNames':{" P_K "},"
                      "'conditions':[" ACCEPTED("now") "," ESTABLISHED("now") "]}");
        expect_status(WITH(ALL_NAMES, STATUS(ALL_NAMES, ACCEPTED("old"), ESTABLISHED("old"))), own,
                      NULL);
}

static void test_a_name_in_use_is_refused(void **state) {
        static const struct {
                struct used used;
                const char *accepted, *reason, *message;
        } rows[] = {
                {{" widgets ", ""},
                 "'plural':'','singular':'widget','kind':'Widget','listKind':'WidgetList',"
                 "'shortNames':['wd','wid'],'categories':['all']",
                 "PluralConflict",
                 "\\\"widgets\\\" is already in use"},
                {{" widget ", " WidgetX "},
                 "'plural':'widgets','kind':'Widget','listKind':'WidgetList',"
                 "'shortNames':['wd','wid'],'categories':['all']",
                 "SingularConflict",
                 "\\\"widget\\\" is already in use"},
                {{" wid ", ""},
                 "'plural':'widgets','singular':'widget','kind':'Widget','listKind':'WidgetList',"
                 "'categories':['all']",
                 "ShortNamesConflict",
                 "\\\"wid\\\" is already in use"},
                {{" wd wid ", ""},
                 "'plural':'widgets','singular':'widget','kind':'Widget','listKind':'WidgetList',"
                 "'categories':['all']",
                 "ShortNamesConflict",
                 "[\\\"wd\\\" is already in use, \\\"wid\\\" is already in use]"},
                {{"", " Widget "},
                 "'plural':'widgets','singular':'widget','kind':'','listKind':'WidgetList',"
                 "'shortNames':['wd','wid'],'categories':['all']",
                 "KindConflict",
                 "\\\"Widget\\\" is already in use"},
                /* Only the last conflict is reported. */
                {{" widgets wd ", " WidgetList "},
                 "'plural':'','singular':'widget','kind':'Widget','categories':['all']",
                 "ListKindConflict",
                 "\\\"WidgetList\\\" is already in use"},
        };
        char after[1200];

        for (size_t i = 0; i < N(rows); i++) {
                (void)snprintf(after, sizeof after, STATUS("%s", CONFLICT("now", "%s", "%s"), "%s"),
                               rows[i].accepted, rows[i].reason, rows[i].message,
                               NOT_ACCEPTED("now"));
                expect_status("{" SPEC(ALL_NAMES) "}", rows[i].used, after);
        }
}

#define OLD_NAMES "'plural':'widgets','kind':'Widget','shortNames':['wd']"
#define NEW_NAMES "'plural':'widgets','kind':'Widget','shortNames':['wd','w']"
#define NO_SHORT  "'plural':'widgets','kind':'Widget'"
#define IN_USE    "\\\"w\\\" is already in use"
#define W_IN_USE  CONFLICT("now", "ShortNamesConflict", IN_USE)

static void test_an_established_definition_stays_established(void **state) {
        static const struct used in_use = {" widgets wd w ", " Widget "},
                                 own = {" widgets wd ", " Widget "};

        /* The definition asks for another short name, which is in use. */
        expect_status(WITH(NEW_NAMES, STATUS(OLD_NAMES, ACCEPTED("old"), ESTABLISHED("old"))),
                      in_use, STATUS(OLD_NAMES, W_IN_USE, ESTABLISHED("old")));
        /* Later that name is free. */
        expect_status(WITH(NEW_NAMES, STATUS(OLD_NAMES, W_IN_USE, ESTABLISHED("old"))), own,
                      STATUS(NEW_NAMES, ACCEPTED("now"), ESTABLISHED("old")));
        /* The definition's own names do not conflict with it, even if it asks for fewer. */
        expect_status(WITH(NO_SHORT, STATUS(OLD_NAMES, ACCEPTED("old"), ESTABLISHED("old"))), own,
                      STATUS(NO_SHORT, ACCEPTED("old"), ESTABLISHED("old")));
}

static void test_a_definition_that_waits_gets_its_names_when_they_are_free(void **state) {
        static const struct used used = {"", " Widget "};

        expect_status(WITH(NO_SHORT,
                           STATUS("'plural':'','kind':'Widget'",
                                  CONFLICT("old", "PluralConflict", "x"), NOT_ACCEPTED("old"))),
                      used, STATUS(NO_SHORT, ACCEPTED("now"), ESTABLISHED("now")));
}

static void test_a_definition_being_deleted_is_not_established(void **state) {
        expect_status("{'metadata':{'deletionTimestamp':'t'}," SPEC(P_K) "}", (struct used){"", ""},
                      "{'acceptedNames':{" P_K "},'conditions':[" ACCEPTED("now") "]}");
}

#define SEE  ", see https://github.com/kubernetes/enhancements/pull/1111"
#define MUST "protected groups must have approval annotation \\\"api-approved.kubernetes.io\\\""

static void test_protected_groups_need_an_approval(void **state) {
        static const struct {
                const char *group, *annotation, *status, *reason, *message;
        } rows[] = {
                {"k8s.io", NULL, "False", "MissingAnnotation", MUST SEE},
                {"x.k8s.io", "", "False", "MissingAnnotation", MUST SEE},
                {"x.kubernetes.io", "https://example.com/1", "True", "ApprovedAnnotation",
                 "approved in https://example.com/1"},
                {"kubernetes.io", "unapproved, it's new", "False", "UnapprovedAnnotation",
                 "not approved: \\\"unapproved, it's new\\\""},
                {"x.k8s.io", "yes", "False", "InvalidAnnotation",
                 MUST " with either a URL or a reason starting with \\\"unapproved\\\"" SEE},
                {"x.k8s.io", "https:///path", "False", "InvalidAnnotation",
                 MUST " with either a URL or a reason starting with \\\"unapproved\\\"" SEE},
                {"xk8s.io", NULL, NULL, NULL, NULL},
                {"k8s.io.example.com", "yes", NULL, NULL, NULL},
        };
        const struct used none = {"", ""};

        for (size_t i = 0; i < N(rows); i++) {
                struct hf__json *json = rbac_fixture_json(
                                        "{'metadata':{'annotations':{}},'spec':{'names':{"
                                        "'plural':'p'}},'status':{'acceptedNames':{'plural':'p'},"
                                        "'conditions':[" ACCEPTED("t") "," ESTABLISHED("t") "]}}"),
                                *annotations = hf__json_path(json, "metadata.annotations");
                const struct hfd_definition_uses uses = {is_resource, is_kind, (void *)&none};
                bool changed;
                assert_int_equal(hf__json_set_string(json, "spec.group", rows[i].group), 0);
                if (rows[i].annotation)
                        assert_int_equal(hf__json_put_string(annotations,
                                                             "api-approved.kubernetes.io",
                                                             rows[i].annotation),
                                         0);
                assert_int_equal(hfd_definition_set_conditions(json, &uses, "now", &changed), 0);
                assert_int_equal(changed, rows[i].status != NULL);
                const struct hf__json *last = hf__json_next(
                        hf__json_next(hf__json_first(hf__json_path(json, "status.conditions"))));
                struct hf__strbuf text = {0};
                if (rows[i].status) {
                        hf__strbuf_printf(&text, "\"%s\"", rows[i].message);
                        struct hf__json *message;
                        assert_int_equal(hf__json_parse(text.data, text.n, &message, NULL), 0);
                        assert_true(hf__json_has_text(last, "status", rows[i].status));
                        assert_true(hf__json_has_text(last, "reason", rows[i].reason));
                        assert_string_equal(hf__json_string(last, "message"),
                                            hf__json_text(message));
                        assert_true(hf__json_has_text(last, "lastTransitionTime", "now"));
                        hf__json_free(message);
                } else {
                        assert_null(last);
                }
                hf__strbuf_done(&text);
                hf__json_free(json);
        }
}

#define KEPT                                                                                       \
        "{'type':'NonStructuralSchema','status':'True','lastTransitionTime':'now','reason':"       \
        "'Violations','message':'spec.preserveUnknownFields: Invalid value: true: must be false'}"

static void test_an_old_definition_that_prunes_nothing_is_not_structural(void **state) {
        static const char status[] = "'status':{'acceptedNames':{'plural':'p'},'conditions':"
                                     "[" ACCEPTED("t") "," ESTABLISHED("t") "%s]}";
        char text[1200], conditions[900];

        (void)snprintf(conditions, sizeof conditions, status, "");
        (void)snprintf(text, sizeof text,
                       "{'spec':{'group':'example.com','names':{'plural':'p'},"
                       "'preserveUnknownFields':true},%s}",
                       conditions);
        expect_status(text, (struct used){"", ""},
                      "{'acceptedNames':{'plural':'p'},'conditions':[" ACCEPTED(
                              "t") "," ESTABLISHED("t") "," KEPT "]}");
        (void)snprintf(conditions, sizeof conditions, status, "," KEPT);
        (void)snprintf(text, sizeof text, "{" SPEC("'plural':'p'") ",%s}", conditions);
        expect_status(text, (struct used){"", ""},
                      "{'acceptedNames':{'plural':'p'},'conditions':[" ACCEPTED(
                              "t") "," ESTABLISHED("t") "]}");
}

static void test_the_condition_terminating_tells_how_far_the_deletion_is(void **state) {
        static const struct {
                enum hfd_definition_ending ending;
                const char *why, *status, *time, *reason, *message;
        } rows[] = {
                {HFD_DEFINITION_DELETES, NULL, "True", "old", "InstanceDeletionInProgress",
                 "CustomResource deletion is in progress"},
                {HFD_DEFINITION_DELETE_FAILED, "it broke", "True", "old", "InstanceDeletionFailed",
                 "could not issue all deletes: it broke"},
                {HFD_DEFINITION_LIST_FAILED, "it broke", "True", "old", "InstanceDeletionFailed",
                 "could not list instances: it broke"},
                {HFD_DEFINITION_WAITS, "late", "True", "old", "InstanceDeletionCheck",
                 "could not confirm zero CustomResources remaining: late"},
                {HFD_DEFINITION_DELETED, NULL, "False", "now", "InstanceDeletionCompleted",
                 "removed all instances"},
                {HFD_DEFINITION_NEVER_ESTABLISHED, NULL, "False", "now", "NeverEstablished",
                 "resource was never established"},
                {HFD_DEFINITION_OVERLAPS, NULL, "False", "now", "OverlappingBuiltInResource",
                 "instances overlap with built-in resources in storage"},
        };

        for (size_t i = 0; i < N(rows); i++) {
                struct hf__json *json = rbac_fixture_json(
                        "{'status':{'conditions':[{'type':'Terminating','status':'True',"
                        "'lastTransitionTime':'old','reason':'InstanceDeletionPending',"
                        "'message':'soon'}]}}");
                bool changed;
                assert_int_equal(hfd_definition_set_terminating(json, rows[i].ending, rows[i].why,
                                                                "now", &changed),
                                 0);
                const struct hf__json *only =
                        hf__json_first(hf__json_path(json, "status.conditions"));
                assert_true(changed);
                assert_null(hf__json_next(only));
                assert_string_equal(hf__json_string(only, "status"), rows[i].status);
                assert_string_equal(hf__json_string(only, "lastTransitionTime"), rows[i].time);
                assert_string_equal(hf__json_string(only, "reason"), rows[i].reason);
                assert_string_equal(hf__json_string(only, "message"), rows[i].message);
                assert_int_equal(hfd_definition_set_terminating(json, rows[i].ending, rows[i].why,
                                                                "later", &changed),
                                 0);
                assert_false(changed);
                hf__json_free(json);
        }
}

static void test_only_a_deleted_definition_with_the_finalizer_is_cleaned_up(void **state) {
        static const struct {
                const char *metadata;
                bool due;
        } rows[] = {
                {"{'deletionTimestamp':'t','finalizers':["
                 "'customresourcecleanup.apiextensions.k8s.io']}",
                 true},
                {"{'finalizers':['customresourcecleanup.apiextensions.k8s.io']}", false},
                {"{'deletionTimestamp':'t','finalizers':['example.com/mine']}", false},
        };
        char text[200];

        for (size_t i = 0; i < N(rows); i++) {
                (void)snprintf(text, sizeof text, "{'metadata':%s}", rows[i].metadata);
                struct hf__json *json = rbac_fixture_json(text);
                assert_int_equal(hfd_definition_is_due(json), rows[i].due);
                hf__json_free(json);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_free_names_are_accepted_and_established_at_once),
                cmocka_unit_test(test_a_name_in_use_is_refused),
                cmocka_unit_test(test_an_established_definition_stays_established),
                cmocka_unit_test(test_a_definition_that_waits_gets_its_names_when_they_are_free),
                cmocka_unit_test(test_a_definition_being_deleted_is_not_established),
                cmocka_unit_test(test_protected_groups_need_an_approval),
                cmocka_unit_test(test_an_old_definition_that_prunes_nothing_is_not_structural),
                cmocka_unit_test(test_the_condition_terminating_tells_how_far_the_deletion_is),
                cmocka_unit_test(test_only_a_deleted_definition_with_the_finalizer_is_cleaned_up),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
