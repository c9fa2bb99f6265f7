"""What a browser makes of a page."""

from html.parser import HTMLParser


class Page(HTMLParser):
    """Tags that are open, addresses that a browser would load, and all text."""

    VOID = frozenset({"meta", "link", "img", "br", "hr"})

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.loads, self.words = [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attrs:
            assert not name.startswith("on")
            if name in ("src", "href", "action", "data", "srcset", "poster"):
                self.loads.append(value)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())

    def handle_data(self, data):
        if not self.open or self.open[-1] != "style":
            self.words.append(data)
