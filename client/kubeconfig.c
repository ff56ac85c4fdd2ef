/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the configuration of a client from kubeconfig files, which kubeconfig_file.c reads.
 *
 * $KUBECONFIG may name several files, which are merged as kubectl merges them. The first file that
 * defines a cluster, context or user of some name defines all of it. The first current-context
 * counts. A file in that list that does not exist is skipped. Paths in a file are relative to its
 * directory.
 *
 * Invariants: a setting that we do not support (credential programs, proxies, impersonation) is
 * refused with a message that names it. If we ignored it, we would connect to another server or as
 * another user than the file intends. Every copy of a file's text and of its private keys and
 * tokens is wiped before its memory is freed, with the exceptions that kubeconfig_file.c states.
 */
#include "client/kubeconfig.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "client/file_text.h"
#include "client/kubeconfig_file.h"

/* Names further instances of the API server; other programs ignore it. */
#define SERVERS_EXTENSION "holdfast.dev/servers"

/* The file that is being read (borrowed), and the status that receives errors. */
struct read_context {
        const char *dir, *source;
        struct hf_status *reterr_status;
};

static struct read_context read_context_of(const struct hf__kubeconfig_file *file,
                                           struct hf_status *reterr_status) {
        return (struct read_context){.dir = file->dir,
                                     .source = file->source,
                                     .reterr_status = reterr_status};
}

static int fail_no_memory(struct hf_status *reterr_status) {
        return hf_fail(reterr_status, -ENOMEM, "out of memory");
}

/* A message may quote the file. Escapes its control characters, so that it stays one line. */
static int fail_in_one_line(int r, struct hf_status *reterr_status) {
        struct hf_status escaped;
        size_t n = 0;

        if (r == 0 || !reterr_status)
                return r;
        escaped = *reterr_status;
        /* An escape has four characters, and sprintf adds a NUL. */
        for (const char *c = reterr_status->message; *c && n + 5 < sizeof escaped.message; c++) {
                unsigned char byte = (unsigned char)*c;
                if (byte < 0x20 || byte == 0x7f)
                        n += (size_t)sprintf(escaped.message + n, "\\x%02x", byte);
                else
                        escaped.message[n++] = *c;
        }
        escaped.message[n] = '\0';
        *reterr_status = escaped;
        return r;
}

/* ---- members ---- */

/* Resolves a path in the file, which may be relative to the directory of the file. */
static int resolve_path(const struct read_context *in, const char *name, char **ret_path) {
        int n = asprintf(ret_path, "%s%s%s", name[0] == '/' ? "" : in->dir,
                         name[0] == '/' || !in->dir[0] ? "" : "/", name);
        if (n >= 0)
                return 0;
        *ret_path = NULL;
        return fail_no_memory(in->reterr_status);
}

/* Reads the file `name`, which is the value of the member `key`. */
static int read_referenced_file(const struct read_context *in, const char *key, const char *name,
                                char **ret_text) {
        char *path = NULL;
        size_t n;

        int r = resolve_path(in, name, &path);
        if (r != 0)
                return r;
        r = hf__file_text(path, ret_text, &n);
        if (r < 0)
                (void)hf_fail(in->reterr_status, r, "%s: %s: cannot read %s: %s", in->source, key,
                              path, hf_strerror(r));
        free(path);
        return r;
}

/* Reads a string member. *ret_text is NULL if the member is absent, null or empty, because files
 * use all three for "not set". */
static int get_text(const struct read_context *in, const struct hf__json *object, const char *key,
                    const char **ret_text) {
        const struct hf__json *member = hf__json_get(object, key);

        *ret_text = NULL;
        if (!member || hf__json_is_null(member))
                return 0;
        if (!hf__json_is_string(member))
                return hf_fail(in->reterr_status, HF_E_INVALID, "%s: %s must be a string",
                               in->source, key);
        const char *text = hf__json_text(member);
        *ret_text = text[0] ? text : NULL;
        return 0;
}

/* Copies a string member. *ret_copy is not changed if the member is not set. */
static int copy_text(const struct read_context *in, const struct hf__json *object, const char *key,
                     char **ret_copy) {
        const char *text;
        int r = get_text(in, object, key, &text);

        if (r != 0 || !text)
                return r;
        *ret_copy = strdup(text);
        return *ret_copy ? 0 : fail_no_memory(in->reterr_status);
}

/* Reads PEM text: from the member "<key>-data" (base64) if it is set, else from the file that
 * "<key>" names. */
static int get_pem(const struct read_context *in, const struct hf__json *object, const char *key,
                   const char *data_key, char **ret_pem) {
        const char *data, *name;
        size_t n;

        int r = get_text(in, object, data_key, &data);
        if (r == 0)
                r = get_text(in, object, key, &name);
        if (r != 0)
                return r;
        if (!data)
                return name ? read_referenced_file(in, key, name, ret_pem) : 0;
        r = hf__base64_decode(data, strlen(data), ret_pem, &n);
        if (r == 0 && (n == 0 || memchr(*ret_pem, '\0', n))) {
                explicit_bzero(*ret_pem, n);
                free(*ret_pem);
                *ret_pem = NULL;
                r = HF_E_INVALID;
        }
        if (r > 0)
                return hf_fail(in->reterr_status, r, "%s: %s is not base64 of PEM text", in->source,
                               data_key);
        return r < 0 ? fail_no_memory(in->reterr_status) : 0;
}

/* Fails if the object has the member, and its value is neither null nor "". */
static int refuse_member(const struct read_context *in, const struct hf__json *object,
                         const char *key, const char *why) {
        const struct hf__json *member = hf__json_get(object, key);

        if (!member || hf__json_is_null(member) ||
            (hf__json_is_string(member) && !hf__json_text(member)[0]))
                return 0;
        return hf_fail(in->reterr_status, HF_E_INVALID, "%s: %s is not supported: %s", in->source,
                       key, why);
}

/* Finds {"<list>": [{"name": name, "<kind>": {...}}]} in the first file that defines the name. *in
 * is set to that file, so that its relative paths resolve correctly. */
static int find_named_object(const struct hf__kubeconfig_file *files, size_t n_files,
                             const char *list, const char *kind, const char *name,
                             struct hf__json **ret_object, struct read_context *in) {
        for (size_t i = 0; i < n_files; i++) {
                *in = read_context_of(&files[i], in->reterr_status);
                for (struct hf__json *item = hf__json_first(hf__json_get(files[i].root, list));
                     item; item = hf__json_next(item)) {
                        const char *text = hf__json_string(item, "name");
                        if (!text || strcmp(text, name) != 0)
                                continue;
                        *ret_object = hf__json_get(item, kind);
                        if (hf__json_is_object(*ret_object))
                                return 0;
                        return hf_fail(in->reterr_status, HF_E_INVALID,
                                       "%s: the %s \"%.100s\" has no object \"%s\"", in->source,
                                       kind, name, kind);
                }
        }
        return hf_fail(in->reterr_status, HF_E_INVALID, "%s: there is no %s named \"%.100s\"%s",
                       files[0].source, kind, name,
                       n_files > 1 ? ", nor in the files after it" : "");
}

/* ---- cluster and user ---- */

/* Copies the URLs of `extension`, {"servers": [URL, ...]}. */
static int copy_other_servers(const struct read_context *in, const struct hf__json *extension,
                              struct hf__kubeconfig *config) {
        const struct hf__json *servers = hf__json_get(extension, "servers");

        if (!hf__json_is_array(servers) || config->other_servers)
                return hf_fail(in->reterr_status, HF_E_INVALID,
                               "%s: the extension " SERVERS_EXTENSION
                               " must occur once and have the form {servers: [URL, ...]}",
                               in->source);
        /* One more, because calloc of nothing may return NULL. */
        config->other_servers = calloc(hf__json_count(servers) + 1, sizeof(char *));
        if (!config->other_servers)
                return fail_no_memory(in->reterr_status);
        for (const struct hf__json *item = hf__json_first(servers); item;
             item = hf__json_next(item)) {
                if (!hf__json_is_string(item))
                        return hf_fail(in->reterr_status, HF_E_INVALID,
                                       "%s: a server of the extension " SERVERS_EXTENSION
                                       " is not a string",
                                       in->source);
                char *copy = strdup(hf__json_text(item));
                if (!copy)
                        return fail_no_memory(in->reterr_status);
                config->other_servers[config->rest.n_other_servers++] = copy;
        }
        return 0;
}

/* The list of extensions is like the other lists of a kubeconfig: {"name": ..., "extension": ...}.
 * Ignores those of other programs. */
static int read_extensions(const struct read_context *in, const struct hf__json *cluster,
                           struct hf__kubeconfig *config) {
        int r = 0;

        for (const struct hf__json *item = hf__json_first(hf__json_get(cluster, "extensions"));
             r == 0 && item; item = hf__json_next(item)) {
                const char *name = hf__json_string(item, "name");
                if (name && strcmp(name, SERVERS_EXTENSION) == 0)
                        r = copy_other_servers(in, hf__json_get(item, "extension"), config);
        }
        return r;
}

/* Copies the servers, the TLS settings and the CA of a cluster. */
static int read_cluster(const struct read_context *in, const struct hf__json *cluster,
                        struct hf__kubeconfig *config) {
        const struct hf__json *insecure = hf__json_get(cluster, "insecure-skip-tls-verify");

        int r = refuse_member(in, cluster, "proxy-url", "connect directly");
        if (r == 0)
                r = copy_text(in, cluster, "server", &config->server);
        if (r == 0 && !config->server)
                r = hf_fail(in->reterr_status, HF_E_INVALID, "%s: the cluster has no server",
                            in->source);
        if (r == 0)
                r = copy_text(in, cluster, "tls-server-name", &config->server_name);
        if (r == 0)
                r = get_pem(in, cluster, "certificate-authority", "certificate-authority-data",
                            &config->ca_pem);
        if (r == 0 && insecure && !hf__json_is_null(insecure) && !hf__json_is_bool(insecure))
                r = hf_fail(in->reterr_status, HF_E_INVALID,
                            "%s: insecure-skip-tls-verify must be true or false", in->source);
        if (r == 0)
                config->rest.insecure = hf__json_bool(cluster, "insecure-skip-tls-verify", false);
        return r == 0 ? read_extensions(in, cluster, config) : r;
}

/* Copies the token, or the path of the token file. Does not read that file, because the client
 * reads it whenever it needs a newer token. */
static int read_token_settings(const struct read_context *in, const struct hf__json *user,
                               struct hf__kubeconfig *config) {
        const char *name;

        int r = get_text(in, user, "tokenFile", &name);
        if (r == 0)
                r = name ? resolve_path(in, name, &config->token_file)
                         : copy_text(in, user, "token", &config->bearer_token);
        return r;
}

/* Copies the credentials of a user. An unsupported member may be null or "", because some tools
 * write empty members. */
static int read_user(const struct read_context *in, const struct hf__json *user,
                     struct hf__kubeconfig *config) {
        static const char *const refused[][2] = {
                {"exec", "Holdfast does not run credential plugins; use a client certificate, "
                         "token or tokenFile"},
                {"auth-provider", "use a client certificate, token or tokenFile"},
                {"username", "API servers no longer accept basic authentication; use a client "
                             "certificate or token"},
                {"password", "API servers no longer accept basic authentication; use a client "
                             "certificate or token"},
                {"as", "use the credentials of the user itself"},
                {"as-groups", "use the credentials of the user itself"},
                {"as-uid", "use the credentials of the user itself"},
                {"as-user-extra", "use the credentials of the user itself"},
        };
        int r = 0;

        for (size_t i = 0; r == 0 && i < sizeof refused / sizeof refused[0]; i++)
                r = refuse_member(in, user, refused[i][0], refused[i][1]);
        if (r == 0)
                r = get_pem(in, user, "client-certificate", "client-certificate-data",
                            &config->cert_pem);
        if (r == 0)
                r = get_pem(in, user, "client-key", "client-key-data", &config->key_pem);
        return r == 0 ? read_token_settings(in, user, config) : r;
}

/* Finds the name of the current context. *in is set to the file that defines it. */
static int find_current_context(const struct hf__kubeconfig_file *files, size_t n_files,
                                struct read_context *in, const char **ret_name) {
        *ret_name = NULL;
        for (size_t i = 0; i < n_files && !*ret_name; i++) {
                *in = read_context_of(&files[i], in->reterr_status);
                int r = get_text(in, files[i].root, "current-context", ret_name);
                if (r != 0)
                        return r;
        }
        return *ret_name ? 0
                         : hf_fail(in->reterr_status, HF_E_INVALID,
                                   "%s: there is no current-context", files[0].source);
}

/* Follows the current context to its cluster and user, which may be in other files. */
static int read_current_context(const struct hf__kubeconfig_file *files, size_t n_files,
                                struct hf__kubeconfig *config, struct hf_status *reterr_status) {
        struct read_context in = {.reterr_status = reterr_status};
        struct hf__json *context, *cluster, *user;
        const char *name, *cluster_name = NULL, *user_name = NULL;

        int r = find_current_context(files, n_files, &in, &name);
        if (r == 0)
                r = find_named_object(files, n_files, "contexts", "context", name, &context, &in);
        if (r == 0)
                r = get_text(&in, context, "cluster", &cluster_name);
        if (r == 0)
                r = get_text(&in, context, "user", &user_name);
        if (r == 0)
                r = find_named_object(files, n_files, "clusters", "cluster",
                                      cluster_name ? cluster_name : "", &cluster, &in);
        if (r == 0)
                r = read_cluster(&in, cluster, config);
        if (r == 0 && user_name) /* a context without a user sends anonymous requests */
                r = find_named_object(files, n_files, "users", "user", user_name, &user, &in);
        if (r == 0 && user_name)
                r = read_user(&in, user, config);
        if (r != 0)
                return r;
        config->rest.server = config->server;
        config->rest.ca_pem = config->ca_pem;
        config->rest.cert_pem = config->cert_pem;
        config->rest.key_pem = config->key_pem;
        config->rest.bearer_token = config->bearer_token;
        config->rest.token_file = config->token_file;
        config->rest.server_name = config->server_name;
        config->rest.other_servers = (const char *const *)config->other_servers;
        return 0;
}

/* ---- whole files ---- */

/* Builds the configuration of the current context. *ret_config is set only on success. */
static int read_config(struct hf__kubeconfig_file *files, size_t n_files,
                       struct hf__kubeconfig *ret_config, struct hf_status *reterr_status) {
        struct hf__kubeconfig config = {.rest.size = sizeof config.rest};

        int r = read_current_context(files, n_files, &config, reterr_status);
        if (r == 0)
                *ret_config = config;
        else
                hf__kubeconfig_done(&config);
        return r;
}

int hf__kubeconfig_parse(const char *text, size_t n, const char *dir, const char *source,
                         struct hf__kubeconfig *ret_config, struct hf_status *reterr_status) {
        struct hf__kubeconfig_file file;

        int r = hf__kubeconfig_file_parse(text, n, dir, source, &file, reterr_status);
        if (r != 0)
                return fail_in_one_line(r, reterr_status);
        r = read_config(&file, 1, ret_config, reterr_status);
        hf__kubeconfig_file_done(&file);
        return fail_in_one_line(r, reterr_status);
}

int hf__kubeconfig_load(const char *path, struct hf__kubeconfig *ret_config,
                        struct hf_status *reterr_status) {
        struct hf__kubeconfig_file files[HF__KUBECONFIG_FILES_MAX];
        size_t n_files = 0;
        int r;

        if (path) {
                r = hf__kubeconfig_file_read(path, files, reterr_status);
                n_files = r == 0;
        } else {
                r = hf__kubeconfig_files_read(files, &n_files, reterr_status);
        }
        if (r == 0)
                r = read_config(files, n_files, ret_config, reterr_status);
        while (n_files > 0)
                hf__kubeconfig_file_done(&files[--n_files]);
        return fail_in_one_line(r, reterr_status);
}

void hf__kubeconfig_done(struct hf__kubeconfig *config) {
        for (size_t i = 0; i < config->rest.n_other_servers; i++)
                free(config->other_servers[i]);
        free(config->other_servers);
        free(config->server);
        free(config->server_name);
        free(config->token_file);
        /* A file of certificates may contain the key too. */
        hf__wipe_free(config->ca_pem);
        hf__wipe_free(config->cert_pem);
        hf__wipe_free(config->key_pem);
        hf__wipe_free(config->bearer_token);
        *config = (struct hf__kubeconfig){0};
}
