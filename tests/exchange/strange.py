"""Ids and classes that files of any format must carry unharmed."""

STRANGE = [
    "=1+1",
    'say "hi"',
    "two\nlines",
    "'quoted'",
    "ü/β 漢.png",
    "a,b;c",
    "-x",
    "@y",
    "<b>&amp;",
    "'=1+1",
    "${x}",
    "tab\there",
]
CLASSES = ["cat & dog", 'a "quoted" <class>', "Käse"]
