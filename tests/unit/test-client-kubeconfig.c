/* SPDX-License-Identifier: Apache-2.0 */
/* Kubeconfigs: credentials, files, merging, YAML. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "client/kubeconfig.h"
#include "client/kubeconfig_file.h"
#include "client/yaml.h"

#define HEAD                                                                                       \
        "apiVersion: v1\nkind: Config\ncurrent-context: main\n"                                    \
        "contexts:\n- name: other\n  context: {cluster: nowhere, user: nobody}\n- name: main\n  "  \
        "context:\n    cluster: c\n    user: u\n"
#define CLUSTER "clusters:\n- name: c\n  cluster:\n    server: https://127.0.0.1:6443\n"
#define USER    "users:\n- name: u\n  user:\n"

static int parse(const char *text, struct hf__kubeconfig *ret_config,
                 struct hf_status *reterr_status) {
        *reterr_status = (struct hf_status){0};
        return hf__kubeconfig_parse(text, strlen(text), "/nonexistent", "file", ret_config,
                                    reterr_status);
}

static void test_inline_credentials_are_read(void **state) {
        struct hf__kubeconfig config;
        struct hf_status status;
        const char *text = HEAD CLUSTER
                "    certificate-authority-data: Q0E=\n    tls-server-name: \"api\"\n" USER
                "    client-certificate-data: Q0VSVA==\n    client-key-data: |\n      S0\n      "
                "VZ\n"
                "    client-certificate: ignored.pem\n    token: abc\n";

        if (parse(text, &config, &status) != 0)
                fail_msg("%s", status.message);
        assert_string_equal(config.rest.server, "https://127.0.0.1:6443");
        assert_string_equal(config.rest.ca_pem, "CA");
        assert_string_equal(config.rest.cert_pem, "CERT");
        assert_string_equal(config.rest.key_pem, "KEY");
        assert_string_equal(config.rest.server_name, "api");
        assert_string_equal(config.rest.bearer_token, "abc");
        assert_false(config.rest.insecure);
        hf__kubeconfig_done(&config);
}

static void test_other_servers_are_read_from_an_extension(void **state) {
        static const struct {
                const char *text, *message;
                size_t n;
        } cases[] = {
                {"[{name: other.dev/x, extension: 7}, {name: holdfast.dev/servers, extension: "
                 "{servers: ['https://b:1', 'https://c:1']}}]",
                 NULL, 2},
                {"[{name: holdfast.dev/servers, extension: {servers: []}}]", NULL, 0},
                {"[]", NULL, 0},
                {"[{name: holdfast.dev/servers, extension: ['https://b:1']}]", "{servers: [URL", 0},
                {"[{name: holdfast.dev/servers}]", "{servers: [URL", 0},
                {"[{name: holdfast.dev/servers, extension: {servers: [7]}}]", "not a string", 0},
                {"[{name: holdfast.dev/servers, extension: {servers: []}}, {name: "
                 "holdfast.dev/servers, extension: {servers: []}}]",
                 "must occur once", 0},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hf__kubeconfig config = {0};
                struct hf_status status;
                char text[1024];
                (void)snprintf(text, sizeof text, "%s%s    extensions: %s\n%s", HEAD, CLUSTER,
                               cases[i].text, USER "    token: t\n");
                int r = parse(text, &config, &status);
                if (cases[i].message) {
                        assert_int_equal(r, HF_E_INVALID);
                        assert_non_null(strstr(status.message, cases[i].message));
                } else {
                        assert_int_equal(r, 0);
                        assert_int_equal(config.rest.n_other_servers, cases[i].n);
                        for (size_t j = 0; j < cases[i].n; j++)
                                assert_int_equal(config.rest.other_servers[j][8], "bc"[j]);
                }
                hf__kubeconfig_done(&config);
        }
}

static void test_json_without_credentials_is_read(void **state) {
        struct hf__kubeconfig config;
        struct hf_status status;
        const char *text = "{\"current-context\":\"m\",\"contexts\":[{\"name\":\"m\",\"context\":{"
                           "\"cluster\":\"c\"}}],\"clusters\":"
                           "[{\"name\":\"c\",\"cluster\":{\"server\":\"http://"
                           "h:1\",\"insecure-skip-tls-verify\":true}}]}";

        if (parse(text, &config, &status) != 0)
                fail_msg("%s", status.message);
        assert_string_equal(config.rest.server, "http://h:1");
        assert_true(config.rest.insecure);
        assert_null(config.rest.bearer_token);
        assert_null(config.rest.cert_pem);
        hf__kubeconfig_done(&config);
}

static void test_bad_files_are_refused_by_name(void **state) {
        static const struct {
                const char *text, *words;
                int error;
        } cases[] = {
                {"", "the text is empty", HF_E_INVALID},
                {"just text", "not a kubeconfig", HF_E_INVALID},
                {"a: [1, 2", "line", HF_E_INVALID},
                {"{\"a\": ", "line", HF_E_INVALID},
                {"a: &x 1\nb: *x\n", "anchors and tags", HF_E_INVALID},
                {"a: *x\n", "aliases", HF_E_INVALID},
                {"a: !!binary x\n", "anchors and tags", HF_E_INVALID},
                {"a: 1\n---\nb: 2\n", "second document", HF_E_INVALID},
                {"? [a]\n: b\n", "key", HF_E_INVALID},
                {"a: 1\n", "current-context", HF_E_INVALID},
                {"current-context: 7\n", "current-context must be a string", HF_E_INVALID},
                {"current-context: x\n", "no context named \"x\"", HF_E_INVALID},
                {HEAD, "no cluster named \"c\"", HF_E_INVALID},
                {HEAD CLUSTER, "no user named \"u\"", HF_E_INVALID},
                {HEAD "clusters:\n- name: c\n", "no object", HF_E_INVALID},
                {HEAD "clusters:\n- name: c\n  cluster: {}\n", "no server", HF_E_INVALID},
                {HEAD CLUSTER "    proxy-url: http://p\n", "proxy-url", HF_E_INVALID},
                {HEAD CLUSTER "    insecure-skip-tls-verify: maybe\n", "true or false",
                 HF_E_INVALID},
                {HEAD CLUSTER "    certificate-authority-data: '%%%'\n",
                 "certificate-authority-data", HF_E_INVALID},
                {HEAD CLUSTER "    certificate-authority-data: 7\n",
                 "certificate-authority-data must be a string", HF_E_INVALID},
                {HEAD CLUSTER "    certificate-authority: 7\n",
                 "certificate-authority must be a string", HF_E_INVALID},
                {HEAD CLUSTER USER "    client-key-data: [a]\n", "client-key-data must be a string",
                 HF_E_INVALID},
                {HEAD CLUSTER "    certificate-authority: gone.pem\n", "/nonexistent/gone.pem",
                 -ENOENT},
                {HEAD CLUSTER USER "    exec: {command: aws}\n", "exec is not supported",
                 HF_E_INVALID},
                {HEAD CLUSTER USER "    auth-provider: {name: gcp}\n",
                 "auth-provider is not supported", HF_E_INVALID},
                {HEAD CLUSTER USER "    username: me\n    password: x\n",
                 "username is not supported", HF_E_INVALID},
                {HEAD CLUSTER USER "    as: root\n", "as is not supported", HF_E_INVALID},
                {HEAD CLUSTER USER "    token: 12345\n", "token must be a string", HF_E_INVALID},
                {HEAD CLUSTER USER "    as-groups: [g]\n", "as-groups is not supported",
                 HF_E_INVALID},
                {HEAD CLUSTER USER "    as-user-extra: {a: [b]}\n",
                 "as-user-extra is not supported", HF_E_INVALID},
        };
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hf__kubeconfig config;
                struct hf_status status;
                int r = parse(cases[i].text, &config, &status);
                if (r != cases[i].error || !strstr(status.message, cases[i].words))
                        fail_msg("case %zu: %d \"%s\", not %d \"%s\"", i, r, status.message,
                                 cases[i].error, cases[i].words);
                assert_null(strstr(status.message, "the files after it"));
        }
}

/* A message that quotes the file is still one line. */
static void test_errors_are_one_line(void **state) {
        static const struct {
                const char *text, *words;
                int error;
        } cases[] = {
                {"current-context: \"a\\nb\"\n", "no context named \"a\\x0ab\"", HF_E_INVALID},
                {HEAD CLUSTER "    certificate-authority: \"a\\n\\e[31mb.pem\"\n",
                 "/nonexistent/a\\x0a\\x1b[31mb.pem", -ENOENT},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hf__kubeconfig config;
                struct hf_status status;
                assert_int_equal(parse(cases[i].text, &config, &status), cases[i].error);
                assert_int_equal(status.error, cases[i].error);
                assert_int_equal(hf__kubeconfig_parse(cases[i].text, strlen(cases[i].text),
                                                      "/nonexistent", "file", &config, NULL),
                                 cases[i].error);
                if (!strstr(status.message, cases[i].words))
                        fail_msg("case %zu: \"%s\"", i, status.message);
        }
        /* The message is cut, because each of these bytes needs four. */
        struct hf__strbuf text = {0};
        struct hf__kubeconfig config;
        struct hf_status status;
        hf__strbuf_puts(&text, HEAD CLUSTER "    certificate-authority: \"");
        for (int i = 0; i < 600; i++)
                hf__strbuf_puts(&text, "\\n");
        hf__strbuf_puts(&text, "\"\n");
        assert_int_not_equal(parse(text.data, &config, &status), 0);
        assert_non_null(strstr(status.message, "\\x0a\\x0a"));
        for (const char *c = status.message; *c; c++)
                assert_true(*c >= ' ');
        hf__strbuf_done(&text);
}

static void write_file(const char *dir, const char *name, const char *text) {
        char path[256];
        snprintf(path, sizeof path, "%s/%s", dir, name);
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fputs(text, file);
        assert_int_equal(fclose(file), 0);
}

static void test_files_are_relative_to_the_kubeconfig(void **state) {
        char dir[] = "/tmp/hf-kubeconfig-XXXXXX", path[256], command[256];
        struct hf__kubeconfig config;
        struct hf_status status = {0};

        assert_non_null(mkdtemp(dir));
        write_file(dir, "ca.pem", "the CA\n");
        write_file(dir, "token", "secret\n");
        write_file(dir, "empty", "\n");
        write_file(dir, "config",
                   HEAD CLUSTER "    certificate-authority: ca.pem\n" USER
                                "    token: other\n    tokenFile: token\n");
        snprintf(path, sizeof path, "%s/config", dir);
        if (hf__kubeconfig_load(path, &config, &status) != 0)
                fail_msg("%s", status.message);
        assert_string_equal(config.rest.ca_pem, "the CA\n");
        /* the file takes precedence, and the client reads it */
        assert_null(config.rest.bearer_token);
        snprintf(command, sizeof command, "%s/token", dir);
        assert_string_equal(config.rest.token_file, command);
        hf__kubeconfig_done(&config);

        assert_int_equal(setenv("KUBECONFIG", path, 1), 0);
        assert_int_equal(hf__kubeconfig_load(NULL, &config, &status), 0);
        hf__kubeconfig_done(&config);
        assert_int_equal(hf__kubeconfig_load("/nonexistent/config", &config, &status), -ENOENT);
        assert_non_null(strstr(status.message, "/nonexistent/config"));
        assert_int_equal(hf__kubeconfig_load(dir, &config, &status), -EINVAL); /* a directory */

        static const char *const names[] = {"ca.pem", "token", "empty", "config"};
        for (size_t i = 0; i < 4; i++) {
                snprintf(command, sizeof command, "%s/%s", dir, names[i]);
                assert_int_equal(unlink(command), 0);
        }
        assert_int_equal(rmdir(dir), 0);
}

static void expect_server(const char *variable, const char *server, const char *token) {
        struct hf__kubeconfig config;
        struct hf_status status = {0};

        assert_int_equal(setenv("KUBECONFIG", variable, 1), 0);
        if (hf__kubeconfig_load(NULL, &config, &status) != 0)
                fail_msg("%s", status.message);
        assert_string_equal(config.rest.server, server);
        assert_string_equal(config.rest.bearer_token, token);
        hf__kubeconfig_done(&config);
}

static void test_several_files_are_merged(void **state) {
        char dir[] = "/tmp/hf-kubeconfig-XXXXXX", list[1024], path[256];
        struct hf__kubeconfig config;
        struct hf_status status = {0};

        assert_non_null(mkdtemp(dir));
        write_file(dir, "1", "contexts:\n- name: main\n  context: {cluster: c, user: u}\n");
        write_file(dir, "2",
                   HEAD "clusters:\n- name: c\n  cluster:\n    server: https://second\n" USER
                        "    token: second\n");
        write_file(dir, "3",
                   HEAD "clusters:\n- name: c\n  cluster:\n    server: https://third\n    "
                        "tls-server-name: x\n" USER "    token: third\n");
        write_file(dir, "4", "current-context: nowhere\n");
        snprintf(list, sizeof list, "%s/1:%s/gone::%s/2:%s/3:", dir, dir, dir, dir);
        /*
         * the whole cluster comes from this file: the tls-server-name of the third file is not
         * mixed in
         */
        expect_server(list, "https://second", "second");
        snprintf(list, sizeof list, "%s/3:%s/2", dir, dir);
        expect_server(list, "https://third", "third");
        snprintf(list, sizeof list, "%s/4:%s/2", dir, dir);
        assert_int_equal(setenv("KUBECONFIG", list, 1), 0);
        assert_int_equal(hf__kubeconfig_load(NULL, &config, &status), HF_E_INVALID);
        assert_non_null(strstr(status.message, "named \"nowhere\", nor in the files after it"));
        assert_int_equal(setenv("KUBECONFIG", "/nonexistent/a:/nonexistent/b", 1), 0);
        assert_int_equal(hf__kubeconfig_load(NULL, &config, &status), HF_E_NOT_FOUND);
        /* so is a missing ~/.kube/config, which is read without KUBECONFIG */
        assert_int_equal(unsetenv("KUBECONFIG"), 0);
        assert_int_equal(setenv("HOME", "/nonexistent", 1), 0);
        assert_int_equal(hf__kubeconfig_load(NULL, &config, &status), HF_E_NOT_FOUND);
        assert_non_null(strstr(status.message, "/nonexistent/.kube/config"));
        /* a file that exists but cannot be read is an error */
        snprintf(list, sizeof list, "%s/2:%s", dir, dir);
        assert_int_equal(setenv("KUBECONFIG", list, 1), 0);
        assert_int_equal(hf__kubeconfig_load(NULL, &config, &status), -EINVAL);
        for (int i = 1; i <= 4; i++) {
                snprintf(path, sizeof path, "%s/%d", dir, i);
                assert_int_equal(unlink(path), 0);
        }
        assert_int_equal(rmdir(dir), 0);
}

/* A path beyond the limit counts only if its file exists. */
static void test_missing_files_do_not_count(void **state) {
        char dir[] = "/tmp/hf-kubeconfig-XXXXXX", list[4096] = "", path[256];
        struct hf__kubeconfig config;
        struct hf_status status = {0};
        size_t n = 0;

        assert_non_null(mkdtemp(dir));
        write_file(dir, "1", HEAD CLUSTER USER "    token: t\n");
        for (unsigned i = 0; i < HF__KUBECONFIG_FILES_MAX; i++)
                n += (size_t)snprintf(list + n, sizeof list - n, "%s/1:", dir);
        snprintf(list + n, sizeof list - n, "%s/gone", dir);
        expect_server(list, "https://127.0.0.1:6443", "t");
        snprintf(list + n, sizeof list - n, "%s/1", dir);
        assert_int_equal(setenv("KUBECONFIG", list, 1), 0);
        assert_int_equal(hf__kubeconfig_load(NULL, &config, &status), HF_E_INVALID);
        assert_non_null(strstr(status.message, "more than 32 files that exist"));
        snprintf(path, sizeof path, "%s/1", dir);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(rmdir(dir), 0);
}

static void expect_json(const char *yaml, const char *json) {
        struct hf__strbuf out = {0};
        struct hf_status status = {0};
        int r = hf__yaml_to_json(yaml, strlen(yaml), &out, &status);

        if (r != 0)
                fail_msg("%s: %s", yaml, status.message);
        assert_string_equal(out.data, json);
        hf__strbuf_done(&out);
}

static void test_yaml_scalars_become_json(void **state) {
        expect_json("a: 1\nb: -2.5e3\nc: 007\nd: 1.\ne: .5\n",
                    "{\"a\":1,\"b\":-2.5e3,\"c\":\"007\",\"d\":\"1.\",\"e\":\".5\"}");
        expect_json("a: true\nb: 'true'\nc: ~\nd:\ne: yes\nf: !!str 1\n",
                    "{\"a\":true,\"b\":\"true\",\"c\":null,\"d\":null,\"e\":\"yes\",\"f\":\"1\"}");
        expect_json("1: a\ntrue: b\na.b/c: \"x\\ty\"\n",
                    "{\"1\":\"a\",\"true\":\"b\",\"a.b/c\":\"x\\ty\"}");
        expect_json("- [a, {b: c}]\n- {}\n- []\n- |\n  l1\n  l2\n",
                    "[[\"a\",{\"b\":\"c\"}],{},[],\"l1\\nl2\\n\"]");
}

static void test_yaml_depth_and_size_are_limited(void **state) {
        struct hf__strbuf out = {0}, limited = {.max = 8};
        struct hf_status status = {0};
        char deep[256];

        memset(deep, '[', sizeof deep);
        assert_int_equal(hf__yaml_to_json(deep, sizeof deep, &out, &status), HF_E_INVALID);
        assert_non_null(strstr(status.message, "nested"));
        hf__strbuf_done(&out);
        assert_int_equal(hf__yaml_to_json("a: 123456789", 12, &limited, &status), HF_E_TOO_LARGE);
        hf__strbuf_done(&limited);
}

/* ---- where files are, and what they may contain ---- */

static void put(const char *file, const char *text) {
        FILE *out = fopen(file, "w");

        assert_non_null(out);
        assert_true(fputs(text, out) >= 0);
        assert_int_equal(fclose(out), 0);
}

static void expect_token_file(const char *file, const char *ends_with) {
        struct hf__kubeconfig config = {0};
        struct hf_status status = {0};

        if (hf__kubeconfig_load(file, &config, &status) != 0)
                fail_msg("%s", status.message);
        assert_non_null(config.rest.token_file);
        assert_int_equal(config.rest.token_file[0], '/'); /* it is read again later */
        assert_non_null(strstr(config.rest.token_file, ends_with));
        hf__kubeconfig_done(&config);
}

static void test_paths_are_relative_to_the_file_that_has_them(void **state) {
        char root[] = "/tmp/holdfast-kubeconfig-XXXXXX", path[128], list[256], here[1024];
        struct hf__kubeconfig config = {0};
        struct hf_status status = {0};

        assert_non_null(mkdtemp(root));
        assert_non_null(getcwd(here, sizeof here));
        (void)snprintf(path, sizeof path, "%s/.kube", root);
        assert_int_equal(mkdir(path, 0700), 0);
        (void)snprintf(path, sizeof path, "%s/.kube/config", root);
        put(path, HEAD CLUSTER USER "    tokenFile: token\n");
        (void)snprintf(path, sizeof path, "%s/.kube/token", root);
        put(path, "t\n");
        (void)snprintf(path, sizeof path, "%s/.kube/config", root);
        expect_token_file(path, "/.kube/token");
        /* ~/.kube/config */
        assert_int_equal(unsetenv("KUBECONFIG"), 0);
        assert_int_equal(setenv("HOME", root, 1), 0);
        expect_token_file(NULL, "/.kube/token");
        assert_int_equal(setenv("KUBECONFIG", "", 1), 0); /* as if it were not set */
        expect_token_file(NULL, "/.kube/token");
        assert_int_equal(setenv("HOME", "", 1), 0);
        assert_int_equal(hf__kubeconfig_load(NULL, &config, &status), HF_E_NOT_FOUND);
        assert_non_null(strstr(status.message, "neither KUBECONFIG nor HOME is set"));
        assert_int_equal(unsetenv("HOME"), 0);
        assert_int_equal(hf__kubeconfig_load(NULL, &config, &status), HF_E_NOT_FOUND);
        /* the user comes from the second file of a list, with its directory */
        (void)snprintf(path, sizeof path, "%s/first", root);
        put(path, HEAD CLUSTER);
        (void)snprintf(list, sizeof list, "%s/first:%s/.kube/config", root, root);
        assert_int_equal(setenv("KUBECONFIG", list, 1), 0);
        expect_token_file(NULL, "/.kube/token");
        /* the working directory */
        (void)snprintf(path, sizeof path, "%s/.kube", root);
        assert_int_equal(chdir(path), 0);
        expect_token_file("config", "/.kube/token");
        expect_token_file("./config", "/.kube/token");
        assert_int_equal(chdir(here), 0);
        assert_int_equal(unsetenv("KUBECONFIG"), 0);
        static const char *const files[] = {"first", ".kube/config", ".kube/token"};
        for (size_t i = 0; i < 3; i++) {
                (void)snprintf(path, sizeof path, "%s/%s", root, files[i]);
                assert_int_equal(unlink(path), 0);
        }
        (void)snprintf(path, sizeof path, "%s/.kube", root);
        assert_int_equal(rmdir(path), 0);
        assert_int_equal(rmdir(root), 0);
}

static void test_what_is_no_text_is_refused(void **state) {
        static char large[(1 << 20) + 2];
        struct hf__kubeconfig config = {0};
        struct hf_status status = {0};
        size_t n = strlen(HEAD CLUSTER USER "    token: t\n");

        memset(large, '\n', sizeof large - 1);
        memcpy(large, HEAD CLUSTER USER "    token: t\n", n);
        assert_int_equal(hf__kubeconfig_parse(large, 1 << 20, "", "f", &config, &status), 0);
        hf__kubeconfig_done(&config);
        hf__kubeconfig_done(&config); /* done is idempotent */
        assert_int_equal(hf__kubeconfig_parse(large, (1 << 20) + 1, "", "f", &config, &status),
                         HF_E_INVALID);
        assert_string_equal(status.message, "f: the file is too large or not text");
        large[n] = '\0';
        assert_int_equal(hf__kubeconfig_parse(large, n + 1, "", "f", &config, &status),
                         HF_E_INVALID);
        assert_string_equal(status.message, "f: the file is too large or not text");
        assert_int_equal(hf__kubeconfig_parse("", 0, "", "f", &config, &status), HF_E_INVALID);
        assert_int_equal(hf__kubeconfig_parse(" \n", 2, "", "f", &config, &status), HF_E_INVALID);
        assert_int_equal(hf__kubeconfig_parse("[]", 2, "", "f", &config, &status), HF_E_INVALID);
        assert_string_equal(status.message, "f: this is not a kubeconfig");
        assert_int_equal(hf__kubeconfig_parse("{} ", 1, "", "f", &config, &status), HF_E_INVALID);
}

static void test_data_is_base64_of_a_text(void **state) {
        static const char *const bad[] = {"QUFBAA==", "*", "Q0E", " "};

        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
                struct hf__kubeconfig config = {0};
                struct hf_status status;
                char text[512];
                (void)snprintf(text, sizeof text,
                               HEAD CLUSTER "    certificate-authority-data: '%s'\n" USER
                                            "    token: t\n",
                               bad[i]);
                assert_int_equal(parse(text, &config, &status), HF_E_INVALID);
                assert_string_equal(status.message,
                                    "file: certificate-authority-data is not base64 of PEM text");
        }
}

static void test_a_setting_without_a_value_is_not_set(void **state) {
        static const char *const unset[] = {"exec: null", "exec: ''", "exec:"};
        static const char *const set[] = {"exec: {}", "exec: a", "exec: 1", "exec: []"};

        for (size_t i = 0; i < 7; i++) {
                struct hf__kubeconfig config = {0};
                struct hf_status status;
                char text[512];
                (void)snprintf(text, sizeof text, "%s    token: t\n    %s\n", HEAD CLUSTER USER,
                               i < 3 ? unset[i] : set[i - 3]);
                assert_int_equal(parse(text, &config, &status), i < 3 ? 0 : HF_E_INVALID);
                if (i >= 3)
                        assert_non_null(strstr(status.message, "exec is not supported"));
                hf__kubeconfig_done(&config);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_inline_credentials_are_read),
                cmocka_unit_test(test_other_servers_are_read_from_an_extension),
                cmocka_unit_test(test_json_without_credentials_is_read),
                cmocka_unit_test(test_bad_files_are_refused_by_name),
                cmocka_unit_test(test_errors_are_one_line),
                cmocka_unit_test(test_files_are_relative_to_the_kubeconfig),
                cmocka_unit_test(test_several_files_are_merged),
                cmocka_unit_test(test_missing_files_do_not_count),
                cmocka_unit_test(test_paths_are_relative_to_the_file_that_has_them),
                cmocka_unit_test(test_what_is_no_text_is_refused),
                cmocka_unit_test(test_data_is_base64_of_a_text),
                cmocka_unit_test(test_a_setting_without_a_value_is_not_set),
                cmocka_unit_test(test_yaml_scalars_become_json),
                cmocka_unit_test(test_yaml_depth_and_size_are_limited),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
