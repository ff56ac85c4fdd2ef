/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of expressions: conversions, times, strings, lists and sets. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cel_fixture.h"

static void test_conversions(void **state) {
        static const struct cel_case cases[] = {
                {"int(-1.9)", "= -1"},
                {"[9223372036854775808.0].map(v, int(v))", "! integer overflow"},
                {"[18446744073709551615u].map(v, int(v))", "! integer overflow"},
                {"int('0' + 'x1')", "! type conversion error from 'string' to 'int'"},
                {"[-1].map(v, uint(v))", "! unsigned integer overflow"},
                {"[18446744073709551616.0].map(v, uint(v))", "! unsigned integer overflow"},
                {"double('1_000') + double('-0x_1_0p1_0')", "= double -15384"},
                {"string(double('NAN')) + string(double('-INF'))", "= 'NaN-Inf'"},
                {"double('+0X.8P1') + double('1E2')", "= double 101"},
                {"string(1000000.0) + string(0.1) + string(-0.0)", "= '1e+060.1-0'"},
                {"string(1.0 / 3.0)", "= '0.3333333333333333'"},
                {"[b'\\xff'].map(v, string(v))",
                 "! invalid UTF-8 in bytes, cannot convert to string"},
                {"bool('TRUE') && !bool('0')", "= true"},
                {"bool('yes' + '')", "! type conversion error from 'string' to 'bool'"},
                {"size('\xc3\xa9') + size(b'\xc3\xa9')", "= 3"},
        };

        CEL_CHECK(cases);
}

/* As in Kubernetes it is refused also where no evaluation gets to it. */
static void test_a_conversion_of_a_constant_must_not_fail(void **state) {
        static const struct cel_case cases[] = {
                {"int(9223372036854775808.0)", "? 1:5: integer overflow"},
                {"int(18446744073709551615u)", "? 1:5: integer overflow"},
                {"int('0x1')", "? 1:5: type conversion error from 'string' to 'int'"},
                {"uint(-1)", "? 1:6: unsigned integer overflow"},
                {"uint(18446744073709551616.0)", "? 1:6: unsigned integer overflow"},
                {"double('1e400')", "? 1:8: type conversion error from 'string' to 'double'"},
                {"double('-nan')", "? 1:8: type conversion error from 'string' to 'double'"},
                {"double('1__0')", "? 1:8: type conversion error from 'string' to 'double'"},
                {"double('1_')", "? 1:8: type conversion error from 'string' to 'double'"},
                {"double('1_e5')", "? 1:8: type conversion error from 'string' to 'double'"},
                {"double('1_.5')", "? 1:8: type conversion error from 'string' to 'double'"},
                {"double('0_x1p0')", "? 1:8: type conversion error from 'string' to 'double'"},
                {"double('0x99999')", "? 1:8: type conversion error from 'string' to 'double'"},
                {"string(b'\\xff')", "? 1:8: invalid UTF-8 in bytes, cannot convert to string"},
                {"bool('yes')", "? 1:6: type conversion error from 'string' to 'bool'"},
                {"false ? int('x') : 1", "? 1:13: type conversion error from 'string' to 'int'"},
                {"true || [].all(v, int('x') > v)",
                 "? 1:23: type conversion error from 'string' to 'int'"},
                {"[1, int(string(int('x')))]",
                 "? 1:20: type conversion error from 'string' to 'int'"},
                {"int(dyn(true))", "? 1:8: no such overload: int(bool)"},
                {"timestamp(dyn(true))", "? 1:14: no such overload: timestamp(bool)"},
                {"duration(string('x'))", "? 1:16: invalid duration argument"},
                {"string(dyn([1, 2]))", "? 1:11: no such overload: string(list)"},
                {"duration(duration('1h')) == duration(timestamp(0) - timestamp(0))", "= false"},
        };

        CEL_CHECK(cases);
        assert_int_equal(cel_cost("duration(duration('1h')) == timestamp(timestamp(0)) - "
                                  "timestamp(0)"),
                         2);
}

static void test_times(void **state) {
        static const struct cel_case cases[] = {
                {"timestamp('2024-02-29T23:59:60Z')", "? 1:11: invalid timestamp argument"},
                {"timestamp('2023-02-29T00:00:00Z')", "? 1:11: invalid timestamp argument"},
                {"timestamp('2024-02-29T01:02:03.0450Z')", "= 2024-02-29T01:02:03.045Z"},
                {"timestamp('2024-03-01T01:30:00+02:00')", "= 2024-03-01T01:30:00+02:00"},
                {"timestamp('2024-03-01T01:30:00+02:00') == timestamp('2024-02-29T23:30:00Z')",
                 "= true"},
                {"timestamp('2024-03-01T01:30:00+02:00').getHours()", "= 23"},
                {"string(timestamp('2024-03-01T01:30:00.5-07:30') - duration('3h'))",
                 "= '2024-02-29T22:30:00.5-07:30'"},
                {"string(timestamp('2024-03-01T01:30:00-00:00'))", "= '2024-03-01T01:30:00Z'"},
                {"'%s'.format([duration('1h') + timestamp('2024-03-01T01:30:00+00:30')])",
                 "= '2024-03-01T02:30:00+00:30'"},
                {"string(timestamp('0001-01-01T00:00:00Z'))", "= '0001-01-01T00:00:00Z'"},
                {"timestamp(253402300799)", "= 9999-12-31T23:59:59Z"},
                {"timestamp(253402300800)", "? 1:11: invalid timestamp argument"},
                /* What Go's parser accepts besides RFC 3339. */
                {"timestamp('2024-01-01T1:00:00,5Z')", "= 2024-01-01T01:00:00.5Z"},
                {"timestamp('2024-01-01T01:00:00+24:60')", "= 2024-01-01T01:00:00+25:00"},
                {"timestamp('2024-01-01T01:00:00-24:60')", "= 2024-01-01T01:00:00-25:00"},
                {"timestamp('2024-01-01T01:00:00+24:61')", "? 1:11: invalid timestamp argument"},
                {"timestamp('2024-01-01T01:00:00+25:00')", "? 1:11: invalid timestamp argument"},
                {"timestamp('2024-01-01T01:0:00Z')", "? 1:11: invalid timestamp argument"},
                {"timestamp('2024-01-01T:00:00Z')", "? 1:11: invalid timestamp argument"},
                {"timestamp('2024-01-01T001:00:00Z')", "? 1:11: invalid timestamp argument"},
                {"timestamp('2024-01-01T24:00:00Z')", "? 1:11: invalid timestamp argument"},
                {"timestamp('2024-01-01T01:00:00,Z')", "? 1:11: invalid timestamp argument"},
                {"timestamp('2000-01-01T00:00:00Z') + duration('-9223372036854775808ns')",
                 "= 1707-09-22T00:12:43.145224192Z"},
                {"timestamp('2000-01-01T00:00:00Z') - duration('-9223372036854775808ns')",
                 "! integer overflow"},
                {"timestamp('0001-01-01T00:00:00Z') - duration('1ns')", "! timestamp overflow"},
                {"timestamp('9999-12-31T23:59:59Z') + duration('1s')", "! timestamp overflow"},
                {"timestamp('9999-12-31T23:59:59Z') - timestamp('0001-01-01T00:00:00Z')",
                 "! integer overflow"},
                /* cel-go multiplies the seconds first. */
                {"timestamp('1677-09-21T00:12:43.2Z') - timestamp(0)", "! integer overflow"},
                {"timestamp(0) - timestamp('2262-04-11T23:47:16.8Z')", "= -9223372036.8s"},
                {"timestamp('2262-04-11T23:47:16.8Z') - timestamp(0)", "= 9223372036.8s"},
                {"timestamp('2262-04-11T23:47:17Z') - timestamp('1970-01-01T00:00:00.2Z')",
                 "! integer overflow"},
                {"timestamp('2009-02-13T23:31:30Z').getDayOfYear()", "= 43"},
                {"timestamp('2009-02-13T23:31:30Z').getDayOfWeek()", "= 5"},
                {"timestamp('2009-02-13T23:31:30Z').getDate('+02:30')", "= 14"},
                {"timestamp('2009-02-13T23:31:30Z').getHours('-00:30')", "= 23"},
                {"timestamp('1600-02-29T00:00:00Z').getMonth()", "= 1"},
                {"timestamp(0).getHours('Europe/Berlin')", "! unknown time zone Europe/Berlin"},
                {"timestamp(0).getHours('../zone')", "! time: invalid location name"},
                {"timestamp(0).getHours('/etc/localtime')", "! time: invalid location name"},
                {"timestamp(0).getHours('x:1')", "! strconv.Atoi: parsing \"x\": invalid syntax"},
                {"timestamp(0).getHours('1:\"')",
                 "! strconv.Atoi: parsing \"\\\"\": invalid syntax"},
                {"timestamp(0).getHours('9223372036854775808:00')",
                 "! strconv.Atoi: parsing \"9223372036854775808\": value out of range"},
                {"timestamp(0).getHours('18446744073709551616x:0')",
                 "! strconv.Atoi: parsing \"18446744073709551616x\": value out of range"},
                {"timestamp(0).getHours('18446744073709551615x:0')",
                 "! strconv.Atoi: parsing \"18446744073709551615x\": invalid syntax"},
                {"timestamp(0).getMinutes('-0000000002:0000000030')", "= 30"},
                {"timestamp(0).getHours('-0000000002:0000000030')", "= 21"},
                /* cel-go has no limit for an offset; what it computes wraps. */
                {"timestamp(0).getFullYear('1000000:00')", "= 2084"},
                {"timestamp(0).getFullYear('9223372036854775807:00')", "= 1969"},
                {"timestamp(0).getHours('-9223372036854775808:00')", "= 0"},
                {"timestamp(0).getHours('') + timestamp(0).getHours('Local')", "= 0"},
                {"duration('-1.5h') == -dyn(duration('90m'))", "= true"},
                {"string(duration('1h1ms1ns'))", "= '3600.001000001s'"},
                /* Fractions of more digits than a double has are rounded as in Go. */
                {"duration('0.720645304734166667h')", "= 2594.323097043s"},
                {"duration('0.0366656177966666667h')", "= 131.996224068s"},
                {"duration('0.92233720368547758089999999999999h')", "= 3320.413933267s"},
                {"duration('9223372036854775807ns') + duration('1ns')", "! integer overflow"},
                {"duration('3h').getMinutes()", "= 180"},
                {"duration('61.5s').getMilliseconds()", "= 61500"},
                {"duration('-1.5s').getMilliseconds()", "= -1500"},
                {"timestamp(10) - timestamp(9) == duration('1s')", "= true"},
        };

        CEL_CHECK(cases);
}

static void test_strings(void **state) {
        static const struct cel_case cases[] = {
                {"'h\xc3\xa9llo'.charAt(1)", "= '\xc3\xa9'"},
                {"'abc'.charAt(3)", "= ''"},
                {"'abc'.charAt(4)", "! index out of range: 4"},
                {"'abcabc'.indexOf('c', 3)", "= 5"},
                {"'\xc3\xa9\xc3\xa9x'.indexOf('x')", "= 2"},
                {"'abcabc'.lastIndexOf('bc')", "= 4"},
                {"'abcabc'.lastIndexOf('bc', 3)", "= 1"},
                /* An index behind the last character finds nothing, an empty part is everywhere. */
                {"[0, 2, 3, 9].map(i, '\u00e9bc'.indexOf('c', i))", "= [2, 2, -1, -1]"},
                {"[1, 2, 3, 9].map(i, '\u00e9bc'.lastIndexOf('b', i))", "= [1, 1, -1, -1]"},
                {"[-1, 0, 3, 9].map(i, 'abc'.indexOf('', i))", "= [-1, 0, 3, 9]"},
                {"[-1, 0, 3, 9].map(i, 'abc'.lastIndexOf('', i))", "= [-1, 0, 3, 9]"},
                {"'abc'.indexOf('b', -1)", "! index out of range: -1"},
                {"'abc'.lastIndexOf('b', -1)", "! index out of range: -1"},
                {"'abc'.substring(1, 2)", "= 'b'"},
                {"'abc'.substring(2, 1)", "! invalid substring range. start: 2, end: 1"},
                {"'a,b,c'.split(',', 2)", "= ['a', 'b,c']"},
                {"'a\xc3\xa9'.split('')", "= ['a', '\xc3\xa9']"},
                {"''.split('')", "= []"},
                {"['a', 'b'].join('-')", "= 'a-b'"},
                {"'abab'.replace('b', 'x', 1)", "= 'axab'"},
                {"'ab'.replace('', '-')", "= '-a-b-'"},
                {"'ab'.replace('', '-', 2)", "= '-a-b'"},
                {"' \xc2\xa0 a b\\n'.trim()", "= 'a b'"},
                {"'A\xc3\x89'.lowerAscii() + 'z'.upperAscii()", "= 'a\xc3\x89Z'"},
                {"strings.quote('a\\n\"')", "= '\"a\\x5cn\\x5c\"\"'"},
                {"s.startsWith('he') && s.endsWith('lo') && s.contains('ell')", "= true"},
        };

        CEL_CHECK(cases);
}

#define BAD_CLAUSE "could not parse formatting clause: "
#define BAD_ARG    "error during formatting: "

/* The last place of a long part is found in linear time: a comparison at each place would take 0.4
 * s here, and much longer in a text of a MiB. */
static void test_the_last_place_of_a_long_text(void **state) {
        static const char text[] = "[lists.range(3000).map(i, "
                                   "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                                   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa').join('')].map(t, ";
        static const struct {
                const char *rest, *outcome;
        } cases[] = {
                {"t.lastIndexOf(t.substring(t.size() / 2) + 'b'))", "= [-1]"},
                {"t.lastIndexOf(t.substring(t.size() / 2)) == t.size() / 2)", "= [true]"},
                {"(t + 'xyz' + t).lastIndexOf('a' + 'xyz' + t) == t.size() - 1)", "= [true]"},
                {"(t + t).lastIndexOf(t, 7))", "= [7]"},
                {"('x' + t + t).lastIndexOf('x' + t, 7))", "= [0]"},
                {"t.lastIndexOf(t))", "= [0]"},
                {"t.lastIndexOf(t + 'a'))", "= [-1]"},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                char expression[sizeof text + 200];
                const struct cel_case one = {expression, cases[i].outcome};

                (void)snprintf(expression, sizeof expression, "%s%s", text, cases[i].rest);
                cel_check(&one, 1);
        }
}

static void test_a_literal_format_is_checked_before_it_is_evaluated(void **state) {
        static const struct cel_case cases[] = {
                {"'%z'.format([s])", "? 1:12: " BAD_CLAUSE "unrecognized formatting clause \"z\""},
                {"'%\xc3\xa9'.format([s])",
                 "? 1:12: " BAD_CLAUSE "unrecognized formatting clause \"\xc3\x83\""},
                {"'%.3'.format([1.0])", "? 1:13: " BAD_CLAUSE "error while parsing precision: "
                                        "could not find end of precision specifier"},
                {"'%.f'.format([1.0])",
                 "? 1:13: " BAD_CLAUSE "error while parsing precision: error while converting "
                 "precision to integer: strconv.Atoi: parsing \"\": invalid syntax"},
                {"'%.9223372036854775808f'.format([1.0])",
                 "? 1:32: " BAD_CLAUSE "error while parsing precision: error while converting "
                 "precision to integer: strconv.Atoi: parsing \"9223372036854775808\": value out "
                 "of range"},
                {"'%'.format([s])", "? 1:11: unexpected end of string"},
                {"'%'.format([])", "? 1:11: unexpected end of string"},
                {"'%s %d'.format([s])", "? 1:15: index 1 out of range"},
                {"'%s'.format([s, i])", "? 1:12: too many arguments supplied to string.format "
                                        "(expected 1, got 2)"},
                {"'%s%%'.format([s])", "= 'hello%'"},
                {"'%d'.format([s])",
                 "? 1:14: " BAD_ARG
                 "decimal clause can only be used on integers, was given string"},
                {"'%f'.format([i])",
                 "? 1:14: " BAD_ARG
                 "fixed-point clause can only be used on doubles, was given int"},
                {"'%e'.format([true])",
                 "? 1:14: " BAD_ARG
                 "scientific clause can only be used on doubles, was given bool"},
                {"'%b'.format([s])", "? 1:14: " BAD_ARG "only integers and bools can be formatted "
                                     "as binary, was given string"},
                {"'%x'.format([1.0])",
                 "? 1:14: " BAD_ARG "only integers, byte buffers, and strings can be formatted as "
                 "hex, was given double"},
                {"'%o'.format([true])",
                 "? 1:14: " BAD_ARG "octal clause can only be used on integers, was given bool"},
                {"'%s'.format([{'a': [optional.of(1)]}])",
                 "? 1:32: " BAD_ARG "string clause can only be used on strings, bools, bytes, "
                 "ints, doubles, maps, lists, types, durations, and timestamps, was given "
                 "optional_type"},
                {"'%d'.format([x.a])", "= '1'"},
        };

        CEL_CHECK(cases);
}

static void test_lists_and_sets(void **state) {
        static const struct cel_case cases[] = {
                {"[1, 1, 2].isSorted() && !['b', 'a'].isSorted()", "= true"},
                {"[1.5, 0.0 / 0.0, 1.0].isSorted() && ![2.5, 1.5, 0.0 / 0.0].isSorted()", "= true"},
                {"dyn([2, 'a', 1]).isSorted()", "= true"},
                {"dyn([1, null]).isSorted()", "! no such overload"},
                {"l.sum() + l.min() + l.max()", "= 10"},
                {"[].sum() == 0", "= true"},
                {"[0.5, 0.5].sum()", "= double 1"},
                {"[9223372036854775807, 1].sum()", "! integer overflow"},
                {"['a'].filter(v, false).min()", "! min called on empty list"},
                {"[1.0, double('NaN'), 2.0].max()", "= double 2"},
                {"[1.0, double('NaN'), 0.5].min()", "= double 0.5"},
                {"string([double('NaN'), 2.0].max())", "= 'NaN'"},
                {"[dyn('a'), dyn(1)].min()", "= 'a'"},
                {"[dyn(1), dyn(null)].max()", "! no such overload"},
                {"[dyn([1])].max()", "! no such overload"},
                {"[1, 2, 1].indexOf(1) + [1, 2, 1].lastIndexOf(1)", "= 2"},
                {"sets.contains(l, [3, 1]) && !sets.contains(l, [4])", "= true"},
                {"sets.equivalent([1, 1], [1]) && sets.intersects(l, [9, 2])", "= true"},
        };

        CEL_CHECK(cases);
}

#define CIDR_WRONG                                                                                 \
        "network address parse error during conversion from string: network address parse error "  \
        "during conversion from string: "

static void test_addresses_and_blocks(void **state) {
        static const struct cel_case cases[] = {
                {"string(ip('2001:DB8:0:0::1'))", "= '2001:db8::1'"},
                {"string(ip('::1.2.3.4')) + string(cidr('10.1.2.3/8').masked())",
                 "= '::102:30410.0.0.0/8'"},
                {"ip('1:0:0:2::3') == ip('1::2:0:0:0:3')", "= true"},
                {"string(ip('1:0:0:2:0:0:0:3')) + string(ip('1:0:2:3:4:5:6:7'))",
                 "= '1:0:0:2::31:0:2:3:4:5:6:7'"},
                {"isIP('1.2.3.04') || isIP('1.2.3') || isIP('::ffff:1.2.3.4') || isIP('fe80::1%a')",
                 "= false"},
                {"ip('1.2.3')", "! IP Address \"1.2.3\" parse error during conversion from string: "
                                "ParseAddr(\"1.2.3\"): IPv4 address too short"},
                {"ip('1.2.x.4')",
                 "! IP Address \"1.2.x.4\" parse error during conversion from string: "
                 "ParseAddr(\"1.2.x.4\"): unexpected character (at \"x.4\")"},
                {"ip('1::2::3')",
                 "! IP Address \"1::2::3\" parse error during conversion from string: "
                 "ParseAddr(\"1::2::3\"): multiple :: in address (at \":3\")"},
                {"ip.isCanonical('')",
                 "! IP Address \"\" parse error during conversion from string: "
                 "ParseAddr(\"\"): unable to parse IP"},
                {"ip('fe80::1%a')", "! IP address \"fe80::1%a\" with zone value is not allowed"},
                {"cidr('10.0.0.0')", "! " CIDR_WRONG "netip.ParsePrefix(\"10.0.0.0\"): no '/'"},
                {"cidr('10.0.0.0/08')", "! " CIDR_WRONG "netip.ParsePrefix(\"10.0.0.0/08\"): bad "
                                        "bits after slash: \"08\""},
                {"cidr('::/129')",
                 "! " CIDR_WRONG "netip.ParsePrefix(\"::/129\"): prefix length out of range"},
                {"cidr('10.0.0/8')", "! " CIDR_WRONG "netip.ParsePrefix(\"10.0.0/8\"): "
                                     "ParseAddr(\"10.0.0\"): IPv4 address too short"},
                {"cidr('fe80::%a/8')", "! " CIDR_WRONG "netip.ParsePrefix(\"fe80::%a/8\"): IPv6 "
                                       "zones cannot be present in a prefix"},
                {"cidr('::/0').containsCIDR('::ffff:1.2.3.4/96')",
                 "! network address parse error during conversion from string: IPv4-mapped IPv6 "
                 "address \"::ffff:1.2.3.4/96\" is not allowed"},
                {"ip('::ffff:1.2.3.4')",
                 "! IPv4-mapped IPv6 address \"::ffff:1.2.3.4\" is not allowed"},
                {"ip.isCanonical('2001:DB8::1')", "= false"},
                {"ip('::').family() + ip('1.2.3.4').family()", "= 10"},
                {"ip('127.1.1.1').isLoopback() && ip('fe80::1').isLinkLocalUnicast()", "= true"},
                {"ip('255.255.255.255').isGlobalUnicast()", "= false"},
                {"cidr('10.0.0.0/9').containsIP('10.127.0.1')", "= true"},
                {"cidr('10.0.0.0/9').containsIP(ip('10.128.0.1'))", "= false"},
                {"cidr('10.0.0.0/8').containsCIDR('10.0.0.0/7')", "= false"},
                {"cidr('::/0').containsIP('1.2.3.4')", "= false"},
                {"isCIDR('10.0.0.0/33') || isCIDR('10.0.0.0/08') || isCIDR('10.0.0.0')", "= false"},
                {"cidr('10.0.0.5/8').ip() == ip('10.0.0.5')", "= true"},
                {"type(ip('::1')) == net.IP", "= true"},
        };

        CEL_CHECK(cases);
}

static void test_format(void **state) {
        static const struct cel_case cases[] = {
                {"'%s has %d%%'.format(['a', -12])", "= 'a has -12%'"},
                {"'%f %.2f %.0f'.format([1234567.891, -1.005, 2.5])",
                 "= '1,234,567.891000 -1.00 2'"},
                {"'%e|%.12e'.format([1052.032911275, double('Infinity')])",
                 "= '1.052033\u00d710\xe2\x81\xb0\xc2\xb3|           \xe2\x88\x9e'"},
                {"'%f|%e|%.1f'.format([-0.0, -0.0, -0.01])",
                 "= '0.000000|0.000000\u00d710\xe2\x81\xb0\xe2\x81\xb0|-0.0'"},
                {"'%f %f'.format(['NaN', '-Infinity'])", "= 'NaN -\xe2\x88\x9e'"},
                {"'%b %b %o %x %X %x'.format([-5, true, 8u, -255, 'aZ', b'\\x01'])",
                 "= '-101 1 10 -ff 615A 01'"},
                {"'%s'.format([[1, 2.5, 'x', null, b'y', [true]]])",
                 "= '[1, 2.500000, \"x\", null, b\"y\", [true]]'"},
                {"'%s'.format([{'b': 1, 'a': 2u}])", "= '{\"a\":2, \"b\":1}'"},
                {"'%s'.format([{10: duration('90s'), 9: timestamp(0)}])",
                 "= '{10:duration(\"90s\"), 9:timestamp(\"1970-01-01T00:00:00Z\")}'"},
                {"'%s %s %s'.format([double('Infinity'), type(1), duration('90s')])",
                 "= '+Inf int 90s'"},
                {"'%s'.format([['\\a\\n\\\\\"\\x01\\x7f', "
                 "'\\u0085\\u00a0\\u00ad\\u2028\\u3000\\ufeff\\ue000', "
                 "'\\u0378\\U000e0001', b'\\xe2\\x80\\x8b']]) == "
                 "r'[\"\\a\\n\\\\\\\"\\x01\\x7f\", "
                 "\"\\u0085\\u00a0\\u00ad\\u2028\\u3000\\ufeff\\ue000\", "
                 "\"\\u0378\\U000e0001\", b\"\\u200b\"]'",
                 "= true"},
                {"'%s'.format([[' \\u00e9\\u0301\\u4e2d\\u00b2\\u20ac\\ufffd\\U0001f600']])",
                 "= '[\" "
                 "\xc3\xa9\xcc\x81\xe4\xb8\xad\xc2\xb2\xe2\x82\xac\xef\xbf\xbd\xf0\x9f\x98\x80\"]"
                 "'"},
                {"'%s'.format([b'\\xff'])",
                 "! error during formatting: could not convert argument \"invalid UTF-8 in bytes, "
                 "cannot convert to string\" to string"},
                {"'%d'.format([x.b[1]])",
                 "! error during formatting: decimal clause can only be used "
                 "on integers, was given double"},
                {"'%s'.format([dyn(optional.of(1))])",
                 "! error during formatting: string clause can only be used on strings, bools, "
                 "bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given "
                 "optional_type"},
                {"s.format([1]) + (s + '%z').format(['a'])",
                 "! could not parse formatting clause: unrecognized formatting clause \"z\""},
                {"(s + '%').format([1])", "! unexpected end of string"},
                {"(s + '%d%d').format([1])", "! index 1 out of range"},
                {"'%.99999999999f'.format([1.0])",
                 "! could not parse formatting clause: error while "
                 "parsing precision: it is too large"},
        };

        CEL_CHECK(cases);
        cel_check_strict((const struct cel_case[]){{"'%s%s'.format([1, ['a', 2]])",
                                                    "= '1[\"a\", 2]'"}},
                         1);
}

static void test_versions(void **state) {
        static const struct cel_case cases[] = {
                {"semver('1.20.3-rc.1+x').major() + semver('1.20.3').minor()", "= 21"},
                {"semver('1.0.3').patch()", "= 3"},
                {"['1.0.0-alpha', '1.0.0-alpha.1', '1.0.0-alpha.beta', '1.0.0-beta', "
                 "'1.0.0-beta.2', "
                 "'1.0.0-beta.11', '1.0.0-rc.1', '1.0.0'].map(v, semver(v))"
                 ".all(i, v, i == 0 || v.compareTo(semver('0.9.9')) == 1)",
                 "= true"},
                {"semver('1.0.0-beta.2').isLessThan(semver('1.0.0-beta.11'))", "= true"},
                {"semver('1.0.0-alpha.1').isLessThan(semver('1.0.0-alpha.beta'))", "= true"},
                {"semver('1.0.0').isGreaterThan(semver('1.0.0-rc.1'))", "= true"},
                {"semver('1.0.0-a.b').compareTo(semver('1.0.0-a'))", "= 1"},
                {"semver('1.0.0+a') == semver('1.0.0+b')", "= true"},
                {"[isSemver('1.2'), isSemver('01.2.3'), isSemver('v1.2.3'), isSemver('1.2.3-'),"
                 "isSemver('1.2.3-01'), isSemver('1.2.3+')]",
                 "= [false, false, false, false, false, false]"},
                {"isSemver('1.2.3-0a.--+01')", "= true"},
                {"[isSemver('1.2.3-18446744073709551615'), isSemver('1.2.3-18446744073709551616'),"
                 "isSemver('1.2.3+18446744073709551616'), isSemver('1.2.3-a18446744073709551616')]",
                 "= [true, false, true, true]"},
                {"semver('v01.2', true) == semver('1.2.0')", "= true"},
                {"semver('1-rc', true)",
                 "! short version cannot contain PreRelease/Build meta data"},
                {"semver('v1.02.-rc', true) == semver('1.2.0-rc')", "= true"},
                {"isSemver('1.2.+b', true) && !isSemver('1.2.-', true)", "= true"},
                {"isSemver('1.2.-rc') || isSemver('1.-2.3', true)", "= false"},
                {"semver('99999999999999999999.1.1')",
                 "! strconv.ParseUint: parsing \"99999999999999999999\": value out of range"},
                {"semver('')", "! Version string empty"},
                {"semver('1.2')", "! No Major.Minor.Patch elements found"},
                {"semver('.1.2')", "! strconv.ParseUint: parsing \"\": invalid syntax"},
                {"semver('', true)", "! strconv.ParseUint: parsing \"\": invalid syntax"},
                {"semver('x1.2.3')", "! Invalid character(s) found in major number \"x1\""},
                {"semver('x1.2.3', true)", "! Invalid character(s) found in major number \"0x1\""},
                {"semver('1.02.3')", "! Minor number must not contain leading zeroes \"02\""},
                {"semver('1.2.3.4-a')", "! Invalid character(s) found in patch number \"3.4\""},
                {"semver('1.2.3-a..b')", "! Prerelease is empty"},
                {"semver('1.2.3-a.01+b')",
                 "! Numeric PreRelease version must not contain leading zeroes \"01\""},
                {"semver('1.2.3-a!+b!')", "! Invalid character(s) found in prerelease \"a!\""},
                {"semver('1.2.3-a+b!')", "! Invalid character(s) found in build meta data \"b!\""},
                {"semver('1.2.3+')", "! Build meta data is empty"},
                {"[semver('v00.0.0x', true)]",
                 "! Invalid character(s) found in patch number \"0x\""},
        };

        CEL_CHECK(cases);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_conversions),
                cmocka_unit_test(test_a_conversion_of_a_constant_must_not_fail),
                cmocka_unit_test(test_times),
                cmocka_unit_test(test_strings),
                cmocka_unit_test(test_the_last_place_of_a_long_text),
                cmocka_unit_test(test_lists_and_sets),
                cmocka_unit_test(test_addresses_and_blocks),
                cmocka_unit_test(test_format),
                cmocka_unit_test(test_a_literal_format_is_checked_before_it_is_evaluated),
                cmocka_unit_test(test_versions),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
