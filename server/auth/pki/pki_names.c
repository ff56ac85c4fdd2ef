/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The alternative names of certificate requests, with OpenSSL.
 *
 * Invariant: whoever approves a request with a program in Go sees the names that its certificate
 * gets. So names are read only where Go reads them, and only if they are in DER: in another
 * encoding, OpenSSL would read names that Go skips. (pki_request.c has looked at the encoding of
 * all but the content of the extensions.) The time is in proportion to the request, except that the
 * extensions are sorted (n log n).
 */
#include "server/auth/pki/pki_names.h"

#include <stddef.h>
#include <string.h>

#include <openssl/objects.h>
#include <openssl/x509v3.h>

#include "base/cleanup.h"

static void extensions_cleanup(X509_EXTENSIONS **extensions) {
        sk_X509_EXTENSION_pop_free(*extensions, X509_EXTENSION_free);
}
static void names_cleanup(GENERAL_NAMES **names) { GENERAL_NAMES_free(*names); }

static int compare_extensions(const X509_EXTENSION *const *a, const X509_EXTENSION *const *b) {
        return OBJ_cmp(X509_EXTENSION_get_object((X509_EXTENSION *)*a),
                       X509_EXTENSION_get_object((X509_EXTENSION *)*b));
}

static bool has_duplicates(X509_EXTENSIONS *extensions) {
        (void)sk_X509_EXTENSION_set_cmp_func(extensions, compare_extensions);
        sk_X509_EXTENSION_sort(extensions);
        for (int i = 1; i < sk_X509_EXTENSION_num(extensions); i++) {
                const X509_EXTENSION *a = sk_X509_EXTENSION_value(extensions, i - 1),
                                     *b = sk_X509_EXTENSION_value(extensions, i);
                if (compare_extensions(&a, &b) == 0)
                        return true;
        }
        return false;
}

/* Reads the extensions that the request asks for, in any order; the caller frees them, also after a
 * fault. X509_REQ_get_extensions would look into Microsoft's attribute for extensions, too, which
 * Go does not know. A second attribute of the standard type counts as a duplicate. Returns why they
 * cannot be read, "" = they can. NULL in *ret_extensions without a fault: there are none. */
static const char *read_extensions(const X509_REQ *request, X509_EXTENSIONS **ret_extensions) {
        static const char duplicate[] =
                "x509: certificate request contains duplicate requested extensions";
        int at = X509_REQ_get_attr_by_NID(request, NID_ext_req, -1);

        *ret_extensions = NULL;
        if (at < 0)
                return "";
        if (X509_REQ_get_attr_by_NID(request, NID_ext_req, at) >= 0)
                return duplicate;
        const ASN1_TYPE *value = X509_ATTRIBUTE_get0_type(X509_REQ_get_attr(request, at), 0);
        if (!value)
                return "";
        if (value->type == V_ASN1_SEQUENCE) {
                const unsigned char *der = value->value.sequence->data;
                *ret_extensions = d2i_X509_EXTENSIONS(NULL, &der, value->value.sequence->length);
        }
        if (!*ret_extensions)
                return "asn1: structure error: the requested extensions are malformed";
        return has_duplicates(*ret_extensions) ? duplicate : "";
}

/* Whether the names are the whole content of the extension, in DER. */
static bool are_content_of(const GENERAL_NAMES *names, X509_EXTENSION *extension) {
        const ASN1_OCTET_STRING *content = X509_EXTENSION_get_data(extension);
        unsigned char *der = NULL;
        int n = i2d_GENERAL_NAMES(names, &der);
        bool equal = n == ASN1_STRING_length(content) && der &&
                     memcmp(der, ASN1_STRING_get0_data(content), (size_t)n) == 0;

        OPENSSL_free(der);
        return equal;
}

/* Reads the names; the caller frees them. Returns why they cannot be read, "" = they can. NULL in
 * *ret_names without a fault: there are none. */
static const char *read_names(const X509_REQ *request, GENERAL_NAMES **ret_names) {
        HF__CLEANUP(extensions_cleanup) X509_EXTENSIONS *extensions = NULL;
        const char *fault = read_extensions(request, &extensions);

        *ret_names = NULL;
        int at = *fault ? -1 : X509v3_get_ext_by_NID(extensions, NID_subject_alt_name, -1);
        if (at < 0)
                return fault;
        X509_EXTENSION *extension = X509v3_get_ext(extensions, at);
        HF__CLEANUP(names_cleanup) GENERAL_NAMES *names = X509V3_EXT_d2i(extension);
        if (!names || !are_content_of(names, extension))
                return "x509: invalid subject alternative names";
        *ret_names = HF__TAKE(names);
        return "";
}

static bool is_ascii(const ASN1_STRING *text) {
        const unsigned char *bytes = ASN1_STRING_get0_data(text);

        for (int i = 0; i < ASN1_STRING_length(text); i++)
                if (bytes[i] > 0x7f)
                        return false;
        return true;
}

/* Why Go would refuse the name, "" = it does not. Go ignores the other kinds. Of a URI only the
 * characters are checked; Go also parses it. */
static const char *name_fault(const GENERAL_NAME *name) {
        int n;

        switch (name->type) {
        case GEN_EMAIL: return is_ascii(name->d.ia5) ? "" : "x509: SAN rfc822Name is malformed";
        case GEN_DNS: return is_ascii(name->d.ia5) ? "" : "x509: SAN dNSName is malformed";
        case GEN_URI:
                return is_ascii(name->d.ia5) ? ""
                                             : "x509: SAN uniformResourceIdentifier is malformed";
        case GEN_IPADD:
                n = ASN1_STRING_length(name->d.iPAddress);
                return n == 4 || n == 16
                               ? ""
                               : "x509: cannot parse IP address: its length is not 4 or 16";
        default: return "";
        }
}

const char *hfd_pki_names_fault(const X509_REQ *request) {
        HF__CLEANUP(names_cleanup) GENERAL_NAMES *names = NULL;
        const char *fault = read_names(request, &names);

        for (int i = 0; !*fault && i < sk_GENERAL_NAME_num(names); i++)
                fault = name_fault(sk_GENERAL_NAME_value(names, i));
        return fault;
}

/* The kinds that Kubernetes copies. */
static bool is_copied(const GENERAL_NAME *name) {
        return name->type == GEN_DNS || name->type == GEN_IPADD || name->type == GEN_EMAIL ||
               name->type == GEN_URI;
}

/* Drops the names that are not copied; the others keep their order. The dropped names are moved to
 * the end first, because each deletion from the middle would move all names behind it. */
static void drop_others(GENERAL_NAMES *names) {
        int n_copied = 0;

        for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
                GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
                if (!is_copied(name))
                        continue;
                (void)sk_GENERAL_NAME_set(names, i, sk_GENERAL_NAME_value(names, n_copied));
                (void)sk_GENERAL_NAME_set(names, n_copied++, name);
        }
        while (sk_GENERAL_NAME_num(names) > n_copied)
                GENERAL_NAME_free(sk_GENERAL_NAME_pop(names));
}

bool hfd_pki_names_copy(X509 *cert, const X509_REQ *request) {
        HF__CLEANUP(names_cleanup) GENERAL_NAMES *names = NULL;

        if (*read_names(request, &names))
                return false;
        if (names)
                drop_others(names);
        return sk_GENERAL_NAME_num(names) <= 0 ||
               X509_add1_ext_i2d(cert, NID_subject_alt_name, names, 0, 0) == 1;
}
