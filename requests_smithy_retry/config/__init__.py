"""The configuration: options, their sources, and the translation of urllib3's ``Retry``."""
