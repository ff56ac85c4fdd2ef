/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The named formats of CEL expressions, and validate(), which returns the list of rules that a text
 * breaks, or optional.none().
 *
 * Invariants: a check takes linear time. A text of CEL may contain NULs, which no format allows:
 * the checks get a copy that has another control character there, so that it does not end at the
 * NUL. The texts of the rules are Kubernetes'.
 */
#include "server/resources/custom/rules/values/format_functions.h"

#include <assert.h>
#include <string.h>

#include "server/resources/custom/rules/values/url_functions.h"
#include "server/resources/custom/schema/formats/formats.h"
#include "server/resources/validation/names.h"

#define BROKEN_MAX 4 /* rules that one text can break */

/* The rules that a text breaks. */
struct broken {
        struct hf__cel_run *run; /* borrowed; its memory has the texts */
        struct hf__cel_value rules[BROKEN_MAX];
        size_t n;
};

/* Adds a rule. The prefix comes before its text: "" or, for example, "prefix part ". If memory runs
 * out, the run fails, which call_validate checks. */
static void add_error(struct broken *out, const char *prefix, const char *rule) {
        size_t n_prefix = strlen(prefix);
        size_t n = n_prefix + strlen(rule);
        char *text = hf__cel_alloc(out->run, n + 1);

        if (!text)
                return;
        assert(out->n < BROKEN_MAX);
        memcpy(text, prefix, n_prefix);
        strcpy(text + n_prefix, rule);
        out->rules[out->n++] = hf__cel_string(text, n);
}

/* Whether the text has the pattern of a DNS subdomain, whatever its length. */
static bool is_subdomain_text(const char *text) {
        bool begins = true; /* the next character begins a part */
        char last = '.';

        for (; *text; last = *text++) {
                bool alnum = (*text >= 'a' && *text <= 'z') || (*text >= '0' && *text <= '9');

                if (!alnum && (begins || (*text != '-' && *text != '.')))
                        return false;
                if (*text == '.' && last == '-')
                        return false;
                begins = *text == '.';
        }
        return !begins && last != '-';
}

static void check_subdomain_text(struct broken *out, const char *prefix, const char *text,
                                 const char *too_long) {
        if (strlen(text) > HFD_DNS_SUBDOMAIN_MAX)
                add_error(out, prefix, too_long);
        if (!is_subdomain_text(text))
                add_error(out, prefix, hfd_dns_subdomain_rule);
}

/* This check and those below are for struct format. As in Kubernetes, some texts say "bytes" and
 * some "characters". */
static void check_subdomain(struct broken *out, const char *text) {
        check_subdomain_text(out, "", text, "must be no more than 253 characters");
}

static void check_label(struct broken *out, const char *text) {
        if (strlen(text) > HFD_DNS_LABEL_MAX)
                add_error(out, "", "must be no more than 63 characters");
        if (!is_subdomain_text(text))
                add_error(out, "", hfd_dns_label_rule);
        else if (strchr(text, '.'))
                add_error(out, "", "must not contain dots");
}

/* Only one text for wrong characters and dots, unlike check_label: Kubernetes has a single regular
 * expression for this format. */
static void check_dns1035_label(struct broken *out, const char *text) {
        if (strlen(text) > HFD_DNS_LABEL_MAX)
                add_error(out, "", "must be no more than 63 characters");
        if (!is_subdomain_text(text) || strchr(text, '.') || (*text >= '0' && *text <= '9'))
                add_error(out, "", hfd_dns1035_label_rule);
}

static void check_qualified_name(struct broken *out, const char *text) {
        const char *slash = strchr(text, '/');
        const char *name = slash ? slash + 1 : text;

        if (strchr(name, '/')) {
                add_error(out, "a valid label key ",
                          "must consist of alphanumeric characters, '-', '_' or '.', and must "
                          "start and "
                          "end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
                          "'123-abc', regex used for validation is "
                          "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS "
                          "subdomain "
                          "prefix and '/' (e.g. 'example.com/MyName')");
                return;
        }
        if (slash == text) {
                add_error(out, "prefix part ", "must be non-empty");
        } else if (slash) {
                char *prefix = hf__cel_alloc(out->run, (size_t)(slash - text) + 1);

                if (!prefix)
                        return;
                memcpy(prefix, text, (size_t)(slash - text));
                prefix[slash - text] = '\0';
                check_subdomain_text(out, "prefix part ", prefix, "must be no more than 253 bytes");
        }
        if (!*name)
                add_error(out, "name part ", "must be non-empty");
        else if (strlen(name) > HFD_LABEL_VALUE_MAX)
                add_error(out, "name part ", "must be no more than 63 bytes");
        if (!hfd_is_name_text(name))
                add_error(out, "", hfd_qualified_name_rule);
}

static void check_label_value(struct broken *out, const char *text) {
        if (strlen(text) > HFD_LABEL_VALUE_MAX)
                add_error(out, "", "must be no more than 63 bytes");
        if (*text && !hfd_is_name_text(text))
                add_error(out, "", hfd_label_value_rule);
}

static void check_uri(struct broken *out, const char *text) {
        char message[HFD_URL_MESSAGE_MAX];

        if (!hfd_url_check(text, strlen(text), message))
                add_error(out, "", message);
}

static void check_uuid(struct broken *out, const char *text) {
        if (!hfd_custom_format_matches("uuid", text))
                add_error(out, "", "does not match the UUID format");
}

static void check_byte(struct broken *out, const char *text) {
        if (!hfd_custom_format_matches("byte", text))
                add_error(out, "", "invalid base64");
}

static void check_date(struct broken *out, const char *text) {
        if (!hfd_custom_format_matches("date", text))
                add_error(out, "", "invalid date");
}

static void check_datetime(struct broken *out, const char *text) {
        if (!hfd_custom_format_matches("datetime", text))
                add_error(out, "", "invalid datetime");
}

/* hf__cel_opaque.equal: each format is one static object. */
static bool are_equal(const struct hf__cel_opaque *a, const struct hf__cel_opaque *b) {
        return a == b;
}

static const struct hf__cel_type format_type = {.kind = HF__CEL_OPAQUE,
                                                .weight = 1,
                                                .name = "kubernetes.NamedFormat"};

/* A value of the CEL type kubernetes.NamedFormat. */
struct format {
        struct hf__cel_opaque opaque; /* first, so that a pointer to it is one to the format */
        const char *name;
        void (*check)(struct broken *out, const char *text);
        bool prefix;        /* the prefix of a generated name: a dash at the end is allowed */
        unsigned n_pattern; /* bytes of the pattern that Kubernetes charges for */
};

enum format_id {
        DNS1123_LABEL,
        DNS1123_SUBDOMAIN,
        DNS1035_LABEL,
        QUALIFIED_NAME,
        DNS1123_LABEL_PREFIX,
        DNS1123_SUBDOMAIN_PREFIX,
        DNS1035_LABEL_PREFIX,
        LABEL_VALUE,
        URI,
        UUID,
        BYTE,
        DATE,
        DATETIME,
        N_FORMATS,
};

#define OPAQUE                                                                                     \
        { .type = &format_type, .equal = are_equal }

static const struct format formats[N_FORMATS] = {
        [DNS1123_LABEL] = {OPAQUE, "dns1123Label", check_label, false, 30},
        [DNS1123_SUBDOMAIN] = {OPAQUE, "dns1123Subdomain", check_subdomain, false, 60},
        [DNS1035_LABEL] = {OPAQUE, "dns1035Label", check_dns1035_label, false, 30},
        [QUALIFIED_NAME] = {OPAQUE, "qualifiedName", check_qualified_name, false, 60},
        [DNS1123_LABEL_PREFIX] = {OPAQUE, "dns1123LabelPrefix", check_label, true, 30},
        [DNS1123_SUBDOMAIN_PREFIX] = {OPAQUE, "dns1123SubdomainPrefix", check_subdomain, true, 60},
        [DNS1035_LABEL_PREFIX] = {OPAQUE, "dns1035LabelPrefix", check_dns1035_label, true, 30},
        [LABEL_VALUE] = {OPAQUE, "labelValue", check_label_value, false, 40},
        [URI] = {OPAQUE, "uri", check_uri, false, 1103},
        [UUID] = {OPAQUE, "uuid", check_uuid, false, 74},
        [BYTE] = {OPAQUE, "byte", check_byte, false, 84},
        [DATE] = {OPAQUE, "date", check_date, false, 75},
        [DATETIME] = {OPAQUE, "datetime", check_datetime, false, 75},
};

/* A copy of the text for a check. A prefix may end with a dash, because something follows it. If it
 * does, a letter replaces its last two characters, as in Kubernetes. NULL: the run has failed. */
static const char *checked_text(struct hf__cel_run *run, const struct format *format,
                                struct hf__cel_value text) {
        char *copy = hf__cel_alloc(run, (size_t)text.n + 1);

        if (!copy)
                return NULL;
        for (size_t i = 0; i < text.n; i++)
                copy[i] = (char)(text.as.text[i] ? text.as.text[i] : '\x01');
        copy[text.n] = '\0';
        if (format->prefix && text.n > 1 && copy[text.n - 1] == '-')
                strcpy(copy + text.n - 2, "a");
        return copy;
}

static struct hf__cel_value call_validate(struct hf__cel_run *run, const struct hf__cel_value *args,
                                          unsigned n) {
        const struct format *format = (const struct format *)(const void *)args[0].as.opaque;
        const uint64_t text_cost = (hf__cel_size(run, args[1]) + 1 + 9) / 10;
        struct broken broken = {.run = run};
        struct hf__cel_value *items;
        struct hf__cel_value list;
        const char *text;

        /* Kubernetes charges a match with the format's pattern: (characters of the text + 1) / 10,
         * times bytes of the pattern / 4, both rounded up. The row below has charged 1 for the
         * call already, so 1 is subtracted. */
        if (!hf__cel_spend(run, text_cost * ((format->n_pattern + 3) / 4) - 1))
                return hf__cel_failure(run);
        text = checked_text(run, format, args[1]);
        if (text)
                format->check(&broken, text);
        if (run->failed != 0)
                return hf__cel_failure(run);
        if (broken.n == 0)
                return hf__cel_optional_none();
        list = hf__cel_new_list(run, broken.n, &items);
        if (hf__cel_is_error(list))
                return list;
        memcpy(items, broken.rules, broken.n * sizeof *items);
        return hf__cel_optional_of(run, list);
}

static struct hf__cel_value call_named(struct hf__cel_run *run, const struct hf__cel_value *args,
                                       unsigned n) {
        for (size_t i = 0; i < N_FORMATS; i++)
                if (strlen(formats[i].name) == args[0].n &&
                    memcmp(formats[i].name, args[0].as.text, args[0].n) == 0)
                        return hf__cel_optional_of(run, hf__cel_opaque_value(&formats[i].opaque));
        return hf__cel_optional_none();
}

/* A function of CEL without arguments that returns a format. */
#define FORMAT(function, id)                                                                       \
        static struct hf__cel_value function(struct hf__cel_run *run,                              \
                                             const struct hf__cel_value *args, unsigned n) {       \
                return hf__cel_opaque_value(&formats[id].opaque);                                  \
        }

FORMAT(dns1123_label, DNS1123_LABEL)
FORMAT(dns1123_subdomain, DNS1123_SUBDOMAIN)
FORMAT(dns1035_label, DNS1035_LABEL)
FORMAT(qualified_name, QUALIFIED_NAME)
FORMAT(dns1123_label_prefix, DNS1123_LABEL_PREFIX)
FORMAT(dns1123_subdomain_prefix, DNS1123_SUBDOMAIN_PREFIX)
FORMAT(dns1035_label_prefix, DNS1035_LABEL_PREFIX)
FORMAT(label_value, LABEL_VALUE)
FORMAT(uri, URI)
FORMAT(uuid, UUID)
FORMAT(byte, BYTE)
FORMAT(date, DATE)
FORMAT(datetime, DATETIME)

#define F   "kubernetes.NamedFormat"
#define ONE HF__CEL_COST_ONE

/* A row: the name, the types of arguments and result (with a dot first: a method), the function,
 * and what a call is charged (function.h). */
const struct hf__cel_row hfd_format_functions[] = {
        {"validate", "." F "(string) -> optional_type(list(string))", call_validate, ONE},
        {"format.named", "(string) -> optional_type(" F ")", call_named, ONE},
        {"format.dns1123Label", "() -> " F, dns1123_label, ONE},
        {"format.dns1123Subdomain", "() -> " F, dns1123_subdomain, ONE},
        {"format.dns1035Label", "() -> " F, dns1035_label, ONE},
        {"format.qualifiedName", "() -> " F, qualified_name, ONE},
        {"format.dns1123LabelPrefix", "() -> " F, dns1123_label_prefix, ONE},
        {"format.dns1123SubdomainPrefix", "() -> " F, dns1123_subdomain_prefix, ONE},
        {"format.dns1035LabelPrefix", "() -> " F, dns1035_label_prefix, ONE},
        {"format.labelValue", "() -> " F, label_value, ONE},
        {"format.uri", "() -> " F, uri, ONE},
        {"format.uuid", "() -> " F, uuid, ONE},
        {"format.byte", "() -> " F, byte, ONE},
        {"format.date", "() -> " F, date, ONE},
        {"format.datetime", "() -> " F, datetime, ONE},
        {NULL, NULL, NULL, ONE},
};
