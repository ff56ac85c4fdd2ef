/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests: which steps they become, and the message that names a mistake. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/json.h"
#include "bootstrap/manifest.h"
#include "bootstrap/manifest_files.h"

#define NAMESPACE "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"a\"}}"

static struct hf__manifest_kinds kinds;
static bool memory_is_short; /* a text cannot be parsed for lack of memory */
static int read_errors[2];   /* of the next reads of files; 0 = none */

int __real_hf__json_parse(const char *data, size_t n, struct hf__json **ret_json,
                          size_t *reterr_offset);
int __wrap_hf__json_parse(const char *data, size_t n, struct hf__json **ret_json,
                          size_t *reterr_offset);

int __wrap_hf__json_parse(const char *data, size_t n, struct hf__json **ret_json,
                          size_t *reterr_offset) {
        return memory_is_short ? -ENOMEM : __real_hf__json_parse(data, n, ret_json, reterr_offset);
}

ssize_t __real_read(int fd, void *to, size_t n);
ssize_t __wrap_read(int fd, void *to, size_t n);

ssize_t __wrap_read(int fd, void *to, size_t n) {
        int error = read_errors[0];

        read_errors[0] = read_errors[1];
        read_errors[1] = 0;
        if (error == 0)
                return __real_read(fd, to, n);
        errno = error;
        return -1;
}

static int setup(void **state) {
        static const struct hf_bootstrap_kind list[] = {
                {"v1", "ConfigMap", "configmaps", true},
                {"v1", "Namespace", "namespaces", false},
                {"rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", false},
        };
        return hf__manifest_kinds_copy(list, 3, &kinds);
}
static int teardown(void **state) {
        hf__manifest_kinds_done(&kinds);
        return 0;
}

static int add(struct hf__steps *steps, const char *text, struct hf_status *status) {
        return hf__manifest_read_text(steps, &kinds, "f.yaml", text, strlen(text), status);
}

static void test_documents_become_steps_in_order(void **state) {
        static const char text[] = "# a comment\n"
                                   "---\n"
                                   "apiVersion: v1\n"
                                   "kind: ConfigMap\n"
                                   "metadata:\n"
                                   "  name: a\n"
                                   "  namespace: default\n"
                                   "  creationTimestamp: null\n"
                                   "data:\n"
                                   "  k: \"1\"\n"
                                   "status: {}\n"
                                   "---\n"
                                   "# nothing\n"
                                   "---\n"
                                   "apiVersion: rbac.authorization.k8s.io/v1\n"
                                   "kind: ClusterRole\n"
                                   "metadata: {name: 'system:x'}\n"
                                   "rules: []\n"
                                   "...\n";
        struct hf__steps steps = {0}, same = {0};
        struct hf_status status = {0};

        assert_int_equal(add(&steps, text, &status), 0);
        assert_int_equal(steps.n, 2);
        assert_string_equal(steps.list[0].id, "ConfigMap/default/a");
        assert_string_equal(steps.list[0].ns, "default");
        assert_null(strstr(steps.list[0].content, "status"));
        assert_null(strstr(steps.list[0].content, "creationTimestamp"));
        assert_string_equal(steps.list[1].id, "ClusterRole.rbac.authorization.k8s.io/system:x");
        assert_null(steps.list[1].ns);
        assert_string_equal(steps.list[1].kind->group, "rbac.authorization.k8s.io");
        assert_string_equal(steps.list[1].kind->version, "v1");
        assert_non_null(strstr(steps.list[1].source, "f.yaml: document 3, line 1"));
        /* The same object as JSON has the same hash, whatever its spelling. */
        assert_int_equal(add(&same,
                             " {\"kind\":\"ConfigMap\",\"data\":{\"k\":\"1\"},\"metadata\":{"
                             "\"namespace\":\"default\",\"name\":\"a\"},"
                             "\n\"apiVersion\":\"v1\"}",
                             &status),
                         0);
        assert_string_equal(same.list[0].hash, steps.list[0].hash);
        hf__steps_done(&same);
        hf__steps_done(&steps);
}

static void test_a_mistake_is_one_line_that_names_file_document_and_place(void **state) {
        static const char *const cases[][2] = {
                {"a: [", "f.yaml: document 1, line "},
                {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n---\na: b\n "
                 "c: d\n",
                 "f.yaml: document 2, line 6: "},
                {"a: &x 1\n", "f.yaml: document 1, line 1: anchors and tags are not accepted"},
                {"- 1\n", "f.yaml: document 1, line 1: it is not an object"},
                {"apiVersion: v1\nkind: \"a\\nb\"\n",
                 "f.yaml: document 1, line 1: field kind: there is no kind \"a b\" in \"v1\""},
                {"x: 1\n", "f.yaml: document 1, line 1: field apiVersion is missing"},
                {"---\n\napiVersion: v1\n", "f.yaml: document 1, line 1: field kind is missing"},
                {"apiVersion: v1\nkind: Config\n",
                 "f.yaml: document 1, line 1: field kind: there is no kind \"Config\" in \"v1\""},
                {"apiVersion: v2\nkind: ConfigMap\n", "f.yaml: document 1, line 1: field kind: "
                                                      "there is no kind \"ConfigMap\" in \"v2\""},
                {"apiVersion: v1\nkind: ConfigMap\n",
                 "f.yaml: document 1, line 1: field metadata.name: it is missing"},
                {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 7}\n",
                 "f.yaml: document 1, line 1: field metadata.name: it is missing"},
                {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a/b}\n",
                 "f.yaml: document 1, line 1: field metadata.name: it is not a valid name"},
                {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
                 "f.yaml: document 1, line 1: field metadata.namespace: a ConfigMap needs one"},
                {"apiVersion: v1\nkind: Namespace\nmetadata: {name: a, namespace: b}\n",
                 "f.yaml: document 1, line 1: field metadata.namespace: a Namespace has none"},
                {"apiVersion: v1\nkind: Namespace\nkind: Namespace\nmetadata: {name: a}\n",
                 "f.yaml: document 1, line 1: the key \"kind\" occurs twice in an object"},
                {"{\"a\":1,\n\"b\"}", "f.yaml: document 1, line 2: this is not JSON"},
                {"{}{}", "f.yaml: document 1, line 1: this is not JSON"},
                {"\xff", "f.yaml: it is not text in UTF-8"},
        };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                struct hf__steps steps = {0};
                struct hf_status status = {0};
                assert_int_equal(add(&steps, cases[i][0], &status), HF_E_INVALID);
                if (strncmp(status.message, cases[i][1], strlen(cases[i][1])) != 0)
                        assert_string_equal(status.message, cases[i][1]);
                assert_null(strchr(status.message, '\n'));
                assert_int_equal(add(&steps, cases[i][0], NULL), HF_E_INVALID);
                hf__steps_done(&steps);
        }
}

/*
 * A long file name does not hide the place in the file, nor does a file name with a line break make
 * two lines of the message.
 */
static void test_a_long_file_name_keeps_document_and_line(void **state) {
        static const char *const texts[] = {"a: 1\n---\nb: 1\n", "a: 1\n---\n b: [\n", "{\n]"};
        static const char fine[] =
                "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"a\"}}";
        char name[400];
        struct hf__steps steps = {0};

        memset(name, 'd', sizeof name);
        name[300] = '\n';
        memcpy(name + sizeof name - sizeof "/x\ny.yml", "/x\ny.yml", sizeof "/x\ny.yml");
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
                struct hf_status status = {0};
                assert_int_equal(hf__manifest_read_text(&steps, &kinds, name, texts[i],
                                                        strlen(texts[i]), &status),
                                 HF_E_INVALID);
                assert_memory_equal(status.message, "...d", 4);
                assert_non_null(strstr(status.message, "d/x y.yml: document "));
                assert_null(strchr(status.message, '\n'));
        }
        assert_int_equal(hf__manifest_read_text(&steps, &kinds, name, fine, strlen(fine), NULL), 0);
        assert_non_null(strstr(steps.list[0].source, "d/x y.yml: document 1, line 1"));
        /* The source is cut, because a message about the step shows no more of it. */
        assert_true(strlen(steps.list[0].source) < 160);
        hf__steps_done(&steps);
}

/* Also where the whole path is in the message. */
static void test_a_path_with_a_line_break_makes_one_line(void **state) {
        static const char *const texts[] = {"\xff", "a: [", "{\"a\":", "{}"};
        struct hf__steps steps = {0};
        struct hf_status status = {0};

        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
                assert_int_equal(hf__manifest_read_text(&steps, &kinds, "x\ny", texts[i],
                                                        strlen(texts[i]), &status),
                                 HF_E_INVALID);
                assert_memory_equal(status.message, "x y", 3);
                assert_null(strchr(status.message, '\n'));
        }
        assert_int_equal(hf__manifest_read_directory(&steps, &kinds, "/none\nsuch", &status), -2);
        assert_non_null(strstr(status.message, "/none such: "));
        assert_int_equal(hf__manifest_read_text(&steps, &kinds, "x", NULL, 0, &status), 0);
        assert_int_equal(steps.n, 0);
        hf__steps_done(&steps);
}

static void test_a_duplicate_step_is_refused(void **state) {
        static const char *const text = "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n";
        struct hf__steps one = {0}, two = {0}, none = {0};
        struct hf_status status = {0};

        assert_int_equal(add(&one, text, NULL), 0);
        assert_int_equal(add(&two, text, NULL), 0);
        assert_int_equal(hf__steps_check_unique(&none, &one, &status), 0);
        assert_int_equal(hf__steps_check_unique(&one, &two, &status), HF_E_INVALID);
        assert_string_equal(status.message, "f.yaml: document 1, line 1: field metadata.name: "
                                            "Namespace/a is already in f.yaml: document 1, line 1");
        assert_int_equal(add(&two, text, NULL), 0);
        assert_int_equal(hf__steps_check_unique(&none, &two, &status), HF_E_INVALID);
        hf__steps_done(&one);
        hf__steps_done(&two);
}

static void test_a_name_must_be_readable_in_urls_and_messages(void **state) {
        static const char *const bad[] = {".",         "..",     "a b", "a/b",     "a%b",
                                          "a\\u007fb", "a\\\"b", "",    "\xc3\xa4"};
        static const char *const good[] = {"a", "a.b", "...", "system:x", "a!b"};
        char text[512], name[HF_NAME_MAX + 2];
        struct hf__steps steps = {0};

        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
                struct hf_status status = {0};
                (void)snprintf(text, sizeof text,
                               "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{"
                               "\"name\":\"%s\"}}",
                               bad[i]);
                assert_int_equal(add(&steps, text, &status), HF_E_INVALID);
                assert_non_null(strstr(status.message, "it is not a valid name"));
        }
        memset(name, 'a', sizeof name - 1);
        for (size_t n = HF_NAME_MAX; n <= HF_NAME_MAX + 1; n++) {
                (void)snprintf(text, sizeof text,
                               "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{"
                               "\"name\":\"%.*s\"}}",
                               (int)n, name);
                assert_int_equal(add(&steps, text, NULL), n > HF_NAME_MAX ? HF_E_INVALID : 0);
        }
        for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
                (void)snprintf(text, sizeof text,
                               "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{"
                               "\"name\":\"%s\"}}",
                               good[i]);
                assert_int_equal(add(&steps, text, NULL), 0);
        }
        hf__steps_done(&steps);
        assert_int_equal(steps.n, 0);
        assert_null(steps.list);
}

static void test_the_number_of_steps_is_limited(void **state) {
        char text[160];
        struct hf__steps steps = {0};
        int r = 0;

        for (unsigned i = 0; r == 0 && i <= HF_BOOTSTRAP_STEPS_MAX; i++) {
                (void)snprintf(text, sizeof text,
                               "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{"
                               "\"name\":\"n%u\"}}",
                               i);
                r = add(&steps, text, NULL);
        }
        assert_int_equal(r, HF_E_TOO_LARGE);
        assert_int_equal(steps.n, HF_BOOTSTRAP_STEPS_MAX);
        hf__steps_done(&steps);
}

/* Texts of the embedder need no end mark: the byte after each of these cannot be read. */
static void test_nothing_is_read_after_the_text(void **state) {
        static const char *const texts[] = {"",
                                            " \n",
                                            "# a\n",
                                            "{",
                                            NAMESPACE,
                                            "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}",
                                            "\xc3"};
        size_t n_page = (size_t)sysconf(_SC_PAGESIZE);
        char *pages =
                mmap(NULL, 2 * n_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        assert_ptr_not_equal(pages, MAP_FAILED);
        assert_int_equal(mprotect(pages + n_page, n_page, PROT_NONE), 0);
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
                struct hf__steps steps = {0}, same = {0};
                size_t n = strlen(texts[i]);
                char *text = memcpy(pages + n_page - n, texts[i], n);
                int r = add(&steps, texts[i], NULL);
                assert_int_equal(hf__manifest_read_text(&same, &kinds, "f.yaml", text, n, NULL), r);
                assert_int_equal(same.n, steps.n);
                hf__steps_done(&steps);
                hf__steps_done(&same);
        }
        assert_int_equal(munmap(pages, 2 * n_page), 0);
}

/* ---- directories ---- */

static void put_file(const char *directory, const char *name, const char *text) {
        char path[512];
        (void)snprintf(path, sizeof path, "%s/%s", directory, name);
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        assert_true(fputs(text, file) >= 0);
        assert_int_equal(fclose(file), 0);
}

static void remove_all(const char *directory, const char *const *names, size_t n) {
        for (size_t i = 0; i < n; i++) {
                char path[512];
                (void)snprintf(path, sizeof path, "%s/%s", directory, names[i]);
                (void)remove(path);
        }
        assert_int_equal(rmdir(directory), 0);
}

static void remove_all_of(const char *directory, const char *name) {
        char path[512];
        (void)snprintf(path, sizeof path, "%s/%s", directory, name);
        assert_int_equal(unlink(path), 0);
}

static void test_files_are_read_by_name(void **state) {
        static const char *const names[] = {"10.yaml",      "2.yml",  "b.json",
                                            ".hidden.yaml", "README", "pipe.yaml"};
        char directory[] = "/tmp/holdfast-manifests-XXXXXX", path[512], bad[512];
        struct hf__steps steps = {0};
        struct hf_status status = {0};

        assert_non_null(mkdtemp(directory));
        put_file(directory, "b.json",
                 "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\","
                 "\"metadata\":{\"name\":\"third\"}}");
        put_file(directory, "2.yml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: second}\n");
        put_file(directory, "10.yaml",
                 "apiVersion: v1\nkind: Namespace\nmetadata: {name: first}\n");
        put_file(directory, ".hidden.yaml", "{{{");
        put_file(directory, "README", "{{{");
        (void)snprintf(path, sizeof path, "%s/pipe.yaml", directory);
        assert_int_equal(mkfifo(path, 0600), 0);
        assert_int_equal(hf__manifest_read_directory(&steps, &kinds, directory, &status), 0);
        assert_int_equal(steps.n, 3);
        assert_string_equal(steps.list[0].name, "first");
        assert_string_equal(steps.list[1].name, "second");
        assert_string_equal(steps.list[2].name, "third");
        put_file(directory, "2.yml", "apiVersion: v1\nkind: Nonsense\n");
        assert_int_equal(hf__manifest_read_directory(&steps, &kinds, directory, &status),
                         HF_E_INVALID);
        (void)snprintf(bad, sizeof bad,
                       "%s/2.yml: document 1, line 1: field kind: there is no kind "
                       "\"Nonsense\" in \"v1\"",
                       directory);
        assert_string_equal(status.message, bad);
        hf__steps_done(&steps);
        remove_all(directory, names, sizeof names / sizeof *names);
        assert_true(hf__manifest_read_directory(&steps, &kinds, directory, &status) < 0);
        assert_non_null(strstr(status.message, directory));
}

static void test_files_and_directories_have_limits(void **state) {
        char directory[] = "/tmp/holdfast-manifests-XXXXXX", name[32];
        static char large[(1 << 20) + 2];
        static const char object[] =
                "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"a\"}}";
        const char *one[] = {"a.json"};
        struct hf__steps steps = {0};
        struct hf_status status = {0};

        assert_non_null(mkdtemp(directory));
        put_file(directory, ".yaml", "{{{"); /* has no name before its ending */
        memset(large, ' ', sizeof large - 1);
        memcpy(large, object, sizeof object - 1);
        put_file(directory, "a.json", large);
        assert_int_equal(hf__manifest_read_directory(&steps, &kinds, directory, &status),
                         HF_E_TOO_LARGE);
        assert_non_null(strstr(status.message, "it has more than 1048576 bytes"));
        large[1 << 20] = '\0';
        put_file(directory, "a.json", large);
        assert_int_equal(hf__manifest_read_directory(&steps, &kinds, directory, &status), 0);
        assert_int_equal(steps.n, 1);
        hf__steps_done(&steps);
        for (int i = 0; i < 1000; i++) {
                (void)snprintf(name, sizeof name, "n%d.yaml", i);
                put_file(directory, name, "# nothing\n");
        }
        assert_int_equal(hf__manifest_read_directory(&steps, &kinds, directory, &status),
                         HF_E_TOO_LARGE);
        assert_non_null(strstr(status.message, "there are more than 1000 manifest files"));
        remove_all_of(directory, "n0.yaml");
        assert_int_equal(hf__manifest_read_directory(&steps, &kinds, directory, &status), 0);
        assert_int_equal(steps.n, 1);
        hf__steps_done(&steps);
        for (int i = 1; i < 1000; i++) {
                (void)snprintf(name, sizeof name, "n%d.yaml", i);
                remove_all_of(directory, name);
        }
        remove_all_of(directory, ".yaml");
        remove_all(directory, one, 1);
}

static void test_a_file_that_cannot_be_read_is_named(void **state) {
        char directory[] = "/tmp/holdfast-manifests-XXXXXX", path[64];
        const char *one[] = {"a.yaml"};
        struct hf__steps steps = {0};
        struct hf_status status = {0};

        assert_non_null(mkdtemp(directory));
        (void)snprintf(path, sizeof path, "%s/a.yaml", directory);
        assert_int_equal(symlink("/nonexistent", path), 0);
        assert_int_equal(hf__manifest_read_directory(&steps, &kinds, directory, &status), -2);
        assert_non_null(strstr(status.message, "a.yaml: cannot read it: "));
        assert_int_equal(unlink(path), 0);
        /* A file of the kernel contains fewer bytes than its size says. */
        assert_int_equal(symlink("/sys/kernel/mm/transparent_hugepage/enabled", path), 0);
        if (access(path, R_OK) == 0) {
                assert_int_equal(hf__manifest_read_directory(&steps, &kinds, directory, &status),
                                 HF_E_INVALID);
                assert_non_null(strstr(status.message, "the file shrank while it was read"));
        }
        remove_all(directory, one, 1);
        assert_int_equal(mkdir(directory, 0700), 0); /* an empty directory is valid */
        assert_int_equal(hf__manifest_read_directory(&steps, &kinds, directory, &status), 0);
        assert_int_equal(rmdir(directory), 0);
}

static void test_an_interrupted_read_goes_on(void **state) {
        char directory[] = "/tmp/holdfast-manifests-XXXXXX";
        const char *one[] = {"a.json"};
        struct hf__steps steps = {0};
        struct hf_status status = {0};

        assert_non_null(mkdtemp(directory));
        put_file(directory, "a.json", NAMESPACE);
        read_errors[0] = EINTR;
        read_errors[1] = EIO;
        assert_int_equal(hf__manifest_read_directory(&steps, &kinds, directory, &status), -EIO);
        assert_non_null(strstr(status.message, "/a.json: cannot read it: "));
        read_errors[0] = EINTR;
        assert_int_equal(hf__manifest_read_directory(&steps, &kinds, directory, &status), 0);
        assert_int_equal(steps.n, 1);
        hf__steps_done(&steps);
        remove_all(directory, one, 1);
}

/* The path is not cut: it could then name another file. */
static void test_a_path_that_is_too_long_is_refused(void **state) {
        char directory[] = "/tmp/holdfast-manifests-XXXXXX", path[PATH_MAX];
        const char *one[] = {"a.json"};
        struct hf__steps steps = {0};
        struct hf_status status = {0};

        assert_non_null(mkdtemp(directory));
        put_file(directory, "a.json", NAMESPACE);
        for (size_t n_too_long = 0; n_too_long < 2; n_too_long++) {
                size_t n = PATH_MAX - 1 - strlen("/a.json") + n_too_long;
                (void)strcpy(path, directory);
                memset(path + strlen(directory), '/', n - strlen(directory));
                path[n] = '\0';
                assert_int_equal(hf__manifest_read_directory(&steps, &kinds, path, &status),
                                 n_too_long ? -ENAMETOOLONG : 0);
                assert_int_equal(steps.n, n_too_long ? 0 : 1);
                hf__steps_done(&steps);
        }
        assert_non_null(strstr(status.message, "the path is too long"));
        remove_all(directory, one, 1);
}

/* Without a standard input, the file gets descriptor 0. */
static void test_any_descriptor_is_read_and_closed(void **state) {
        char directory[] = "/tmp/holdfast-manifests-XXXXXX";
        const char *one[] = {"a.json"};
        struct hf__steps steps = {0};

        assert_non_null(mkdtemp(directory));
        put_file(directory, "a.json", NAMESPACE);
        int kept = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
        assert_true(kept >= 0);
        assert_int_equal(close(STDIN_FILENO), 0);
        int r = hf__manifest_read_directory(&steps, &kinds, directory, NULL);
        bool is_closed = fcntl(STDIN_FILENO, F_GETFD) < 0;
        assert_int_equal(dup2(kept, STDIN_FILENO), STDIN_FILENO);
        assert_int_equal(close(kept), 0);
        assert_int_equal(r, 0);
        assert_true(is_closed);
        assert_int_equal(steps.n, 1);
        hf__steps_done(&steps);
        remove_all(directory, one, 1);
}

/* A document that cannot be read is not left out. */
static void test_without_memory_a_manifest_is_refused(void **state) {
        static const char *const texts[] =
                {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n",
                 "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\","
                 "\"namespace\":\"b\"}}"};

        for (int i = 0; i < 2; i++) {
                struct hf__steps steps = {0};
                struct hf_status status = {0};
                memory_is_short = true;
                assert_int_equal(add(&steps, texts[i], &status), -ENOMEM);
                memory_is_short = false;
                assert_non_null(strstr(status.message, "f.yaml"));
                assert_int_equal(steps.n, 0);
                assert_int_equal(add(&steps, texts[i], &status), 0);
                assert_int_equal(steps.n, 1);
                hf__steps_done(&steps);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_file_that_cannot_be_read_is_named),
                cmocka_unit_test(test_an_interrupted_read_goes_on),
                cmocka_unit_test(test_a_path_that_is_too_long_is_refused),
                cmocka_unit_test(test_any_descriptor_is_read_and_closed),
                cmocka_unit_test(test_files_and_directories_have_limits),
                cmocka_unit_test(test_a_name_must_be_readable_in_urls_and_messages),
                cmocka_unit_test(test_without_memory_a_manifest_is_refused),
                cmocka_unit_test(test_documents_become_steps_in_order),
                cmocka_unit_test(test_a_mistake_is_one_line_that_names_file_document_and_place),
                cmocka_unit_test(test_a_long_file_name_keeps_document_and_line),
                cmocka_unit_test(test_a_path_with_a_line_break_makes_one_line),
                cmocka_unit_test(test_a_duplicate_step_is_refused),
                cmocka_unit_test(test_the_number_of_steps_is_limited),
                cmocka_unit_test(test_nothing_is_read_after_the_text),
                cmocka_unit_test(test_files_are_read_by_name),
        };
        return cmocka_run_group_tests(tests, setup, teardown);
}
