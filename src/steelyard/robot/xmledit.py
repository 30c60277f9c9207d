"""An XML text in which elements and attributes are replaced and every other byte stays: comments, order, layout."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from .xmltree import Element

_START_TAG = re.compile(rb"""<[^\s/>]+(?:[^"'>]|"[^"]*"|'[^']*')*>""")

_ATTRIBUTE = re.compile(r"""(?P<before>\s+)(?P<name>[^\s=/>]+)\s*=\s*("[^"]*"|'[^']*')""")


def pretty(element: Element, indent: str = "") -> str:
    """The text of an element, a line each."""
    attributes = "".join(f" {name}={quoteattr(value)}" for name, value in element.attributes.items())
    if not element.children:
        return f"{indent}<{element.tag}{attributes}/>\n"
    inside = "".join(pretty(child, indent + "  ") for child in element.children)
    return f"{indent}<{element.tag}{attributes}>\n{inside}{indent}</{element.tag}>\n"


@dataclass
class Span:
    """An element and where it stands in the text, in bytes."""

    tag: str
    attributes: dict[str, str]
    start: int
    inside: int  # where the start tag ends
    close: int = 0  # where the end tag begins; `inside` where there is none
    end: int = 0
    children: list["Span"] = field(default_factory=list)

    def all(self, *tags: str) -> list["Span"]:
        return [child for child in self.children if child.tag in tags]

    def find(self, tag: str) -> "Span | None":
        return next(iter(self.all(tag)), None)

    def walk(self) -> Iterator["Span"]:
        yield self
        for child in self.children:
            yield from child.walk()


def spans(data: bytes) -> Span:
    """The elements of a text that has passed `parse_xml`, which refuses entities and the like."""
    parser, stack = expat.ParserCreate("utf-8"), [Span("", {}, 0, 0)]

    def start(tag: str, attributes: dict[str, str]) -> None:
        at = parser.CurrentByteIndex
        match = _START_TAG.match(data, at)
        assert match is not None
        span = Span(tag, attributes, at, match.end())
        stack[-1].children.append(span)
        stack.append(span)

    def end(tag: str) -> None:
        span = stack.pop()
        empty = data[span.inside - 2 : span.inside] == b"/>"
        span.close = span.inside if empty else parser.CurrentByteIndex
        span.end = span.inside if empty else data.index(b">", span.close) + 1

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.Parse(data, True)
    return stack[0].children[0]


class Editor:
    """Replacements in a text, made all at once."""

    def __init__(self, text: str):
        self.data = text.encode("utf-8")
        self.root = spans(self.data)
        self.edits: list[tuple[int, int, str]] = []
        self.tags: dict[int, tuple[Span, dict[str, str | None]]] = {}

    def replace(self, span: Span, text: str) -> None:
        self.edits.append((span.start, span.end, text))

    def indent(self, span: Span) -> str:
        before = self.data[self.data.rfind(b"\n", 0, span.start) + 1 : span.start].decode()
        return before if not before.strip() else ""

    def put(self, span: Span, element: Element, first: bool = False) -> None:
        """Insert a child after the start tag or before the end tag."""
        indent, end = self.indent(span), self.data.rfind(b"\n", 0, span.close) + 1
        text = pretty(element, indent + "  ")
        if span.inside == span.end:  # <link name="base"/>
            tag = self.data[span.start : span.end].decode().removesuffix("/>").rstrip()
            self.replace(span, f"{tag}>\n{text}{indent}</{span.tag}>")
        elif first:
            self.edits.append((span.inside, span.inside, f"\n{text.rstrip()}"))
        elif end > span.start and not self.data[end : span.close].strip():  # the end tag has a line of its own
            self.edits.append((end, end, text))
        else:
            self.edits.append((span.close, span.close, f"\n{text}{indent}"))

    def set_attributes(self, span: Span, values: Mapping[str, str | None]) -> None:
        """Change attributes of a start tag, or drop them where the value is None."""
        self.tags.setdefault(span.start, (span, {}))[1].update(values)

    def _tag(self, span: Span, values: Mapping[str, str | None]) -> str:
        tag, missing = self.data[span.start : span.inside].decode(), dict(values)

        def renew(match: re.Match[str]) -> str:
            if match["name"] not in missing:
                return match[0]
            value = missing.pop(match["name"])
            return "" if value is None else f"{match['before']}{match['name']}={quoteattr(value)}"

        tag = _ATTRIBUTE.sub(renew, tag)
        added = "".join(f" {name}={quoteattr(value)}" for name, value in missing.items() if value is not None)
        body = tag.removesuffix(">").removesuffix("/").rstrip()
        return body + added + tag[len(body) :]

    def result(self) -> str:
        edits = [*self.edits, *((span.start, span.inside, self._tag(span, new)) for span, new in self.tags.values())]
        data = self.data
        # From the end, so that places stay; of several insertions in one place the first comes first
        for _, (start, end, text) in sorted(enumerate(edits), key=lambda edit: (edit[1][0], edit[0]), reverse=True):
            data = data[:start] + text.encode("utf-8") + data[end:]
        return data.decode("utf-8")
