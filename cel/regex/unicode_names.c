/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of classes (Unicode 15.0). Written by tools/unicode-classes.
 *
 * An entry is a name in the form that canonical_name (unicode.c) makes of the name in a pattern,
 * and the numbers in unicode_ranges.c: of a category a set of bits, of a script one number.
 *
 * Invariant: both files are written in one run of the tool, so the numbers agree. The entries are
 * sorted only to make the table readable.
 */
#include "cel/regex/unicode_names.h"

/* clang-format off */

const struct hf__cel_category_name hf__cel_categories[] = {
        {"C", 0x1f}, {"Casedletter", 0x320}, {"Cc", 0x1},
        {"Cf", 0x2}, {"Closepunctuation", 0x40000}, {"Cn", 0x4},
        {"Cntrl", 0x1}, {"Co", 0x8}, {"Combiningmark", 0x1c00},
        {"Connectorpunctuation", 0x10000}, {"Control", 0x1}, {"Cs", 0x10},
        {"Currencysymbol", 0x800000}, {"Dashpunctuation", 0x20000}, {"Decimalnumber", 0x2000},
        {"Digit", 0x2000}, {"Enclosingmark", 0x800}, {"Finalpunctuation", 0x80000},
        {"Format", 0x2}, {"Initialpunctuation", 0x100000}, {"L", 0x3e0},
        {"Lc", 0x320}, {"Letter", 0x3e0}, {"Letternumber", 0x4000},
        {"Lineseparator", 0x8000000}, {"Ll", 0x20}, {"Lm", 0x40},
        {"Lo", 0x80}, {"Lowercaseletter", 0x20}, {"Lt", 0x100},
        {"Lu", 0x200}, {"M", 0x1c00}, {"Mark", 0x1c00},
        {"Mathsymbol", 0x2000000}, {"Mc", 0x400}, {"Me", 0x800},
        {"Mn", 0x1000}, {"Modifierletter", 0x40}, {"Modifiersymbol", 0x1000000},
        {"N", 0xe000}, {"Nd", 0x2000}, {"Nl", 0x4000},
        {"No", 0x8000}, {"Nonspacingmark", 0x1000}, {"Number", 0xe000},
        {"Openpunctuation", 0x400000}, {"Other", 0x1f}, {"Otherletter", 0x80},
        {"Othernumber", 0x8000}, {"Otherpunctuation", 0x200000}, {"Othersymbol", 0x4000000},
        {"P", 0x7f0000}, {"Paragraphseparator", 0x10000000}, {"Pc", 0x10000},
        {"Pd", 0x20000}, {"Pe", 0x40000}, {"Pf", 0x80000},
        {"Pi", 0x100000}, {"Po", 0x200000}, {"Privateuse", 0x8},
        {"Ps", 0x400000}, {"Punct", 0x7f0000}, {"Punctuation", 0x7f0000},
        {"S", 0x7800000}, {"Sc", 0x800000}, {"Separator", 0x38000000},
        {"Sk", 0x1000000}, {"Sm", 0x2000000}, {"So", 0x4000000},
        {"Spaceseparator", 0x20000000}, {"Spacingmark", 0x400}, {"Surrogate", 0x10},
        {"Symbol", 0x7800000}, {"Titlecaseletter", 0x100}, {"Unassigned", 0x4},
        {"Uppercaseletter", 0x200}, {"Z", 0x38000000}, {"Zl", 0x8000000},
        {"Zp", 0x10000000}, {"Zs", 0x20000000},
};
const size_t hf__cel_n_categories =
        sizeof hf__cel_categories / sizeof hf__cel_categories[0];

const struct hf__cel_script_name hf__cel_scripts[] = {
        {"Adlam", 1}, {"Ahom", 2}, {"Arabic", 3}, {"Armenian", 4},
        {"Avestan", 5}, {"Balinese", 6}, {"Bamum", 7}, {"Batak", 8},
        {"Bengali", 9}, {"Bhaiksuki", 10}, {"Bopomofo", 11}, {"Brahmi", 12},
        {"Braille", 13}, {"Buginese", 14}, {"Buhid", 15}, {"Carian", 16},
        {"Chakma", 17}, {"Cham", 18}, {"Cherokee", 19}, {"Chorasmian", 20},
        {"Common", 21}, {"Coptic", 22}, {"Cuneiform", 23}, {"Cypriot", 24},
        {"Cyrillic", 25}, {"Deseret", 26}, {"Devanagari", 27}, {"Dogra", 28},
        {"Duployan", 29}, {"Elbasan", 30}, {"Elymaic", 31}, {"Ethiopic", 32},
        {"Georgian", 33}, {"Glagolitic", 34}, {"Gothic", 35}, {"Grantha", 36},
        {"Greek", 37}, {"Gujarati", 38}, {"Gurmukhi", 39}, {"Han", 40},
        {"Hangul", 41}, {"Hanunoo", 42}, {"Hatran", 43}, {"Hebrew", 44},
        {"Hiragana", 45}, {"Inherited", 46}, {"Javanese", 47}, {"Kaithi", 48},
        {"Kannada", 49}, {"Katakana", 50}, {"Kawi", 51}, {"Kharoshthi", 52},
        {"Khmer", 53}, {"Khojki", 54}, {"Khudawadi", 55}, {"Lao", 56},
        {"Latin", 57}, {"Lepcha", 58}, {"Limbu", 59}, {"Lisu", 60},
        {"Lycian", 61}, {"Lydian", 62}, {"Mahajani", 63}, {"Makasar", 64},
        {"Malayalam", 65}, {"Mandaic", 66}, {"Manichaean", 67}, {"Marchen", 68},
        {"Medefaidrin", 69}, {"Miao", 70}, {"Modi", 71}, {"Mongolian", 72},
        {"Mro", 73}, {"Multani", 74}, {"Myanmar", 75}, {"Nabataean", 76},
        {"Nandinagari", 77}, {"Newa", 78}, {"Nko", 79}, {"Nushu", 80},
        {"Ogham", 81}, {"Oriya", 82}, {"Osage", 83}, {"Osmanya", 84},
        {"Palmyrene", 85}, {"Phoenician", 86}, {"Rejang", 87}, {"Runic", 88},
        {"Samaritan", 89}, {"Saurashtra", 90}, {"Sharada", 91}, {"Shavian", 92},
        {"Siddham", 93}, {"Sinhala", 94}, {"Sogdian", 95}, {"Soyombo", 96},
        {"Sundanese", 97}, {"Syriac", 98}, {"Tagalog", 99}, {"Tagbanwa", 100},
        {"Takri", 101}, {"Tamil", 102}, {"Tangsa", 103}, {"Tangut", 104},
        {"Telugu", 105}, {"Thaana", 106}, {"Thai", 107}, {"Tibetan", 108},
        {"Tifinagh", 109}, {"Tirhuta", 110}, {"Toto", 111}, {"Ugaritic", 112},
        {"Vai", 113}, {"Vithkuqi", 114}, {"Wancho", 115}, {"Yezidi", 116},
        {"Yi", 117},
};
const size_t hf__cel_n_scripts =
        sizeof hf__cel_scripts / sizeof hf__cel_scripts[0];
