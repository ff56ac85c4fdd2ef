/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks strings as Go's library does when it parses a certificate.
 *
 * Invariant: Go and OpenSSL read each accepted string alike, except that Go drops a character NUL
 * at the end of a BMPString.
 */
#include "server/tls/readable_name.h"

#include <string.h>

#include "base/utf8.h"

/* A star and an ampersand are not allowed in a PrintableString, but Go accepts them. */
static bool is_printable(unsigned char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               (c != '\0' && strchr(" '()+,-./:=?*&", c));
}

static bool is_numeric(unsigned char c) { return c == ' ' || (c >= '0' && c <= '9'); }

static bool is_ascii(unsigned char c) { return c < 0x80; }

static bool has_only(const unsigned char *bytes, size_t n, bool (*is_right)(unsigned char c)) {
        for (size_t i = 0; i < n; i++)
                if (!is_right(bytes[i]))
                        return false;
        return true;
}

/* A BMPString has two bytes for each character. Go accepts no surrogates and no noncharacters. */
static bool is_bmp(const unsigned char *bytes, size_t n) {
        for (size_t i = 0; i + 1 < n; i += 2) {
                unsigned c = (unsigned)bytes[i] << 8 | bytes[i + 1];
                if ((c >= 0xd800 && c <= 0xdfff) || (c >= 0xfdd0 && c <= 0xfdef) || c >= 0xfffe)
                        return false;
        }
        return n % 2 == 0;
}

bool hfd_readable_string(const ASN1_STRING *string) {
        const unsigned char *bytes = ASN1_STRING_get0_data(string);
        size_t n = (size_t)ASN1_STRING_length(string);

        switch (ASN1_STRING_type(string)) {
        case V_ASN1_UTF8STRING: return hf__utf8_valid((const char *)bytes, n);
        case V_ASN1_PRINTABLESTRING: return has_only(bytes, n, is_printable);
        case V_ASN1_IA5STRING: return has_only(bytes, n, is_ascii);
        case V_ASN1_NUMERICSTRING: return has_only(bytes, n, is_numeric);
        case V_ASN1_BMPSTRING: return is_bmp(bytes, n);
        case V_ASN1_T61STRING: return true; /* Go and OpenSSL take it for Latin-1 */
        default: return false;
        }
}

bool hfd_readable_name(const X509_NAME *name) {
        for (int i = 0; i < X509_NAME_entry_count(name); i++)
                if (!hfd_readable_string(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, i))))
                        return false;
        return true;
}
