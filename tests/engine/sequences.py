"""Random tool calls over a domain's database: plausible ones drawn from its rows, and ones bent out of shape."""

from __future__ import annotations

import json
import math
import random
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

ODD = (
    None,
    "",
    "é😀",
    "\ud800",
    0,
    -1,
    2.5,
    1e300,
    math.nan,
    True,
    10**20,
    [],
    {},
    ["x"],
    {"a": 1},
    "no such thing",
    3.0,
)
AIRPORTS = ("SFO", "JFK", "LAX", "ORD", "DFW", "DEN", "SEA", "ATL", "MIA", "BOS", "EWR", "LGA")
DAYS = tuple(f"2024-05-{d:02}" for d in range(10, 31))
CABINS = ("basic_economy", "economy", "business")
Call = tuple[str, dict[str, Any]]


@dataclass
class Airline:
    """Calls on the airline tools; looks at a database only to draw from it."""

    db: Any
    chance: random.Random

    def call(self) -> Call:
        """One plausible call."""
        return self.chance.choice(
            (
                self._book,
                self._cancel,
                self._baggages,
                self._flights,
                self._passengers,
                self._certificate,
                self._read,
                self._search,
            )
        )()

    def _row(self, table: Any) -> Any:
        return table[self.chance.choice(list(table))]

    def _payment(self, user_id: str) -> str:
        user = self.db.users.get(user_id)
        return self.chance.choice(list(user.payment_methods)) if user and user.payment_methods else "credit_card_1"

    def _flight(self) -> dict:
        flight = self._row(self.db.flights)
        open_days = [d for d, s in flight.dates.items() if s.status == "available"] or list(DAYS)
        return {"flight_number": flight.flight_number, "date": self.chance.choice(open_days)}

    def _people(self, count: int) -> list[dict]:
        return [
            {"first_name": self.chance.choice(("Ann", "Zoë")), "last_name": "Doe", "dob": "1990-04-05"}
            for _ in range(count)
        ]

    def _book(self) -> Call:
        user, flight, cabin = self._row(self.db.users), self._flight(), self.chance.choice(CABINS)
        status = self.db.flights[flight["flight_number"]].dates.get(flight["date"])
        price = status.prices[cabin] if status and status.status == "available" else 100
        count, bags, insured = self.chance.choice((1, 2)), self.chance.choice((0, 1)), self.chance.choice(("yes", "no"))
        total = price * count + 50 * bags + (30 * count if insured == "yes" else 0)
        return "book_reservation", {
            "user_id": user.user_id, "origin": "SFO", "destination": "JFK", "flight_type": "one_way", "cabin": cabin,
            "flights": [flight], "passengers": self._people(count),
            "payment_methods": [{"payment_id": self._payment(user.user_id), "amount": total}],
            "total_baggages": bags, "nonfree_baggages": bags, "insurance": insured,
        }  # fmt: skip

    def _cancel(self) -> Call:
        return "cancel_reservation", {"reservation_id": self._row(self.db.reservations).reservation_id}

    def _baggages(self) -> Call:
        row = self._row(self.db.reservations)
        fee = self.chance.choice((0, 1, 2, 3, 1.01, 2.5))  # a fractional fee is deducted before it is refused
        arguments = {
            "total_baggages": self.chance.choice((0, 1, 4)),
            "nonfree_baggages": fee,
            "payment_id": self._payment(row.user_id),
        }
        return "update_reservation_baggages", {"reservation_id": row.reservation_id, **arguments}

    def _flights(self) -> Call:
        row = self._row(self.db.reservations)
        flights = [{"flight_number": f.flight_number, "date": f.date} for f in row.flights]
        if self.chance.random() < 0.6:
            flights[-1:] = [self._flight()]
        cabin = self.chance.choice((row.cabin, *CABINS))
        return "update_reservation_flights", {
            "reservation_id": row.reservation_id,
            "cabin": cabin,
            "flights": flights,
            "payment_id": self._payment(row.user_id),
        }

    def _passengers(self) -> Call:
        row = self._row(self.db.reservations)
        return "update_reservation_passengers", {
            "reservation_id": row.reservation_id,
            "passengers": self._people(len(row.passengers)),
        }

    def _certificate(self) -> Call:
        return "send_certificate", {
            "user_id": self._row(self.db.users).user_id,
            "amount": self.chance.choice((50, 100, 12.5)),
        }

    def _read(self) -> Call:
        reservation, user, flight = self._row(self.db.reservations), self._row(self.db.users), self._flight()
        reads = (
            ("get_reservation_details", {"reservation_id": reservation.reservation_id}),
            ("get_user_details", {"user_id": user.user_id}),
        )
        return self.chance.choice(
            (*reads, ("get_flight_status", flight), ("list_all_airports", {}), ("calculate", {"expression": "2 * 3"}))
        )

    def _search(self) -> Call:
        flight = self._row(self.db.flights)
        tool = self.chance.choice(("search_direct_flight", "search_onestop_flight"))
        return tool, {
            "origin": flight.origin,
            "destination": self.chance.choice((flight.destination, *AIRPORTS)),
            "date": self.chance.choice(DAYS),
        }


@dataclass
class Retail:
    """Calls on the retail tools; looks at a database only to draw from it."""

    db: Any
    chance: random.Random

    def call(self) -> Call:
        """One plausible call."""
        return self.chance.choice(
            (
                self._cancel,
                self._items,
                self._address,
                self._payment,
                self._user,
                self._return,
                self._read,
                self._search,
            )
        )()

    def _order(self, status: str) -> Any:
        orders = [o for o in self.db.orders.values() if o.status == status] or list(self.db.orders.values())
        return self.chance.choice(orders)

    def _payment_of(self, order: Any) -> str:
        user = self.db.users.get(order.user_id)
        own = list(user.payment_methods) if user else []
        return self.chance.choice([*own, order.payment_history[0].payment_method_id])

    def _place(self) -> dict:
        text = self.chance.choice(("1 Elm St", "Straße 5", ""))
        return {"address1": text, "address2": "", "city": "X", "state": "CA", "country": "USA", "zip": "00501"}

    def _cancel(self) -> Call:
        return "cancel_pending_order", {
            "order_id": self._order("pending").order_id,
            "reason": self.chance.choice(("no longer needed", "ordered by mistake")),
        }

    def _items(self) -> Call:
        name, status = self.chance.choice(
            (("modify_pending_order_items", "pending"), ("exchange_delivered_order_items", "delivered"))
        )
        order = self._order(status)
        item = self.chance.choice(order.items)
        product = self.db.products.get(item.product_id)
        other = self.chance.choice(list(product.variants)) if product else item.item_id
        return name, {
            "order_id": order.order_id,
            "item_ids": [item.item_id],
            "new_item_ids": [other],
            "payment_method_id": self._payment_of(order),
        }

    def _address(self) -> Call:
        return "modify_pending_order_address", {"order_id": self._order("pending").order_id, **self._place()}

    def _payment(self) -> Call:
        order = self._order("pending")
        return "modify_pending_order_payment", {
            "order_id": order.order_id,
            "payment_method_id": self._payment_of(order),
        }

    def _user(self) -> Call:
        return "modify_user_address", {"user_id": self.chance.choice(list(self.db.users)), **self._place()}

    def _return(self) -> Call:
        order = self._order("delivered")
        items = [i.item_id for i in order.items[: self.chance.choice((1, 2))]]
        return "return_delivered_order_items", {
            "order_id": order.order_id,
            "item_ids": items,
            "payment_method_id": self._payment_of(order),
        }

    def _read(self) -> Call:
        order, product = self._order("pending"), self.db.products[self.chance.choice(list(self.db.products))]
        reads = (
            ("get_order_details", {"order_id": order.order_id}),
            ("get_product_details", {"product_id": product.product_id}),
        )
        item = ("get_item_details", {"item_id": self.chance.choice(list(product.variants))})
        return self.chance.choice(
            (*reads, item, ("get_user_details", {"user_id": order.user_id}), ("list_all_product_types", {}))
        )

    def _search(self) -> Call:
        user = self.db.users[self.chance.choice(list(self.db.users))]
        by_name = {"first_name": user.name.first_name, "last_name": user.name.last_name, "zip": user.address.zip}
        return self.chance.choice(
            (("find_user_id_by_email", {"email": user.email}), ("find_user_id_by_name_zip", by_name))
        )


DRAWING = {"airline": Airline, "retail": Retail}


def bent(call: Call, chance: random.Random) -> Call:
    """The call with one argument, or one member of an argument, replaced, dropped or added."""
    name, arguments = call[0], deepcopy(call[1])
    target: Any = arguments
    while isinstance(target, dict) and target and chance.random() < 0.4:
        inner = chance.choice(list(target.values()))
        target = inner[0] if isinstance(inner, list) and inner else inner
    target = target if isinstance(target, dict) else arguments
    key = chance.choice([*target, "unexpected"])
    if chance.random() < 0.15:
        target.pop(key, None)
    else:
        target[key] = chance.choice(ODD)
    return name, arguments


def draw(domain: str, db: Any, chance: random.Random) -> Call:
    """The next call of a random sequence: two in five are bent."""
    call = DRAWING[domain](db, chance).call()
    return bent(call, chance) if chance.random() < 0.4 else call


def small(text: bytes, domain: str) -> bytes:
    """A database file cut down to rows that refer to each other, so that tau2's own functions are quick on it."""
    whole, chance = json.loads(text), random.Random(5)
    users = chance.sample(sorted(whole["users"]), 12)
    members, kept = ("reservations", "flights") if domain == "airline" else ("orders", "products")
    rows = {k: v for k, v in whole[members].items() if v["user_id"] in users}
    other = {k: whole[kept][k] for k in chance.sample(sorted(whole[kept]), 7)}
    return json.dumps({kept: other, "users": {u: whole["users"][u] for u in users}, members: rows}).encode()
