"""Model files as text and as a plain tree of XML elements, read so that no file can do harm.

The tree is what MuJoCo's own parser (tinyxml2) sees: names with their prefix, attributes, lines; no text, no DOCTYPE.
"""

import io
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax import InputSource, SAXException, handler, xmlreader
from xml.sax.saxutils import quoteattr

from defusedxml import expatreader
from defusedxml.common import DefusedXmlException

from ..errors import ModelError

MAX_BYTES = 64 * 2**20
MAX_ELEMENTS = 200_000
MAX_DEPTH = 500  # tinyxml2 stops there too


@dataclass
class Element:
    """An XML element: tag as written, attributes, line in its file, children."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    line: int = 0
    children: list["Element"] = field(default_factory=list)

    def __contains__(self, name: str) -> bool:
        return name in self.attributes

    def get(self, name: str, otherwise: str = "") -> str:
        return self.attributes.get(name, otherwise)

    def find(self, tag: str) -> "Element | None":
        return next((child for child in self.children if child.tag == tag), None)

    def all(self, tag: str) -> list["Element"]:
        return [child for child in self.children if child.tag == tag]

    def walk(self) -> Iterator["Element"]:
        stack = [self]
        while stack:
            element = stack.pop()
            yield element
            stack += reversed(element.children)


class _Builder(handler.ContentHandler):
    """Collects elements and stops where there are too many or they nest too deeply."""

    def __init__(self, where: str, max_depth: int):
        super().__init__()
        self.where, self.max_depth = where, max_depth
        self.root: Element | None = None
        self.open: list[Element] = []
        self.count = 0
        self.locator: xmlreader.Locator | None = None

    def setDocumentLocator(self, locator: xmlreader.Locator) -> None:
        self.locator = locator

    def startElement(self, name: str, attrs: xmlreader.AttributesImpl) -> None:
        line = (self.locator.getLineNumber() if self.locator else 0) or 0
        element = Element(name, dict(attrs.items()), line)
        self.count += 1
        if len(self.open) >= self.max_depth:
            raise ModelError(f"{self.where}, line {line}: elements nest deeper than {self.max_depth}; flatten the file")
        if self.count > MAX_ELEMENTS:
            raise ModelError(f"{self.where}: more than {MAX_ELEMENTS} elements; is this a robot model?")
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.root = element
        self.open.append(element)

    def endElement(self, name: str) -> None:
        self.open.pop()


def read_text(path: Path) -> str:
    """The text of a regular UTF-8 file of bounded size."""
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise ModelError(f"{path} is a folder; give the model file in it")
        if not stat.S_ISREG(mode):  # a pipe or a device never ends
            raise ModelError(f"{path} is not a regular file; give a model file")
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise ModelError(f"no such file: {path}") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the name
        reason = getattr(error, "strerror", None) or str(error)
        raise ModelError(f"{str(path)[:200]!r} cannot be read: {reason}") from None
    if len(data) > MAX_BYTES:
        raise ModelError(f"{path} is larger than {MAX_BYTES / 2**20:.3g} MiB; is this a robot model?")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ModelError(f"{path}: byte {error.start} is not UTF-8 text; save the file as UTF-8") from None
    if "\0" in text:
        raise ModelError(f"{path} is a binary file (it has NUL bytes); give an MJCF, URDF or YAML file")
    if not text.strip():
        raise ModelError(f"{path} is empty")
    return text


def parse_xml(text: str, where: str, max_depth: int = MAX_DEPTH) -> Element:
    """The root element of an XML text; `where` names the text in errors."""
    builder = _Builder(where, max_depth)
    data = text.encode("utf-8", "replace")
    source = InputSource()
    source.setByteStream(io.BytesIO(data))
    # A declared encoding must not make expat read another document than MuJoCo, which always reads UTF-8
    source.setEncoding("utf-8")
    # In one piece: fed in small ones, expat scans a long attribute again and again
    parser = expatreader.create_parser(bufsize=len(data) + 1, forbid_dtd=True)
    parser.setContentHandler(builder)
    try:
        parser.parse(source)
    except DefusedXmlException:
        raise ModelError(f"{where} has a DOCTYPE or entities, which a model file must not; delete them") from None
    except SAXException as error:
        line = getattr(error, "getLineNumber", lambda: 0)() or 0
        at = f", line {line}" if line else ""
        what = error.getMessage().replace("no element found", "it ends before its elements are closed")
        raise ModelError(f"{where}{at}: not well-formed XML: {what}") from None
    except (ValueError, LookupError) as error:
        raise ModelError(f"{where}: cannot be read as XML: {error}") from None
    if builder.root is None:
        raise ModelError(f"{where} has no XML element")
    return builder.root


def write_xml(element: Element) -> str:
    """The text of an element and all below it."""
    attributes = "".join(f" {name}={quoteattr(value)}" for name, value in element.attributes.items())
    inside = "".join(write_xml(child) for child in element.children)
    return f"<{element.tag}{attributes}>{inside}</{element.tag}>"
