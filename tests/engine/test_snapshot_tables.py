"""The tables of a database view are dictionaries in every way that code can reach a row."""

from __future__ import annotations

import random
from copy import copy, deepcopy

import pytest

from .pairs import Pair, dumped, first, tau2_hash

pytestmark = pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")


def _nested(row):
    """A row's dictionary of records and one of its keys."""
    records = getattr(row, "dates", None) or row.variants
    return records, first(records)


def replace_field(table):
    row = table[first(table)]
    setattr(row, first(type(row).model_fields), "é\ud800")


def change_nested(table):
    records, key = _nested(table[first(table)])
    record = records[key]
    setattr(record, first(type(record).model_fields), "changed")


def remove_nested(table):
    records, key = _nested(table[first(table)])
    del records[key]


def add_nested(table):
    records, key = _nested(table[first(table)])
    records["new 😀"] = records.pop(key)


def through_get(table):
    records, _ = _nested(table.get(first(table)))
    records.clear()


def through_merged_copy(table):
    copied = {**table}
    setattr(copied[first(table)], first(type(copied[first(table)]).model_fields), "merged")


def through_dict_copy(table):
    copied = dict(table)
    setattr(copied[first(table)], first(type(copied[first(table)]).model_fields), "copied")


def through_union(table):
    joined = table | {"x": 1}
    setattr(joined[first(table)], first(type(joined[first(table)]).model_fields), "joined")


def change_popped(table):
    """Through pop and popitem a caller gets the row itself, and may put it back changed."""
    for key, row in ((first(table), table.pop(first(table))), table.popitem()):
        table[key] = row
        setattr(table[key], first(type(row).model_fields), f"popped {key}")


def change_popped_outside(table):
    for row in (table.pop(first(table)), table.popitem()[1]):
        setattr(row, first(type(row).model_fields), "popped for good")


OPERATIONS = {
    "rows popped, put back, changed": change_popped,
    "rows popped for good, then changed": change_popped_outside,
    "field replaced": replace_field,
    "nested record changed": change_nested,
    "nested record removed": remove_nested,
    "nested record renamed": add_nested,
    "row through get": through_get,
    "row removed": lambda t: t.__delitem__(first(t)),
    "greatest key removed": lambda t: t.__delitem__(max(t)),
    "row popped and put back": lambda t: t.__setitem__("moved", t.pop(first(t))),
    "last item popped": lambda t: t.popitem(),
    "absent key popped": lambda t: t.pop("absent", None),
    "row added in front": lambda t: t.__setitem__("", deepcopy(t[first(t)])),
    "row added at the end": lambda t: t.update({"😀": deepcopy(t[first(t)])}),
    "row set by default": lambda t: t.setdefault("é", deepcopy(t[first(t)])),
    "default of a present row": lambda t: replace_field({"k": t.setdefault(first(t), None)}),
    "rows merged in place": lambda t: t.__ior__({"a": deepcopy(t[first(t)])}),
    "row overwritten": lambda t: t.__setitem__(first(t), deepcopy(t[max(t)])),
    "all rows removed": lambda t: t.clear(),
    "all rows removed, one back": lambda t: (r := t[first(t)], t.clear(), t.__setitem__("one", r)),
    "copy changed": lambda t: replace_field(t.copy()),
    "shallow copy changed": lambda t: replace_field(copy(t)),
    "deep copy changed": lambda t: replace_field(deepcopy(t)),
    "merged copy changed": through_merged_copy,
    "plain copy changed": through_dict_copy,
    "union changed": through_union,
}


def apply(db, table, operation):
    """The operation's error, if it raises."""
    try:
        OPERATIONS[operation](getattr(db, table))
    except Exception as error:
        return type(error), str(error)
    return None


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_table_of_a_view_is_a_dictionary(pair, operation):
    native, view = pair.native.tools.db, pair.viewed.tools.db
    for table in native.__dict__:
        assert apply(view, table, operation) == apply(native, table, operation)
    pair.check()
    assert list(dumped(view).items()) == list(dumped(native).items())
    pair.databases.check_base()


def test_random_operations_on_tables_end_as_on_dictionaries(tau2, domain, small):
    for seed in range(25):
        chance, pair = random.Random(seed), Pair(tau2, domain, small)
        for _ in range(chance.randint(1, 7)):
            table, operation = chance.choice(list(pair.native.tools.db.__dict__)), chance.choice(list(OPERATIONS))
            assert apply(pair.viewed.tools.db, table, operation) == apply(pair.native.tools.db, table, operation)
            assert pair.viewed.get_db_hash() == pair.native.get_db_hash(), f"seed {seed}, {operation}"
    small.check_base()


@pytest.mark.parametrize("key", [["list"], {"a": 1}, {1, 2}, None, 1.5], ids=repr)
def test_an_impossible_key_is_refused_as_a_dictionary_refuses_it(pair, key):
    table = first(pair.native.tools.db.__dict__)
    for reach in (lambda t: t[key], lambda t: t.get(key), lambda t: key in t, lambda t: t.pop(key)):
        said = []
        for db in (pair.native.tools.db, pair.viewed.tools.db):
            try:
                said.append(("value", reach(getattr(db, table))))
            except Exception as error:
                said.append((type(error), str(error)))
        assert said[0] == said[1]


@pytest.mark.parametrize(("value", "changed"), [(1, False), (1.0, True), (True, True)], ids=repr)
def test_rows_that_are_equal_but_differ_in_bytes_count_as_changed(tau2, value, changed):
    databases = tau2.domain("airline").databases
    view = databases.view()
    row = next(r for r in view.reservations.values() if r.total_baggages == 1)
    view.reservations[row.reservation_id].total_baggages = value
    assert databases.hash(view) == tau2_hash(view)
    assert bool(databases.touched(view)) is changed
