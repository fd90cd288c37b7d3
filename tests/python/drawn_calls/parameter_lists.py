"""Optimizers, and the operators over lists of tensors of which they are made."""

import torch

OPTIMIZERS = {
    "SGD": [{}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True}, {"momentum": 0.8, "dampening": 0.1, "weight_decay": 0.01},
            {"maximize": True, "weight_decay": 0.1}],
    "Adam": [{}, {"weight_decay": 0.05}, {"amsgrad": True}, {"betas": (0.8, 0.95), "eps": 1e-6, "maximize": True}],
    "AdamW": [{}, {"weight_decay": 0.1}, {"amsgrad": True}, {"maximize": True}],
    "Adagrad": [{}, {"weight_decay": 0.01, "lr_decay": 0.1}, {"initial_accumulator_value": 0.1}],
    "RMSprop": [{}, {"momentum": 0.9}, {"centered": True}, {"centered": True, "momentum": 0.5, "weight_decay": 0.01}],
    "Adadelta": [{}, {"weight_decay": 0.01}, {"maximize": True}],
    "Adamax": [{}, {"weight_decay": 0.01}],
    "NAdam": [{}, {"weight_decay": 0.01}, {"decoupled_weight_decay": True, "weight_decay": 0.05}],
    "RAdam": [{}, {"weight_decay": 0.01}, {"decoupled_weight_decay": True, "weight_decay": 0.05}],
    "ASGD": [{}, {"weight_decay": 0.01, "t0": 1.0}, {"t0": 0.0}],
    "Rprop": [{}, {"etas": (0.4, 1.3)}, {"maximize": True}],
}
FUSED = ("SGD", "Adam", "AdamW", "Adagrad")


def shapes_of_parameters(call, count):
    return [call.shape(call.choice([1, 2, 2, 3, 4, 4]), call.choice([50, 500, 5000, 20000]) if call.chance(0.97) else 200000) for _ in range(count)]


def gradients_of_a_parameter(call, parameter, dtype, steps, form):
    """One for each step; often in the parameter's order in memory."""
    same_order = call.chance(0.95 if form == "fused" else 0.5)
    gradients = []
    for _ in range(steps):
        gradient = call.tensor(parameter.shape, dtype, call.weighted(normal=85, small=15), "contiguous" if same_order else None, "g", plain=True)
        if same_order:
            gradient = torch.empty_like(parameter).copy_(gradient)
            call.descriptions[-1] += " as p"
        gradients.append(gradient)
    return gradients


def optimizer(call):
    name = call.choice([*OPTIMIZERS, "SGD", "Adam", "AdamW", "Adam", "AdamW"])
    form = call.choice(["single", "foreach", "foreach"] + (["fused", "fused", "fused"] if name in FUSED else []))
    call.operator = f"opt_{name}_{form}"
    options = {**call.choice(OPTIMIZERS[name]), "lr": call.choice([0.01, 0.1, 1e-3]), **({"foreach": False} if form == "single" else {form: True})}
    dtype = call.float_type(0.06)
    steps = call.between(1, 3)
    parameters, gradients = [], []
    for shape in shapes_of_parameters(call, call.between(1, 5)):
        layout = call.layout(len(shape), plain=True)
        if form == "fused" and layout in ("gaps", "padded", "permuted_gaps"):
            layout = call.choice(["contiguous", "offset"])  # fused steps take dense parameters only
        parameters.append(call.tensor(shape, dtype, "normal", layout, "p"))
        gradients.append(gradients_of_a_parameter(call, parameters[-1], dtype, steps, form))
    call.note(steps=steps, **options)

    def run():
        for parameter in parameters:
            parameter.requires_grad_(True)
        made = getattr(torch.optim, name)(parameters, **options)
        for step in range(steps):
            for parameter, of_steps in zip(parameters, gradients):
                parameter.grad = of_steps[step]
            made.step()
        states = [value for parameter in parameters for _, value in sorted(made.state.get(parameter, {}).items()) if isinstance(value, torch.Tensor)]
        return [parameter.detach() for parameter in parameters] + states
    call.compute(run)


def clipped_norm(gradients, greatest, p, foreach):
    parameters = [torch.zeros_like(gradient) for gradient in gradients]
    for parameter, gradient in zip(parameters, gradients):
        parameter.requires_grad_(True)
        parameter.grad = gradient
    norm = torch.nn.utils.clip_grad_norm_(parameters, greatest, p, foreach=foreach)
    return [norm] + [parameter.grad for parameter in parameters]


def clipped_values(gradients):
    parameters = [torch.zeros_like(gradient) for gradient in gradients]
    for parameter, gradient in zip(parameters, gradients):
        parameter.grad = gradient
    torch.nn.utils.clip_grad_value_(parameters, 0.5)
    return [parameter.grad for parameter in parameters]


LIST_OPERATORS = ["add_list", "add_scalar", "add_", "mul_list", "mul_scalar", "mul_scalars", "div_list", "div_scalar", "sub_list", "addcmul_", "addcdiv_",
                  "lerp", "lerp_scalar", "sqrt", "exp", "norm", "norm1", "norminf", "maximum", "abs", "neg", "reciprocal", "pow", "sign", "copy_", "zero_",
                  "clamp_min", "sigmoid", "tanh", "mul_tensor", "clip_grad_norm", "clip_grad_value", "max"]


def operator_over_lists(call):
    def tensors(name, kind=None):
        return [call.tensor(shape, dtype, kind or call.weighted(normal=80, small=20), plain=True, name=name) for shape in shapes]

    def foreach(operator):
        return getattr(torch, "_foreach_" + operator)

    dtype = call.float_type(0.06)
    shapes = shapes_of_parameters(call, call.between(1, 6))
    name = call.choice(LIST_OPERATORS)
    call.operator = "foreach_" + name
    x = tensors("x", "positive" if name in ("sqrt", "reciprocal", "pow") else None)
    number = call.scalar()
    call.note(s=number)
    if name in ("add_list", "mul_list", "div_list", "sub_list"):
        y = tensors("y")
        options = {"alpha": number} if name[:3] in ("add", "sub") and call.chance(0.5) else {}
        call.compute(lambda: foreach(name[:3])(x, y, **options))
    elif name in ("add_scalar", "mul_scalar", "div_scalar", "clamp_min", "pow"):
        call.compute(lambda: foreach(name.removesuffix("_scalar"))(x, number))
    elif name == "mul_scalars":
        numbers = [call.scalar() for _ in x]
        call.compute(lambda: torch._foreach_mul(x, numbers))
    elif name == "mul_tensor":
        factor = call.tensor((), dtype, "normal", "contiguous", "v")
        call.compute(lambda: torch._foreach_mul(x, factor))
    elif name in ("add_", "copy_"):
        y = tensors("y")
        call.compute(lambda: (foreach(name)(x, y), x)[1])
    elif name in ("addcmul_", "addcdiv_"):
        y, z = tensors("y"), tensors("z", "positive")
        factors = [call.scalar() for _ in x] if call.chance(0.4) else number
        call.compute(lambda: (foreach(name)(x, y, z, factors), x)[1])
    elif name == "lerp":
        y, z = tensors("y"), tensors("z", "fraction")
        call.compute(lambda: torch._foreach_lerp(x, y, z))
    elif name == "lerp_scalar":
        y = tensors("y")
        call.compute(lambda: torch._foreach_lerp(x, y, 0.3))
    elif name.startswith("norm"):
        call.compute(lambda: torch._foreach_norm(x, {"norm": 2, "norm1": 1, "norminf": float("inf")}[name]))
    elif name == "maximum":
        y = tensors("y")
        call.compute(lambda: torch._foreach_maximum(x, y))
    elif name == "zero_":
        call.compute(lambda: (torch._foreach_zero_(x), x)[1])
    elif name == "clip_grad_norm":
        greatest, p, lists = call.choice([0.1, 1.0, 100.0]), call.choice([2.0, 2.0, 1.0, float("inf")]), call.choice([None, True, False])
        call.note(max=greatest, p=p, foreach=lists)
        call.compute(lambda: clipped_norm(x, greatest, p, lists))
    elif name == "clip_grad_value":
        call.compute(lambda: clipped_values(x))
    else:
        call.compute(lambda: foreach(name)(x))
