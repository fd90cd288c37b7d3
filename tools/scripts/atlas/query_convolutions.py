#!/usr/bin/env python3
"""Asks cuDNN which engine it takes for convolutions: python3 query_convolutions.py OUT f16|bf16|tf32 LAST, of the calls that convolution_lists.py lists, LAST 1 where
channels lie together; or OUT sweep SEED COUNT [f16|bf16|tf32], of the calls that sweep_convolutions.py draws of a seed.

Nothing is launched: cuDNN's heuristics are asked as PyTorch asks them, whose first engine it takes (all but a few of 2.8 million recorded calls got it). Of
each call and pass the file has that engine with its settings, and the first one that gives the same bits each time, which cudnn.deterministic asks for.
Needs a GPU, g++ and the headers of the cuDNN that PyTorch brings.
"""
import itertools
import os
import subprocess
import sys
import tempfile

import numpy as np

from convolution_lists import KINDS, calls_of
from record_shapes import packed, unpacked

NUMBERS = {"f16": 0, "bf16": 1, "tf32": 2}
BLOCK = 512  # calls
NONE = 0xffff
SOURCE = r'''
#include <cudnn.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

struct Failure {};
void check(cudnnStatus_t status) { if (status != CUDNN_STATUS_SUCCESS) throw Failure(); }

class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type) { check(cudnnBackendCreateDescriptor(type, &handle)); }
  ~Descriptor() { cudnnBackendDestroyDescriptor(handle); }
  Descriptor(const Descriptor&) = delete;
  template <class T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T* values, std::int64_t count = 1) {
    check(cudnnBackendSetAttribute(handle, name, type, count, values));
  }
  void finish() { check(cudnnBackendFinalize(handle)); }
  cudnnBackendDescriptor_t handle = nullptr;
};

struct Call { std::int32_t n, c, h, w, k, f, s, p, last, numbers; };

/// As PyTorch gives a tensor: strides of a side of 1 are those of the next one.
void describe(Descriptor& tensor, const std::int64_t (&size)[4], bool last, cudnnDataType_t type, std::int64_t name) {
  const int order[2][4] = {{3, 2, 1, 0}, {1, 3, 2, 0}};
  std::int64_t stride[4], next = 1, alignment = 32;
  for (const int d : order[last]) { stride[d] = next; next *= size[d]; }
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, &type);
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, size, 4);
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, stride, 4);
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, &name);
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, &alignment);
  tensor.finish();
}

struct Engine { bool repeats = true, narrows = false; std::string name; };

Engine engine_of(cudnnBackendDescriptor_t choice) {
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  std::int64_t count = 0, index = 0;
  check(cudnnBackendGetAttribute(choice, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &engine.handle));
  Engine result;
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
  check(cudnnBackendGetAttribute(engine.handle, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes));
  for (std::int64_t i = 0; i < count; ++i) {
    if (notes[i] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) result.repeats = false;
    if (notes[i] == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) result.narrows = true;
  }
  check(cudnnBackendGetAttribute(engine.handle, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &count, &index));
  result.name = "e" + std::to_string(index);
  std::vector<cudnnBackendDescriptor_t> knobs(CUDNN_KNOB_TYPE_COUNTS);
  for (auto& knob : knobs) check(cudnnBackendCreateDescriptor(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, &knob));
  check(cudnnBackendGetAttribute(choice, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS, &count, knobs.data()));
  for (std::int64_t i = 0; i < count; ++i) {
    cudnnBackendKnobType_t type;
    std::int64_t value = 0, one = 0;
    check(cudnnBackendGetAttribute(knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &one, &type));
    check(cudnnBackendGetAttribute(knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &one, &value));
    result.name += " " + std::to_string(static_cast<int>(type)) + "=" + std::to_string(value);
  }
  for (auto knob : knobs) cudnnBackendDestroyDescriptor(knob);
  return result;
}

class Names {
 public:
  std::uint16_t number(const std::string& name) {
    const auto [at, is_new] = numbers_.try_emplace(name, static_cast<std::uint16_t>(all.size()));
    if (is_new) all.push_back(name);
    return at->second;
  }
  std::vector<std::string> all;
 private:
  std::unordered_map<std::string, std::uint16_t> numbers_;
};

struct Pass { cudnnBackendDescriptorType_t type; cudnnBackendAttributeName_t image, filter, output, convolution, alpha, beta; };
const Pass passes[3] = {
  {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
   CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
   CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
  {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
  {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}};

/// The first engine, and the first one that repeats its bits.
void ask(cudnnHandle_t cudnn, const Call& call, const Pass& pass, Names& names, std::uint16_t (&engines)[2]) {
  const auto type = call.numbers == 0 ? CUDNN_DATA_HALF : call.numbers == 1 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
  const std::int64_t q = (call.h + 2 * call.p - call.f) / call.s + 1, r = (call.w + 2 * call.p - call.f) / call.s + 1;
  Descriptor image(CUDNN_BACKEND_TENSOR_DESCRIPTOR), filter(CUDNN_BACKEND_TENSOR_DESCRIPTOR), output(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  describe(image, {call.n, call.c, call.h, call.w}, call.last, type, 'x');
  describe(filter, {call.k, call.c, call.f, call.f}, call.last, type, 'w');
  describe(output, {call.n, call.k, q, r}, call.last, type, 'y');
  Descriptor convolution(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const auto sums = CUDNN_DATA_FLOAT;
  const auto mode = CUDNN_CROSS_CORRELATION;
  const std::int64_t sides = 2, dilation[2] = {1, 1}, stride[2] = {call.s, call.s}, padding[2] = {call.p, call.p};
  convolution.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, &sums);
  convolution.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, &mode);
  convolution.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, &sides);
  convolution.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, dilation, 2);
  convolution.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, stride, 2);
  convolution.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, padding, 2);
  convolution.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, padding, 2);
  convolution.finish();
  Descriptor operation(pass.type), graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR), heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  const float alpha = 1, beta = 0;
  operation.set(pass.image, CUDNN_TYPE_BACKEND_DESCRIPTOR, &image.handle);
  operation.set(pass.filter, CUDNN_TYPE_BACKEND_DESCRIPTOR, &filter.handle);
  operation.set(pass.output, CUDNN_TYPE_BACKEND_DESCRIPTOR, &output.handle);
  operation.set(pass.convolution, CUDNN_TYPE_BACKEND_DESCRIPTOR, &convolution.handle);
  operation.set(pass.alpha, CUDNN_TYPE_FLOAT, &alpha);
  operation.set(pass.beta, CUDNN_TYPE_FLOAT, &beta);
  operation.finish();
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, &operation.handle);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, &cudnn);
  graph.finish();
  const auto instant = CUDNN_HEUR_MODE_INSTANT;
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, &graph.handle);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, &instant);
  heuristics.finish();
  // Each answer takes time: one is asked for first, then two, then four.
  int open = 2;
  for (std::int64_t wanted = 1; wanted <= 4 && open > 0; wanted *= 2) {
    std::vector<cudnnBackendDescriptor_t> choices(wanted);
    for (auto& choice : choices) check(cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &choice));
    std::int64_t count = 0;
    check(cudnnBackendGetAttribute(heuristics.handle, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, wanted, &count, choices.data()));
    for (std::int64_t i = wanted / 2; i < count && i < wanted && open > 0; ++i) {
      const Engine engine = engine_of(choices[i]);
      if (call.numbers == 2 && engine.narrows) continue;
      for (int must_repeat = 0; must_repeat < 2; ++must_repeat) {
        if (engines[must_repeat] != 0xffff || (must_repeat && !engine.repeats)) continue;
        engines[must_repeat] = names.number(engine.name);
        --open;
      }
    }
    for (auto choice : choices) cudnnBackendDestroyDescriptor(choice);
    if (count < wanted) break;
  }
}

}  // namespace

/// query CALLS PROCESS PROCESSES BLOCK OUT: takes blocks of calls in turn.
int main(int, char** words) {
  std::FILE* in = std::fopen(words[1], "rb");
  std::fseek(in, 0, SEEK_END);
  std::vector<Call> calls(static_cast<std::size_t>(std::ftell(in)) / sizeof(Call));
  std::rewind(in);
  if (std::fread(calls.data(), sizeof(Call), calls.size(), in) != calls.size()) return 1;
  const std::size_t process = std::atoi(words[2]), processes = std::atoi(words[3]), block = std::atoi(words[4]);
  cudnnHandle_t cudnn;
  if (cudnnCreate(&cudnn) != CUDNN_STATUS_SUCCESS) return 1;
  std::FILE* out = std::fopen(words[5], "wb");
  Names names;
  for (std::size_t b = process; b * block < calls.size(); b += processes) {
    for (std::size_t i = b * block; i < calls.size() && i < (b + 1) * block; ++i) {
      for (const Pass& pass : passes) {
        std::uint16_t engines[2] = {0xffff, 0xffff};
        try { ask(cudnn, calls[i], pass, names, engines); } catch (const Failure&) {}
        std::fwrite(engines, sizeof engines, 1, out);
      }
    }
  }
  std::fclose(out);
  for (const std::string& name : names.all) std::puts(name.c_str());
}
'''


def built(folder):
    """The program, and the environment that it runs in."""
    import nvidia.cudnn
    packages = os.path.dirname(list(nvidia.cudnn.__path__)[0])
    program = os.path.join(folder, "query")
    source = program + ".cpp"
    with open(source, "w") as file:
        file.write(SOURCE)
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    subprocess.run(["g++", "-std=c++20", "-O2", source, "-o", program, f"-I{packages}/cudnn/include", f"-I{home}/include", f"-L{packages}/cudnn/lib",
                    "-l:libcudnn.so.9"], check=True)
    return program, {**os.environ, "LD_LIBRARY_PATH": f"{packages}/cudnn/lib:{packages}/cu13/lib:{os.environ.get('LD_LIBRARY_PATH', '')}"}


def asked(calls, processes=os.cpu_count()):
    """Names of engines, and their numbers along passes, (the first one, the first that repeats its bits) and calls; `calls`: n c h w k f s p last numbers."""
    with tempfile.TemporaryDirectory() as folder:
        program, environment = built(folder)
        calls.astype(np.int32).tofile(os.path.join(folder, "calls"))
        outs = [os.path.join(folder, str(i)) for i in range(processes)]
        running = [subprocess.Popen([program, os.path.join(folder, "calls"), str(i), str(processes), str(BLOCK), out], env=environment, stdout=subprocess.PIPE, text=True)
                   for i, out in enumerate(outs)]
        names, result = {}, np.full((len(calls), 3, 2), NONE, np.uint16)
        for i, (process, out) in enumerate(zip(running, outs)):
            said = process.communicate()[0]
            if process.returncode:
                raise SystemExit("the query failed")
            number = np.array([names.setdefault(name, len(names)) for name in said.splitlines()] + [NONE], np.uint16)
            told = np.fromfile(out, np.uint16).reshape(-1, 3, 2)
            mine = np.flatnonzero(np.arange(len(calls)) // BLOCK % processes == i)
            result[mine] = number[np.minimum(told, len(number) - 1)]
    return list(names), result.transpose(1, 2, 0)


def listed(numbers, last):
    """All listed calls, kind by kind."""
    n, c, h, k, f, s, p = np.concatenate([calls[recorded] for calls, recorded in (calls_of(kind) for kind in range(len(KINDS)))]).T
    return np.stack([n, c, h, h, k, f, s, p, np.full(len(n), last), np.full(len(n), numbers)], 1)


def drawn(seed, count, numbers=-1):
    import sweep_convolutions
    wanted = sweep_convolutions.NAMES[1:10]
    calls = itertools.islice(sweep_convolutions.calls_of(seed, numbers), count)
    return np.array([[x[name] for name in wanted] + [min(x["dt"], 2)] for x in calls])


def write(out, names, engines):
    np.savez(out, names=np.frombuffer("\n".join(names).encode(), np.uint8), shape=engines.shape,
             engines=packed(engines))


def load(file):
    """Names of engines, and their numbers as `asked` gives them."""
    z = np.load(file)
    return bytes(z["names"]).decode().split("\n"), unpacked(z["engines"], np.uint16).reshape(z["shape"])


if __name__ == "__main__":
    if sys.argv[2] == "sweep":
        write(sys.argv[1], *asked(drawn(int(sys.argv[3]), int(sys.argv[4]), *(NUMBERS[x] for x in sys.argv[5:6]))))
    else:
        write(sys.argv[1], *asked(listed(NUMBERS[sys.argv[2]], int(sys.argv[3]))))
