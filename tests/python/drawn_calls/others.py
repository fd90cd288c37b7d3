"""Moves, indices, orders, distances, optimizers and random numbers: a few calls of many operators."""

from .geometry import geometry
from .indices import indices
from .moves import moves
from .orders import orders
from .parameter_lists import operator_over_lists, optimizer
from .random_numbers import random_numbers


def others(call):
    family = call.weighted(moves=30, indices=26, orders=12, geometry=16, optimizer=12, lists=9, random=14)
    if family in ("optimizer", "lists", "random"):
        {"optimizer": optimizer, "lists": operator_over_lists, "random": random_numbers}[family](call)
    else:
        {"moves": moves, "indices": indices, "orders": orders, "geometry": geometry}[family](call, call.float_type())
