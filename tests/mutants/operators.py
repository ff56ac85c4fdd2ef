# SPDX-License-Identifier: Apache-2.0
"""The systematic mistakes: finds the places of a C source where one can be made, and writes a copy that contains all of them.

The copy (a "schema") behaves like the original until the environment variable HF_MUTANT chooses one mistake by its
number. So everything is compiled once, and each mistake costs only the time of its tests.

The parser reads formatted C by tokens and knows no types. It finds mistakes in conditions of `if`, `while` and `for`, in
returned values, in statements that are a call, an assignment or a jump, in arguments, in the first values of variables, and
in the members of initialisers. It leaves all other code alone.
"""
import re

TOKEN = re.compile(r"""
    (?P<space>\s+|//[^\n]*|/\*.*?\*/)
  | (?P<directive>(?<![^\n])[ \t]*\#(?:[^\n\\]|\\.|\\\n)*)
  | (?P<string>(?:u8|[uUL])?"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
  | (?P<name>[A-Za-z_]\w*)
  | (?P<number>\.?\d(?:[\w.]|[eEpP][+-])*)
  | (?P<punct>\.\.\.|<<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)
""", re.VERBOSE | re.DOTALL)

# Calls that are never removed: tests cannot see their effect, or only a sanitizer notices that they are missing.
NOT_REMOVED = re.compile(r"\w*assert\w*|abort|free|.*_free|.*_unref|.*_done|.*lock(_done)?|va_\w+|(hf__?|hfd_)log\w*|.*_log|log_\w+|.*trace\w*|"
                         r".*secure_wipe|pthread_(mutex|attr)\w*|pthread_cond_(init|destroy|(clock|timed)?wait)|static_assert|_Static_assert|sizeof|secret_wipe|explicit_bzero|freeaddrinfo|"
                         r"curl_\w+_cleanup|cJSON_Delete|close|.*_wipe|sd_journal\w*")
SWAPS = {"==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "&&": "||", "||": "&&"}
ASSIGNS = {"=", "+=", "-=", "|=", "&=", "*=", "/="}
KEYWORDS = {"if", "else", "while", "for", "do", "switch", "case", "default", "return", "goto", "break", "continue",
            "struct", "union", "enum", "static", "const", "typedef", "extern", "sizeof"}


class Token:
    def __init__(self, kind, text, at):
        self.kind, self.text, self.at, self.end = kind, text, at, at + len(text)


class Mutation:
    """One mistake: it replaces the text between two offsets. make(number, text) returns the code that makes the choice at run time."""

    def __init__(self, operator, begin, end, make, original, changed):
        self.operator, self.begin, self.end, self.make = operator, begin, end, make
        self.original, self.changed = " ".join(original.split()), " ".join(changed.split())


def tokens_of(text):
    found = []
    for match in TOKEN.finditer(text):
        if match.lastgroup not in ("space", "directive"):
            found.append(Token(match.lastgroup, match[0], match.start()))
    return found


def closing(tokens, i):
    """Returns the index of the bracket that closes the one at i."""
    pairs = {"(": ")", "[": "]", "{": "}"}
    stack = []
    for j in range(i, len(tokens)):
        text = tokens[j].text
        if tokens[j].kind != "punct":
            continue
        if text in pairs:
            stack.append(pairs[text])
        elif stack and text == stack[-1]:
            stack.pop()
            if not stack:
                return j
    raise ValueError("a bracket is not closed")


def end_of_statement(tokens, i):
    """Returns the index of the semicolon that ends the statement at i, or None if the statement contains a block."""
    j = i
    while j < len(tokens):
        text = tokens[j].text
        if tokens[j].kind == "punct" and text in "([":
            j = closing(tokens, j)
        elif text == "{":
            if tokens[j - 1].text not in (")", "="):
                return None
            j = closing(tokens, j)
        elif text == ";":
            return j
        j += 1
    return None


def parts(tokens, begin, end, separator):
    """Yields the ranges into which a separator outside of brackets divides tokens[begin:end]."""
    first = j = begin
    while j < end:
        if tokens[j].kind == "punct" and tokens[j].text in "([{":
            j = closing(tokens, j)
        elif tokens[j].kind == "punct" and tokens[j].text == separator:
            yield first, j
            first = j + 1
        j += 1
    yield first, end


def source_of(text, tokens, begin, end):
    return text[tokens[begin].at:tokens[end - 1].end]


def replaced(text, tokens, begin, end, operator, changed):
    """Returns the mistake to have the value `changed` instead of that of the expression tokens[begin:end]."""
    return Mutation(operator, tokens[begin].at, tokens[end - 1].end,
                    lambda n, original: f"(HF_MUTANT_IS({n}) ? ({changed}) : ({original}))", source_of(text, tokens, begin, end), changed)


def variants(text, tokens, begin, end, flat=False):
    """Yields each expression that differs from tokens[begin:end] by one operator; flat: by one outside of brackets."""
    source = text[tokens[begin].at:tokens[end - 1].end]
    base = tokens[begin].at
    inside = -1  # the end of the brackets whose inside is left out
    for j in range(begin, end):
        token = tokens[j]
        if flat and j > inside and token.kind == "punct" and token.text in "([{":
            inside = closing(tokens, j)
        if j <= inside:
            continue
        if token.kind != "punct":
            if token.text in ("true", "false"):
                other = "false" if token.text == "true" else "true"
                yield f"{token.text} -> {other}", source[:token.at - base] + other + source[token.end - base:]
            continue
        other = SWAPS.get(token.text)
        before = tokens[j - 1] if j > begin else None
        if other is None and token.text in "+-" and before is not None and (before.kind in ("name", "number") or before.text in ")]"):
            other = "-" if token.text == "+" else "+"
        if other is None and token.text in "/%" and before is not None:
            other = "*"
        if other is None and token.text == "!" and before is not None:
            yield "! removed", source[:token.at - base] + source[token.end - base:]
        if other is not None:
            yield f"{token.text} -> {other}", source[:token.at - base] + other + source[token.end - base:]


def conditional(text, tokens, begin, end):
    """Yields the mistakes in the condition tokens[begin:end]."""
    source = text[tokens[begin].at:tokens[end - 1].end]
    found = [("condition negated", f"!({source})")] + list(variants(text, tokens, begin, end))
    for operator, changed in found:
        yield Mutation(operator, tokens[begin].at, tokens[end - 1].end,
                       lambda n, original, changed=changed: f"(HF_MUTANT_IS({n}) ? ({changed}) : ({original}))", source, changed)


def swapped_arms(text, tokens, begin, end):
    """Yields tokens[begin:end] with the two arms of its `?:` exchanged, if it is one `?:`."""
    question = [b for _, b in parts(tokens, begin, end, "?")][:-1]
    colon = [b for _, b in parts(tokens, begin, end, ":")][:-1]
    if len(question) == 1 and len(colon) == 1:
        test, one, other = ((source_of(text, tokens, a, b)) for a, b in ((begin, question[0]), (question[0] + 1, colon[0]), (colon[0] + 1, end)))
        yield "arms swapped", f"{test} ? {other} : {one}"


def constants(text, tokens, begin, end):
    """Yields 1 for 0 and 0 for 1."""
    if end == begin + 1 and tokens[begin].text in ("0", "1"):
        yield ("0 -> 1", "1") if tokens[begin].text == "0" else ("1 -> 0", "0")


def arguments(text, tokens, begin, end, only_constants):
    """Yields the mistakes in the arguments of the calls in tokens[begin:end]."""
    for j in range(begin, end):
        if tokens[j].text != "(" or tokens[j].kind != "punct" or tokens[j - 1].kind != "name" or tokens[j - 1].text in KEYWORDS:
            continue
        if re.fullmatch(r"\w*assert\w*|offsetof|container_of|(hf__?|hfd_)log\w*|.*_log|log_\w+|.*trace\w*", tokens[j - 1].text):
            continue
        for a, b in parts(tokens, j + 1, closing(tokens, j), ","):
            if b == a:
                continue
            found = list(constants(text, tokens, a, b))
            if not only_constants:
                found += list(variants(text, tokens, a, b, flat=True)) + list(swapped_arms(text, tokens, a, b))
            for operator, changed in found:
                yield replaced(text, tokens, a, b, "argument: " + operator, changed)


def members(text, tokens, begin, end):
    """Yields the mistakes in the initialiser whose braces are at begin and end."""
    for a, b in parts(tokens, begin + 1, end, ","):
        assign = [j for _, j in parts(tokens, a, b, "=")][:-1]
        a = assign[0] + 1 if assign else a
        if a == b:
            continue
        if tokens[a].text == "{":
            yield from members(text, tokens, a, closing(tokens, a))
            continue
        source = source_of(text, tokens, a, b)
        found = [] if source in ("0", "NULL", "false") else [("left out", "0")]
        for operator, changed in found + list(variants(text, tokens, a, b, flat=True)) + list(swapped_arms(text, tokens, a, b)):
            yield replaced(text, tokens, a, b, "member: " + operator, changed)


def literals(text, tokens, begin, end):
    """Yields the mistakes in the compound literals of tokens[begin:end]."""
    for j in range(begin, end):
        if tokens[j].text == "{" and tokens[j].kind == "punct" and tokens[j - 1].text == ")":
            yield from members(text, tokens, j, closing(tokens, j))


def declared(text, tokens, begin, end):
    """Yields the mistakes in the first values of the variables that tokens[begin:end] declares."""
    if tokens[begin].kind != "name" or tokens[begin].text in KEYWORDS - {"struct", "union", "enum", "const"}:
        return
    for a, b in parts(tokens, begin, end, ","):
        assign = [j for _, j in parts(tokens, a, b, "=")][:-1]
        if not assign or assign[0] == a:
            continue
        value = assign[0] + 1
        if tokens[value].text == "{":
            yield from members(text, tokens, value, closing(tokens, value))
            continue
        for operator, changed in [*constants(text, tokens, value, b), *variants(text, tokens, value, b), *swapped_arms(text, tokens, value, b)]:
            yield replaced(text, tokens, value, b, "first value: " + operator, changed)
        yield from literals(text, tokens, value, b)
        yield from arguments(text, tokens, value, b, True)


def loop(text, tokens, begin, end):
    """Yields the mistakes in the head of a `for`, tokens[begin:end]."""
    heads = list(parts(tokens, begin, end, ";"))
    if len(heads) != 3:
        return
    (a, b), (c, d), _ = heads
    if b > a:
        yield from declared(text, tokens, a, b)
    if d > c:
        for mutation in conditional(text, tokens, c, d):
            mutation.operator = "for: " + mutation.operator
            yield mutation


def returned(text, tokens, begin, end):
    source = text[tokens[begin].at:tokens[end - 1].end]
    found = list(variants(text, tokens, begin, end)) + list(swapped_arms(text, tokens, begin, end))
    if source in ("r", "-r", "ret"):
        found.append(("error lost", "0"))
    elif re.fullmatch(r"-E[A-Z]+|HF_E_\w+|HFD_E_\w+", source):
        found.append(("error lost", "0"))
    elif source == "0":
        found.append(("false error", "-5"))
    for operator, changed in found:
        yield Mutation("return: " + operator, tokens[begin].at, tokens[end - 1].end,
                       lambda n, original, changed=changed: f"(HF_MUTANT_IS({n}) ? ({changed}) : ({original}))", source, changed)


def removable(text, tokens, i, end):
    """Whether tokens[i:end] is an expression statement whose removal is a mistake worth making."""
    first, second = tokens[i], tokens[i + 1]
    if first.text == "(" and second.text == "void":
        return removable(text, tokens, i + 3, end)
    if first.text == "*":
        return any(t.text in ASSIGNS for t in tokens[i:end])
    if first.kind != "name" or first.text in KEYWORDS or NOT_REMOVED.fullmatch(first.text) or first.text.isupper():
        return False
    return second.text in ASSIGNS or second.text in ("(", "->", ".", "[", "++", "--")


def find(text):
    """Returns all mistakes that can be made in a source, in the order of their places."""
    tokens = tokens_of(text)
    found = []
    depth, in_function, i = 0, False, 0
    starts = False  # whether a statement begins at i
    while i < len(tokens):
        token = tokens[i]
        if token.text == "{" and token.kind == "punct":
            if not in_function and depth == 0 and i and tokens[i - 1].text == ")":
                in_function, starts = True, True
            if not in_function and i and tokens[i - 1].text != ")":
                i = closing(tokens, i) + 1  # a struct, an enum or a table
                continue
            depth += 1
            starts = True
            i += 1
            continue
        if token.text == "}" and token.kind == "punct":
            depth -= 1
            if depth == 0:
                in_function = False
            starts = True
            i += 1
            continue
        if not in_function or not starts:
            if in_function and token.text in ("(", "[") and token.kind == "punct":
                i = closing(tokens, i) + 1
                continue
            starts = token.text == ";"
            i += 1
            continue
        if token.text in ("if", "while") and tokens[i + 1].text == "(":
            close = closing(tokens, i + 1)
            found += conditional(text, tokens, i + 2, close)
            i = close + 1
            if tokens[i].text == ";":
                i += 1
            continue
        if token.text in ("for", "switch") and tokens[i + 1].text == "(":
            close = closing(tokens, i + 1)
            if token.text == "for":
                found += loop(text, tokens, i + 2, close)
            i = close + 1
            continue
        if token.text in ("else", "do"):
            i += 1
            continue
        if token.text in ("case", "default"):
            while tokens[i].text != ":":
                i += 1
            i += 1
            continue
        end = end_of_statement(tokens, i)
        if end is None:
            starts = False
            i += 1
            continue
        if token.text == "return":
            if end > i + 1:
                found += returned(text, tokens, i + 1, end)
                found += literals(text, tokens, i + 1, end)
                found += arguments(text, tokens, i + 1, end, True)
        elif token.text in ("break", "continue", "goto"):
            source = source_of(text, tokens, i, end + 1)
            found.append(Mutation("jump removed", token.at, tokens[end].end, lambda n, original: f"{{ if (!HF_MUTANT_IS({n})) {original} }}", source, ""))
        elif removable(text, tokens, i, end):
            source = text[token.at:tokens[end].end]
            found.append(Mutation("statement removed", token.at, tokens[end].end,
                                  lambda n, original: f"{{ if (!HF_MUTANT_IS({n})) {original} }}", source, ""))
            found += values(text, tokens, i, end)
            found += literals(text, tokens, i, end)
            assigned = any(t.text in ASSIGNS and t.kind == "punct" for _, b in parts(tokens, i, end, "=") for t in tokens[b:b + 1] if b < end)
            found += arguments(text, tokens, i, end, assigned)
        else:
            found += declared(text, tokens, i, end)
        i = end + 1
        starts = True
    return found


def values(text, tokens, i, end):
    """Yields the mistakes in the value that a statement assigns."""
    for j in range(i, end):
        if tokens[j].text in "([" and tokens[j].kind == "punct":
            return
        if tokens[j].text in ASSIGNS and tokens[j].kind == "punct" and j + 1 < end:
            source = text[tokens[j + 1].at:tokens[end - 1].end]
            if "{" in source:
                return
            swapped = list(swapped_arms(text, tokens, j + 1, end))
            for operator, changed in swapped if "?" in source else variants(text, tokens, j + 1, end):
                yield Mutation("value: " + operator, tokens[j + 1].at, tokens[end - 1].end,
                               lambda n, original, changed=changed: f"(HF_MUTANT_IS({n}) ? ({changed}) : ({original}))", source, changed)
            return


def schema(text, chosen):
    """Returns the text with all chosen mistakes in it. `chosen` is a list of (number, mutation). Inner mistakes are rendered before outer ones,
    because a mistake can lie within the text of another."""
    pieces = sorted(chosen, key=lambda pair: (pair[1].begin, -pair[1].end))

    def render(begin, end, items):
        out, at, i = [], begin, 0
        while i < len(items):
            first = items[i][1]
            same = [p for p in items[i:] if p[1].begin == first.begin and p[1].end == first.end]
            inner = [p for p in items[i:] if p not in same and p[1].begin >= first.begin and p[1].end <= first.end]
            out.append(text[at:first.begin])
            body = render(first.begin, first.end, inner)
            for number, mutation in same:
                body = mutation.make(number, body)
            out.append(body)
            at = first.end
            i += len(same) + len(inner)
        out.append(text[at:end])
        return "".join(out)
    return render(0, len(text), pieces)
