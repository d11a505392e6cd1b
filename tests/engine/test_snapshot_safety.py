"""What keeps database views honest: fallbacks, verification, isolation, the check of the base."""

from __future__ import annotations

import gc
import threading
from types import ModuleType

import pytest

from replaykit.engine import iteration, snapshot
from replaykit.engine.databases import VERIFY_VARIABLE, Databases
from replaykit.errors import InternalError

from .pairs import dumped, first, tau2_hash

pytestmark = pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")


def _other_class(table):
    table[first(table)] = {"a": [1]}


def _number_key(table):
    row = table.popitem()[1]
    table.clear()
    table[5] = row


FALLBACKS = {
    "a table replaced by a dictionary": lambda db, name: setattr(db, name, dict(list(getattr(db, name).items())[1:])),
    "a table emptied": lambda db, name: setattr(db, name, {}),
    "tables swapped": lambda db, name: setattr(db, name, getattr(db, next(n for n in db.__dict__ if n != name))),
    "a row of another class": lambda db, name: _other_class(getattr(db, name)),
    "a key that is no string": lambda db, name: _number_key(getattr(db, name)),
}


@pytest.mark.parametrize("change", FALLBACKS)
def test_what_is_no_view_any_more_gets_tau2s_own_hash(small, change):
    for name in small.view().__dict__:
        view = small.view()
        FALLBACKS[change](view, name)
        assert small.hash(view) == tau2_hash(view) != small.base.hash
        assert small.touched(view)


def test_a_table_of_another_base_is_no_view(tau2, domain, small, full):
    view, name = small.view(), first(small.view().__dict__)
    setattr(view, name, getattr(full.view(), name))
    assert small.hash(view) == tau2_hash(view) != small.base.hash


def test_a_database_updated_by_tau2_gets_tau2s_own_hash(tau2, domain, full):
    environment = tau2.domain(domain).environment()
    user = first(full.base.database.users)
    environment.tools.update_db({"users": {user: {"email": "x"}}})
    assert environment.get_db_hash() == tau2_hash(environment.tools.db) != full.base.hash
    assert list(full.touched(environment.tools.db)) == ["users"]


def test_an_untouched_view_has_no_touched_rows(small):
    view = small.view()
    for table in view.__dict__:
        [getattr(view, table)[key] for key in getattr(view, table)]
    assert small.touched(view) == {}
    assert small.hash(view) == small.base.hash


def test_touched_rows_are_plain_data_before_and_after(small):
    view = small.view()
    gone, changed = list(view.users)[:2]
    before = {key: view.users[key].model_dump() for key in (gone, changed)}
    view.users["new"] = view.users.pop(gone)
    view.users[changed].email = "other"
    after = before[changed] | {"email": "other"}
    assert small.touched(view) == {
        "users": {gone: (before[gone], None), changed: (before[changed], after), "new": (None, before[gone])}
    }


def test_views_in_two_threads_do_not_see_each_other(small):
    hashes, failures = {}, []

    def change(name):
        for _ in range(60):
            view = small.view()
            for key in view.users:
                view.users[key].email = name
            hashes.setdefault(name, set()).add(small.hash(view))
            if {u.email for u in view.users.values()} != {name}:
                failures.append(name)

    threads = [threading.Thread(target=change, args=(f"thread {n}",)) for n in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert failures == [] and [len(h) for h in hashes.values()] == [1] * 4 and len(set.union(*hashes.values())) == 4
    small.check_base()


def _damaging(databases):
    """A view after a tool wrote through a row it iterated over."""
    view = databases.view()
    for user in view.users.values():
        user.email = "written while iterating"
    return view


@pytest.fixture
def fresh(small):
    """A database of its own, to be damaged."""
    return Databases(small._class, small._text, small._shared_iteration)


def test_a_write_while_iterating_is_found_out_or_harmless(fresh):
    view = _damaging(fresh)
    if fresh._shared_iteration:
        with pytest.raises(InternalError, match="the base of all database views was changed"):
            fresh.check_base()
    else:
        fresh.check_base()
        assert fresh.hash(view) == tau2_hash(view) != fresh.base.hash


def test_verification_finds_a_short_cut_that_is_wrong(fresh):
    fresh.verify = True
    view = fresh.view()
    assert fresh.hash(view) == fresh.base.hash
    first_user = dict.__getitem__(view.users, first(view.users))
    first_user.email = "changed behind the view's back"
    with pytest.raises(InternalError, match="where tau2's own function gives"):
        fresh.hash(view)


@pytest.mark.parametrize(("value", "verifies"), [(None, False), ("", False), ("0", False), ("1", True)])
def test_verification_is_asked_for_by_environment(small, monkeypatch, value, verifies):
    monkeypatch.delenv(VERIFY_VARIABLE, raising=False)
    if value is not None:
        monkeypatch.setenv(VERIFY_VARIABLE, value)
    assert Databases(small._class, small._text).verify is verifies


def test_views_copy_before_iteration_unless_told_otherwise(small):
    guarded = Databases(small._class, small._text)
    user = first(guarded.view().users.values())
    assert user is not guarded.base.database.users[user.user_id]


def test_the_tools_of_this_engine_are_known_to_only_read_while_iterating(tau2, full):
    assert full._shared_iteration


def test_unknown_tools_are_not_trusted_to_only_read(tmp_path):
    module = ModuleType("tools")
    (tmp_path / "tools.py").write_text("def tool(): ...\n")
    module.__file__ = str(tmp_path / "tools.py")
    assert iteration.source_digest([module]) and not iteration.only_reads([module])


@pytest.mark.parametrize("file", [None, "no/such/file.py"])
def test_tools_without_source_are_not_trusted(file):
    module = ModuleType("tools")
    module.__file__ = file
    assert iteration.source_digest([module]) is None and not iteration.only_reads([module])


def test_remembered_hashes_are_bounded(small, monkeypatch):
    monkeypatch.setattr(snapshot, "MEMO_SIZE", 5)
    databases = Databases(small._class, small._text)
    for number in range(20):
        view = databases.view()
        view.users[first(view.users)].email = f"{number % 10}"
        assert databases.hash(view) == tau2_hash(view)
    assert len(databases.base._memo._known) == 5


def test_toolkit_and_database_keep_tau2s_names(tau2, domain):
    place = tau2.domain(domain)
    native = place.toolkit.__mro__[1]
    for name in ("__name__", "__qualname__", "__module__", "__doc__"):
        assert getattr(place.toolkit, name) == getattr(native, name)
    assert type(place.databases.view()) is place.databases._class
    assert list(place.environment().tools.tools) == list(native(None).tools)


def test_an_unused_database_is_not_parsed_for_the_check(small):
    Databases(small._class, b"this would not parse").check_base()


def test_a_dump_of_a_view_keeps_the_order_of_rows(small):
    view = small.view()
    view.users[list(view.users)[3]].email = "x"
    assert [list(t) for t in dumped(view).values()] == [list(t) for t in dumped(small.base.database).values()]


def test_an_engine_prepares_and_checks_all_its_databases(tau2, full, monkeypatch):
    monkeypatch.setattr(gc, "freeze", lambda: None)
    tau2.prepare()
    tau2.check_bases()
    monkeypatch.setattr(full.base, "hash", "another")
    with pytest.raises(InternalError, match="results of this run cannot be trusted"):
        tau2.check_bases()


def test_an_engine_verifies_all_its_databases_when_asked(tau2, monkeypatch):
    both = [tau2.domain(name).databases for name in ("airline", "retail")]
    for databases in both:
        monkeypatch.setattr(databases, "verify", False)
    tau2.verify_hashes()
    assert [databases.verify for databases in both] == [True, True]
