"""A native environment beside one on a view, and ways to look at both."""

from __future__ import annotations

import json
import warnings
from copy import deepcopy

from . import sequences


class Pair:
    """A native environment and one on a view, given the same calls."""

    def __init__(self, tau2, domain, databases):
        self.domain, self.databases, self.tau2 = domain, databases, tau2
        place = tau2.domain(domain)
        native = databases._class.model_validate(json.loads(databases._text))
        make = tau2._native.environment.Environment
        self.native = make(domain, "", place.toolkit.__mro__[1](native))
        self.viewed = make(domain, "", databases.hashing(place.toolkit.__mro__[1])(databases.view()))

    def call(self, name, arguments):
        """The response of both, which must agree; an exception that escapes tau2 is a response too."""
        answers = [self._answer(environment, name, deepcopy(arguments)) for environment in (self.native, self.viewed)]
        assert answers[0] == answers[1]
        return answers[0]

    def _answer(self, environment, name, arguments):
        call = self.tau2._native.messages.ToolCall(id="1", name=name, arguments=arguments)
        try:
            response = environment.get_response(call)
        except Exception as error:
            return type(error), str(error)
        return response.error, response.content

    def run(self, chance, count):
        """A random sequence; how many calls succeeded and how many failed."""
        errors = 0
        for _ in range(count):
            errors += bool(self.call(*sequences.draw(self.domain, self.native.tools.db, chance))[0])
        return count - errors, errors

    def check(self):
        """Every way to look at the two databases agrees."""
        native, view = self.native.tools.db, self.viewed.tools.db
        assert self.viewed.get_db_hash() == self.native.get_db_hash()
        assert dumped(view) == dumped(native)
        assert text(self.databases.touched(view)) == text(
            differing(dumped(self.databases.base.database), dumped(native))
        )


def dumped(db):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return db.model_dump()


def text(value):
    return json.dumps(value, sort_keys=True, default=str)


def differing(before, after):
    """Changed rows by tau2's own dumps."""
    found = {}
    for table in before:
        for key in before[table].keys() | after[table].keys():
            old, new = before[table].get(key), after[table].get(key)
            if text(old) != text(new):
                found.setdefault(table, {})[key] = (old, new)
    return found


def tau2_hash(db):
    """tau2's own hash."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return db.get_hash()


def first(table):
    """The first key of a dictionary."""
    return next(iter(table))
