"""Real servers, stopped, started, recycled and put in front of each other: ``tox -e servers``."""
