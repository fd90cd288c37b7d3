#!/usr/bin/env python3
"""Records what NCCL's reductions give: record_collectives.py OUT [--seconds S] [--backend gloo] (gloo: a rehearsal without GPUs).

One process a rank. More ranks than GPUs share GPUs: each says with NCCL_HOSTID that it is on a host of its own, and they talk over
sockets of the loopback interface. Inputs are made from numbers alone (values(), special()), so that results suffice: OUT gets
them in nccl_*.npz, NCCL's log of rank 0, and all_reduce.txt, a line with a digest for each (tests/golden/nccl/README.md).
"""
import gzip, json, os, re, shutil, signal, sys, tempfile, time
import numpy as np
import torch
import torch.distributed as dist

START = time.time()
OUT = sys.argv[1]
SECONDS = float(sys.argv[sys.argv.index("--seconds") + 1]) if "--seconds" in sys.argv else 100
GLOO = "--backend" in sys.argv
GPUS = 2 if GLOO else None
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
BITS = {"fp32": np.uint32, "bf16": np.uint16, "fp16": np.uint16}


def hashed(seed, count):
    """Bits of SplitMix64 of seed and index."""
    with np.errstate(over="ignore"):
        x = (np.arange(count, dtype=np.uint64) + np.uint64(seed) * np.uint64(0x100000001B3)) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def values(kind, rank, count):
    """Finite normal codes with random fractions and exponents of eight neighbouring binades, of both signs."""
    h = hashed(rank + 1, count)
    sign, binade = h & np.uint64(1), (h >> np.uint64(1)) % np.uint64(8)
    fraction = h >> np.uint64(20)
    if kind == "fp32":
        code = sign << np.uint64(31) | (binade + np.uint64(123)) << np.uint64(23) | fraction & np.uint64(0x7FFFFF)
    elif kind == "bf16":
        code = sign << np.uint64(15) | (binade + np.uint64(123)) << np.uint64(7) | fraction & np.uint64(0x7F)
    else:
        code = sign << np.uint64(15) | (binade + np.uint64(11)) << np.uint64(10) | fraction & np.uint64(0x3FF)
    return code.astype(BITS[kind])


def special(kind, rank, world):
    """Codes of interest, all pairs of them for the first two ranks; further ranks have a third order of them."""
    top = 31 if kind == "fp32" else 15
    bits = {"fp32": 23, "bf16": 7, "fp16": 10}[kind]
    biases = {"fp32": 127, "bf16": 127, "fp16": 15}[kind]
    ones = (1 << bits) - 1
    most = 2 * biases
    magnitudes = [0, 1, 2, 3, ones - 1, ones]  # subnormals
    for e in (1, 2, biases - bits - 1, biases - 1, biases, biases + 1, most - 1, most):
        magnitudes += [e << bits, (e << bits) + 1, (e << bits) + (ones >> 1) + 1, (e << bits) + ones]
    inf = (most + 1) << bits
    magnitudes += [inf, inf + 1, inf + (1 << (bits - 1)), inf + (1 << (bits - 1)) + 5, inf + ones]
    codes = np.array([m | s << top for m in magnitudes for s in (0, 1)], dtype=np.uint64)
    n = len(codes)
    i = np.arange(n * n)
    chosen = [codes[i // n], codes[i % n]][rank] if rank < 2 else codes[hashed(1000 + rank, n * n) % np.uint64(n)]
    return chosen.astype(BITS[kind])


def tensor(kind, codes, device):
    signed = {"fp32": np.int32}.get(kind, np.int16)
    return torch.from_numpy(codes.view(signed).copy()).view(TYPES[kind]).to(device)


def codes_of(kind, x):
    whole = torch.int32 if kind == "fp32" else torch.int16
    return x.view(whole).cpu().numpy().view(BITS[kind])


OPS = {"sum": dist.ReduceOp.SUM, "avg": dist.ReduceOp.AVG, "product": dist.ReduceOp.PRODUCT, "max": dist.ReduceOp.MAX,
       "min": dist.ReduceOp.MIN}


def child(rank, world, job, folder):
    """Every question of a job; rank 0 keeps the answers."""
    device = "cpu"
    if not GLOO:
        device = f"cuda:{rank % GPUS}"
        torch.cuda.set_device(rank % GPUS)
        os.environ.update(NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,GRAPH,TUNING,COLL,ENV", NCCL_NVLS_ENABLE="0", NCCL_SOCKET_IFNAME="lo",
                          NCCL_IB_DISABLE="1", NCCL_DEBUG_FILE=f"{folder}/log.{rank}")
        if world > GPUS:
            os.environ.update(NCCL_HOSTID=f"host{rank}", NCCL_NET="Socket")
    dist.init_process_group("gloo" if GLOO else "nccl", init_method=f"file://{folder}/store", rank=rank, world_size=world)
    kept, said = {}, {}

    def keep(key, kind, result):
        if rank == 0:
            kept[key] = codes_of(kind, result) if kind in TYPES else result.view(torch.uint8).cpu().numpy()

    def ask(question):
        what, kind, op, count = question
        try:
            answer(what, kind, op, count)
        except Exception as error:  # noqa: BLE001: what a library refuses is a result
            said[f"{label}/{what}/{kind}/{op}/{count}"] = f"{type(error).__name__}: {str(error)[:200]}"

    def answer(what, kind, op, count):
        if what == "values":
            x = tensor(kind, values(kind, rank, count), device)
            dist.all_reduce(x, OPS[op], group=group)
            keep(f"{label}/all_reduce/{kind}/{op}/{count}", kind, x)
        elif what == "scatter":
            x = tensor(kind, values(kind, rank, count * world), device)
            y = torch.empty(count, dtype=x.dtype, device=device)
            dist.reduce_scatter_tensor(y, x, OPS[op], group=group)
            got = [torch.empty_like(y) for _ in range(world)]
            dist.all_gather(got, y, group=group)
            keep(f"{label}/reduce_scatter/{kind}/{op}/{count}", kind, torch.cat(got))
        elif what == "special":
            x = tensor(kind, special(kind, rank, world), device)
            dist.all_reduce(x, OPS[op], group=group)
            keep(f"{label}/all_reduce/{kind}/{op}/special", kind, x)
        elif what == "fp8":
            i = np.arange(65536)
            codes = (i // 256 if rank == 0 else i % 256).astype(np.uint8)
            x = torch.from_numpy(codes).view(getattr(torch, kind)).to(device)
            dist.all_reduce(x, OPS[op], group=group)
            keep(f"{label}/all_reduce/{kind}/{op}/pairs", kind, x)
        elif what == "runs":
            # Too many results to keep: for each run of elements, the ranks at which a ring may begin.
            x = tensor(kind, values(kind, rank, count), device)
            dist.all_reduce(x, OPS[op], group=group)
            if rank == 0:
                inputs = [tensor(kind, values(kind, r, count), device) for r in range(world)]
                mask = torch.zeros(count, dtype=torch.int32, device=device)
                for step in (1, -1):
                    for first in range(world):
                        y = inputs[first]
                        for k in range(1, world):
                            y = y + inputs[(first + step * k) % world]
                        bit = first + (0 if step == 1 else world)
                        mask |= (y == x).to(torch.int32) << bit
                mask = mask.cpu().numpy()
                runs, at = [], 0
                common = -1
                for begin_at in range(0, count, 4):  # elements of a run come by fours at least
                    m = int(np.bitwise_and.reduce(mask[begin_at:begin_at + 4]))
                    if common & m == 0:
                        runs.append((at, common))
                        at, common = begin_at, m
                    else:
                        common &= m
                    if len(runs) > 20000:
                        break
                runs.append((at, common))
                kept[f"{label}/runs/{kind}/{op}/{count}"] = np.array(runs, dtype=np.int64)
        if not GLOO:
            torch.cuda.synchronize()

    for algorithm, protocol, questions in job:
        for name, value in (("NCCL_ALGO", algorithm), ("NCCL_PROTO", protocol)):
            os.environ.pop(name, None)
            if value:
                os.environ[name] = value
        label = f"{world}/{algorithm or 'any'}/{protocol or 'any'}"
        begin = time.time()
        try:
            group = dist.new_group(list(range(world)))
            for question in questions:
                ask(question)
            said[label] = f"{time.time() - begin:.1f} s"
            if not GLOO:
                dist.destroy_process_group(group)
        except Exception as error:  # noqa: BLE001: what a library refuses is a result
            said[label] = f"{type(error).__name__}: {str(error)[:300]}"
        if rank == 0:
            np.savez(f"{folder}/answers.part.npz", **kept)
            os.replace(f"{folder}/answers.part.npz", f"{folder}/answers.npz")
            json.dump(said, open(f"{folder}/said.json", "w"))
    sys.stdout.flush()
    os._exit(0)


def digest_of(array):
    """FNV-1a of its bytes."""
    digest = 0xCBF29CE484222325
    for byte in array.tobytes():
        digest = (digest ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return digest


def lines_of(log, answers):
    """Ranks, collective, algorithm, protocol, channels used and there, type, operation, elements, digest: of each answer, with what the
    log says of the calls in their order."""
    calls, channels = [], 0
    for line in log.splitlines():
        if found := re.search(r"(\d+) coll channels", line):
            channels = int(found[1])
        elif found := re.search(r"(AllReduce|ReduceScatter): \d+ Bytes -> Algo (\w+) proto (\w+) channel{Lo..Hi}={\d+..(\d+)}", line):
            calls.append((found[1], found[2].lower(), found[3].lower(), int(found[4]) + 1, channels))
    for (key, array), (_, algorithm, protocol, used, there) in zip(answers.items(), calls, strict=True):
        world, _, _, what, kind, op, count = key.split("/")
        kind = {"float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2"}.get(kind, kind)
        if what != "runs":
            yield f"{world} {what} {algorithm} {protocol} {used} {there} {kind} {op} {count} {digest_of(array):016x}"


def run(world, job, limit):
    folder = tempfile.mkdtemp()
    begin, children = time.time(), []
    for rank in range(world):
        pid = os.fork()
        if pid == 0:
            try:
                child(rank, world, job, folder)
            except BaseException as error:  # noqa: BLE001
                print(f"rank {rank} of {world}: {error}"[:500], flush=True)
            os._exit(1)
        children.append(pid)
    left = set(children)
    while left and time.time() - begin < limit:
        for pid in list(left):
            if os.waitpid(pid, os.WNOHANG)[0]:
                left.discard(pid)
        time.sleep(0.05)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    tag = f"{world}_{len(os.listdir(OUT))}"
    if os.path.exists(f"{folder}/said.json"):
        print(f"{world} ranks, {time.time() - begin:.1f} s{', stopped' if left else ''}:", open(f"{folder}/said.json").read(), flush=True)
    if os.path.exists(f"{folder}/answers.npz"):
        shutil.copy(f"{folder}/answers.npz", f"{OUT}/nccl_{tag}.npz")
    if os.path.exists(f"{folder}/log.0"):
        log = open(f"{folder}/log.0", errors="replace").read()
        with gzip.open(f"{OUT}/nccl_logs.gz", "at") as packed:
            packed.write(f"=== {tag}\n" + log[:4_000_000])
        if os.path.exists(f"{folder}/answers.npz"):
            with open(f"{OUT}/all_reduce.txt", "a") as lines:
                lines.writelines(line + "\n" for line in lines_of(log, np.load(f"{folder}/answers.npz")))
    else:
        print(f"{world} ranks: no log", os.listdir(folder), flush=True)


def main():
    global GPUS
    os.makedirs(OUT, exist_ok=True)
    if not GLOO:
        GPUS = int(os.popen("nvidia-smi -L | wc -l").read())
    sums = [("values", kind, "sum", n) for kind in TYPES for n in (3, 1003, 20011, 100003)]
    more = sums + [("values", "fp32", "sum", 300007), ("scatter", "fp32", "sum", 10007), ("scatter", "bf16", "sum", 10007),
                   ("values", "fp32", "avg", 20011), ("values", "bf16", "avg", 20011), ("values", "fp16", "avg", 20011),
                   ("values", "bf16", "product", 1003), ("values", "fp32", "product", 1003)]
    edge = [("special", kind, op, 0) for kind in TYPES for op in ("sum", "avg", "product", "max", "min")]
    fp8 = [("fp8", kind, op, 0) for kind in ("float8_e4m3fn", "float8_e5m2") for op in ("sum", "avg", "max", "product")]
    runs = [("runs", "fp32", "sum", 4000037), ("runs", "fp32", "sum", 16000057)]
    two = [("", "", more + edge), ("Ring", "Simple", sums), ("Ring", "LL", sums[:8]), ("Ring", "LL128", sums[:8]), ("Tree", "Simple", sums),
           ("Tree", "LL", sums[:8]), ("Tree", "LL128", sums[:8]), ("", "", fp8)]
    few = [("Ring", "Simple", more + [("special", k, "sum", 0) for k in TYPES]), ("Tree", "Simple", more), ("Ring", "LL", sums),
           ("Tree", "LL", sums)]
    jobs = [(2, two, 35), (4, few, 45), (3, few[:2] + [("Ring", "LL128", sums[:8]), ("Tree", "LL128", sums[:8])], 30), (8, few, 45),
            (4, [("Ring", "Simple", runs[:1]), ("Tree", "LL128", sums[:8])], 25)]
    for world, job, limit in jobs:
        left = SECONDS - (time.time() - START)
        if left < 8:
            print("no time for", world, "ranks", flush=True)
            continue
        run(world, job, min(limit, left))
    print(f"NCCL {torch.cuda.nccl.version() if not GLOO else ''}, {time.time() - START:.1f} s", flush=True)


main()
