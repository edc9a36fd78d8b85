"""A page as its reader's browser takes it, for all tests of pages."""

import re
from html.parser import HTMLParser

import pytest

VOID = {"meta", "link", "br", "hr", "img", "input"}
FOREIGN = {"script", "link", "img", "iframe", "object", "foreignobject"}


class Page(HTMLParser):
    """Checks nesting and collects tags, attributes and text."""

    def __init__(self, source):
        super().__init__()
        self.source = source
        self.stack, self.tags, self.attributes, self.words = [], [], [], []
        self.feed(source)
        self.close()
        assert self.stack == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.words))

    def assert_self_contained(self):
        """No program, no style and no address that leads out of the page; numbers are numbers."""
        assert not FOREIGN & set(self.tags)
        assert set(re.findall(r"https?://[^\"' <]*", self.source)) <= {"http://www.w3.org/2000/svg"}
        for name, value in self.attributes:
            assert not name.startswith("on")
            assert name != "style"
            if name in ("href", "src", "xlink:href"):
                assert value.startswith("#")
        assert "default-src 'none'" in self.source
        values = " ".join(str(value) for name, value in self.attributes if name != "content")
        assert not re.search(r"\b(nan|inf)\b", values)

    def assert_tells_of(self, estimator):
        """The guarantee and the message of a fit."""
        assert estimator.guarantee_.explain() in self.text
        if estimator.message_:
            assert estimator.message_[1:] in self.text


@pytest.fixture(name="Page", scope="session")
def page_type():
    """Return what parses a page; tests are imported one by one, so it comes as a fixture."""
    return Page
