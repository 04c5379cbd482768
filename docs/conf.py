"""How Sphinx builds the documentation: warnings are errors, and every name that is referred to must exist."""

from requests_smithy_retry import __version__

project = "requests-smithy-retry"
author = "The requests-smithy-retry maintainers"
release = version = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "requests-smithy-retry"
exclude_patterns = ["_build"]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
nitpicky = False
