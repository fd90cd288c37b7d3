"""Convolutions and their gradients as matrix products, with K in the order of kernels for channels that lie together."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

# a [M, K] times b [K, N].
Multiply = Callable[[Any, Any], Any]


def _columns(x: Any, kernel: list[int], stride: list[int], dilation: list[int], places: list[int]) -> Any:
    """x [N, C, *sizes], padded, as rows of what each place of the result sees: [N * places, filter places * C]."""
    last = x.movedim(1, -1).contiguous()
    strides = last.stride()
    spatial = strides[1:-1]
    seen = last.as_strided((last.shape[0], *places, *kernel, last.shape[-1]),
                           (strides[0], *(a * b for a, b in zip(spatial, stride)), *(a * b for a, b in zip(spatial, dilation)), 1))
    return seen.reshape(last.shape[0] * math.prod(places), math.prod(kernel) * last.shape[-1])


def _padded(x: Any, before: list[int], after: list[int]) -> Any:
    """Negative numbers take away."""
    widths = [width for pair in reversed(list(zip(before, after))) for width in pair]
    return F.pad(x, widths) if any(widths) else x


def _in_groups(parts: Callable[[int], Any], groups: int, axis: int) -> Any:
    made = [parts(i) for i in range(groups)]
    return made[0] if groups == 1 else torch.cat(made, axis)


class Convolution:
    """x [N, C, *sizes] and weight [O, C / groups, *kernel] to [N, O, *places]."""

    def __init__(self, multiply: Multiply, kernel: list[int], stride: list[int], padding: list[int], dilation: list[int], groups: int) -> None:
        self.multiply, self.kernel, self.groups = multiply, kernel, groups
        self.stride, self.padding, self.dilation = stride, padding, dilation

    def forward(self, x: Any, weight: Any) -> Any:
        x = _padded(x, self.padding, self.padding)
        places = [(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(x.shape[2:], self.kernel, self.stride, self.dilation)]
        weights, inputs = weight.chunk(self.groups), x.chunk(self.groups, 1)

        def of_group(i: int) -> Any:
            rows = _columns(inputs[i], self.kernel, self.stride, self.dilation, places)
            return self.multiply(rows, weights[i].movedim(1, -1).reshape(weights[i].shape[0], -1).T)

        return self._images(_in_groups(of_group, self.groups, 1), x.shape[0], places)

    def data_gradient(self, gradient: Any, weight: Any, sizes: list[int]) -> Any:
        """The gradient of an x of these sizes."""
        spread = gradient.new_zeros(*gradient.shape[:2], *((n - 1) * s + 1 for n, s in zip(gradient.shape[2:], self.stride)))
        spread[(slice(None), slice(None), *(slice(None, None, s) for s in self.stride))] = gradient
        reach = [d * (k - 1) for k, d in zip(self.kernel, self.dilation)]
        before = [r - p for r, p in zip(reach, self.padding)]
        spread = _padded(spread, before, [n + r - b - m for n, r, b, m in zip(sizes, reach, before, spread.shape[2:])])
        weights, gradients = weight.chunk(self.groups), spread.chunk(self.groups, 1)
        axes = list(range(2, weight.dim()))
        ones = [1] * len(sizes)

        def of_group(i: int) -> Any:
            rows = _columns(gradients[i], self.kernel, ones, self.dilation, sizes)
            turned = weights[i].flip(axes).movedim(0, -1)
            return self.multiply(rows, turned.reshape(turned.shape[0], -1).T)

        return self._images(_in_groups(of_group, self.groups, 1), gradient.shape[0], sizes)

    def weight_gradient(self, gradient: Any, x: Any) -> Any:
        x = _padded(x, self.padding, self.padding)
        places = list(gradient.shape[2:])
        inputs, gradients = x.chunk(self.groups, 1), gradient.movedim(1, 0).chunk(self.groups)

        def of_group(i: int) -> Any:
            columns = _columns(inputs[i], self.kernel, self.stride, self.dilation, places)
            rows = gradients[i].reshape(gradients[i].shape[0], -1)
            made = self.multiply(rows, columns).reshape(rows.shape[0], *self.kernel, inputs[i].shape[1])
            return made.movedim(-1, 1)

        return _in_groups(of_group, self.groups, 0).contiguous()

    @staticmethod
    def _images(rows: Any, images: int, sizes: list[int]) -> Any:
        return rows.reshape(images, *sizes, rows.shape[1]).movedim(-1, 1).contiguous()
