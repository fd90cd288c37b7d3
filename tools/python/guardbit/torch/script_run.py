"""A script in the place of __main__."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
import types
from typing import Any

import torch

from .. import Error
from .._core import version
from . import autograd_formulas, complex_numbers, composed, connectionist_loss, copies, cuda, encoder_layers, fused_attention, generators, geometry, gradients, quantisation, ranges
from .command import DIFFERENT, NOT_MODELLED, message, print_exception, refuse, write_report
from .gpu_tensor import GpuTensor
from .recording.against import Against, Differs
from .recording.facts import versions
from .recording.recorder import Recorder
from .session import Session, is_gpus
from .unmodelled import Unmodelled, set_script

_ = complex_numbers, composed, connectionist_loss, copies, encoder_layers, gradients, quantisation, ranges


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


def stored_elements(tensor: Any) -> Any:
    return (tensor.elements if isinstance(tensor, GpuTensor) else tensor).detach()


class PredictedRecorder(Recorder):
    """Records what the models give."""

    def start(self) -> None:
        self.begin({"capture": "1", "kind": "recording", "device": cuda.NAME, "arch": "sm_%d%d" % cuda.CAPABILITY, "cuda": torch.version.cuda or "",
                    "multiprocessors": str(cuda.MULTIPROCESSORS), "workspace": os.environ.get("CUBLAS_WORKSPACE_CONFIG", ""),
                    "lt_workspace": os.environ.get("CUBLASLT_WORKSPACE_SIZE", ""), "predicted": f"guardbit {version()}", **versions()})

    def generator_state(self, generator: Any) -> tuple[int, int] | None:
        known = generators.default if generator is None else generators.of_gpu(generator)
        return None if known is None else (known.seed_, known.offset)

    def elements(self, value: Any) -> Any:
        return stored_elements(value)


def run(script: str, arguments: list[str], options: argparse.Namespace, driver: Any) -> int:
    kept = prepare(driver)
    try:
        against = Against(options.against, stored_elements, lambda value: is_gpus(*value)) if options.against else None
        session = Session(options.threads, options.book, options.unmodelled, options.guesses)
    except (Error, ValueError, OSError) as error:
        return refuse(str(error))
    # A program that was recorded on a GPU had the formulas of a dispatch mode.
    if against is None or "predicted" in against.recording.metadata:
        kept.append(autograd_formulas.install())
    recorder = PredictedRecorder(options.record) if options.record else None
    # The recording holds the call that differs, too: it is written last.
    session.watchers = [watcher for watcher in (recorder, against) if watcher is not None]
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
    if recorder is not None:
        recorder.start()
    if against is not None:
        against.begin()
    try:
        code = compile(text, script, "exec")
        with session:
            exec(code, module.__dict__)
    except SystemExit as leaving:
        status = exit_status(leaving.code)
    except Unmodelled as error:
        sys.stdout.flush()
        message(f"{error.place}: {error.what} has no model: {error.reason}" + (f"; {error.tensors}" if error.tensors else ""))
        status = NOT_MODELLED
    except Differs as error:
        sys.stdout.flush()
        message(f"{place_of(error, script)}: {error}")
        status = DIFFERENT
    except BaseException as error:
        sys.stdout.flush()
        print_exception(error, script)
        status = 130 if isinstance(error, KeyboardInterrupt) else 1
    del kept
    if against is not None:
        against.close()
        if status != DIFFERENT:
            message(against.summary())
    if recorder is not None:
        try:
            recorder.close()
        except OSError as error:
            status = refuse(f"--record {options.record}: {error.strerror}")
    finish(session, options)
    session.close()
    return status


def place_of(error: BaseException, script: str) -> str:
    """The line of the script that led to it."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == script]
    return f"{script}:{lines[-1]}" if lines else script


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
    if report.of_host:
        message(f"computed on this CPU, which has no AVX-512 and may give other bits than the H200's host: {', '.join(sorted(report.of_host))}")
    if report.guesses:
        message(f"{sum(report.guesses.values())} products by a guessed plan")
    if options.report:
        write_report(report, options.report)
