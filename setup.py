"""Everything is in setup.cfg, but for the description on a package index: there, links into the repository lead nowhere."""

import re
from pathlib import Path

from setuptools import setup


def description():
    """Return the README without pictures and links of this repository; their text stays."""
    text = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
    text = re.sub(r"!\[[^]]*\]\((?!https?:)[^)]*\)\n*", "", text)
    text = re.sub(r"<!--.*?-->\n*", "", text)
    return re.sub(r"\[([^]]*)\]\((?!https?:)[^)]*\)", r"\1", text)


setup(long_description=description(), long_description_content_type="text/markdown")
