"""The parts of the draw. Their order is part of it: a part's number is in the key of its calls."""

from .interpolation import interpolation
from .norms import group_norm, norms
from .others import others
from .pointwise import pointwise
from .pooling import pooling
from .reductions import reductions
from .softmax_and_losses import softmax_and_losses

PARTS = {part.__name__: part for part in (group_norm, norms, softmax_and_losses, pooling, interpolation, reductions, pointwise, others)}
NUMBERS = {name: number for number, name in enumerate(PARTS, 1)}
