"""A script in the place of __main__."""

from __future__ import annotations

import argparse
import os
import sys
import types
from typing import Any

import torch

from .. import Error
from . import copies, cuda, fused_attention
from .command import NOT_MODELLED, message, print_exception, refuse, write_report
from .session import Session
from .unmodelled import Unmodelled, set_script

_ = copies


def prepare(driver: Any) -> list[Any]:
    """PyTorch for a GPU that is not there. What comes back must be kept."""
    torch._C._ensureCUDADeviceGuardSet()
    if driver is not None:
        driver.guardbit_set_device_count(64)
    torch.autograd.set_multithreading_enabled(False)
    torch._C._set_only_lift_cpu_tensors(True)
    torch.__future__.set_swap_module_params_on_conversion(True)
    cuda.install()
    return [fused_attention.install()]


def run(script: str, arguments: list[str], options: argparse.Namespace, driver: Any) -> int:
    kept = prepare(driver)
    try:
        session = Session(options.threads, options.book, options.unmodelled, options.guesses)
    except Error as error:
        return refuse(str(error))
    set_script(script)
    sys.argv = [script, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    module = types.ModuleType("__main__")
    module.__file__ = script
    module.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = module
    status = 0
    with open(script, "rb") as file:
        text = file.read()
    try:
        code = compile(text, script, "exec")
        with session:
            exec(code, module.__dict__)
    except SystemExit as leaving:
        status = exit_status(leaving.code)
    except Unmodelled as error:
        sys.stdout.flush()
        message(f"{error.place}: {error.what} has no model: {error.reason}")
        status = NOT_MODELLED
    except BaseException as error:
        sys.stdout.flush()
        print_exception(error, script)
        status = 130 if isinstance(error, KeyboardInterrupt) else 1
    del kept
    finish(session, options)
    session.close()
    return status


def exit_status(code: Any) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code
    print(code, file=sys.stderr)
    return 1


def finish(session: Session, options: argparse.Namespace) -> None:
    report = session.report
    if report.unmodelled:
        message(f"not predicted, computed by PyTorch: {', '.join(sorted(report.unmodelled))}; "
                f"{report.left_in_doubt} tensors that depend on them went to the CPU")
    if report.guesses:
        message(f"{sum(report.guesses.values())} products by a guessed plan")
    if options.report:
        write_report(report, options.report)
