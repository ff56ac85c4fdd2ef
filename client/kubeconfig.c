/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a kubeconfig. What we cannot honour (programs that make credentials, proxies, impersonation) is refused by name:
 * ignoring it would connect as somebody else, or somewhere else, than the file says.
 */
#include "client/kubeconfig.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "client/base64.h"
#include "client/yaml.h"

#define MAX_FILE ((size_t)1 << 20)
#define MAX_JSON ((size_t)4 << 20)

/* What reading is about: for messages and for relative paths. */
struct reading {
        const char *dir, *source;
        struct hf_status *reterr_status;
};

static void wipe_free(char *text) {
        if (text)
                explicit_bzero(text, strlen(text));
        free(text);
}

/* ---- files ---- */

static int read_all(int fd, char *data, size_t max, size_t *ret_n) {
        size_t n = 0;

        for (;;) {
                ssize_t got = read(fd, data + n, max - n);
                if (got < 0 && errno == EINTR)
                        continue;
                if (got < 0)
                        return -errno;
                if (got == 0)
                        break;
                n += (size_t)got;
                if (n == max)
                        return -EFBIG;
        }
        *ret_n = n;
        return 0;
}

/* The whole file, NUL-terminated; bytes after a NUL in it are lost to text, so a NUL is refused. -errno. */
static int read_file(const char *path, char **ret_text, size_t *ret_n) {
        struct stat st;
        size_t n = 0;
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); /* a FIFO is found out, not waited for */

        if (fd < 0)
                return -errno;
        char *text = malloc(MAX_FILE + 2);
        int r = !text ? -ENOMEM : fstat(fd, &st) < 0 ? -errno : S_ISREG(st.st_mode) ? 0 : -EINVAL;
        if (r == 0)
                r = read_all(fd, text, MAX_FILE + 1, &n);
        (void)close(fd);
        if (r == 0 && memchr(text, '\0', n))
                r = -EINVAL;
        if (r < 0) {
                free(text);
                return r;
        }
        text[n] = '\0';
        *ret_text = text;
        *ret_n = n;
        return 0;
}

/* The text of the file that member `key` names. */
static int read_named(const struct reading *in, const char *key, const char *name, char **ret_text) {
        char *path = NULL;
        size_t n;

        if (asprintf(&path, "%s%s%s", name[0] == '/' ? "" : in->dir, name[0] == '/' || !in->dir[0] ? "" : "/", name) < 0)
                return hf_fail(in->reterr_status, -ENOMEM, "out of memory");
        int r = read_file(path, ret_text, &n);
        if (r < 0)
                (void)hf_fail(in->reterr_status, r, "%s: %s: cannot read %s: %s", in->source, key, path, hf_strerror(r));
        free(path);
        return r;
}

/* ---- members ---- */

/* A text member; *ret_text is NULL when it is absent or empty, as everybody writes "nothing". */
static int get_text(const struct reading *in, const struct hf__json *object, const char *key, const char **ret_text) {
        const struct hf__json *member = hf__json_get(object, key);

        *ret_text = NULL;
        if (!member || hf__json_is_null(member))
                return 0;
        if (!hf__json_is_string(member))
                return hf_fail(in->reterr_status, HF_E_INVALID, "%s: %s must be a string", in->source, key);
        const char *text = hf__json_text(member);
        *ret_text = text[0] ? text : NULL;
        return 0;
}

static int copy_text(const struct reading *in, const struct hf__json *object, const char *key, char **ret_copy) {
        const char *text;
        int r = get_text(in, object, key, &text);

        if (r != 0 || !text)
                return r;
        *ret_copy = strdup(text);
        return *ret_copy ? 0 : hf_fail(in->reterr_status, -ENOMEM, "out of memory");
}

/* PEM text from "<key>-data" (base64) or else from the file that "<key>" names. */
static int get_pem(const struct reading *in, const struct hf__json *object, const char *key, const char *data_key, char **ret_pem) {
        const char *data, *name;
        size_t n;

        int r = get_text(in, object, data_key, &data);
        if (r == 0)
                r = get_text(in, object, key, &name);
        if (r != 0)
                return r;
        if (!data)
                return name ? read_named(in, key, name, ret_pem) : 0;
        r = hf__base64_decode(data, strlen(data), ret_pem, &n);
        if (r == 0 && (n == 0 || memchr(*ret_pem, '\0', n))) {
                free(*ret_pem);
                *ret_pem = NULL;
                r = HF_E_INVALID;
        }
        if (r > 0)
                return hf_fail(in->reterr_status, r, "%s: %s is not base64 of PEM text", in->source, data_key);
        return r < 0 ? hf_fail(in->reterr_status, r, "out of memory") : 0;
}

static int refuse_member(const struct reading *in, const struct hf__json *object, const char *key, const char *why) {
        const struct hf__json *member = hf__json_get(object, key);

        if (!member || hf__json_is_null(member) || (hf__json_is_string(member) && !hf__json_text(member)[0]))
                return 0;
        return hf_fail(in->reterr_status, HF_E_INVALID, "%s: %s is not supported: %s", in->source, key, why);
}

/* {"<list>": [{"name": name, "<kind>": {...}}]} */
static int find_named(const struct reading *in, const struct hf__json *root, const char *list, const char *kind, const char *name,
                      struct hf__json **ret_object) {
        for (struct hf__json *item = hf__json_first(hf__json_get(root, list)); item; item = hf__json_next(item)) {
                const struct hf__json *member = hf__json_get(item, "name");
                const char *text = hf__json_is_string(member) ? hf__json_text(member) : NULL;
                if (!text || strcmp(text, name) != 0)
                        continue;
                *ret_object = hf__json_get(item, kind);
                if (hf__json_is_object(*ret_object))
                        return 0;
                return hf_fail(in->reterr_status, HF_E_INVALID, "%s: the %s \"%.100s\" has no object \"%s\"", in->source, kind, name, kind);
        }
        return hf_fail(in->reterr_status, HF_E_INVALID, "%s: there is no %s named \"%.100s\"", in->source, kind, name);
}

/* ---- cluster and user ---- */

static int take_cluster(const struct reading *in, const struct hf__json *cluster, struct hf__kubeconfig *config) {
        const struct hf__json *insecure = hf__json_get(cluster, "insecure-skip-tls-verify");

        int r = refuse_member(in, cluster, "proxy-url", "connect directly");
        if (r == 0)
                r = copy_text(in, cluster, "server", &config->server);
        if (r == 0 && !config->server)
                r = hf_fail(in->reterr_status, HF_E_INVALID, "%s: the cluster has no server", in->source);
        if (r == 0)
                r = copy_text(in, cluster, "tls-server-name", &config->server_name);
        if (r == 0)
                r = get_pem(in, cluster, "certificate-authority", "certificate-authority-data", &config->ca_pem);
        if (r == 0 && insecure && !hf__json_is_null(insecure) && !hf__json_is_bool(insecure))
                r = hf_fail(in->reterr_status, HF_E_INVALID, "%s: insecure-skip-tls-verify must be true or false", in->source);
        if (r == 0)
                config->rest.insecure = hf__json_bool(cluster, "insecure-skip-tls-verify", false);
        return r;
}

static int take_token(const struct reading *in, const struct hf__json *user, struct hf__kubeconfig *config) {
        const char *name;

        int r = get_text(in, user, "tokenFile", &name);
        if (r != 0 || !name)
                return r != 0 ? r : copy_text(in, user, "token", &config->bearer_token);
        r = read_named(in, "tokenFile", name, &config->bearer_token);
        if (r != 0)
                return r;
        size_t n = strlen(config->bearer_token); /* files end in a newline, tokens do not */
        while (n > 0 && strchr(" \t\r\n", config->bearer_token[n - 1]))
                config->bearer_token[--n] = '\0';
        return n > 0 ? 0 : hf_fail(in->reterr_status, HF_E_INVALID, "%s: tokenFile %s is empty", in->source, name);
}

static int take_user(const struct reading *in, const struct hf__json *user, struct hf__kubeconfig *config) {
        static const char *const refused[][2] = {
                {"exec", "no program is run for credentials; use a client certificate, token or tokenFile"},
                {"auth-provider", "use a client certificate, token or tokenFile"},
                {"username", "API servers have no basic authentication any more; use a client certificate or token"},
                {"password", "API servers have no basic authentication any more; use a client certificate or token"},
                {"as", "impersonation needs credentials of its own"},
        };
        int r = 0;

        for (size_t i = 0; r == 0 && i < sizeof refused / sizeof refused[0]; i++)
                r = refuse_member(in, user, refused[i][0], refused[i][1]);
        if (r == 0)
                r = get_pem(in, user, "client-certificate", "client-certificate-data", &config->cert_pem);
        if (r == 0)
                r = get_pem(in, user, "client-key", "client-key-data", &config->key_pem);
        return r == 0 ? take_token(in, user, config) : r;
}

static int take_root(const struct reading *in, const struct hf__json *root, struct hf__kubeconfig *config) {
        struct hf__json *context, *cluster, *user;
        const char *name, *cluster_name = NULL, *user_name = NULL;

        if (!hf__json_is_object(root))
                return hf_fail(in->reterr_status, HF_E_INVALID, "%s: this is not a kubeconfig", in->source);
        int r = get_text(in, root, "current-context", &name);
        if (r == 0 && !name)
                return hf_fail(in->reterr_status, HF_E_INVALID, "%s: there is no current-context", in->source);
        if (r == 0)
                r = find_named(in, root, "contexts", "context", name, &context);
        if (r == 0)
                r = get_text(in, context, "cluster", &cluster_name);
        if (r == 0)
                r = get_text(in, context, "user", &user_name);
        if (r == 0)
                r = find_named(in, root, "clusters", "cluster", cluster_name ? cluster_name : "", &cluster);
        if (r == 0)
                r = take_cluster(in, cluster, config);
        if (r == 0 && user_name) /* without a user it is anonymous */
                r = find_named(in, root, "users", "user", user_name, &user);
        return r == 0 && user_name ? take_user(in, user, config) : r;
}

/* ---- whole files ---- */

static int parse_text(const struct reading *in, const char *text, size_t n, struct hf__json **ret_root) {
        struct hf__strbuf json = {.max = MAX_JSON};
        struct hf_status why = {0};
        size_t i = 0;

        while (i < n && strchr(" \t\r\n", text[i])) /* no NUL is in it */
                i++;
        if (i < n && text[i] == '{' && hf__json_parse(text, n, ret_root, NULL) == 0)
                return 0;
        int r = hf__yaml_to_json(text, n, &json, &why);
        if (r == 0)
                r = hf__json_parse(json.data, json.n, ret_root, NULL);
        if (r != 0)
                (void)hf_fail(in->reterr_status, r, "%s: %s", in->source, why.message[0] ? why.message : "this is not a kubeconfig");
        if (json.data)
                explicit_bzero(json.data, json.n);
        hf__strbuf_done(&json);
        return r;
}

int hf__kubeconfig_parse(const char *text, size_t n, const char *dir, const char *source, struct hf__kubeconfig *ret_config,
                         struct hf_status *reterr_status) {
        const struct reading in = {.dir = dir, .source = source, .reterr_status = reterr_status};
        struct hf__kubeconfig config = {.rest.size = sizeof config.rest};
        struct hf__json *root = NULL;

        if (n > MAX_FILE || memchr(text, '\0', n))
                return hf_fail(reterr_status, HF_E_INVALID, "%s: it is too large or not text", source);
        int r = parse_text(&in, text, n, &root);
        if (r == 0)
                r = take_root(&in, root, &config);
        (void)hf__json_free(root);
        if (r != 0) {
                hf__kubeconfig_done(&config);
                return r;
        }
        config.rest.server = config.server;
        config.rest.ca_pem = config.ca_pem;
        config.rest.cert_pem = config.cert_pem;
        config.rest.key_pem = config.key_pem;
        config.rest.bearer_token = config.bearer_token;
        config.rest.server_name = config.server_name;
        *ret_config = config;
        return 0;
}

static int default_path(char **ret_path, struct hf_status *reterr_status) {
        const char *variable = getenv("KUBECONFIG"), *home = getenv("HOME");
        int n;

        if (variable && strchr(variable, ':'))
                return hf_fail(reterr_status, HF_E_INVALID, "KUBECONFIG names several files; name one");
        if (variable && variable[0])
                n = asprintf(ret_path, "%s", variable);
        else if (home && home[0])
                n = asprintf(ret_path, "%s/.kube/config", home);
        else
                return hf_fail(reterr_status, HF_E_NOT_FOUND, "no kubeconfig is named, and neither KUBECONFIG nor HOME is set");
        return n < 0 ? hf_fail(reterr_status, -ENOMEM, "out of memory") : 0;
}

int hf__kubeconfig_load(const char *path, struct hf__kubeconfig *ret_config, struct hf_status *reterr_status) {
        char *named = NULL, *text = NULL, *dir = NULL;
        size_t n = 0;
        int r = 0;

        if (path)
                named = strdup(path);
        else
                r = default_path(&named, reterr_status);
        if (r == 0 && !named)
                r = hf_fail(reterr_status, -ENOMEM, "out of memory");
        if (r == 0) {
                const char *slash = strrchr(named, '/');
                dir = slash ? strndup(named, slash == named ? 1 : (size_t)(slash - named)) : strdup("");
                r = dir ? read_file(named, &text, &n) : -ENOMEM;
                if (r < 0)
                        (void)hf_fail(reterr_status, r, "cannot read the kubeconfig %s: %s", named, hf_strerror(r));
        }
        if (r == 0)
                r = hf__kubeconfig_parse(text, n, dir, named, ret_config, reterr_status);
        wipe_free(text);
        free(dir);
        free(named);
        return r;
}

void hf__kubeconfig_done(struct hf__kubeconfig *config) {
        free(config->server);
        free(config->server_name);
        free(config->ca_pem);
        free(config->cert_pem);
        wipe_free(config->key_pem);
        wipe_free(config->bearer_token);
        *config = (struct hf__kubeconfig){0};
}
