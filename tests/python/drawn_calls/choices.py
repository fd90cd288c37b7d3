"""Random choices that make a call: yes or no, one of several, types, sizes, shapes.

Every choice is of random() or getrandbits(), whose numbers no version of Python changes. Their order is what makes the drawn calls those that the
H200 has computed: a choice that is added, left out or moved makes other calls of all that follow it.
"""

import math
import random

import numpy as np

from .number_types import bf16, f16, f32, f64

# Sizes at which kernels go another way, and their neighbours.
ODD_SIZES = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 96, 100, 127, 128, 129, 192, 255, 256, 257, 300,
             511, 512, 513, 768, 1000, 1023, 1024, 1025, 1500, 2047, 2048, 2049, 3000, 4095, 4096, 4097, 5000, 8191, 8192, 8193, 10000,
             16383, 16384, 16385, 20000, 32768, 32769, 50257, 65535, 65536, 70000]


def divisors(n):
    return [k for k in range(1, n + 1) if n % k == 0]


class Choices:
    def __init__(self, key):
        self.random = random.Random(key)
        self.dtype = None  # the first type that was chosen

    def fraction(self):
        return self.random.random()

    def chance(self, probability):
        return self.fraction() < probability

    def choice(self, options):
        return options[int(self.fraction() * len(options))]

    def weighted(self, **weights):
        """One of the names, as often as its weight says."""
        left = self.fraction() * sum(weights.values())
        for name, weight in weights.items():
            left -= weight
            if left < 0:
                return name
        return name

    def between(self, least, greatest):
        return least + int(self.fraction() * (greatest - least + 1))

    def spread(self, least, greatest):
        """Between the two, each power of two as often as another."""
        if greatest <= least:
            return least
        return min(greatest, int(least * 2.0 ** (self.fraction() * float(np.log2((greatest + 1) / least)))))

    def shuffled(self, items):
        items = list(items)
        for k in range(len(items) - 1, 0, -1):
            other = self.between(0, k)
            items[k], items[other] = items[other], items[k]
        return items

    def some(self, items, count):
        return self.shuffled(items)[:count]

    def float_type(self, doubles=0.1, halves=True):
        fraction = self.fraction()
        if fraction < doubles:
            dtype = f64
        elif not halves or self.chance(0.45):
            dtype = f32
        else:
            dtype = self.choice([f16, bf16, bf16])
        self.dtype = self.dtype or dtype
        return dtype

    def scalar(self):
        return self.choice([0.5, 2.0, -1.0, 0.1, 3.0, 1.7, -0.3, 1e-3, 10.0])

    def budget(self, greatest=2e6):
        """How many elements a tensor may have: mostly few."""
        fraction = self.fraction()
        elements = 2e3 if fraction < 0.5 else 2e4 if fraction < 0.78 else 1e5 if fraction < 0.95 else 4e5 if fraction < 0.985 else 2e6
        return int(min(elements, greatest))

    def size(self, greatest, least=1):
        greatest = max(greatest, least)
        if self.chance(0.5):
            sizes = [n for n in ODD_SIZES if least <= n <= greatest]
            if sizes:
                return sizes[int((1 - self.fraction() ** 1.5) * len(sizes)) % len(sizes)]
        return self.spread(least, greatest)

    def shape(self, rank, budget=None, empty=0.0):
        """Sizes of `rank` dimensions with at most `budget` elements; one is 0 with the probability `empty`."""
        left, sizes = budget or self.budget(), []
        for dimensions in range(rank, 0, -1):
            sizes.append(self.size(left if dimensions == 1 else min(left, int(left ** (1.6 / dimensions)) + 1)))
            left = max(1, left // sizes[-1])
        sizes = self.shuffled(sizes)
        if rank and self.chance(empty):
            sizes[self.between(0, rank - 1)] = 0
        return tuple(sizes)

    def factors(self, n, count):
        """Sizes whose product is n."""
        sizes = []
        for _ in range(count - 1):
            sizes.append(self.choice(divisors(n)) if n < 100000 else 1)
            n //= sizes[-1]
        return tuple(self.shuffled([*sizes, n]))

    def broadcast(self, shape):
        """A shape that broadcasts to this one."""
        sizes = [1 if self.chance(0.4) else n for n in shape]
        return tuple(sizes[self.between(0, len(sizes)):] if self.chance(0.5) else sizes)

    def same_or_broadcast(self, shape, same=0.6):
        return shape if self.chance(same) else self.broadcast(shape)

    def line(self, greatest=70000):
        """A shape with one dimension of an odd size, and that dimension."""
        budget = self.budget()
        n = self.size(min(greatest, budget))
        if self.chance(0.35):
            n = min(budget, max(1, self.choice([1024, 2048, 4096, 8192, 1024, 16384, 512, 32, 256]) + self.choice([-1, 0, 0, 1, 2, 3, 4, -4])))
        rank = self.choice([1, 2, 2, 2, 3, 3, 4])
        rest = list(self.shape(rank - 1, max(1, budget // n)))
        dim = self.between(0, rank - 1)
        return (*rest[:dim], n, *rest[dim:]), dim

    def images(self, dimensions, greatest=2e5):
        """The shape of a batch of images, or of one, with so many dimensions of space."""
        budget = self.budget(greatest if self.chance(0.95) else 1e6)
        side = max(2, int(round((budget / 2) ** (1 / dimensions))))
        space = tuple(self.size(min(side, {1: 3000, 2: 120, 3: 24}[dimensions])) for _ in range(dimensions))
        if self.chance(0.3):
            space = (space[0],) * dimensions
        left = max(1, budget // math.prod(space))
        channels = self.size(min(left, 256))
        batch = self.size(max(1, min(left // channels, 16)))
        return (batch, channels, *space) if self.chance(0.92) else (channels, *space)
