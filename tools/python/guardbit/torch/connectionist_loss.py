"""ctc_loss of FP32 by PyTorch's own kernels, for alphabets and batches that are not large: logarithms of sums along the time, a thread a state."""

from __future__ import annotations

import math
from typing import Any

import torch

from .ranges import on_gpu
from .session import Session, argument_of, doubt_of, elements_of

aten = torch.ops.aten
MOST_WORK = 450  # above, the library takes kernels with atomics


def takes_cudnn(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """_use_cudnn_ctc_loss."""
    targets, blank = (argument_of(func, args, kwargs, name) for name in ("targets", "blank"))
    if targets.dim() == 1 and targets.dtype == torch.int32 and blank == 0:
        return session.without_model(func, args, kwargs, "targets that cuDNN may take")
    return False


class States:
    """The characters of each row's targets with blanks between them: [batch, 2 longest + 1], and how many are a row's own."""

    def __init__(self, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int) -> None:
        self.log_probs = elements_of(log_probs)
        self.inputs, self.lengths = (torch.as_tensor(elements_of(x)).long().reshape(-1) for x in (input_lengths, target_lengths))
        batch, longest = self.log_probs.shape[1], int(self.lengths.max())
        own = elements_of(targets).long()
        if own.dim() == 1:
            begins = self.lengths.cumsum(0) - self.lengths
            rows = [own[begin:begin + count] for begin, count in zip(begins.tolist(), self.lengths.tolist())]
        else:
            rows = [row[:count] for row, count in zip(own, self.lengths.tolist())]
        self.characters = torch.full((batch, 2 * longest + 1), blank)
        for b, row in enumerate(rows):
            self.characters[b, 1:2 * len(row):2] = row
        self.count = self.characters.shape[1]
        self.is_own = torch.arange(self.count) < (2 * self.lengths + 1)[:, None]
        self.last = 2 * self.lengths[:, None]

    def probability(self, time: int) -> Any:
        return self.log_probs[time].gather(1, self.characters)


def of_elements(session: Session, operator: Any, x: Any) -> Any:
    return session.computed(operator, (on_gpu(session, x.contiguous()),), {}).elements


def exponential(session: Session, x: Any) -> Any:
    return of_elements(session, aten.exp.default, x)


def log_of_sum(session: Session, terms: list[Any]) -> Any:
    """Of terms in order, by the greatest of them."""
    most = terms[0]
    for term in terms[1:]:
        most = torch.maximum(most, term)
    most = torch.where(most == -math.inf, torch.zeros_like(most), most)
    total = exponential(session, terms[0] - most)
    for term in terms[1:]:
        total = total + exponential(session, term - most)
    return of_elements(session, aten.log.default, total) + most


def shifted(x: Any, by: int) -> Any:
    """Each state's neighbour so many places before it; behind it for a number below 0."""
    moved = torch.full_like(x, -math.inf)
    if by > 0:
        moved[:, by:] = x[:, :-by]
    else:
        moved[:, :by] = x[:, -by:]
    return moved


def forward(session: Session, states: States) -> Any:
    """Logarithms of the probabilities up to each time and state."""
    steps = states.log_probs.shape[0]
    nothing = torch.full(states.characters.shape, -math.inf)
    place = torch.arange(states.count).expand(states.characters.shape)
    before = torch.roll(states.characters, 2, 1)
    has_three = (place > 1) & (before != states.characters)
    found = [torch.where((place < 2) & states.is_own, states.probability(0), nothing)]
    for time in range(1, steps):
        last = found[-1]
        terms = [last, shifted(last, 1), torch.where(has_three, shifted(last, 2), nothing)]
        value = log_of_sum(session, terms) + states.probability(time)
        found.append(torch.where(states.is_own, value, nothing))
    return torch.stack(found, 1)


def backward(session: Session, states: States) -> Any:
    """Logarithms of the probabilities from each time and state on."""
    steps = states.log_probs.shape[0]
    nothing = torch.full(states.characters.shape, -math.inf)
    place = torch.arange(states.count).expand(states.characters.shape)
    has_three = (place < states.last - 1) & (torch.roll(states.characters, -2, 1) != states.characters)
    is_end = (place == states.last) | (place == states.last - 1)
    found = [torch.where(is_end, states.probability(steps - 1), nothing)]
    for time in reversed(range(steps - 1)):
        following = found[-1]
        terms = [following, torch.where(place < states.last, shifted(following, -1), nothing), torch.where(has_three, shifted(following, -2), nothing)]
        value = log_of_sum(session, terms) + states.probability(time)
        found.append(torch.where(states.is_own, value, nothing))
    return torch.stack(found[::-1], 1)


def refusal(log_probs: Any, states: States) -> str | None:
    if log_probs.dtype != torch.float32 or log_probs.dim() != 3:
        return "other than batches of FP32"
    if int(states.inputs.min()) < 1 or int(states.lengths.min()) < 1:
        return "sequences without a step or a character"
    steps, batch, labels = log_probs.shape
    if (states.inputs != steps).any():
        return "sequences that are shorter than the longest"
    return "a large alphabet or batch" if 2 * steps + 24 * batch // 10 + 2 * labels // 10 > MOST_WORK else None


def states_of(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> States:
    names = ("log_probs", "targets", "input_lengths", "target_lengths", "blank")
    log_probs, targets, inputs, lengths, blank = (argument_of(func, args, kwargs, name) for name in names)
    return States(log_probs, targets, inputs, lengths, blank or 0)


def loss(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    states = states_of(func, args, kwargs)
    reason = refusal(args[0], states)
    if reason:
        return session.without_model(func, args, kwargs, reason)
    alpha = forward(session, states)
    at_end = alpha[:, -1]
    found = -log_of_sum(session, [at_end.gather(1, states.last), at_end.gather(1, states.last - 1)])[:, 0]
    doubt = doubt_of(args, kwargs)
    return session.wrapped(found, doubt), session.wrapped(alpha, doubt)


def loss_backward(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    states = states_of(func, args, kwargs)
    gradient, losses, alpha = (elements_of(argument_of(func, args, kwargs, name)) for name in ("grad", "neg_log_likelihood", "log_alpha"))
    reason = refusal(states.log_probs, states)
    if reason:
        return session.without_model(func, args, kwargs, reason)
    both = alpha + backward(session, states)
    steps, batch, labels = states.log_probs.shape
    sums = torch.full((batch, steps, labels), -math.inf)
    for s in range(states.count):
        at = states.characters[:, s, None, None].expand(batch, steps, 1)
        own, term = sums.gather(2, at), both[:, :, s:s + 1]
        joined = torch.where(own == -math.inf, term, log_of_sum(session, [own, term]))
        sums.scatter_(2, at, torch.where(states.is_own[:, s, None, None], joined, own))
    probabilities = states.log_probs.transpose(0, 1)
    result = (exponential(session, probabilities) - exponential(session, sums + losses[:, None, None] - probabilities)) * gradient[:, None, None]
    if argument_of(func, args, kwargs, "zero_infinity"):
        result = torch.where((losses != math.inf)[:, None, None], result, torch.zeros_like(result))
    return session.wrapped(result.transpose(0, 1).contiguous(), doubt_of(args, kwargs))


def takes_miopen(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return False


Session.specials.update({"_use_cudnn_ctc_loss": takes_cudnn, "_use_miopen_ctc_loss": takes_miopen, "_ctc_loss": loss, "_ctc_loss_backward": loss_backward})
