"""What tau2's tools really wrote into error messages, and whether it means that the arguments were rejected.

The texts were collected from the airline and retail tools of tau2 1.0.1 and of its packaged 0.2 line: every tool with
each argument missing, unexpected ones, and each argument replaced by sixteen values of other types.
"""

import pytest

from replaykit.policy.rejection import is_unknown_tool, rejects_arguments

# case: (tool, arguments, text)
REJECTED = {
    "an argument is missing": (
        "get_user_details",
        {},
        "AirlineTools.get_user_details() missing 1 required positional argument: 'user_id'",
    ),
    "two arguments are missing": (
        "send_certificate",
        {},
        "AirlineTools.send_certificate() missing 2 required positional arguments: 'user_id' and 'amount'",
    ),
    "eleven arguments are missing": (
        "book_reservation",
        {},
        "AirlineTools.book_reservation() missing 11 required positional arguments: 'user_id', 'origin', 'destination', "
        "'flight_type', 'cabin', 'flights', 'passengers', 'payment_methods', 'total_baggages', 'nonfree_baggages', and "
        "'insurance'",
    ),
    "a retail argument is missing": (
        "find_user_id_by_name_zip",
        {"first_name": "Yusuf", "last_name": "Rossi"},
        "RetailTools.find_user_id_by_name_zip() missing 1 required positional argument: 'zip'",
    ),
    "calculate without its expression": (
        "calculate",
        {},
        "AirlineTools.calculate() missing 1 required positional argument: 'expression'",
    ),
    "an argument is unexpected": (
        "get_user_details",
        {"user_id": "mia_li_3668", "foo": "x"},
        "AirlineTools.get_user_details() got an unexpected keyword argument 'foo'",
    ),
    "an argument is unexpected, with Python 3.13's suggestion": (
        "get_user_details",
        {"user_idd": "mia_li_3668"},
        "AirlineTools.get_user_details() got an unexpected keyword argument 'user_idd'. Did you mean 'user_id'?",
    ),
    "calculate with an unexpected argument": (
        "calculate",
        {"expression": "1+1", "precision": 2},
        "RetailTools.calculate() got an unexpected keyword argument 'precision'",
    ),
    "a tool without parameters gets one": (
        "list_all_airports",
        {"country": "US"},
        "AirlineTools.list_all_airports() got an unexpected keyword argument 'country'",
    ),
    "an argument named requestor": (
        "get_user_details",
        {"user_id": "x", "requestor": "x"},
        "tau2.environment.environment.Environment.make_tool_call() got multiple values for keyword argument "
        "'requestor'",
    ),
    "an argument named tool_name": (
        "get_user_details",
        {"user_id": "x", "tool_name": "x"},
        "Environment.make_tool_call() got multiple values for argument 'tool_name'",
    ),
    "an argument named self": (
        "get_user_details",
        {"user_id": "x", "self": "x"},
        "Environment.make_tool_call() got multiple values for argument 'self'",
    ),
    "a flight without its members": (
        "book_reservation",
        {"flights": [{}]},
        "2 validation errors for FlightInfo\nflight_number\n  Field required [type=missing, input_value={}, "
        "input_type=dict]\n    For further information visit https://errors.pydantic.dev/2.14/v/missing\ndate\n",
    ),
    "a passenger with other members": (
        "update_reservation_passengers",
        {"passengers": [{"a": 1}]},
        "3 validation errors for Passenger\nfirst_name\n  Field required [type=missing, input_value={'a': 1}]",
    ),
    "a flight type that does not exist": (
        "book_reservation",
        {"flight_type": "zz"},
        "1 validation error for Reservation\nflight_type\n  Input should be 'round_trip' or 'one_way' "
        "[type=literal_error, input_value='zz', input_type=str]",
    ),
    "an origin that is a number": (
        "book_reservation",
        {"origin": 5},
        "1 validation error for Reservation\norigin\n  Input should be a valid string [type=string_type]",
    ),
    "a certificate without a number as its amount": (
        "send_certificate",
        {"user_id": "mia_li_3668", "amount": "zz"},
        "1 validation error for Certificate\namount\n  Input should be a valid number [type=float_parsing]",
    ),
    "a fractional fee": (
        "update_reservation_baggages",
        {"nonfree_baggages": 1.25},
        "1 validation error for Payment\namount\n  Input should be a valid integer, got a number with a "
        "fractional part",
    ),
    "an address line that is null": (
        "modify_user_address",
        {"address2": None},
        "1 validation error for UserAddress\naddress2\n  Input should be a valid string [type=string_type]",
    ),
    "an id that is a list": ("get_reservation_details", {"reservation_id": []}, "unhashable type: 'list'"),
    "an id that is an object": ("get_order_details", {"order_id": {}}, "unhashable type: 'dict'"),
    "an id that is an object, as Python 3.14 says it": (
        "get_order_details",
        {"order_id": {}},
        "cannot use 'dict' as a dict key (unhashable type: 'dict')",
    ),
    "flights that are null": ("update_reservation_flights", {"flights": None}, "'NoneType' object is not iterable"),
    "flights that are a number": ("book_reservation", {"flights": 5}, "'int' object is not iterable"),
    "flights that are a text": ("book_reservation", {"flights": "zz"}, "'str' object has no attribute 'flight_number'"),
    "flights in a list of lists": (
        "book_reservation",
        {"flights": [[1]]},
        "'list' object has no attribute 'flight_number'",
    ),
    "an e-mail that is null": ("find_user_id_by_email", {"email": None}, "'NoneType' object has no attribute 'lower'"),
    "an e-mail that is a number": ("find_user_id_by_email", {"email": 5}, "'int' object has no attribute 'lower'"),
    "bags that are null": (
        "update_reservation_baggages",
        {"nonfree_baggages": None},
        "unsupported operand type(s) for -: 'NoneType' and 'int'",
    ),
    "bags that are a text": (
        "book_reservation",
        {"nonfree_baggages": "5"},
        "unsupported operand type(s) for +=: 'int' and 'str'",
    ),
    "item ids of mixed types": (
        "return_delivered_order_items",
        {"item_ids": ["1", 2]},
        "'<' not supported between instances of 'int' and 'str'",
    ),
    "an expression that is a number": ("calculate", {"expression": 5}, "'int' object is not iterable"),
    "an expression that is an empty list": (
        "calculate",
        {"expression": []},
        "eval() arg 1 must be a string, bytes or code object",
    ),
    "an expression in a list": (
        "calculate",
        {"expression": [5]},
        "'in <string>' requires string as left operand, not int",
    ),
    "a cabin that does not exist": ("update_reservation_flights", {"cabin": "first"}, "'first'"),
    "a cabin that is empty": ("update_reservation_flights", {"cabin": ""}, "''"),
    "a cabin that is null": ("update_reservation_flights", {"cabin": None}, "None"),
    "a cabin that is a number": ("update_reservation_flights", {"cabin": 5}, "5"),
}

BUSINESS = {
    "reservation not found": ("get_reservation_details", {"reservation_id": "zz"}, "Reservation zz not found"),
    "user not found, airline": ("get_user_details", {"user_id": "zz"}, "User zz not found"),
    "user not found, retail": ("find_user_id_by_email", {"email": "a@b.c"}, "User not found"),
    "order not found": ("get_order_details", {"order_id": "W1"}, "Order not found"),
    "order not found, the id was a number": ("get_order_details", {"order_id": 5}, "Order not found"),
    "product not found": ("get_product_details", {"product_id": "1"}, "Product not found"),
    "item not found": ("get_item_details", {"item_id": "1"}, "Item not found"),
    "variant not found": ("exchange_delivered_order_items", {}, "Variant not found"),
    "flight not found": ("get_flight_status", {"flight_number": "X1", "date": "d"}, "Flight X1 not found"),
    "flight not found on date": ("get_flight_status", {}, "Flight HAT136 not found on date zz"),
    "flight not available": ("book_reservation", {}, "Flight HAT136 not available on date 2024-05-20"),
    "not enough seats": ("book_reservation", {}, "Not enough seats on flight HAT136"),
    "payment method not found": ("update_reservation_baggages", {}, "Payment method not found"),
    "payment method of an id not found": ("book_reservation", {}, "Payment method credit_card_1 not found"),
    "certificate refused": ("update_reservation_flights", {}, "Certificate cannot be used to update reservation"),
    "gift card too small": ("update_reservation_flights", {}, "Gift card balance is not enough"),
    "balance too small": ("book_reservation", {}, "Not enough balance in payment method gift_card_1"),
    "payment does not add up": (
        "book_reservation",
        {},
        "Payment amount does not add up, total price is 152, but paid 100",
    ),
    "number of passengers": ("update_reservation_passengers", {}, "Number of passengers does not match"),
    "too many reservations": ("book_reservation", {}, "Too many reservations"),
    "too many certificates": ("send_certificate", {"amount": True}, "Too many certificates"),
    "order not pending, cancel": ("cancel_pending_order", {}, "Non-pending order cannot be cancelled"),
    "order not pending, modify": ("modify_pending_order_items", {}, "Non-pending order cannot be modified"),
    "order not delivered, return": ("return_delivered_order_items", {}, "Non-delivered order cannot be returned"),
    "order not delivered, exchange": ("exchange_delivered_order_items", {}, "Non-delivered order cannot be exchanged"),
    "reason refused": ("cancel_pending_order", {"reason": "bored"}, "Invalid reason"),
    "number of an item": ("exchange_delivered_order_items", {}, "Number of 1008292230 not found."),
    "numbers of items differ": (
        "exchange_delivered_order_items",
        {},
        "The number of items to be exchanged should match.",
    ),
    "new item not available": ("modify_pending_order_items", {}, "New item 1 not found or available"),
    "same item": (
        "modify_pending_order_items",
        {},
        "The new item id should be different from the old item id",
    ),
    "several payments": (
        "modify_pending_order_payment",
        {},
        "There should be exactly one payment for a pending order",
    ),
    "other payment method": (
        "return_delivered_order_items",
        {},
        "Payment method should be the original payment method",
    ),
    "some item not found": ("return_delivered_order_items", {"item_ids": ["1"]}, "Some item not found"),
    "letters in an expression": ("calculate", {"expression": "abc"}, "Invalid characters in expression"),
    "an expression that breaks off": ("calculate", {"expression": "2 +"}, "invalid syntax (<string>, line 1)"),
    "a bracket left open": ("calculate", {"expression": "(1"}, "'(' was never closed (<string>, line 1)"),
    "division by zero": ("calculate", {"expression": "1/0"}, "division by zero"),
    "a number called as a function": ("calculate", {"expression": "(1)(2)"}, "'int' object is not callable"),
    "a sum of a tuple": (
        "calculate",
        {"expression": "()+1"},
        'can only concatenate tuple (not "int") to tuple',
    ),
    "a complex result": (
        "calculate",
        {"expression": "(-8)**0.5"},
        "float() argument must be a string or a real number, not 'complex'",
    ),
    "a result too large": ("calculate", {"expression": "10**400*1.0"}, "int too large to convert to float"),
    "an id that imitates a rejection": (
        "get_user_details",
        {"user_id": "X() missing 1 required positional argument: 'a'"},
        "User X() missing 1 required positional argument: 'a' not found",
    ),
    "an item id that imitates a rejection": (
        "modify_pending_order_items",
        {"item_ids": ["unhashable type: 'list'"]},
        "unhashable type: 'list' not found",
    ),
    "an id that imitates a model": (
        "get_user_details",
        {"user_id": "1 validation error for X\n"},
        "User 1 validation error for X\n not found",
    ),
}


@pytest.mark.parametrize("case", REJECTED)
def test_the_tool_rejected_its_arguments(case):
    name, arguments, text = REJECTED[case]
    assert rejects_arguments(name, arguments, f"Error: {text}")


@pytest.mark.parametrize("case", BUSINESS)
def test_the_tool_understood_its_arguments_and_said_no(case):
    name, arguments, text = BUSINESS[case]
    assert not rejects_arguments(name, arguments, f"Error: {text}")


@pytest.mark.parametrize("name", ["nope", "", "get_user_details ", "__init__"])
def test_the_environment_says_that_it_has_no_such_tool(name):
    assert is_unknown_tool(name, f"Error: Tool '{name}' not found.")


def test_another_tools_name_in_the_text_is_no_unknown_tool():
    assert not is_unknown_tool("get_user_details", "Error: Tool 'nope' not found.")
