/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of security contexts, and of what a pod must not have because of its operating system
 * or its user namespace. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pod_spec_fixture.h"

/* ---- contexts ---- */

#define OF_POD(context) "'securityContext':{" context "}"
#define OF_CONTAINER(context)                                                                      \
        "'containers':[" CONTAINER("c", ",'securityContext':{" context "}") "]"
#define CONTEXT "spec.containers[0].securityContext"

static void test_profiles_of_seccomp_are_validated(void **state) {
        static const struct spec_case cases[] = {
                {OF_POD("'seccompProfile':{'type':'Localhost','localhostProfile':'a/..b/c'}"), ""},
                {OF_POD("'seccompProfile':{'type':'RuntimeDefault'}"), ""},
                {OF_CONTAINER("'seccompProfile':{'type':'Unconfined'}"), ""},
                {OF_POD("'seccompProfile':{}"),
                 "spec.securityContext.seccompProfile.type: Required "
                 "value: type is required when seccompProfile is "
                 "set\n"},
                {OF_CONTAINER("'seccompProfile':{'type':'x','localhostProfile':'a'}"),
                 CONTEXT ".seccompProfile.type: Unsupported value: \"x\": supported values: "
                         "\"Localhost\", \"RuntimeDefault\", \"Unconfined\"\n" CONTEXT
                         ".seccompProfile.localhostProfile: Invalid value: {\"Type\":\"x\","
                         "\"LocalhostProfile\":\"a\"}: can only be set when seccomp type is "
                         "Localhost\n"},
                {OF_CONTAINER("'seccompProfile':{'type':'Localhost'}"),
                 CONTEXT ".seccompProfile.localhostProfile: Required value: must be set when "
                         "seccomp type is Localhost\n"},
                {OF_POD("'seccompProfile':{'type':'Localhost','localhostProfile':'/a/../b'}"),
                 "spec.securityContext.seccompProfile.localhostProfile: Invalid value: "
                 "\"/a/../b\": must be a relative path\n"
                 "spec.securityContext.seccompProfile.localhostProfile: Invalid value: "
                 "\"/a/../b\": must not contain '..'\n"},
        };

        EXPECT_ALL(cases);
}

static void test_rights_of_containers_do_not_contradict(void **state) {
        static const struct spec_case cases[] = {
                {OF_CONTAINER("'procMount':'Default','privileged':true,'capabilities':{'add':["
                              "'CAP_SYS_ADMIN']}"),
                 ""},
                {OF_CONTAINER("'allowPrivilegeEscalation':true,'privileged':true"), ""},
                {OF_CONTAINER("'runAsUser':-1,'windowsOptions':{'runAsUserName':''}"),
                 CONTEXT ".runAsUser: Invalid value: -1: must be between 0 and 2147483647, "
                         "inclusive\n" CONTEXT
                         ".windowsOptions.runAsUserName: Invalid value: \"\": runAsUserName cannot "
                         "be an empty string\n"},
                {OF_CONTAINER("'allowPrivilegeEscalation':false,'privileged':false,'capabilities':"
                              "{'add':['SYS_ADMIN'],'drop':['CAP_SYS_ADMIN']}"),
                 ""},
                {"'hostUsers':false," OF_CONTAINER("'procMount':'Unmasked'"), ""},
                {OF_CONTAINER("'procMount':'Unmasked'"),
                 CONTEXT ".procMount: Invalid value: \"Unmasked\": `hostUsers` must be false to "
                         "use `Unmasked`\n"},
                {"'hostUsers':true," OF_CONTAINER("'procMount':''"),
                 CONTEXT ".procMount: Unsupported value: \"\": supported values: \"Default\", "
                         "\"Unmasked\"\n"},
                {OF_CONTAINER("'allowPrivilegeEscalation':false,'privileged':true,"
                              "'runAsUser':7,'seLinuxOptions':{'level':'l'}"),
                 CONTEXT ": Invalid value: {\"Capabilities\":null,\"Privileged\":true,"
                         "\"SELinuxOptions\":{\"User\":\"\",\"Role\":\"\",\"Type\":\"\","
                         "\"Level\":\"l\"},\"WindowsOptions\":null,\"RunAsUser\":7,"
                         "\"RunAsGroup\":null,\"RunAsNonRoot\":null,"
                         "\"ReadOnlyRootFilesystem\":null,\"AllowPrivilegeEscalation\":false,"
                         "\"ProcMount\":null,\"SeccompProfile\":null,\"AppArmorProfile\":null}: "
                         "cannot set `allowPrivilegeEscalation` to false and `privileged` to "
                         "true\n"},
                {OF_CONTAINER("'allowPrivilegeEscalation':false,'capabilities':{'add':['X',"
                              "'CAP_SYS_ADMIN']}"),
                 CONTEXT ": Invalid value: {\"Capabilities\":{\"Add\":[\"X\","
                         "\"CAP_SYS_ADMIN\"],\"Drop\":null},\"Privileged\":null,"
                         "\"SELinuxOptions\":null,\"WindowsOptions\":null,\"RunAsUser\":null,"
                         "\"RunAsGroup\":null,\"RunAsNonRoot\":null,"
                         "\"ReadOnlyRootFilesystem\":null,\"AllowPrivilegeEscalation\":false,"
                         "\"ProcMount\":null,\"SeccompProfile\":null,\"AppArmorProfile\":null}: "
                         "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` "
                         "CAP_SYS_ADMIN\n"},
        };

        EXPECT_ALL(cases);
}

static void test_security_contexts_of_pods_are_validated(void **state) {
        static const struct spec_case cases[] = {
                {OF_POD("'fsGroupChangePolicy':'OnRootMismatch','supplementalGroupsPolicy':"
                        "'Strict','seLinuxChangePolicy':'MountOption'"),
                 ""},
                {OF_POD("'fsGroupChangePolicy':'Always','supplementalGroupsPolicy':'Merge',"
                        "'seLinuxChangePolicy':'Recursive'"),
                 ""},
                {"'shareProcessNamespace':true", ""},
                {"'shareProcessNamespace':false,'hostPID':true", ""},
                {"'shareProcessNamespace':true,'hostPID':true",
                 "spec.securityContext.shareProcessNamespace: Invalid value: true: "
                 "ShareProcessNamespace and HostPID cannot both be enabled\n"},
                {OF_POD("'fsGroupChangePolicy':'','supplementalGroupsPolicy':'x',"
                        "'seLinuxChangePolicy':'y'"),
                 "spec.securityContext.fsGroupChangePolicy: Unsupported value: \"\": supported "
                 "values: \"Always\", \"OnRootMismatch\"\n"
                 "spec.securityContext.supplementalGroupsPolicy: Unsupported value: \"x\": "
                 "supported values: \"Merge\", \"Strict\"\n"
                 "spec.securityContext.seLinuxChangePolicy: Unsupported value: \"y\": supported "
                 "values: \"MountOption\", \"Recursive\"\n"},
        };

        EXPECT_ALL(cases);
}

/* host: a member of the spec that shares a namespace with the host. */
static void test_sysctls_do_not_change_the_host(void **state) {
        static const struct {
                const char *host, *name;
                bool is_refused;
        } cases[] = {
                {"hostNetwork", "net.a", true},       {"hostNetwork", "net/b.c", true},
                {"hostNetwork", "kernel.sem", false}, {"hostNetwork", "network.a", false},
                {"hostNetwork", "a/net.b", false},    {"hostIPC", "net.a", false},
                {"hostIPC", "kernel.sem", true},      {"hostIPC", "kernel.shmall", true},
                {"hostIPC", "kernel.shmmax", true},   {"hostIPC", "kernel.shmmni", true},
                {"hostIPC", "kernel.shm", true},      {"hostIPC", "kernel.shm_rmid_forced", true},
                {"hostIPC", "kernel.msgmax", true},   {"hostIPC", "kernel.msgmnb", true},
                {"hostIPC", "kernel.msgmni", true},   {"hostIPC", "kernel.msg", true},
                {"hostIPC", "kernel/msgmax", true},   {"hostIPC", "fs.mqueue.a", true},
                {"hostIPC", "fs.mqueue", false},      {"hostIPC", "kernel.sem.a", false},
                {"hostIPC", "kernel.shmmax2", false}, {"tty", "net.a", false},
        };
        char members[200], causes[300];

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                (void)snprintf(members, sizeof members,
                               "'%s':true,'securityContext':{'sysctls':[{'name':'%s'}]}",
                               cases[i].host, cases[i].name);
                (void)snprintf(causes, sizeof causes,
                               "spec.securityContext.sysctls[0].name: Invalid value: \"%s\": may "
                               "not be specified when '%s' is true\n",
                               cases[i].name, cases[i].host);
                pod_spec_expect(members, cases[i].is_refused ? causes : "");
        }
}

/* ---- Windows ---- */

/* In JSON, a backslash is written twice. */
static void test_users_of_windows_have_a_form(void **state) {
        static const struct {
                const char *user, *shown, *why; /* why NULL: it is valid */
        } cases[] = {
                {"a", NULL, NULL},
                {"NT AUTHORITY\\\\SYSTEM", NULL, NULL},
                {"a\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4"
                 "\u00e4\u00e4\\\\u",
                 NULL, NULL},
                {"A-long.domain.of.Example.com\\\\u", NULL, NULL},
                {"", "", "runAsUserName cannot be an empty string"},
                {"a\\u0007", "a\\a", "runAsUserName cannot contain control characters"},
                {"a\\u007f", "a\\x7f", "runAsUserName cannot contain control characters"},
                {"a\\\\b\\\\c", "a\\\\b\\\\c",
                 "runAsUserName cannot contain more than one backslash"},
                {"0123456789abcdef_\\\\u", "0123456789abcdef_\\\\u",
                 "runAsUserName's Domain doesn't match the NetBios nor the DNS format"},
                {".a\\\\u", ".a\\\\u",
                 "runAsUserName's Domain doesn't match the NetBios nor the DNS format"},
                {"\\\\u", "\\\\u",
                 "runAsUserName's Domain doesn't match the NetBios nor the DNS format"},
                {"a*\\\\u", "a*\\\\u",
                 "runAsUserName's Domain doesn't match the NetBios nor the DNS format"},
                {"a.0123456789.-b\\\\u", NULL, NULL},
                {"a.0123456789abc.-b\\\\u", "a.0123456789abc.-b\\\\u",
                 "runAsUserName's Domain doesn't match the NetBios nor the DNS format"},
                {"a.0123456789abc.b-\\\\u", "a.0123456789abc.b-\\\\u",
                 "runAsUserName's Domain doesn't match the NetBios nor the DNS format"},
                {"a\\\\", "a\\\\", "runAsUserName's User cannot be empty"},
                {". .", ". .", "runAsUserName's User cannot contain only periods or spaces"},
                {"a/b", "a/b",
                 "runAsUserName's User cannot contain the following characters: "
                 "\"/\\:;|=,+*?<>@[]"},
                {"a]", "a]",
                 "runAsUserName's User cannot contain the following characters: "
                 "\"/\\:;|=,+*?<>@[]"},
        };
        char members[300], causes[500];

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                (void)snprintf(members, sizeof members,
                               "'securityContext':{'windowsOptions':{'runAsUserName':'%s'}}",
                               cases[i].user);
                if (cases[i].why)
                        (void)snprintf(causes, sizeof causes,
                                       "spec.securityContext.windowsOptions.runAsUserName: Invalid "
                                       "value: \"%s\": %s\n",
                                       cases[i].shown, cases[i].why);
                pod_spec_expect(members, cases[i].why ? causes : "");
        }
}

/* Asserts that the first cause of a member of windowsOptions ends with this text. NULL: none. */
static void expect_option(const char *name, const char *value, const char *end) {
        char *members = NULL;

        assert_true(asprintf(&members, "'securityContext':{'windowsOptions':{'%s':'%s'}}", name,
                             value) > 0);
        const struct hfd_causes causes = pod_spec_causes(members);
        assert_int_equal(causes.n, end ? 1 : 0);
        if (end)
                assert_true(strstr(causes.items[0].text, end));
        free(members);
}

static void test_options_of_windows_have_limits(void **state) {
        char *credentials = calloc(1, 64 * 1024 + 2), user[400], label[80];

        (void)snprintf(user, sizeof user, "%0104d", 0);
        expect_option("runAsUserName", user, NULL);
        (void)snprintf(user, sizeof user, "%0105d", 0);
        expect_option("runAsUserName", user,
                      "runAsUserName's User length must not be longer than 104 characters");
        (void)snprintf(label, sizeof label, "%063d", 0);
        (void)snprintf(user, sizeof user, "%s.%s.%s.%s\\\\u", label, label, label, label);
        expect_option("runAsUserName", user, NULL);
        (void)snprintf(user, sizeof user, "%s.%s.%s.%.61s.0\\\\u", label, label, label, label);
        expect_option("runAsUserName", user, NULL);
        (void)snprintf(user, sizeof user, "%s.%s.%s.%.62s.0\\\\u", label, label, label, label);
        expect_option("runAsUserName", user,
                      "runAsUserName's Domain length must be under 256 characters");
        (void)snprintf(user, sizeof user, "%064d\\\\u", 0);
        expect_option("runAsUserName", user, "NetBios nor the DNS format");
        memset(credentials, 'a', 64 * 1024);
        expect_option("gmsaCredentialSpec", credentials, NULL);
        credentials[64 * 1024] = 'a';
        expect_option("gmsaCredentialSpec", credentials,
                      "gmsaCredentialSpec size must be under 64 KiB");
        expect_option("gmsaCredentialSpec", "", "gmsaCredentialSpec cannot be an empty string");
        expect_option("gmsaCredentialSpecName", "a.b", NULL);
        expect_option("gmsaCredentialSpecName", "A", "a lowercase RFC 1123 subdomain");
        free(credentials);
}

#define HOST(value) "'securityContext':{'windowsOptions':{'hostProcess':" value "}}"
#define TWO(a, b)                                                                                  \
        "'containers':[" CONTAINER("c", "," a) "],'initContainers':[" CONTAINER("i", "," b) "]"

static void test_processes_of_the_host_are_in_all_containers(void **state) {
        static const struct spec_case cases[] = {
                {"'hostNetwork':true," HOST("true"), ""},
                {"'hostNetwork':true," TWO(HOST("true"), HOST("true")), ""},
                {TWO(HOST("false"), "'tty':false"), ""},
                {HOST("true"),
                 "spec.hostNetwork: Invalid value: false: hostNetwork must be true if "
                 "pod contains any hostProcess containers\n"},
                {"'hostNetwork':true," TWO(HOST("true"), "'tty':false"),
                 "spec: Invalid value: \"\": If pod contains any hostProcess containers then all "
                 "containers must be HostProcess containers\n"},
                {"'hostNetwork':true," HOST("false") "," TWO(HOST("true"), HOST("true")),
                 "spec.initContainers[0].securityContext.windowsOptions.hostProcess: Invalid "
                 "value: "
                 "true: pod hostProcess value must be identical if both are specified, was false\n"
                 "spec.containers[0].securityContext.windowsOptions.hostProcess: Invalid value: "
                 "true: pod hostProcess value must be identical if both are specified, was "
                 "false\n"},
                {"'hostNetwork':true," HOST("true") "," TWO(HOST("false"), "'tty':false"),
                 "spec.containers[0].securityContext.windowsOptions.hostProcess: Invalid value: "
                 "false: pod hostProcess value must be identical if both are specified, was true\n"
                 "spec: Invalid value: \"\": If pod contains any hostProcess containers then all "
                 "containers must be HostProcess containers\n"},
        };

        EXPECT_ALL(cases);
}

/* Each member is one that a pod of Windows must not have. */
static void test_windows_forbids_members(void **state) {
        static const struct {
                const char *list, *member, *name; /* list: what the member is in */
        } cases[] = {
                {"spec", "'hostUsers':true", "hostUsers"},
                {"spec", "'hostPID':true", "hostPID"},
                {"spec", "'hostIPC':true", "hostIPC"},
                {"spec", "'shareProcessNamespace':false", "shareProcessNamespace"},
                {"pod", "'appArmorProfile':{'type':'Unconfined'}", "appArmorProfile"},
                {"pod", "'seLinuxOptions':{}", "seLinuxOptions"},
                {"pod", "'seccompProfile':{'type':'Unconfined'}", "seccompProfile"},
                {"pod", "'fsGroup':1", "fsGroup"},
                {"pod", "'fsGroupChangePolicy':'Always'", "fsGroupChangePolicy"},
                {"pod", "'sysctls':[{'name':'a'}]", "sysctls"},
                {"pod", "'runAsUser':1", "runAsUser"},
                {"pod", "'runAsGroup':1", "runAsGroup"},
                {"pod", "'supplementalGroups':[]", "supplementalGroups"},
                {"pod", "'supplementalGroupsPolicy':'Merge'", "supplementalGroupsPolicy"},
                {"pod", "'seLinuxChangePolicy':'Recursive'", "seLinuxChangePolicy"},
                {"container", "'appArmorProfile':{'type':'Unconfined'}", "appArmorProfile"},
                {"container", "'seLinuxOptions':{}", "seLinuxOptions"},
                {"container", "'seccompProfile':{'type':'Unconfined'}", "seccompProfile"},
                {"container", "'capabilities':{}", "capabilities"},
                {"container", "'readOnlyRootFilesystem':false", "readOnlyRootFilesystem"},
                {"container", "'privileged':false", "privileged"},
                {"container", "'allowPrivilegeEscalation':true", "allowPrivilegeEscalation"},
                {"container", "'procMount':'Default'", "procMount"},
                {"container", "'runAsUser':1", "runAsUser"},
                {"container", "'runAsGroup':1", "runAsGroup"},
        };
        char members[300], causes[300];

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                const char *begin = "'os':{'name':'windows'},", *end = "", *field = "spec.";
                if (strcmp(cases[i].list, "pod") == 0) {
                        begin = "'os':{'name':'windows'},'securityContext':{";
                        end = "}";
                        field = "spec.securityContext.";
                } else if (strcmp(cases[i].list, "container") == 0) {
                        begin = "'os':{'name':'windows'},'containers':[{'name':'c','image':'i',"
                                "'imagePullPolicy':'Always','terminationMessagePolicy':'File',"
                                "'securityContext':{";
                        end = "}}]";
                        field = CONTEXT ".";
                }
                (void)snprintf(members, sizeof members, "%s%s%s", begin, cases[i].member, end);
                (void)snprintf(causes, sizeof causes,
                               "%s%s: Forbidden: cannot be set for a windows pod\n", field,
                               cases[i].name);
                pod_spec_expect(members, causes);
        }
}

#define WINDOWS "'os':{'name':'windows'},"
#define LINUX   "'os':{'name':'linux'},"

static void test_systems_are_validated(void **state) {
        static const struct spec_case cases[] = {
                {LINUX OF_POD("'runAsUser':1"), ""},
                {WINDOWS "'hostPID':false,'hostIPC':false," OF_POD("'sysctls':[]"), ""},
                {WINDOWS OF_CONTAINER("'windowsOptions':{},'runAsNonRoot':true"), ""},
                {"'os':{}", "spec.os.name: Required value\n"},
                {"'os':{'name':'Linux'}", "spec.os: Unsupported value: \"Linux\": supported "
                                          "values: \"linux\", \"windows\"\n"},
                {LINUX OF_POD("'windowsOptions':{}") "," OF_CONTAINER("'windowsOptions':{}"),
                 "spec.securityContext.windowsOptions: Forbidden: windows options cannot be set "
                 "for "
                 "a linux pod\n" CONTEXT ".windowsOptions: Forbidden: windows options cannot be "
                 "set for a linux pod\n"},
                /* The order is that of kube-apiserver. */
                {WINDOWS "'shareProcessNamespace':true,'hostUsers':false," OF_POD(
                         "'runAsUser':1,'fsGroup':1"),
                 "spec.hostUsers: Forbidden: cannot be set for a windows pod\n"
                 "spec.securityContext.fsGroup: Forbidden: cannot be set for a windows pod\n"
                 "spec.shareProcessNamespace: Forbidden: cannot be set for a windows pod\n"
                 "spec.securityContext.runAsUser: Forbidden: cannot be set for a windows pod\n"},
        };

        EXPECT_ALL(cases);
}

static void test_a_namespace_of_users_forbids_members(void **state) {
        static const struct spec_case cases[] = {
                {"'hostUsers':false", ""},
                {"'hostUsers':true,'hostNetwork':true,'hostPID':true,'hostIPC':true", ""},
                {"'hostUsers':false,'hostNetwork':true,'hostPID':true,'hostIPC':true,"
                 "'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'p'}}],"
                 "'containers':[" CONTAINER("c", ",'volumeDevices':[{'name':'v','devicePath':'/"
                                                 "d'}]") "]",
                 "spec.hostNetwork: Forbidden: when `hostUsers` is false\n"
                 "spec.HostPID: Forbidden: when `hostUsers` is false\n"
                 "spec.HostIPC: Forbidden: when `hostUsers` is false\n"
                 "spec.containers[0].volumeDevices: Forbidden: when `hostUsers` is false\n"},
        };

        EXPECT_ALL(cases);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_profiles_of_seccomp_are_validated),
                cmocka_unit_test(test_rights_of_containers_do_not_contradict),
                cmocka_unit_test(test_security_contexts_of_pods_are_validated),
                cmocka_unit_test(test_sysctls_do_not_change_the_host),
                cmocka_unit_test(test_users_of_windows_have_a_form),
                cmocka_unit_test(test_options_of_windows_have_limits),
                cmocka_unit_test(test_processes_of_the_host_are_in_all_containers),
                cmocka_unit_test(test_windows_forbids_members),
                cmocka_unit_test(test_systems_are_validated),
                cmocka_unit_test(test_a_namespace_of_users_forbids_members),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
