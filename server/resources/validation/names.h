/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The syntax of the names of objects, labels, annotations and finalizers, and of data keys. The
 * text of a rule is that which Kubernetes sends to clients. No text is NULL. Pure. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>

#define HFD_DNS_LABEL_MAX     63
#define HFD_DNS_SUBDOMAIN_MAX 253
#define HFD_LABEL_VALUE_MAX   63

/* "my-name": lower-case letters, digits and '-', at most 63 bytes. */
bool hfd_is_dns_label(const char *text);
/* Why the text, of any length, has not the form of a DNS label, in Kubernetes' words; NULL: it has.
 * Static storage. */
const char *hfd_dns_label_fault(const char *text);
/* "my-name": a DNS label that begins with a letter. */
bool hfd_is_dns1035_label(const char *text);
/* "my.name": parts joined by dots, at most 253 bytes in all. As in Kubernetes, a part has the
 * syntax of a DNS label, but may be longer than 63 bytes. */
bool hfd_is_dns_subdomain(const char *text);
/* Whether n bytes, of any number, are such parts. */
bool hfd_has_subdomain_form(const char *text, size_t n);
/* "My_name" or "example.com/My_name": the key of a label or an annotation, or a finalizer. */
bool hfd_is_qualified_name(const char *text);
/* "", or text with the syntax of the part of a qualified name after the slash. */
bool hfd_is_label_value(const char *text);
/* Text with that syntax and of any length, but not empty. */
bool hfd_is_name_text(const char *text);
/* A key in the data of a ConfigMap or Secret, which must be a valid file name. */
bool hfd_is_config_key(const char *key);
/* Whether the key, of any length, has only characters that such a key may have, and is not empty.
 */
bool hfd_has_config_key_form(const char *key);

/* The texts of the rules, for the causes of a 422. They are those of Kubernetes, which counts bytes
 * but says characters. */
extern const char hfd_dns_label_length_rule[];
extern const char hfd_dns_subdomain_length_rule[];
extern const char hfd_dns_label_rule[];
extern const char hfd_dns1035_label_rule[];
extern const char hfd_dns_subdomain_rule[];
extern const char hfd_qualified_name_rule[];
extern const char hfd_label_value_rule[];
extern const char hfd_config_key_rule[];

#define HFD_LABEL_FAULTS_MAX 2
/* What is wrong with a text that should be a DNS label that begins with a letter, in Kubernetes'
 * words: it may be too long, and have wrong characters. The texts have static storage. Returns
 * their number; 0: the text is such a label. */
size_t hfd_dns1035_label_faults(const char *text, const char **ret_faults);
