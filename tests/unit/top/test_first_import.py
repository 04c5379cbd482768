"""Acting on a module once it has been imported, without importing it."""

import importlib
import importlib.util
import sys
import zipfile
from importlib.machinery import PathFinder

import pytest

from requests_smithy_retry.features.everywhere.run import after_import


@pytest.fixture(autouse=True)
def _modules(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    importlib.invalidate_caches()
    yield
    for name in ("first_one", "first_one.part", "second_one"):
        sys.modules.pop(name, None)


@pytest.fixture(params=["folder", "archive"])
def package(request, tmp_path):
    """A package beside a module; in an archive, one loader serves both."""
    sources = {"first_one/__init__.py": "from . import part", "first_one/part.py": "x = 1", "second_one.py": "x = 2"}
    if request.param == "folder":
        (tmp_path / "first_one").mkdir()
        for name, text in sources.items():
            (tmp_path / name).write_text(text)
    else:
        with zipfile.ZipFile(tmp_path / "them.zip", "w") as archive:
            for name, text in sources.items():
                archive.writestr(name, text)
        sys.path.insert(0, str(tmp_path / "them.zip"))


@pytest.mark.usefixtures("package")
def test_the_first_import_is_acted_on_once():
    """Calls come once, in their order, when the submodules are there; nothing of ours is left behind or visible."""
    plain, seen = list(sys.meta_path), []
    for number in (1, 2):
        after_import("first_one", lambda module, number=number: seen.append((number, module, module.part.x)))
    assert 2 == importlib.import_module("second_one").x
    assert importlib.util.find_spec("first_one").loader.get_source("first_one") == "from . import part"
    assert [] == seen
    module = importlib.import_module("first_one")
    assert plain == sys.meta_path
    assert "exec_module" not in vars(module.__spec__.loader)
    importlib.reload(module)
    assert [(1, module, 1), (2, module, 1)] == seen


@pytest.mark.usefixtures("package")
def test_what_was_imported_already_is_acted_on_at_once():
    """The call comes at once for a module that is imported already, as by the code that starts a program."""
    module, seen = importlib.import_module("first_one"), []
    after_import("first_one", seen.append)
    assert [module] == seen


def test_a_module_that_is_missing_or_fails_is_acted_on_when_it_is_well(tmp_path):
    """The import fails as it would have, and an import that raises is no import."""
    seen = []
    after_import("first_one", seen.append)
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'first_one'$"):
        importlib.import_module("first_one")
    assert importlib.util.find_spec("first_one") is None
    (tmp_path / "first_one.py").write_text("raise ValueError('oops')")
    importlib.invalidate_caches()
    with pytest.raises(ValueError, match="oops"):
        importlib.import_module("first_one")
    assert [] == seen
    (tmp_path / "first_one.py").write_text("worked = True")
    importlib.invalidate_caches()
    assert importlib.import_module("first_one").worked
    assert 1 == len(seen)


@pytest.mark.usefixtures("package")
def test_other_finders_are_left_alone():
    """An old finder without find_spec is skipped, and a program may replace the list of finders."""
    seen = []
    sys.meta_path.insert(0, object())
    after_import("first_one", seen.append)
    ours = sys.meta_path[0]
    spec = ours.find_spec("first_one")
    sys.meta_path[:] = [PathFinder]
    spec.loader.exec_module(importlib.util.module_from_spec(importlib.util.spec_from_loader("first_one", spec.loader)))
    assert [PathFinder] == sys.meta_path


def test_a_loader_that_cannot_be_watched_is_used_as_it_is(monkeypatch):
    """A loader with slots cannot be watched, so its module is imported without the call."""

    class Loader:
        __slots__ = ()

        def create_module(self, spec):
            return None

        def exec_module(self, module):
            module.x = 3

    class Finder:
        def find_spec(self, name, path=None, target=None):
            return importlib.util.spec_from_loader(name, Loader()) if name == "first_one" else None

    sys.meta_path.insert(0, Finder())
    seen = []
    after_import("first_one", seen.append)
    assert (3, []) == (importlib.import_module("first_one").x, seen)


@pytest.mark.parametrize("package", ["archive"], indirect=True)
@pytest.mark.usefixtures("package")
def test_a_loader_of_several_modules_is_acted_on_for_the_one_alone():
    """An archive's loader, found for the one module, may load another before."""
    seen = []
    after_import("first_one", seen.append)
    assert importlib.util.find_spec("first_one").loader is importlib.util.find_spec("second_one").loader
    assert (2, []) == (importlib.import_module("second_one").x, seen)
    assert [importlib.import_module("first_one")] == seen
