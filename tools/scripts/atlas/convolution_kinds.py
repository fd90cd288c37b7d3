"""What the names of cuDNN's kernels say of the order of K in a convolution and its gradients."""
import re

FORWARD, DATA, WEIGHT = range(3)
# As convolution_leaf.hpp's ConvolutionForm has them.
KINDS = ("unknown", "outermost", "innermost", "per_place", "loads", "blocks", "blocks_descending", "lanes", "chain", "images", "split",
         "split_last_first", "tiled_narrow", "tiled_wide", "split_in_place", "transformed", "segments", "segments_descending", "reduced",
         "reduced_in_16_bits", "last_segments", "shared_halves", "shared_ascending", "images_shared_halves", "images_shared_ascending", "reduced_by_64",
         "reduced_in_place")
# How FP32 operands become TF32, as convolution_leaf.hpp's TensorCoreInput has them.
AS_STORED, TO_NEAREST, TRUNCATED, WIDENED = range(4)
NUMBER = {kind: i for i, kind in enumerate(KINDS)}
# Kernels that change a layout, convert, or set zeros, and such as do something else before or after.
AROUND = ("nchwToNhwc", "nhwcToNchw", "elementwise", "tensorTransform", "scalePacked", "FoldedNhwc", "foldedNhwc", "foldedNchw", "ToFolded",
          "convertTensor", "AddPadding", "computeOffsets", "kern_precompute_indices", "init_device_workspace")
# Transforms of the input, segments of K (of which segments_of tells some) and additions by atomics: no order that is known, or none.
OTHER = ("winograd", "fft", "segment_k_on", "dgrad_engine", "wgrad_alg0")


def kernels_of(key):
    """(place among the launches, name) of those that multiply, and how many there are."""
    launches = [x for x in key.rsplit("#", 2)[0].split(";") if x and not x.startswith("set")]
    return [(i, x) for i, x in enumerate(launches) if not any(word in x for word in AROUND)]


def of_gemm(name):
    """Of a product of matrices: whether FMAs multiply, and the tile of K of which an incomplete one comes first; None where its order is not known."""
    found = re.search(r"cutlass_\d\d_(?:wmma_)?tensorop\w*?gemm\w*?_\d+x\d+_(\d+)x\d+", name)
    if found and not re.search(r"75_tensorop_\w*s1688gemm", name):
        return False, int(found.group(1))
    if "cutlass" in name and "simt_sgemm" in name or "xmma_gemm" in name and "ffma" in name:
        return True, 0
    return (False, 0) if ("xmma_gemm" in name or "nvjet" in name) and "splitK" not in name else None


def of_gather(name, direction, filter_places, depth):
    """Of a convolution or its gradient of data: kind, whether FMAs multiply, and block of channels or tile."""
    data = direction == DATA
    if not data and "convolve_common_engine_float_NHWC" in name:
        return "innermost", True, 0
    gathers = ("dgrad2d_grouped_direct", "dgrad_alg1_engine") if data else ("convolve_sgemm", "conv2d_grouped_direct")
    if any(x in name for x in gathers):
        return "outermost", True, 0
    chunk = re.search(r"dgrad2d_alg1_1I\w+?Li0ELi\d+ELi(\d+)E", name) if data else None
    if chunk:
        # Filters of 16 x 16 have another order.
        return "per_place" if filter_places < 256 else "unknown", True, 2 ** int(chunk.group(1))
    if "ffma" in name:
        return "outermost", True, 0
    found = re.search(r"(?:fprop|dgrad)_(?:optimized|analytic)_\w*?_\d+x\d+_(\d+)x\d+", name)
    if found:
        return "blocks", False, int(found.group(1))
    found = re.search(r"tilesize\d+x\d+x(\d+)", name)
    if found and "xmma" in name and ("dgrad" in name if data else "fprop" in name):
        if depth > 1 and "sm80" in name:
            # Blocks of channels go to the grid's depth in turn.
            known = not data and "wo_smem" not in name
            return ("split" if "nhwckrsc_nchw" in name else "split_last_first") if known else "unknown", False, int(found.group(1))
        if "wo_smem" in name:
            return ("unknown", False, 0) if data else ("innermost" if "_aligna" in name else "loads", False, 0)
        return "blocks_descending" if data and "sm90" in name else "blocks", False, int(found.group(1))
    if filter_places == 1 and of_gemm(name):
        return "innermost", *of_gemm(name)
    return "unknown", False, 0


def of_weight(name, second, depth):
    """Of a gradient of weights: kind, whether FMAs multiply, tile of K, and parts."""
    plain = lambda kind, fma: (kind, fma, 0, 1)
    if "wgrad2d_grouped_direct" in name:
        return plain("lanes", True)
    if "wgrad_alg1_engine" in name:
        return plain("chain", True)
    if "wgrad2d_shmem" in name:
        return plain("tiled_narrow", True)
    if "reduce_wgrad_nchw_helper" in second:
        return ("images", *of_gemm(name), 1) if of_gemm(name) else plain("unknown", False)
    serial = re.search(r"wgrad_optimized_\w*?_\d+x\d+_(\d+)x", name)
    if serial and not second:
        # Each part adds to what the one before left, in the numbers of the result.
        return plain("chain", False) if depth == 1 else ("split_in_place", False, int(serial.group(1)), depth)
    cutlass = re.search(r"ImplicitGemmConvolution.*?GemmShapeILi\d+ELi\d+ELi(\d+)", name)
    if cutlass and (not second or "ReduceSplitK" in second):
        return plain("chain", False) if depth == 1 else ("split", False, int(cutlass.group(1)), depth) if second else plain("unknown", False)
    xmma = re.search(r"xmma_wgrad\w*?_tilesize\d+x\d+x(\d+)", name)
    if xmma and (not second or "split_k_kernel" in second):
        if depth == 1:
            return plain("chain", "ffma" in name)
        # Of FP32 numbers a second kernel adds the parts in ascending order.
        is_last_first = not second or re.search(r"f16_b?f16f32", name) is not None
        return "split_last_first" if is_last_first else "split", "ffma" in name, int(xmma.group(1)), depth
    return plain("unknown", False)


def is_transformed(kernels):
    """cuDNN's F(3 x 3, 4 x 4) with a product that is one chain."""
    names = [name for _, name in kernels]
    return len(names) == 4 and "winogradWgradData4x4" in names[0] and "winogradWgradOutput4x4" in names[3] and \
        any(x in names[2] for x in ("xmma_gemm", "simt_sgemm")) and "splitK" not in names[2]


# Tiles of K that a segment has at least, of a pass, numbers and tile (rows, columns, K); of others LEAST_TILES. What fits the recorded results of 2,865
# calls best: 2,796 have the number of segments that follows.
LEAST_TILES = 16
TILES_OF_SEGMENT = {(FORWARD, "f16", (128, 128, 64)): 6.5, (FORWARD, "f16", (128, 64, 64)): 26, (FORWARD, "f16", (64, 64, 64)): 13,
                    (FORWARD, "f16", (256, 64, 64)): 12, (FORWARD, "f16", (256, 96, 32)): 12, (FORWARD, "f16", (64, 128, 64)): 12,
                    (FORWARD, "tf32", (64, 64, 32)): 20, (DATA, "f16", (128, 64, 64)): 9, (DATA, "f16", (64, 128, 64)): 9,
                    (DATA, "tf32", (128, 64, 32)): 17, (WEIGHT, "f16", (64, 64, 64)): 13, (WEIGHT, "f16", (128, 64, 64)): 15,
                    (WEIGHT, "f16", (256, 64, 64)): 7, (WEIGHT, "f16", (64, 128, 64)): 9, (WEIGHT, "f16", (64, 256, 64)): 12,
                    (WEIGHT, "tf32", (128, 64, 32)): 15, (WEIGHT, "tf32", (256, 64, 32)): 15}
# Blocks that fill the tiles up to whole clusters, at most, where a power of two is taken before a greater number.
FILLED_UP = 16


# Where D has more tiles than blocks run at once: rows and columns of a tile, tiles of a cluster (along the rows), clusters at once. As
# convolution_leaf.cpp's waves.
WAVES = ((64, 64, 7, 15), (64, 64, 8, 15), (64, 128, 7, 15), (64, 128, 1, 132), (64, 256, 4, 30), (128, 64, 7, 15), (128, 64, 8, 15), (128, 64, 5, 22),
         (128, 128, 8, 15), (128, 128, 4, 30))
CLUSTERS = {(15, 7): 7, (15, 8): 8, (30, 4): 4, (110, 1): 5, (132, 1): 1, (120, 1): 4}
# Tiles of K that a segment of the last wave has at least. What fits the recorded results of 71 calls: 68 have the segments that follow.
TILES_OF_LAST_SEGMENT = {(FORWARD, "tf32", (64, 64, 32)): 12.5, (FORWARD, "tf32", (128, 128, 32)): 9, (FORWARD, "tf32", (64, 256, 32)): 5,
                         (FORWARD, "f16", (64, 128, 64)): 5, (DATA, "tf32", (128, 64, 32)): 7, (DATA, "tf32", (128, 128, 32)): 6.5,
                         (DATA, "f16", (64, 128, 64)): 5, (DATA, "f16", (64, 64, 64)): 5, (DATA, "f16", (128, 64, 32)): 8.5,
                         (DATA, "f16", (128, 128, 64)): 4.5}


def product_of(call, direction):
    """Rows and columns of the product that a convolution is, how many such products, and K's channels and places; `call`: n, c, h, w, k, f, s, p."""
    n, c, h, w, k, f, s, p = call
    pixels = n * ((h + 2 * p - f) // s + 1) * ((w + 2 * p - f) // s + 1)
    if direction == FORWARD:
        return pixels, k, 1, c, f * f
    return (n * h * w, c, 1, k, f * f) if direction == DATA else (k, c, f * f, pixels, 1)


def segment_count(direction, numbers, tile, tiles, depth, grid):
    """How many segments of K a grid has, whose blocks are those of all tiles, filled up to whole clusters, times the segments; 0: nothing tells."""
    blocks, least = grid[0] * grid[1] * grid[2], TILES_OF_SEGMENT.get((direction, numbers, tile), LEAST_TILES)
    counts = [x for x in range(2, blocks // tiles + 1) if blocks % x == 0]
    # Clusters of 7, 11 or 13 blocks lie along the grid's second side alone.
    is_odd = lambda filled: any(filled % prime == 0 and tiles % prime and grid[1] % prime for prime in (7, 11, 13))
    whole = [x for x in counts if blocks // x % grid[1] == 0 and not is_odd(blocks // x)] or counts
    deep = [x for x in whole if depth >= x * least]
    even = [x for x in deep if x & (x - 1) == 0 and blocks // x - tiles <= FILLED_UP]
    return max(even or deep, default=min(whole, default=0))


def last_segments(direction, numbers, tile, sides, depth, grid):
    """Where D has more tiles (`sides`: along its rows and columns) than the grid has blocks: into how many segments K is cut of those of the last wave, and
    the place in WAVES; None where that is not known. Clusters follow each other along the columns, from the last on, then along the rows."""
    cluster, least = CLUSTERS.get(tuple(grid[:2])), TILES_OF_LAST_SEGMENT.get((direction, numbers, tile))
    if cluster is None or least is None or grid[0] in (120, 132) and sides[1] > 1:
        return None
    wave = grid[0] * grid[1] // cluster
    shape = (*tile[:2], cluster, wave)
    last = -(-sides[0] // cluster) * sides[1] % wave
    if shape not in WAVES or last == 0:
        return None
    most, count = wave // last, 1
    if depth >= 1.1 * most * least:
        return most, WAVES.index(shape)
    while 2 * count <= most and depth >= 2 * count * least:
        count *= 2
    return count, WAVES.index(shape)


def segments_of(kernels, grid, direction, call):
    """Of a kernel that cuts K into segments: kind, whether FMAs multiply, tile, how many, and how operands become TF32 (and four times the place in WAVES);
    None where nothing tells how many."""
    names = [name for _, name in kernels]
    found = re.search(r"(fprop|dgrad|wgrad)\w*?_(f16|bf16|f32)\w*_tilesize(\d+)x(\d+)x(\d+)\w*segment_k_on", names[0]) if names else None
    if not found or len(names) > 2 or len(names) == 2 and (direction != WEIGHT or "split_k_kernel" not in names[1]):
        return None
    if direction == DATA and call[6] > 1:
        return None
    tile = tuple(map(int, found.group(3, 4, 5)))
    m, n, products, channels, places = product_of(call, direction)
    sides, depth, numbers = (-(-m // tile[0]), -(-n // tile[1])), -(-channels // tile[2]) * places, {"f32": "tf32"}.get(found.group(2), "f16")
    tiles = sides[0] * sides[1] * products
    if tiles > grid[0] * grid[1] * grid[2]:
        last = last_segments(direction, numbers, tile, sides, depth, grid) if direction != WEIGHT else None
        if last is None:
            return None
        if last[0] == 1:
            return NUMBER["blocks_descending" if direction == DATA else "blocks"], 0, tile[2], 1, input_of(names[0], direction)
        return NUMBER["last_segments"], 0, tile[2], last[0], input_of(names[0], direction) + 4 * last[1]
    # Of weights the rows' side of a grid in two dimensions is not known where the tile is wide.
    if direction == WEIGHT and grid[1] > 1 and tile[0] != tile[1]:
        return None
    count = segment_count(direction, numbers, tile, tiles, depth, grid)
    if count < 2:
        return None
    return NUMBER["segments_descending" if len(names) == 2 else "segments"], 0, tile[2], count, input_of(names[0], direction)


def is_widened(key):
    """Whether TF32's unit multiplies operands in 16 bits."""
    kernels = kernels_of(key)
    return bool(kernels) and "tf32" in kernels[0][1] and ("6__half" in key or "__nv_bfloat16" in key)


def input_of(key, direction):
    """How FP32 operands of a kernel of tensor cores become TF32: rounded by the kernel that changes their layout or type, or cut off, or as the unit reads
    them."""
    if is_widened(key):
        return WIDENED
    if "cudnnKernelDataType_t2" in key:
        return TO_NEAREST
    return TRUNCATED if direction == WEIGHT and "sm90_xmma_wgrad" in key and "tf32" in key else AS_STORED


def kind_of(key, grids, direction, filter_places):
    """(kind, whether FMAs multiply, block or tile, parts, how operands become TF32); `grids`: three numbers of each launch."""
    kind, fma, *rest = order_of(key, grids, direction, filter_places)
    return NUMBER[kind], int(fma), *rest, AS_STORED if fma else input_of(key, direction)


def order_of(key, grids, direction, filter_places):
    """What kind_of says, but for the operands."""
    kernels = kernels_of(key)
    unknown = ("unknown", False, 0, 1)
    if direction == FORWARD and all("convolve_sgemm" in name for _, name in kernels):
        # One kernel may leave the picture's edges to four others, of the same order.
        kernels = kernels[:1]
    if direction == WEIGHT and is_transformed(kernels):
        return "transformed", True, 0, 1
    if not kernels or len(kernels) > 2 or any(word in key for word in OTHER) or 3 * kernels[0][0] + 2 >= len(grids):
        return unknown
    if is_widened(key) and direction != WEIGHT:
        return unknown
    place, name = kernels[0]
    second, depth = kernels[1][1] if len(kernels) > 1 else "", int(grids[3 * place + 2])
    gemm = of_gemm(name) if filter_places == 1 else None
    if gemm and "splitKreduce" in second and "tensorop" in name:
        is_rounded = re.search(r"tensorop_(bf16|f16)_s\d+gemm", name)
        return "reduced_in_16_bits" if is_rounded else "reduced", *gemm, depth
    if gemm and direction == WEIGHT and not second and depth == 1:
        return "chain", *gemm, 1
    if direction != WEIGHT:
        kind, fma, tile = of_gather(name, direction, filter_places, depth)
        return (kind, fma, tile, depth if "split" in kind else 1) if not second else unknown
    return of_weight(name, second, depth)
